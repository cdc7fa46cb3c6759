"""Serves the files of messages at signed addresses that expire after 15 minutes."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.byte_ranges import send_file
from sapa.http.errors import NotFound
from sapa.http.responses import Timestamp
from sapa.messaging.files import actions as files
from sapa.messaging.files.file_types import SAFE_TYPES, clean_filename
from sapa.messaging.files.types import FILE_ID, THUMBNAIL_TYPE, UNKNOWN_TYPE, StoredFile
from sapa.messaging.media import queries
from sapa.messaging.media.held_files import find_stored, open_content
from sapa.messaging.media.links import LINK_SECONDS, MediaLink, build_link, read_link
from sapa.messaging.media.queries import MediaRow
from sapa.messaging.messages.types import MessageId2
from sapa.values.company import Company
from sapa.values.instants import format_instant

SAFE_HEADERS = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Whatever a file is, a browser runs nothing of it."""


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
    id: Annotated[
        str | None,
        Meta(
            examples=[FILE_ID.example],
            description="The id of the attachment, to send the file again; null for a file from before there were ids.",
        ),
    ]
    thumbnail_url: Annotated[
        str | None,
        Meta(
            examples=["https://sapa.example/media/XyZ"],
            description="A small WebP picture of an image; null for other files, and until it is made.",
        ),
    ]


class MessageFiles(Struct, frozen=True, rename="camel"):
    """The files of a message."""

    message_id2: MessageId2
    files: list[MediaFile]


async def describe(context: AppContext, db: Connection, company: Company, message_id: str) -> MessageFiles:
    [found] = (await describe_all(context, db, company, [message_id])).values()
    if not found and not await queries.has_message(db, company.id, message_id):
        raise NotFound
    return MessageFiles(message_id, found)


async def describe_all(
    context: AppContext, db: Connection, company: Company, message_ids: Sequence[str]
) -> dict[str, list[MediaFile]]:
    """The files of each of the messages."""
    until = int(time.time()) + LINK_SECONDS
    rows = await queries.list_media_of(db, company.id, message_ids)
    stored = await files.list_stored(db, company.id, [row.file_id for row in rows if row.file_id])
    described: dict[str, list[MediaFile]] = {id: [] for id in message_ids}
    for row in rows:
        described[row.message_id].append(_describe(context, company, row, stored.get(row.file_id or ""), until))
    return described


def _describe(context: AppContext, company: Company, row: MediaRow, file: StoredFile | None, until: int) -> MediaFile:
    is_there = row.status == "stored"
    link = MediaLink(company.id, row.message_id, row.number, until)
    has_thumbnail = is_there and file is not None and file.thumbnail == "stored"
    return MediaFile(
        type=row.type,
        mime_type=row.mime_type,
        filename=row.filename,
        size=row.size,
        status=row.status,
        error=row.error,
        url=build_link(context, link) if is_there else None,
        expires_at=format_instant(datetime.fromtimestamp(until, UTC)) if is_there else None,
        id=row.file_id,
        thumbnail_url=build_link(context, replace(link, is_thumbnail=True)) if has_thumbnail else None,
    )


def build_pages(context: AppContext) -> list[Route]:
    async def serve(request: Request) -> Response:
        link = read_link(context, request.path_params["token"])
        async with context.database.connection() as db:
            row = await queries.get_media(db, link.company_id, link.message_id, link.number)
            file = await find_stored(db, link.company_id, row)
            thumbnail = await files.find_thumbnail(db, link.company_id, file.id) if file and link.is_thumbnail else None
        if link.is_thumbnail:
            return _show_thumbnail(thumbnail)
        if row.status != "stored" or row.size is None or (row.file_id is not None and file is None):
            raise NotFound
        content = open_content(context, link.company_id, row, file)
        return send_file(request.headers, content, row.size, _headers(row), _content_type(row))

    return [Route("/media/{token}", serve, methods=["GET"])]


def _show_thumbnail(thumbnail: bytes | None) -> Response:
    if thumbnail is None:
        raise NotFound
    return Response(thumbnail, headers=SAFE_HEADERS, media_type=THUMBNAIL_TYPE)


def _headers(row: MediaRow) -> dict[str, str]:
    kind = "inline" if row.mime_type in SAFE_TYPES else "attachment"
    name = quote(clean_filename(row.filename or f"{row.type}-{row.number}", row.mime_type or ""), safe="")
    return {
        **SAFE_HEADERS,
        "content-disposition": f"{kind}; filename*=UTF-8''{name}",
    }


def _content_type(row: MediaRow) -> str:
    """A type that a browser might run is not named."""
    return row.mime_type if row.mime_type in SAFE_TYPES else UNKNOWN_TYPE
