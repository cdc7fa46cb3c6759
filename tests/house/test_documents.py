"""The documents speak of files that exist, and the README's map has every package."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.source_tree import SOURCE

REPOSITORY = SOURCE.parents[1]

_PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+(?:\.(?:py|sql|md|svg|json|txt|html)|/))`")
_MADE = {"bench/out/", "data/first-start.txt", "data/secrets.json", "index.html", "requirements.txt"}
"""Folders and files that a command makes, also those of a release."""
_LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


def list_documents(root: Path) -> list[Path]:
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]


def list_readmes(root: Path) -> list[Path]:
    """Those of channels and carriers, beside their modules."""
    return sorted(root.glob("src/**/README.md"))


def list_missing_files(root: Path) -> Iterator[str]:
    """Paths in backticks that lead to no file, from the repository or the package, and links that lead nowhere.

    A bare name such as `types.py` is that of a file in many rooms.
    """
    bare = {path.name for path in (root / "src").rglob("*")}
    for document in [*list_documents(root), *list_readmes(root)]:
        name, text = document.relative_to(root).as_posix(), document.read_text()
        for path in sorted(set(_PATH.findall(text)) - bare - _MADE):
            if not any((base / path).exists() for base in (root, root / "src/sapa", document.parent)):
                yield f"{name} names {path}"
        for path in sorted(set(_LINK.findall(text))):
            if not (document.parent / path).exists():
                yield f"{name} links to {path}"


def list_unmapped_packages(root: Path) -> list[str]:
    """Packages and modules at the top of the product that the README's map leaves out."""
    _, _, after = (root / "README.md").read_text().partition("\nsrc/sapa/\n")
    mapped = set(re.findall(r"^  ([\w.]+)/? ", after.partition("```")[0], re.MULTILINE))
    found = (root / "src/sapa").iterdir()
    present = {path.name for path in found if path.suffix == ".py" or (path / "__init__.py").exists()}
    return sorted(present - mapped - {"__init__.py", "__main__.py"})


def test_every_file_that_is_named_exists() -> None:
    assert "\n".join(list_missing_files(REPOSITORY)) == ""


def test_the_map_has_every_package() -> None:
    assert list_unmapped_packages(REPOSITORY) == []


def test_every_document_is_in_the_index() -> None:
    index = (REPOSITORY / "docs/README.md").read_text()
    pages = [path.relative_to(REPOSITORY / "docs").as_posix() for path in list_documents(REPOSITORY)[2:]]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == []


def test_a_missing_file_a_broken_link_and_a_missing_package_are_seen(tmp_path: Path) -> None:
    (tmp_path / "src/sapa/orders").mkdir(parents=True)
    (tmp_path / "src/sapa/orders/__init__.py").write_text("")
    (tmp_path / "src/sapa/ports.py").write_text("")
    (tmp_path / "CONTRIBUTING.md").write_text("`orders/actions.py`, `src/sapa/ports.py`, `a.b`, [docs](docs/x.md)")
    (tmp_path / "README.md").write_text("```\nsrc/sapa/\n  ports.py   ports\n```\n")
    assert list(list_missing_files(tmp_path)) == [
        "CONTRIBUTING.md names orders/actions.py",
        "CONTRIBUTING.md links to docs/x.md",
    ]
    assert list_unmapped_packages(tmp_path) == ["orders"]
