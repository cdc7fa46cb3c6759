"""Records the files of messages, to be fetched by the worker."""

from collections.abc import Sequence

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.endpoints import Base
from sapa.messaging.channels.interface import ChannelAccount, InboundMedia
from sapa.messaging.media import queries
from sapa.messaging.media.queries import MediaRow

MAX_BYTES = 25 * 1_048_576


def build_address(context: AppContext, message_id: str) -> str:
    """The media address of a message: the endpoint that returns links to its files."""
    return f"{context.settings.server.address}{Base.MESSAGING}/messages/{message_id}/media"


async def record_files(tx: Tx, connection: ChannelAccount, message_id: str, files: Sequence[InboundMedia]) -> None:
    """Files with content are stored at once, the others are fetched later."""
    for number, media in enumerate(files):
        row = _build_row(connection, message_id, number, media)
        await queries.insert_media(tx, connection.company.id, connection.source, row)
        if media.content is not None and row.status == "stored":
            await queries.insert_parts(tx, connection.company.id, message_id, number, media.content)


def _build_row(connection: ChannelAccount, message_id: str, number: int, media: InboundMedia) -> MediaRow:
    status, size = "waiting", None
    if media.content is not None:
        size = len(media.content)
        status = "stored" if size <= MAX_BYTES else "failed"
    return MediaRow(
        message_id, number, connection.id, media.type, media.mime_type, media.media_id, media.url, media.filename,
        status, size, None, 0,
    )  # fmt: skip
