"""What people wrote, as a page shows it. Pure."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from markupsafe import Markup, escape

from sapa.support.mentions.actions import build_pattern

_BRACKETED = r"\([^\s<>\"'()]*\)"
_ADDRESS = re.compile(
    rf"(https?://(?:{_BRACKETED}|[^\s<>\"'()])*(?:{_BRACKETED}|[^\s<>\"'.,;:!?()\[\]{{}}]))", re.IGNORECASE
)


def mark_links(text: str, mark: Callable[[str], Markup] = escape) -> Markup:
    """Escapes a text, and makes links of its http addresses; `mark` writes what is between them."""
    parts = _ADDRESS.split(text)
    return Markup("").join(_build_link(part) if place % 2 else mark(part) for place, part in enumerate(parts))


def build_name_marker(names: Iterable[str]) -> Callable[[str], Markup]:
    """Marks the people whom a note mentions, and its links."""
    pattern = build_pattern(str(escape(name)) for name in names)

    def mark_between(text: str) -> Markup:
        escaped = str(escape(text))
        if pattern is None:
            return Markup(escaped)  # noqa: S704 - escaped above
        return Markup(pattern.sub(r"<mark>\g<0></mark>", escaped))  # noqa: S704 - escaped above

    return partial(mark_links, mark=mark_between)


def _build_link(address: str) -> Markup:
    return Markup('<a href="{0}" rel="noreferrer noopener" target="_blank">{0}</a>').format(address)
