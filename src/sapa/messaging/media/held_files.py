"""Files of messages that we hold: found by their addresses here, and read."""

import time
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import NotFound
from sapa.messaging.files import actions as files
from sapa.messaging.files.types import UNKNOWN_TYPE, StoredFile
from sapa.messaging.media import queries
from sapa.messaging.media.actions import build_address
from sapa.messaging.media.links import PATH, MediaLink, build_link, read_link
from sapa.messaging.media.queries import MediaRow
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.values.company import Company

MAIL_LINK_SECONDS = 30 * 86_400


class HeldFile(Struct, frozen=True):
    row: MediaRow
    file: StoredFile | None
    """None for a file that was received before files had ids."""
    url: str
    """Works for a month, for a file that is too large to be attached."""

    @property
    def filename(self) -> str:
        return self.row.filename or (self.file.filename if self.file else f"{self.row.type}-{self.row.number}")

    @property
    def media_type(self) -> str:
        return self.row.mime_type or UNKNOWN_TYPE

    @property
    def size(self) -> int:
        return self.row.size or 0


async def list_files(context: AppContext, db: Connection, company: Company, url: str) -> list[HeldFile]:
    """The company's files at this address, which is the `mediaUrl` of a message or the link to one of its files; none
    if the address is not one of ours or has expired."""
    message_id, number = _parse_address(context, company, url)
    if message_id is None:
        return []
    until = int(time.time()) + MAIL_LINK_SECONDS
    rows = await queries.list_media(db, company.id, message_id)
    return [
        HeldFile(
            row,
            await find_stored(db, company.id, row),
            build_link(context, MediaLink(company.id, message_id, row.number, until)),
        )
        for row in rows
        if row.status == "stored" and number in {None, row.number}
    ]


async def find_stored(db: Connection, company_id: int, row: MediaRow) -> StoredFile | None:
    return None if row.file_id is None else await files.find_file(db, company_id, row.file_id)


async def open_content(
    context: AppContext, company_id: int, row: MediaRow, file: StoredFile | None
) -> AsyncGenerator[bytes, None]:
    """Piece by piece; a slow reader holds no database connection."""
    if file is not None:
        async for part in files.open_content(context, company_id, file):
            yield part
        return
    number = 0
    while data := await _find_part(context, company_id, row, number):
        yield data
        number += 1


async def _find_part(context: AppContext, company_id: int, row: MediaRow, part: int) -> bytes | None:
    async with context.database.connection() as db:
        return await queries.find_part(db, company_id, row.message_id, row.number, part)


async def read_content(context: AppContext, company: Company, held: HeldFile) -> bytes:
    return b"".join([part async for part in open_content(context, company.id, held.row, held.file)])


def _parse_address(context: AppContext, company: Company, url: str) -> tuple[str | None, int | None]:
    """The message, and the number of its file if the address is that of one."""
    path = urlsplit(url).path
    message_id = path.removesuffix("/media").rpartition("/")[2]
    if MESSAGE_ID.matches(message_id) and url == build_address(context, message_id):
        return message_id, None
    if not url.startswith(context.settings.server.address + PATH):
        return None, None
    try:
        link = read_link(context, path.removeprefix(PATH))
    except NotFound:
        return None, None
    return (link.message_id, link.number) if link.company_id == company.id else (None, None)
