"""Which files are pages of the site, and how their links change: a site has no files besides its pages."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

INDEX = "docs/README.md"
OUTSIDE = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "sdk/METHODS.md": "sdk/methods.md",
    "sdk/python/README.md": "sdk/python.md",
    "sdk/typescript/README.md": "sdk/typescript.md",
}
"""Pages that stand elsewhere in the repository: file → page."""
FOLDED = "Decisions"
"""The section of the index that has a page of its own in the site: it is too long for the sidebar."""
FOLDED_PAGE = "decisions/index.md"

_FENCED = re.compile(r"(^(?P<fence> *```+).*?^(?P=fence) *$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<mark>!?)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ABSOLUTE = re.compile(r"[a-z]+:|/|#")
_REFERENCE = re.compile(r"http://127\.0\.0\.1:8000/(?P<base>customer|messaging)/v1/docs")
"""How pages link to the reference, so that it works beside a server that `make run` started."""


class BrokenLink(Exception):
    """A page links to a file that does not exist."""


class Contents(NamedTuple):
    """A section of the index, and the files that it lists."""

    caption: str
    files: list[str]


def list_pages(root: Path) -> dict[str, str]:
    """File → page, both relative: the file to the repository, the page to the site."""
    guides = sorted(path.relative_to(root).as_posix() for path in root.glob("docs/**/*.md"))
    pages = {file: file.removeprefix("docs/") for file in guides} | {INDEX: "index.md"}
    return pages | {file: page for file, page in OUTSIDE.items() if (root / file).exists()}


def build_pages(root: Path) -> Iterator[tuple[str, str]]:
    """Each page and its text, with the contents of the sidebar as directives of Sphinx."""
    pages = list_pages(root)
    children = list_children(root, pages)
    index, _, folded = (root / INDEX).read_text().partition(f"\n## {FOLDED}\n")
    for file, page in pages.items():
        if file != INDEX:
            contents = build_toctree([relate(pages[child], page) for child in children[file]])
            yield page, relink(root, file, (root / file).read_text(), pages) + contents
    sections = [part for part in read_contents(root) if part.caption != FOLDED]
    toctrees = [build_toctree([pages[file] for file in part.files], part.caption) for part in sections]
    yield "index.md", relink(root, INDEX, index, pages) + "".join(toctrees) + build_toctree([FOLDED_PAGE])
    decisions = [relate(pages[file], FOLDED_PAGE) for file in list_linked(root, INDEX, folded)]
    text = relink(root, INDEX, f"# {FOLDED}\n{folded}", pages, page=FOLDED_PAGE)
    yield FOLDED_PAGE, text + build_toctree(decisions)


def read_contents(root: Path) -> list[Contents]:
    """The sections of the index, each with the pages that it links to, in their order."""
    _, *parts = _SECTION.split((root / INDEX).read_text())
    sections = zip(parts[::2], parts[1::2], strict=True)
    return [Contents(caption, list_linked(root, INDEX, text)) for caption, text in sections]


def list_linked(root: Path, file: str, text: str) -> list[str]:
    """The pages that a text links to, each once."""
    pages = list_pages(root)
    targets = (resolve(file, link["target"])[0] for link in _LINK.finditer(_FENCED.sub("", text)))
    return list(dict.fromkeys(target for target in targets if target in pages))


def list_children(root: Path, pages: dict[str, str]) -> dict[str, list[str]]:
    """Pages that the index does not list stand in the sidebar below the first page that links to them."""
    waiting = [file for contents in read_contents(root) for file in contents.files]
    placed = {INDEX, *waiting}
    children: dict[str, list[str]] = {}
    while waiting:
        file = waiting.pop(0)
        new = [one for one in list_linked(root, file, (root / file).read_text()) if one not in placed]
        placed.update(new)
        waiting += new
        children[file] = new
    if lost := sorted(pages.keys() - placed):
        raise BrokenLink(f"No page leads to {', '.join(lost)}. List them in {INDEX}.")
    return children


def build_toctree(pages: list[str], caption: str = "") -> str:
    """The directive that puts pages into the sidebar, invisible in the text; empty for no pages."""
    if not pages:
        return ""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "", "```{toctree}", *options, "", *(page.removesuffix(".md") for page in pages), "```", ""])


def relink(root: Path, file: str, text: str, pages: dict[str, str], page: str | None = None) -> str:
    """The text with links between pages; a link to another file of the repository becomes its label."""
    page = page or pages[file]

    def replace(link: re.Match[str]) -> str:
        if reference := _REFERENCE.fullmatch(link["target"]):
            address = relate(f"reference/{reference['base']}/index.html", page)
            return f'<a href="{address}">{link["label"]}</a>'
        if _ABSOLUTE.match(link["target"]):
            return link[0]
        target, anchor = resolve(file, link["target"])
        if not (root / target).exists():
            raise BrokenLink(f"{file} links to {link['target']}, which does not exist.")
        if link["mark"]:
            return f"![{link['label']}]({relate(target.removeprefix('docs/'), page)})"
        if target in pages:
            return f"[{link['label']}]({relate(pages[target], page)}{anchor})"
        return link["label"]

    parts = _FENCED.split(text)
    # Every third part is a fenced block, followed by its fence alone.
    return "".join(part if place % 3 else _LINK.sub(replace, part) for place, part in enumerate(parts) if place % 3 < 2)


def resolve(file: str, target: str) -> tuple[str, str]:
    """A link of a file as a path from the repository, and its anchor."""
    path, mark, anchor = target.partition("#")
    joined = os.path.normpath(PurePosixPath(file).parent / path) if path else file
    return joined, mark + anchor


def relate(page: str, other: str) -> str:
    """The address of a page, seen from another one."""
    return PurePosixPath(os.path.relpath(page, PurePosixPath(other).parent)).as_posix()
