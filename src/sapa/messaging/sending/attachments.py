"""Attaches files that we hold to a mail, so that they do not depend on a link that expires."""

from posixpath import basename

from msgspec.structs import replace

from sapa.context import AppContext
from sapa.messaging.channels.interface import Attachment, Media, OutgoingMessage
from sapa.messaging.media.held_files import HeldFile, list_files, read_content
from sapa.values.company import Company

MAX_ATTACHED_BYTES = 10 * 1_000_000
"""Of a message in all. Mail servers refuse larger mails."""


async def attach_files(context: AppContext, company: Company, message: OutgoingMessage) -> OutgoingMessage:
    """A file that is too large stays a link. So does an address that is not ours: it is never fetched."""
    content = message.content
    if not isinstance(content, Media) or context.sealing is None:
        return message
    async with context.database.connection() as db:
        files = await list_files(context, db, company, content.url)
        if not files:
            return message
        if sum(file.row.size or 0 for file in files) > MAX_ATTACHED_BYTES:
            return replace(message, content=replace(content, url=files[0].url))
        attachments = [_attach(file, content, await read_content(db, company, file)) for file in files]
    return replace(message, attachments=attachments)


def _attach(file: HeldFile, content: Media, data: bytes) -> Attachment:
    mime_type = file.row.mime_type or ""
    name = content.filename or file.row.filename or f"{file.row.type}-{file.row.number}"
    return Attachment(
        filename=basename(name),
        mime_type=mime_type if mime_type.count("/") == 1 else "application/octet-stream",
        content=data,
    )
