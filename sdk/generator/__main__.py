"""usage: python -m sdk.generator [--check]   (--check changes nothing and fails if a file is stale)"""

import sys

from sdk.generator.files import list_stale_files, write_files

if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        stale = list_stale_files()
        sys.exit(f"Stale: {', '.join(stale)}. Run `make sdks`." if stale else 0)
    write_files()
