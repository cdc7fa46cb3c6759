"""What people wrote, as a page shows it. Pure."""

import re
from collections.abc import Callable

from markupsafe import Markup, escape

_BRACKETED = r"\([^\s<>\"'()]*\)"
_ADDRESS = re.compile(
    rf"(https?://(?:{_BRACKETED}|[^\s<>\"'()])*(?:{_BRACKETED}|[^\s<>\"'.,;:!?()\[\]{{}}]))", re.IGNORECASE
)


def mark_links(text: str, mark: Callable[[str], Markup] = escape) -> Markup:
    """Escapes a text, and makes links of its http addresses; `mark` writes what is between them."""
    parts = _ADDRESS.split(text)
    return Markup("").join(_build_link(part) if place % 2 else mark(part) for place, part in enumerate(parts))


def _build_link(address: str) -> Markup:
    return Markup('<a href="{0}" rel="noreferrer noopener" target="_blank">{0}</a>').format(address)
