"""Checks the content of a message, as far as that does not depend on the channel."""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from posixpath import splitext
from urllib.parse import urlsplit

from sapa.context import AppContext
from sapa.db.pool import Connection
from sapa.http.bodies import encode_own_data
from sapa.http.errors import Invalid
from sapa.messaging.channels.content_media import list_media, replace_media
from sapa.messaging.channels.interface import (
    Button,
    Buttons,
    Choices,
    Content,
    LinkButton,
    ListRow,
    Media,
    MediaType,
    Section,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.native_contents import (
    CatalogProduct,
    FlowButton,
    LocationRequest,
    ProductCard,
    ProductChoices,
    ProductSection,
)
from sapa.messaging.files import actions as files
from sapa.messaging.files.file_types import get_family
from sapa.messaging.files.types import StoredFile
from sapa.messaging.media.held_files import list_files
from sapa.messaging.sending.types import (
    MAX_METADATA_BYTES,
    AnyInteractiveIn,
    AnySendIn,
    ButtonsIn,
    FlowIn,
    InteractiveMessageIn,
    LinkIn,
    ListIn,
    LocationRequestIn,
    MediaMessageIn,
    MessageDraft,
    MessageFile,
    MessageIn,
    MessageLink,
    ProductListIn,
    ProductMessageIn,
    ReplyMessageIn,
    TemplateMessageIn,
)
from sapa.messaging.templates import actions as templates
from sapa.messaging.templates import text as template_text
from sapa.messaging.templates.filling import MAX_PRODUCTS, FilledTemplate, fill_template, list_secrets, mask_values
from sapa.messaging.templates.types import Template
from sapa.values.company import Company

MAX_ROWS = 10

_ENDINGS: dict[str, MediaType] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".webp", ".gif"), "image"),
    **dict.fromkeys((".mp4", ".3gp", ".mov", ".webm"), "video"),
    **dict.fromkeys((".mp3", ".ogg", ".opus", ".aac", ".amr", ".m4a"), "audio"),
}
_PRIVATE_NAME = re.compile(r"(?:.*\.)?(?:localhost|local|internal|home\.arpa)", re.ASCII).fullmatch


async def prepare_draft(context: AppContext, db: Connection, company: Company, body: AnySendIn) -> MessageDraft:
    metadata = None if body.metadata is None else encode_own_data("metadata", body.metadata, MAX_METADATA_BYTES)
    match body:
        case MessageIn():
            return _draft_message(body, metadata)
        case TemplateMessageIn():
            return await _draft_template(context, db, company, body, metadata)
        case MediaMessageIn():
            return await _draft_media(context, db, company, body, metadata)
        case ReplyMessageIn():
            return await _draft_reply(db, company, body, metadata)
        case InteractiveMessageIn():
            return _draft_interactive(body, metadata)


def _draft_message(body: MessageIn, metadata: bytes | None) -> MessageDraft:
    if body.image_url:
        _check_words("message", [body.message])
        url = check_url("imageUrl", body.image_url)
        content = Media("image", url, body.message)
        return MessageDraft(
            kind="media",
            content=content,
            type="image",
            body=body.message,
            media_url=url,
            metadata=metadata,
            caption_field="message",
            links=[MessageLink(url, "image", "imageUrl")],
        )
    return _draft_text(body.message, body.subject, metadata)


def _draft_text(text: str, subject: str | None, metadata: bytes | None) -> MessageDraft:
    _check_words("message", [text])
    content = Text(text, subject)
    return MessageDraft(kind="message", content=content, type="text", body=text, subject=subject, metadata=metadata)


async def _draft_media(
    context: AppContext, db: Connection, company: Company, body: MediaMessageIn, metadata: bytes | None
) -> MessageDraft:
    if (body.media_url is None) == (body.attachment_id is None):
        raise Invalid.field("mediaUrl", "is required, or attachmentId instead; not both")
    if body.attachment_id is not None:
        stored, field = await files.get_files(db, company, "attachmentId", [body.attachment_id]), "attachmentId"
    else:
        stored, field = await _list_stored_files(context, db, company, body.media_url or ""), "mediaUrl"
    url = "" if stored else check_url("mediaUrl", body.media_url or "")
    ending = splitext(urlsplit(url).path)[1].lower()
    type = body.media_type or (get_family(stored[0].media_type) if stored else _ENDINGS.get(ending, "document"))
    if type == "audio" and body.caption:
        raise Invalid.field("caption", "must be absent for audio")
    return MessageDraft(
        kind="media",
        content=_build_media(type, url, body.caption or None, body.filename, stored),
        type=type,
        body=body.caption or None,
        media_url=url or None,
        metadata=metadata,
        files=[MessageFile(file, body.media_type or get_family(file.media_type), field) for file in stored],
        links=[MessageLink(url, type, "mediaUrl")] if url else [],
        has_media_type=body.media_type is not None,
    )


