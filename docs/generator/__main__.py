"""`python -m docs.generator FOLDER` builds the site into FOLDER.

With `--strict` a warning, such as a link to a heading that does not exist, is an error. With `--reference` the site
has the reference of the API, too: without a server there is no other. With `--check-links` no pages are built: the
links to other sites are tried, and FOLDER gets the report.
"""

import argparse
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sphinx.cmd.build import main as sphinx

from docs.generator.pages import ROOT, build_pages
from docs.generator.reference import link_operations, write_reference

THEME = Path(__file__).parent / "theme"
IMAGES = {".png", ".svg"}
NOT_SERVED = (".buildinfo", ".nojekyll", "objects.inv")
"""What Sphinx leaves for other tools."""


def write_sources(root: Path, folder: Path) -> None:
    for page, text in build_pages(root):
        text = link_operations(text) if page == "errors.md" else text
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    for image in sorted(path for path in (root / "docs").rglob("*") if path.suffix in IMAGES):
        target = folder / image.relative_to(root / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(image, target)


def build_site(root: Path, folder: Path, is_strict: bool, builder: str = "html") -> int:
    """Builds the pages into a new folder; returns the exit code of Sphinx."""
    with TemporaryDirectory() as work:
        sources, built = f"{work}/sources", f"{work}/built"
        write_sources(root, Path(sources))
        strict = ["--fail-on-warning", "--keep-going"] if is_strict else []
        settings = ["--builder", builder, "--conf-dir", str(THEME), "--doctree-dir", f"{work}/trees", "--quiet"]
        if code := sphinx([*settings, *strict, sources, built]):
            return code
        for name in NOT_SERVED:
            Path(built, name).unlink(missing_ok=True)
        shutil.rmtree(Path(built, "_sources"), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built, folder)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--check-links", action="store_true")
    options = parser.parse_args()
    if code := build_site(ROOT, options.folder, options.strict, "linkcheck" if options.check_links else "html"):
        return code
    if options.reference:
        write_reference(options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
