"""`python -m docs.generator.publish SITE FOLDER` puts a built site beside those of earlier versions.

FOLDER is what a static web server serves: one folder for each version, and a page that leads to the newest. Each
version has a menu of all of them.
"""

import argparse
import shutil
from pathlib import Path

from packaging.version import Version

from sapa import __version__

VERSIONS = Path("_static") / "versions.js"
START = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sapa</title>
<link rel="icon" href="{version}/_static/icon.svg">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">The documentation of Sapa {version}</a>
</html>
"""


def publish(site: Path, folder: Path, version: str) -> None:
    target = folder / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    versions = list_versions(folder)
    listed = ", ".join(f'"{one}"' for one in versions)
    for one in versions:
        (folder / one / VERSIONS).write_text(f"window.SAPA_VERSIONS = [{listed}];\n")
    (folder / "index.html").write_text(START.format(version=versions[0]))


def list_versions(folder: Path) -> list[str]:
    """The newest first."""
    found = [path.parent.parent.name for path in folder.glob(f"*/{VERSIONS.as_posix()}")]
    return sorted(found, key=Version, reverse=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.generator.publish", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    publish(options.site, options.folder, __version__)
