"""Messages as a page gets them: files with addresses that work for a day."""

import time
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from sapa.context import AppContext
from sapa.messaging.channels.widget.types import WidgetMessage
from sapa.messaging.media.links import MediaLink, build_link

LINK_SECONDS = 86_400
"""A page may stay open for long; whenever it loads messages, it gets new addresses."""


def present(context: AppContext, company_id: int, message: WidgetMessage) -> WidgetMessage:
    if b'"files"' not in bytes(message.content):
        return message
    content: dict[str, Any] = msgspec.json.decode(message.content)
    content["files"] = [_add_addresses(context, company_id, file) for file in content.get("files", [])]
    return replace(message, content=Raw(msgspec.json.encode(content)))


def _add_addresses(context: AppContext, company_id: int, file: dict[str, Any]) -> dict[str, Any]:
    """Our id of the message stays here."""
    link = MediaLink(company_id, file.pop("messageId"), file.pop("number"), int(time.time()) + LINK_SECONDS)
    thumbnail = replace(link, is_thumbnail=True)
    named = {"url": build_link(context, link)}
    return {**file, **named, **({"thumbnailUrl": build_link(context, thumbnail)} if file["type"] == "image" else {})}
