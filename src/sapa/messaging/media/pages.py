"""Serves the files of messages at signed addresses that expire after 15 minutes."""

import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.downloads import Download
from sapa.http.errors import NotFound
from sapa.http.responses import Timestamp
from sapa.messaging.media import queries
from sapa.messaging.media.links import LINK_SECONDS, MediaLink, build_link, read_link
from sapa.messaging.media.queries import MediaRow
from sapa.messaging.messages.types import MessageId2
from sapa.values.company import Company
from sapa.values.instants import format_instant

MAX_NAME_LENGTH = 200

# Safe to show in a browser; all other types are downloads.
_HARMLESS = {
    "image/png", "image/jpeg", "image/webp", "image/gif", "video/mp4", "audio/ogg", "audio/mpeg", "audio/mp4",
}  # fmt: skip


class MediaFile(Struct, frozen=True, rename="camel"):
    """A file of a message, with a URL that expires after 15 minutes."""

    type: Annotated[str, Meta(examples=["image"])]
    mime_type: Annotated[str | None, Meta(examples=["image/png"])]
    filename: Annotated[str | None, Meta(examples=[None])]
    size: Annotated[int | None, Meta(examples=[20480], description="In bytes; null until it is fetched.")]
    status: Annotated[str, Meta(examples=["stored"], description="waiting, stored or failed.")]
    error: Annotated[str | None, Meta(examples=[None])]
    url: Annotated[
        str | None,
        Meta(examples=["https://sapa.example/media/AbC"], description="Needs no key: do not share it."),
    ]
    expires_at: Annotated[Timestamp | None, Meta(examples=["2026-01-31T09:45:00.000Z"])]


class MessageFiles(Struct, frozen=True, rename="camel"):
    """The files of a message."""

    message_id2: MessageId2
    files: list[MediaFile]


async def describe(context: AppContext, db: Connection, company: Company, message_id: str) -> MessageFiles:
    until = int(time.time()) + LINK_SECONDS
    rows = await queries.list_media(db, company.id, message_id)
    if not rows and not await queries.has_message(db, company.id, message_id):
        raise NotFound
    return MessageFiles(message_id, [_describe(context, company, row, until) for row in rows])


def _describe(context: AppContext, company: Company, row: MediaRow, until: int) -> MediaFile:
    is_there = row.status == "stored"
    url = build_link(context, MediaLink(company.id, row.message_id, row.number, until)) if is_there else None
    expires = format_instant(datetime.fromtimestamp(until, UTC)) if is_there else None
    return MediaFile(row.type, row.mime_type, row.filename, row.size, row.status, row.error, url, expires)


def build_pages(context: AppContext) -> list[Route]:
    async def serve(request: Request) -> Response:
        link = read_link(context, request.path_params["token"])
        async with context.database.connection() as db:
            row = await queries.get_media(db, link.company_id, link.message_id, link.number)
        if row.status != "stored":
            raise NotFound
        return Download(_stream(context, link), _headers(row), _content_type(row))

    return [Route("/media/{token}", serve, methods=["GET"])]


async def _stream(context: AppContext, link: MediaLink) -> AsyncGenerator[bytes, None]:
    """Part by part, so that a slow download holds no database connection."""
    part, data = 0, b""
    while part == 0 or data:
        async with context.database.connection() as db:
            data = await queries.find_part(db, link.company_id, link.message_id, link.number, part) or b""
        part += 1
        yield data


def _headers(row: MediaRow) -> dict[str, str]:
    kind = "inline" if row.mime_type in _HARMLESS else "attachment"
    name = quote((row.filename or f"{row.type}-{row.number}")[:MAX_NAME_LENGTH], safe="")
    return {
        "content-disposition": f"{kind}; filename*=UTF-8''{name}",
        "content-length": str(row.size),
        "cache-control": "private, no-store",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }


def _content_type(row: MediaRow) -> str:
    return row.mime_type if row.mime_type in _HARMLESS else "application/octet-stream"
