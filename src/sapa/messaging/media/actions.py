"""Which files a message has: received ones, which the worker fetches, and held ones, which it was sent with."""

from collections.abc import Sequence

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.endpoints import Base
from sapa.messaging.channels.interface import ChannelAccount, InboundMedia
from sapa.messaging.files import actions as files
from sapa.messaging.files.file_types import clean_filename, get_media_type
from sapa.messaging.files.types import FILE_ID, Attachment, StoredFile
from sapa.messaging.media import queries
from sapa.messaging.media.queries import MediaRow
from sapa.messaging.messages import actions as messages
from sapa.values.company import Company
from sapa.values.json import encode

MAX_BYTES = 25 * 1_048_576


def build_address(context: AppContext, message_id: str) -> str:
    """The media address of a message: the endpoint that returns links to its files."""
    return f"{context.settings.server.address}{Base.MESSAGING}/messages/{message_id}/media"


def build_received(connection: ChannelAccount, message_id: str, received: Sequence[InboundMedia]) -> list[MediaRow]:
    """The files of a received message. Those that did not come with it are fetched later."""
    return [_build_row(connection, message_id, number, media) for number, media in enumerate(received)]


def _build_row(connection: ChannelAccount, message_id: str, number: int, media: InboundMedia) -> MediaRow:
    filename = clean_filename(media.filename, "") if media.filename else None
    status, size, media_type = "stored" if media.file_id else "waiting", media.size, media.mime_type
    if media.content is not None:
        size = len(media.content)
        status = "stored" if 0 < size <= MAX_BYTES else "failed"
        media_type = get_media_type(media.content, media.content, filename or "")
    return MediaRow(
        message_id, number, connection.id, media.type, media_type, media.media_id, media.url, filename, status, size,
        None, 0, media.file_id or FILE_ID.new(),
    )  # fmt: skip


def encode_attachments(rows: Sequence[MediaRow]) -> bytes:
    """The files as the message's object lists them."""
    return encode(
        [Attachment(row.file_id, row.filename, row.mime_type, row.size) for row in rows if row.file_id is not None]
    )


async def record_received(
    tx: Tx, connection: ChannelAccount, rows: Sequence[MediaRow], received: Sequence[InboundMedia]
) -> None:
    """Stores the rows, and the files that came with the message."""
    company = connection.company
    for row, media in zip(rows, received, strict=True):
        await queries.insert_media(tx, company.id, connection.source, row)
        if media.file_id is not None:
            await files.keep(tx, company, "files", [media.file_id])
        elif media.content is not None and row.status == "stored" and row.file_id is not None:
            await files.store(tx, company.id, row.file_id, row.filename, media.content)
            await files.keep(tx, company, "files", [row.file_id])


async def settle(tx: Tx, company: Company, row: MediaRow, file: StoredFile) -> None:
    """A received file is stored: its type is what its bytes say."""
    await queries.settle(tx, company.id, row, file)
    await files.keep(tx, company, "files", [file.id])


async def refresh_attachments(tx: Tx, company: Company, message_id: str) -> None:
    rows = await queries.list_media(tx, company.id, message_id)
    await messages.set_attachments(tx, company, message_id, encode_attachments(rows))


async def record_sent(
    tx: Tx, connection: ChannelAccount, message_id: str, sent: Sequence[tuple[str, StoredFile]], field: str
) -> None:
    """A message to a customer gets files that we hold, each with its type of media. `field` is the request's field that
    names them."""
    await files.keep(tx, connection.company, field, [file.id for _, file in sent])
    for number, (type, file) in enumerate(sent):
        row = MediaRow(
            message_id, number, connection.id, type, file.media_type, None, None, file.filename, "stored", file.size,
            None, 0, file.id,
        )  # fmt: skip
        await queries.insert_media(tx, connection.company.id, connection.source, row)
