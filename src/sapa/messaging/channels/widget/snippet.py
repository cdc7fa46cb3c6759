"""What a site puts into its pages."""

from html import escape

from msgspec import Struct

from sapa.http.errors import Conflict
from sapa.messaging.channels.widget.types import PREFIX


class Snippet(Struct, frozen=True):
    """The chat of a test environment, for a page and for the server behind it."""

    snippet: str
    key: str
    secret: str


class SnippetShownOnce(Conflict):
    """A live chat's snippet is shown when the channel is connected; `sapa channel connect --new-hook` makes another."""

    code = "SHOWN_ONCE"


def build_snippet(address: str, key: str) -> str:
    """The address is this installation's, the key the chat's public one."""
    return f'<script src="{escape(address)}{PREFIX}/widget.js" data-key="{escape(key)}" async></script>'
