"""What is checked before a channel is called: everything it would refuse that can be known here, and precisely."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from posixpath import splitext
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from sapa.context import Kit
from sapa.db.pool import Connection
from sapa.http.errors import ApiError, Invalid
from sapa.messaging.channels.identities import build_key, canonical
from sapa.messaging.channels.interface import (
    Button,
    Buttons,
    Capabilities,
    Choices,
    Content,
    Identity,
    Link,
    Media,
    MediaType,
    Row,
    Section,
    Source,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.channels.render import render, render_without_choices
from sapa.messaging.connections import accounts
from sapa.messaging.connections.accounts import Opened
from sapa.messaging.connections.types import ChannelNotConnected
from sapa.messaging.messages.queries import Moment, read_clock
from sapa.messaging.messages.types import ChannelUnsupported, TemplateNotApproved
from sapa.messaging.sending.mail_threads import Answered, find_answered
from sapa.messaging.sending.recipients import (
    NAMED_BY_FORM,
    parse_recipient,
    parse_region,
    parse_sources,
)
from sapa.messaging.sending.types import (
    MOST_METADATA,
    AnySendIn,
    ButtonsIn,
    InteractiveMessageIn,
    LinkIn,
    ListIn,
    MediaMessageIn,
    MessageIn,
    TemplateMessageIn,
)
from sapa.messaging.sending.windows import check_window
from sapa.messaging.templates import actions as templates
from sapa.messaging.templates import text as template_text
from sapa.messaging.templates.types import Template
from sapa.values.company import Company
from sapa.values.json import encode

Kind = Literal["message", "template", "media", "interactive"]

LINKS_AS_TEXT = frozenset({Source.PHOTO_SOCIAL, Source.SHORT_VIDEO, Source.MAIL})
NO_TEXT_WITH_PICTURES = frozenset({Source.SHORT_VIDEO})
OWN_NAMES: Mapping[str, tuple[str, ...]] = {"phone": ("phone_number",), "email": ("address", "inbound_address")}
"""The fields of an account that name our own side as somebody to write to."""
MOST_ROWS = 10

_ENDINGS: dict[str, MediaType] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".webp", ".gif"), "image"),
    **dict.fromkeys((".mp4", ".3gp", ".mov", ".webm"), "video"),
    **dict.fromkeys((".mp3", ".ogg", ".opus", ".aac", ".amr", ".m4a"), "audio"),
}
_PRIVATE_NAME = re.compile(r"(?:.*\.)?(?:localhost|local|internal|home\.arpa)", re.ASCII).fullmatch


class Draft(Struct, frozen=True, kw_only=True):
    """A message that may be sent, as far as that does not depend on the channel."""

    kind: Kind
    content: Content
    type: str
    body: str | None
    subject: str | None = None
    media_url: str | None = None
    interactive: bytes | None = None
    metadata: bytes | None = None
    template: Template | None = None
    caption_field: str = "caption"
    """Where the words that go with a file were given."""


class Plan(Struct, frozen=True):
    """A message that passed: what to send, to whom, over which account."""

    draft: Draft
    opened: Opened
    to: Identity
    moment: Moment
    answered: Answered | None = None
    """Mail: the letter that it answers."""


async def prepare(kit: Kit, db: Connection, company: Company, given: AnySendIn) -> Plan:
    """Raises the first thing that stands in the way."""
    sources = parse_sources(given.sources)
    parse_region(given.country_code, company)
    draft = await build_draft(db, company, given)
    moment = await read_clock(db, company.id)
    if not sources:
        source = await _choose(kit, db, company, given, draft)
        opened, to = await _check(kit, db, company, given, draft, source, moment)
        return await _continue(db, company, Plan(draft, opened, to, moment))
    refusals: list[ApiError] = []
    for source in sources:
        try:
            opened, to = await _check(kit, db, company, given, draft, source, moment)
            return await _continue(db, company, Plan(draft, opened, to, moment))
        except ApiError as error:
            refusals.append(error)
    raise refusals[0]


async def _continue(db: Connection, company: Company, plan: Plan) -> Plan:
    """A mail to somebody who wrote is the answer to it. A template is nobody's answer, and says what it is about."""
    connection = plan.opened.connection
    if connection.source is not Source.MAIL or plan.draft.template is not None:
        return plan
    answered = await find_answered(db, company, connection.id, plan.to)
    if answered is None:
        return plan
    draft = replace(plan.draft, subject=plan.draft.subject or answered.subject)
    return replace(plan, draft=draft, answered=answered)


