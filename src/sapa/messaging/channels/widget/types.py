"""Visitors and messages of the web chat, and its errors."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from sapa.http.errors import ApiError, Conflict, NotFound, RateLimitExceeded, ServiceUnavailable
from sapa.messaging.channels.interface import Button, Section
from sapa.values.ids import IdKind

VISITOR_ID = IdKind("vis_")

PREFIX = "/widget/v1"
"""The path of the web chat's endpoints."""


class Picture(Struct, frozen=True, omit_defaults=True):
    """A picture or a link of a message."""

    type: str
    url: str
    filename: str | None = None


class FileView(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A file of a message that we hold. Its addresses expire, so they are made for each response."""

    message_id: str
    number: int
    type: str
    filename: str
    media_type: str
    size: int
    url: str | None = None
    thumbnail_url: str | None = None


class MessageView(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A message as a page shows it."""

    text: str = ""
    header: str | None = None
    footer: str | None = None
    media: Picture | None = None
    files: Sequence[FileView] = ()
    buttons: Sequence[Button] = ()
    open_label: str | None = None
    """The label of the button that opens the list."""
    sections: Sequence[Section] = ()
    link_label: str | None = None
    link_url: str | None = None


class WidgetMessage(Struct, frozen=True, rename="camel"):
    """One message of a conversation. Numbers count from 1 for each visitor, without gaps."""

    number: int
    reference: str
    direction: str
    content: Raw
    at: str
    is_read: bool


class Visitor(Struct, frozen=True):
    id: str
    external_id: str | None
    name: str | None
    email: str | None
    stated_name: str | None
    """What they answered to the form before the chat. Nobody has verified it."""
    last_number: int


class WidgetNotFound(NotFound):
    """There is no chat with this key."""


class UnknownSession(ApiError):
    """This session is unknown or has ended. Open a new one."""

    status = 401
    code = "INVALID_SESSION"
    fix = "Open a new session; the chat widget does it by itself."


class WrongHash(ApiError):
    """The hash does not prove this id: it must be the HMAC-SHA256 of the id with the chat's secret, in hexadecimal."""

    status = 401
    code = "INVALID_HASH"
    fix = "Compute the hash on your server, with the chat's secret."


class OriginNotAllowed(ApiError):
    """This chat may not be shown on that site."""

    status = 403
    code = "ORIGIN_NOT_ALLOWED"
    fix = "Add the site's origin to the chat's account."


class TooFast(RateLimitExceeded):
    """Too many messages or calls. Try again in a minute."""


class TooManyPages(ServiceUnavailable):
    """Too many pages are connected. Try again later."""


class NoSuchChoice(Conflict):
    """The message does not offer this choice."""

    code = "NO_SUCH_CHOICE"
    fix = "Send the id of a choice that the message offers."


class Snippet(Struct, frozen=True):
    """The chat of a test environment: the snippet for pages, and the secret for their server."""

    snippet: str
    key: str
    secret: str


class SnippetShownOnce(Conflict):
    """A live chat's snippet is shown when the channel is connected. `sapa channel connect --new-hook` makes another."""

    code = "SHOWN_ONCE"
    fix = "Connect the chat again to get another snippet."
