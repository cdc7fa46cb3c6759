"""Gives a channel the files that we hold: attached, uploaded, or as a link."""

from collections.abc import Sequence
from functools import partial
from posixpath import basename

from msgspec.structs import replace

from sapa.context import AppContext
from sapa.messaging.channels.abilities import FileUploads
from sapa.messaging.channels.content_media import list_media, replace_media
from sapa.messaging.channels.files import FileDescription, MailAttachment, OutgoingFile
from sapa.messaging.channels.interface import ChannelAccount, Media, OutgoingMessage, SendRefusal
from sapa.messaging.connections.accounts import ConnectedChannel
from sapa.messaging.files import actions as files
from sapa.messaging.media.actions import build_address
from sapa.messaging.media.held_files import HeldFile, list_files, open_content, read_content
from sapa.messaging.sending.types import SendPlan
from sapa.values.company import Company

MAX_ATTACHED_BYTES = 10 * 1_000_000
"""The attachments of one message together. Mail servers refuse larger mails."""


def address_files(context: AppContext, plan: SendPlan, message_id: str) -> SendPlan:
    """Replaces the ids of stored files in the content with the message's own media address."""
    draft = plan.draft
    if not draft.files:
        return plan
    url = build_address(context, message_id)
    media = [replace(each, url=url) if each.file_id else each for each in list_media(draft.content)]
    return replace(plan, draft=replace(draft, media_url=media[0].url, content=replace_media(draft.content, media)))


async def attach_files(
    context: AppContext, connected: ConnectedChannel, message: OutgoingMessage
) -> OutgoingMessage | SendRefusal:
    """Attaches, uploads or links stored files. A file at another address stays a link: Sapa never fetches it."""
    media, company = list_media(message.content), connected.connection.company
    ours = [each.url for each in media if context.sealing and each.url.startswith(context.settings.server.address)]
    if not ours:
        return message
    async with context.database.connection() as db:
        found = {url: await list_files(context, db, company, url) for url in dict.fromkeys(ours)}
    held = [each for files in found.values() for each in files]
    if not held:
        return message
    message = replace(message, files=[_describe(each) for each in held])
    if connected.channel.capabilities.has_attachments and isinstance(message.content, Media):
        return await _attach(context, company, message, message.content, held)
    return await _upload_or_link(
        context, connected, message, [_choose(each, found.get(each.url, ())) for each in media]
    )


def _choose(media: Media, held: Sequence[HeldFile]) -> HeldFile | None:
    """All files of a message have one address."""
    return next((each for each in held if media.file_id in {None, each.row.file_id}), None)


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


async def _upload_or_link(
    context: AppContext, connected: ConnectedChannel, message: OutgoingMessage, held: Sequence[HeldFile | None]
) -> OutgoingMessage | SendRefusal:
    """Uploads the files, or names links to them where the channel takes no uploads, and in the text of a template."""
    channel = connected.channel
    is_native = isinstance(message.content, Media) or channel.capabilities.needs_approved_templates
    sent: list[Media] = []
    for media, file in zip(list_media(message.content), held, strict=True):
        if file is None:
            sent.append(media)
            continue
        uploaded = None
        if is_native and isinstance(channel, FileUploads):
            uploaded = await _upload(context, connected.connection, channel, media, file)
        if isinstance(uploaded, SendRefusal):
            return uploaded
        sent.append(replace(media, channel_id=uploaded) if uploaded else replace(media, url=file.url))
    return replace(message, content=replace_media(message.content, sent))


async def _upload(
    context: AppContext, connection: ChannelAccount, channel: FileUploads, media: Media, held: HeldFile
) -> str | SendRefusal | None:
    """The id that the channel gave to the file for an earlier message, if there was one. None if this account cannot
    upload files."""
    if id := await _find_uploaded(context, connection, media, held):
        return id
    read = partial(open_content, context, connection.company.id, held.row, held.file)
    file = OutgoingFile(media.filename or held.filename, held.media_type, held.size, read)
    uploaded = await channel.upload_file(connection, media.type, file)
    if isinstance(uploaded, str):
        await _store_uploaded(context, connection, media, held, uploaded, channel.upload_seconds)
    return uploaded


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
    ids = [media.channel_id for media in list_media(message.content) if media.channel_id]
    if not ids:
        return
    connection = connected.connection
    async with context.database.connection() as db:
        for id in ids:
            await files.delete_uploaded(db, connection.company, connection.id, id)