def _build_media(
    type: MediaType, url: str, caption: str | None, filename: str | None, stored: Sequence[StoredFile]
) -> Media:
    """A message with several files names the first."""
    if not stored:
        return Media(type, url, caption, filename)
    return Media(type, url, caption, filename or stored[0].filename, file_id=stored[0].id)


async def _list_stored_files(context: AppContext, db: Connection, company: Company, url: str) -> list[StoredFile]:
    """The stored files behind an address of this installation, such as those of a customer's message."""
    if context.sealing is None or not url.startswith(context.settings.server.address):
        return []
    return [found.file for found in await list_files(context, db, company, url) if found.file is not None]


async def _draft_reply(db: Connection, company: Company, body: ReplyMessageIn, metadata: bytes | None) -> MessageDraft:
    """The text beside files is the caption of the first one."""
    if not body.attachment_ids:
        return _draft_text(body.message or "", None, metadata)
    stored = await files.get_files(db, company, "attachmentIds", body.attachment_ids)
    type, caption = get_family(stored[0].media_type), body.message if (body.message or "").strip() else None
    return MessageDraft(
        kind="media",
        content=_build_media(type, "", caption, None, stored),
        type=type,
        body=caption,
        metadata=metadata,
        caption_field="message",
        files=[MessageFile(file, get_family(file.media_type), "attachmentIds") for file in stored],
        has_media_type=False,
    )


async def fill_named_template(
    db: Connection, company: Company, body: TemplateMessageIn
) -> tuple[Template, FilledTemplate]:
    template = await templates.get_for_send(db, company, body.template_name, body.template_source, body.language)
    content = template_text.parse_content(template)
    return template, fill_template(template.name, content, body.params, body.components, body.media_url)


async def _draft_template(
    context: AppContext, db: Connection, company: Company, body: TemplateMessageIn, metadata: bytes | None
) -> MessageDraft:
    template, filled = await fill_named_template(db, company, body)
    preview = template_text.preview(filled)
    is_secret = templates.is_secret(template)
    header = filled.content.header
    call = TemplateCall(
        name=template.name,
        language=template.language,
        rendered=preview.text,
        header_media=filled.media,
        header=filled.header,
        body=filled.body,
        buttons=filled.buttons,
        cards=filled.cards,
        offer_ends_at=filled.offer_ends_at,
        subject=preview.header if header is not None and header.type == "text" else None,
        text=preview.body,
    )
    header_media = await _list_template_media(context, db, company, body, call)
    return MessageDraft(
        kind="template",
        content=replace_media(call, [media for media, _ in header_media]),
        type="template",
        body=preview.text,
        stored_body=template_text.preview(mask_values(filled)).text if is_secret else None,
        secrets=list_secrets(filled) if is_secret else (),
        media_url=filled.media.url or None if filled.media else None,
        metadata=metadata,
        template=template,
        files=[file for _, file in header_media if isinstance(file, MessageFile)],
        links=[file for _, file in header_media if isinstance(file, MessageLink)],
    )


async def _list_template_media(
    context: AppContext, db: Connection, company: Company, body: TemplateMessageIn, call: TemplateCall
) -> list[tuple[Media, MessageFile | MessageLink]]:
    """The media of the template's headers, each with its file if Sapa stores it, else with its address."""
    places = ["mediaUrl" if body.media_url else "components.header"] if call.header_media else []
    places += [
        f"components.cards[{number}].header" for number, card in enumerate(call.cards) if isinstance(card.header, Media)
    ]
    return [
        await _load_media_file(context, db, company, place, media)
        for place, media in zip(places, list_media(call), strict=True)
    ]


async def _load_media_file(
    context: AppContext, db: Connection, company: Company, place: str, media: Media
) -> tuple[Media, MessageFile | MessageLink]:
    field = place if place == "mediaUrl" else f"{place}.{'attachmentId' if media.file_id else 'mediaUrl'}"
    if media.file_id is not None:
        stored = await files.get_files(db, company, field, [media.file_id])
    else:
        stored = await _list_stored_files(context, db, company, media.url)
    if not stored:
        return media, MessageLink(check_url(field, media.url), media.type, field)
    filled = Media(media.type, "", filename=media.filename or stored[0].filename, file_id=stored[0].id)
    return filled, MessageFile(stored[0], media.type, field)