async def _choose(kit: Kit, db: Connection, company: Company, given: AnySendIn, draft: Draft) -> Source:
    """The first connected channel that carries this kind of message to a recipient of this form."""
    connected = await accounts.list_connected(kit, db, company)
    if not connected:
        raise ChannelNotConnected
    reachable = [source for source in connected if _is_named_by_form(given, company, source)]
    if not reachable:
        raise Invalid.field(
            "to", "must be a phone number or an e-mail address; for another id name its channel in sources"
        )
    for source in reachable:
        if draft.kind in CHANNELS[source].capabilities.sends:
            return source
    raise ChannelUnsupported


def _is_named_by_form(given: AnySendIn, company: Company, source: Source) -> bool:
    kinds = [kind for kind in CHANNELS[source].capabilities.identities if kind in NAMED_BY_FORM]
    if not kinds:
        return False
    try:
        parse_recipient(given.to, given.country_code, company, kinds)
    except Invalid:
        return False
    return True


async def _check(
    kit: Kit, db: Connection, company: Company, given: AnySendIn, draft: Draft, source: Source, moment: Moment
) -> tuple[Opened, Identity]:
    """Whether this channel can carry it now."""
    opened = await accounts.open_connection(kit, db, company, source)
    if opened is None:
        raise ChannelNotConnected(f"The channel {source} is not connected.")
    capabilities = opened.channel.capabilities
    _check_kind(source, capabilities, draft)
    to = parse_recipient(given.to, given.country_code, company, capabilities.identities)
    if _is_own(opened, to):
        raise Invalid.field("to", f"is the company's own on {source}, and nobody writes to themselves")
    _check_template(capabilities, draft)
    if not (draft.template and capabilities.needs_approved_templates):
        await check_window(db, company, opened, to, moment)
    return opened, to


def _is_own(opened: Opened, to: Identity) -> bool:
    kind, account = canonical(to).kind, opened.connection.account
    own = (Identity(kind, account[name]) for name in OWN_NAMES.get(kind, ()) if account.get(name))
    return build_key(to) in map(build_key, own)


def _check_kind(source: Source, capabilities: Capabilities, draft: Draft) -> None:
    if draft.kind not in capabilities.sends:
        raise ChannelUnsupported(f"{source} cannot carry a {draft.kind} message.")
    match draft.content:
        case Media(type=type, caption=caption):
            if type not in capabilities.media_types:
                raise ChannelUnsupported(f"{source} cannot carry media of the type {type}.")
            if caption and source in NO_TEXT_WITH_PICTURES:
                raise ChannelUnsupported(f"{source} carries a text or a picture, never both in one message.")
            _check_length(source, capabilities, draft.caption_field, caption or "", capabilities.longest_caption)
        case Text(body=body):
            _check_length(source, capabilities, "message", body)
        case Buttons() | Choices():
            _check_length(source, capabilities, "interactive", render_without_choices(draft.content))
        case Link(body=body):
            words = render(draft.content) if source in LINKS_AS_TEXT else body
            _check_length(source, capabilities, "interactive", words)
        case TemplateCall(rendered=rendered) if not capabilities.needs_approved_templates:
            _check_length(source, capabilities, "params", rendered)


def _check_length(
    source: Source, capabilities: Capabilities, field: str, text: str, longest: int | None = None
) -> None:
    most = longest or capabilities.longest_text
    if len(text) > most:
        raise Invalid.field(field, f"makes a text that is longer than the {most} of {source}")


def _check_template(capabilities: Capabilities, draft: Draft) -> None:
    template = draft.template
    if template is None or not capabilities.needs_approved_templates or template.status == "APPROVED":
        return
    reason = f": {template.reason}" if template.reason else ""
    raise TemplateNotApproved(
        f"The template {template.name} in {template.language} is {template.status.lower()}{reason}."
    )


async def build_draft(db: Connection, company: Company, given: AnySendIn) -> Draft:
    metadata = None if given.metadata is None else encode(given.metadata)
    if metadata is not None and len(metadata) > MOST_METADATA:
        raise Invalid.field("metadata", f"must have at most {MOST_METADATA} bytes")
    match given:
        case MessageIn():
            return _draft_message(given, metadata)
        case TemplateMessageIn():
            return await _draft_template(db, company, given, metadata)
        case MediaMessageIn():
            return _draft_media(given, metadata)
        case InteractiveMessageIn():
            return _draft_interactive(given, metadata)


def _draft_message(given: MessageIn, metadata: bytes | None) -> Draft:
    if not given.message.strip():
        raise Invalid.field("message", "must hold more than blanks")
    if given.image_url:
        url = check_url("imageUrl", given.image_url)
        content = Media("image", url, given.message)
        return Draft(
            kind="media",
            content=content,
            type="image",
            body=given.message,
            media_url=url,
            metadata=metadata,
            caption_field="message",
        )
    return Draft(
        kind="message",
        content=Text(given.message, given.subject),
        type="text",
        body=given.message,
        subject=given.subject,
        metadata=metadata,
    )


