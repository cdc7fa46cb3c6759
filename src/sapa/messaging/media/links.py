"""Addresses of files that work without a key, for a limited time."""

import base64
import binascii
import time

import msgspec
from msgspec import Struct

from sapa.context import AppContext
from sapa.http.errors import NotFound
from sapa.values.sealing import BadSecretKey

LINK_SECONDS = 900
PATH = "/media/"
_LINK = "media link"


class MediaLink(Struct, frozen=True, array_like=True):
    company_id: int
    message_id: str
    number: int
    until: int
    is_thumbnail: bool = False


def build_link(context: AppContext, link: MediaLink) -> str:
    sealed = context.vault.seal(msgspec.json.encode(link), 0, _LINK)
    return f"{context.settings.server.address}{PATH}{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"


def read_link(context: AppContext, token: str) -> MediaLink:
    """An altered or expired link is not found."""
    try:
        sealed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        link = msgspec.json.decode(context.vault.open(sealed, 0, _LINK), type=MediaLink)
    except (BadSecretKey, binascii.Error, ValueError):
        raise NotFound from None
    if link.until < time.time():
        raise NotFound("This link has expired. Get a new one.")
    return link
