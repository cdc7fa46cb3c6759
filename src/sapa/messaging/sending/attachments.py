"""Gives a channel the files that we hold: attached, uploaded, or as a link."""

from collections.abc import Sequence
from functools import partial
from posixpath import basename

from msgspec.structs import replace

from sapa.context import AppContext
from sapa.messaging.channels.abilities import FileUploads
from sapa.messaging.channels.interface import (
    ChannelAccount,
    Content,
    FileDescription,
    MailAttachment,
    Media,
    OutgoingFile,
    OutgoingMessage,
    SendRefusal,
    TemplateCall,
)
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.files import actions as files
from sapa.messaging.media.actions import build_address
from sapa.messaging.media.held_files import HeldFile, list_files, open_content, read_content
from sapa.messaging.sending.types import SendPlan
from sapa.values.company import Company

MAX_ATTACHED_BYTES = 10 * 1_000_000
"""Of a message in all. Mail servers refuse larger mails."""


def address_files(context: AppContext, plan: SendPlan, message_id: str) -> SendPlan:
    """The content names the message's own media address in place of files that we hold."""
    if not plan.draft.files:
        return plan
    url = build_address(context, message_id)
    media = find_media(plan.draft.content)
    content = plan.draft.content if media is None else replace_media(plan.draft.content, replace(media, url=url))
    return replace(plan, draft=replace(plan.draft, media_url=url, content=content))


def find_media(content: Content) -> Media | None:
    match content:
        case Media():
            return content
        case TemplateCall(header_media=media):
            return media
    return None


def replace_media(content: Content, media: Media) -> Content:
    return replace(content, header_media=media) if isinstance(content, TemplateCall) else media


async def attach_files(
    context: AppContext, connected: ConnectedChannel, message: OutgoingMessage
) -> OutgoingMessage | SendRefusal:
    """A file at an address that is not ours stays a link: we never fetch it."""
    media, company = find_media(message.content), connected.connection.company
    if media is None or context.sealing is None or not media.url.startswith(context.settings.server.address):
        return message
    async with context.database.connection() as db:
        held = await list_files(context, db, company, media.url)
    if not held:
        return message
    message = replace(message, files=[_describe(each) for each in held])
    if connected.channel.capabilities.has_attachments and isinstance(message.content, Media):
        return await _attach(context, company, message, message.content, held)
    if isinstance(connected.channel, FileUploads):
        return await _upload(context, connected, connected.channel, message, media, held[0])
    return replace(message, content=replace_media(message.content, replace(media, url=held[0].url)))


def _describe(held: HeldFile) -> FileDescription:
    return FileDescription(held.row.type, held.filename, held.media_type, held.size)


async def _attach(
    context: AppContext, company: Company, message: OutgoingMessage, content: Media, held: Sequence[HeldFile]
) -> OutgoingMessage:
    """Files that are too large together stay links."""
    if sum(each.size for each in held) > MAX_ATTACHED_BYTES:
        links = "\n".join(f"{each.filename}: {each.url}" for each in held[1:])
        caption = "\n\n".join(part for part in (content.caption, links) if part)
        return replace(message, content=replace(content, url=held[0].url, caption=caption or None))
    name = content.filename if len(held) == 1 else None
    attachments = [_build_attachment(each, name, await read_content(context, company, each)) for each in held]
    return replace(message, attachments=attachments)


def _build_attachment(held: HeldFile, filename: str | None, data: bytes) -> MailAttachment:
    media_type = held.media_type if held.media_type.count("/") == 1 else "application/octet-stream"
    return MailAttachment(basename(filename or held.filename), media_type, data)


async def _upload(
    context: AppContext, connected: ConnectedChannel, channel: FileUploads, message: OutgoingMessage, media: Media,
    held: HeldFile,
) -> OutgoingMessage | SendRefusal:  # fmt: skip
    """By the id that the channel gave to the file for an earlier message, if there was one."""
    connection = connected.connection
    id = await _find_uploaded(context, connection, media, held)
    if id is None:
        read = partial(open_content, context, connection.company.id, held.row, held.file)
        file = OutgoingFile(media.filename or held.filename, held.media_type, held.size, read)
        uploaded = await channel.upload_file(connection, media.type, file)
        if isinstance(uploaded, SendRefusal):
            return uploaded
        if uploaded is None:
            return replace(message, content=replace_media(message.content, replace(media, url=held.url)))
        id = uploaded
        await _store_uploaded(context, connection, media, held, id, channel.upload_seconds)
    return replace(message, content=replace_media(message.content, replace(media, channel_id=id)))


async def _find_uploaded(context: AppContext, connection: ChannelAccount, media: Media, held: HeldFile) -> str | None:
    if held.file is None:
        return None
    async with context.database.connection() as db:
        return await files.find_uploaded(db, connection.company, held.file.id, connection.id, media.type)


async def _store_uploaded(
    context: AppContext, connection: ChannelAccount, media: Media, held: HeldFile, id: str, seconds: float
) -> None:
    if held.file is None or not seconds:
        return
    async with context.database.connection() as db:
        await files.store_uploaded(db, connection.company, held.file.id, connection.id, media.type, id, seconds)


async def delete_uploaded(context: AppContext, connected: ConnectedChannel, message: OutgoingMessage) -> None:
    """After a refusal that may be about the uploaded file: the next message uploads it again."""
    media = find_media(message.content)
    if media is None or media.channel_id is None:
        return
    async with context.database.connection() as db:
        await files.delete_uploaded(db, connected.connection.company, connected.connection.id, media.channel_id)
