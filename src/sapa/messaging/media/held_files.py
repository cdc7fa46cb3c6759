"""Files that we hold, found by their addresses here."""

import time
from urllib.parse import urlsplit

from msgspec import Struct

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.errors import NotFound
from sapa.messaging.media import queries
from sapa.messaging.media.actions import build_address
from sapa.messaging.media.links import PATH, MediaLink, build_link, read_link
from sapa.messaging.media.queries import MediaRow
from sapa.messaging.messages.types import MESSAGE_ID
from sapa.values.company import Company

MAIL_LINK_SECONDS = 30 * 86_400


class HeldFile(Struct, frozen=True):
    row: MediaRow
    url: str
    """Works for a month, for a file that is too large to be attached."""


async def list_files(context: AppContext, db: Connection, company: Company, url: str) -> list[HeldFile]:
    """The company's files at this address, which is the `mediaUrl` of a received message or the link to one of its
    files; none if the address is not one of ours or has expired."""
    message_id, number = _parse_address(context, company, url)
    if message_id is None:
        return []
    rows = await queries.list_media(db, company.id, message_id)
    until = int(time.time()) + MAIL_LINK_SECONDS
    return [
        HeldFile(row, build_link(context, MediaLink(company.id, message_id, row.number, until)))
        for row in rows
        if row.status == "stored" and number in {None, row.number}
    ]


async def read_content(db: Connection, company: Company, file: HeldFile) -> bytes:
    content, part = b"", 0
    while data := await queries.find_part(db, company.id, file.row.message_id, file.row.number, part):
        content, part = content + data, part + 1
    return content


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
