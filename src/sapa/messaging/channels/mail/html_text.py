"""The text of an HTML page, in one pass over it."""

import re
from html import unescape

MAX_HTML_BYTES = 524_288

_BREAKS = {"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"}
_HIDDEN = {"head", "title"}
_find_opaque_end = {name: re.compile(f"</{name}", re.IGNORECASE).search for name in ("script", "style")}
_find_markup = re.compile(r"<(?=[a-zA-Z/!?])").search
_find_name = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]{0,20})").match
_find_tag_end = re.compile(r"""=\s*(["'])|>""").search
_drop_long_numbers = re.compile(r"&#[xX]?[0-9a-fA-F]{8,};?").sub


def extract_text(page: str) -> str:
    """What a reader sees. A tag, comment or script that does not end hides the rest of the page, as in a browser."""
    parts, position, hidden = list[str](), 0, 0
    while position < len(page):
        found = _find_markup(page, position)
        start = found.start() if found else len(page)
        if not hidden:
            parts.append(_read_text(page[position:start]))
        if found is None:
            break
        name = _read_tag_name(page, start)
        position = _skip_markup(page, start, name)
        if name in _BREAKS:
            parts.append("\n")
        if name in _HIDDEN:
            hidden = max(0, hidden + (-1 if page.startswith("</", start) else 1))
        elif name == "body":
            hidden = 0
    return _join_lines("".join(parts))


def _read_tag_name(page: str, start: int) -> str:
    found = _find_name(page, start)
    return found[1].lower() if found else ""


def _skip_markup(page: str, start: int, name: str) -> int:
    """Where the tag, comment or declaration that starts here ends."""
    if page.startswith("<!--", start):
        return _after(page.find("-->", start + 4), 3, page)
    if name:
        end = _skip_tag(page, start + 1)
        find_end = None if page.startswith("</", start) else _find_opaque_end.get(name)
        if find_end is None:
            return end
        closing = find_end(page, end)
        return closing.start() if closing else len(page)
    return _after(page.find(">", start), 1, page)


def _skip_tag(page: str, position: int) -> int:
    """Past the end of the tag. A quoted value may hold the character that ends a tag."""
    while found := _find_tag_end(page, position):
        if found[1] is None:
            return found.end()
        closing = page.find(found[1], found.end())
        if closing < 0:
            return _after(page.find(">", found.end()), 1, page)
        position = closing + 1
    return len(page)


def _after(found: int, length: int, page: str) -> int:
    return len(page) if found < 0 else found + length


def _read_text(piece: str) -> str:
    return re.sub(r"\s+", " ", unescape(_drop_long_numbers("\ufffd", piece)) if "&" in piece else piece)


def _join_lines(text: str) -> str:
    """Single spaces, and at most one empty line in a row."""
    lines: list[str] = []
    for line in text.split("\n"):
        words = " ".join(line.split())
        if words or (lines and lines[-1]):
            lines.append(words)
    return "\n".join(lines).strip()