def _draft_media(given: MediaMessageIn, metadata: bytes | None) -> Draft:
    url = check_url("mediaUrl", given.media_url)
    type = given.media_type or _ENDINGS.get(splitext(urlsplit(url).path)[1].lower(), "document")
    if type == "audio" and given.caption:
        raise Invalid.field("caption", "cannot go with audio")
    content = Media(type, url, given.caption or None, given.filename)
    return Draft(kind="media", content=content, type=type, body=given.caption or None, media_url=url, metadata=metadata)


async def _draft_template(db: Connection, company: Company, given: TemplateMessageIn, metadata: bytes | None) -> Draft:
    template = await templates.find_for_send(db, company, given.template_name, given.template_source, given.language)
    template_text.check_params(template, given.params)
    header = template_text.parse_header(template)
    media = None
    if header is not None and header.type != "text":
        if not given.media_url:
            raise Invalid.field("mediaUrl", f"is required: the template has a header of the type {header.type}")
        media = Media(header.type, check_url("mediaUrl", given.media_url))
    elif given.media_url:
        raise Invalid.field("mediaUrl", "belongs to a template with a media header, which this one has not")
    shown = template_text.preview(template, given.params)
    content = TemplateCall(template.name, template.language, given.params, media, shown.text, shown.header)
    return Draft(
        kind="template",
        content=content,
        type="template",
        body=shown.text,
        media_url=media.url if media else None,
        metadata=metadata,
        template=template,
    )


def _draft_interactive(given: InteractiveMessageIn, metadata: bytes | None) -> Draft:
    _check_words("interactive.body", [given.interactive.body])
    content = _build_interactive(given.interactive)
    return Draft(
        kind="interactive",
        content=content,
        type="interactive",
        body=given.interactive.body,
        interactive=encode(given.interactive),
        metadata=metadata,
    )


def _build_interactive(given: ButtonsIn | ListIn | LinkIn) -> Content:
    match given:
        case ButtonsIn():
            _check_unique("interactive.buttons", [button.id for button in given.buttons])
            _check_unique("interactive.buttons", [button.title for button in given.buttons])
            _check_words("interactive.buttons", [button.title for button in given.buttons])
            buttons = [Button(button.id, button.title) for button in given.buttons]
            return Buttons(given.body, buttons, given.header, given.footer)
        case ListIn():
            rows = [row.id for section in given.sections for row in section.rows]
            _check_unique("interactive.sections", rows)
            titles = [row.title for section in given.sections for row in section.rows]
            _check_words("interactive.sections", titles)
            _check_words("interactive.button", [given.button])
            if len(rows) > MOST_ROWS:
                raise Invalid.field("interactive.sections", f"must have at most {MOST_ROWS} rows in all")
            sections = [
                Section(section.title, [Row(row.id, row.title, row.description) for row in section.rows])
                for section in given.sections
            ]
            return Choices(given.body, given.button, sections, given.header, given.footer)
        case LinkIn():
            _check_words("interactive.displayText", [given.display_text])
            return Link(given.body, given.display_text, check_url("interactive.url", given.url))


def _check_words(field: str, values: Sequence[str]) -> None:
    if not all(value.strip() for value in values):
        raise Invalid.field(field, "must hold more than blanks")


def _check_unique(field: str, values: Sequence[str]) -> None:
    if len(set(values)) != len(values):
        raise Invalid.field(field, "must not have two with the same id or title")


def check_url(field: str, text: str) -> str:
    """Its form only: the channel fetches it, and we look nothing up."""
    if any(character.isspace() or not character.isprintable() for character in text) or "\\" in text:
        raise Invalid.field(field, "must not hold blanks, backslashes or control characters")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise Invalid.field(field, "must be a complete address, such as https://shop.example/kopi.jpg") from None
    if parts.scheme.lower() not in {"https", "http"} or not host:
        raise Invalid.field(field, "must be a complete address, such as https://shop.example/kopi.jpg")
    if parts.username is not None or parts.password is not None:
        raise Invalid.field(field, "must not hold a user's name or password")
    if not _is_public(host):
        raise Invalid.field(field, f"names {host}, which the channel could not reach")
    return text


def _is_public(host: str) -> bool:
    try:
        return ip_address(host.partition("%")[0]).is_global
    except ValueError:
        return _PRIVATE_NAME(host.rstrip(".").lower()) is None and not host.rstrip(".").isdigit()
