"""`sapa` with orders imported as before batches: each in a transaction of its own. The yardstick of the batches."""

import msgspec

from sapa.cli import main
from sapa.imports.resources import KINDS

if __name__ == "__main__":
    KINDS["orders"] = msgspec.structs.replace(KINDS["orders"], is_single=True)
    main()