def _draft_interactive(body: InteractiveMessageIn, metadata: bytes | None) -> MessageDraft:
    interactive = body.interactive
    if interactive.body is not None:
        _check_words("interactive.body", [interactive.body])
    return MessageDraft(
        kind="interactive",
        content=_build_interactive(interactive),
        type="interactive",
        body=interactive.body,
        interactive=encode_own_data("interactive", interactive),
        metadata=metadata,
    )


def _build_interactive(body: AnyInteractiveIn) -> Content:
    match body:
        case ButtonsIn():
            return _build_buttons(body)
        case ListIn():
            return _build_choices(body)
        case LinkIn():
            _check_words("interactive.displayText", [body.display_text])
            return LinkButton(body.body, body.display_text, check_url("interactive.url", body.url))
        case FlowIn():
            return _build_flow(body)
        case ProductMessageIn():
            return ProductCard(CatalogProduct(body.product_id, body.catalog_id), body.body, body.footer)
        case ProductListIn():
            return _build_products(body)
        case LocationRequestIn():
            return LocationRequest(body.body)


def _build_buttons(body: ButtonsIn) -> Content:
    _check_unique("interactive.buttons", [button.id for button in body.buttons])
    _check_unique("interactive.buttons", [button.title for button in body.buttons])
    _check_words("interactive.buttons", [button.title for button in body.buttons])
    buttons = [Button(button.id, button.title) for button in body.buttons]
    return Buttons(body.body, buttons, body.header, body.footer)


def _build_choices(body: ListIn) -> Content:
    rows = [row.id for section in body.sections for row in section.rows]
    _check_unique("interactive.sections", rows)
    _check_words("interactive.sections", [row.title for section in body.sections for row in section.rows])
    _check_words("interactive.button", [body.button])
    if len(body.sections) > 1:
        _check_words("interactive.sections", [section.title for section in body.sections])
    if len(rows) > MAX_ROWS:
        raise Invalid.field("interactive.sections", f"must have at most {MAX_ROWS} rows in total")
    sections = [
        Section(section.title, [ListRow(row.id, row.title, row.description) for row in section.rows])
        for section in body.sections
    ]
    return Choices(body.body, body.button, sections, body.header, body.footer)


def _build_flow(body: FlowIn) -> Content:
    _check_words("interactive.button", [body.button])
    if body.data is not None and body.screen is None:
        raise Invalid.field("interactive.data", "must be absent without a screen")
    return FlowButton(
        body=body.body,
        button=body.button,
        flow_id=body.flow_id,
        token=body.flow_token,
        screen=body.screen,
        data=body.data,
        is_draft=body.draft,
        header=body.header,
        footer=body.footer,
    )


def _build_products(body: ProductListIn) -> Content:
    _check_words("interactive.header", [body.header])
    ids = [id for section in body.sections for id in section.product_ids]
    _check_unique("interactive.sections", ids)
    if len(ids) > MAX_PRODUCTS:
        raise Invalid.field("interactive.sections", f"must have at most {MAX_PRODUCTS} products in total")
    sections = [ProductSection(section.title, section.product_ids) for section in body.sections]
    return ProductChoices(body.catalog_id, body.header, body.body, sections, body.footer)


def _check_words(field: str, values: Sequence[str]) -> None:
    if not all(value.strip() for value in values):
        raise Invalid.field(field, "must not be blank")


def _check_unique(field: str, values: Sequence[str]) -> None:
    if len(set(values)) != len(values):
        raise Invalid.field(field, "must not have the same id or title twice")


def check_url(field: str, text: str) -> str:
    """Checks the form only. The channel fetches the URL, so nothing is resolved here."""
    if any(character.isspace() or not character.isprintable() for character in text) or "\\" in text:
        raise Invalid.field(field, "must not contain spaces, backslashes or control characters")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise Invalid.field(field, "must be a complete URL, such as https://shop.example/kopi.jpg") from None
    if parts.scheme.lower() not in {"https", "http"} or not host:
        raise Invalid.field(field, "must be a complete URL, such as https://shop.example/kopi.jpg")
    if parts.username is not None or parts.password is not None:
        raise Invalid.field(field, "must not contain a user name or password")
    if not _is_public(host):
        raise Invalid.field(field, f"must be a public URL: the channel cannot reach {host}")
    return text


def _is_public(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_global
    except ValueError:
        return _PRIVATE_NAME(host.rstrip(".").lower()) is None and not host.rstrip(".").isdigit()
