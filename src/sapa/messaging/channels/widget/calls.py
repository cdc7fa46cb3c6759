"""Converts messages to what a page shows, and signed callbacks to items. Pure."""

import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sapa.messaging.channels.content_media import list_media
from sapa.messaging.channels.files import FileDescription
from sapa.messaging.channels.identities import EMAIL, OPAQUE_ID, build_parser
from sapa.messaging.channels.interface import (
    Buttons,
    Choices,
    Content,
    Identity,
    IdentityKind,
    InboundMedia,
    Interaction,
    Item,
    LinkButton,
    Media,
    OutgoingMessage,
    ReceivedItem,
    SendReceipt,
    SendRefusal,
    Status,
    StatusReport,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.render import render
from sapa.messaging.channels.widget.types import FileView, MessageView, Picture
from sapa.outbound.client import ProviderResponse, Unclear
from sapa.values.provider_accounts import BadSignature

VISITOR = IdentityKind("visitor", build_parser(OPAQUE_ID, "must be the id of a visitor of the web chat"))
SIGNATURE = "x-sapa-signature"
TOO_FAST = "too_fast"
RETRY_SECONDS = 0.5


def build_view(message: OutgoingMessage) -> MessageView:
    view, content = _build_view(message.content), message.content
    if not message.files:
        return view
    is_held = isinstance(content, Media) or any(media.file_id for media in list_media(content)[:1])
    files = build_file_views(message.reference, message.files)
    return replace(view, files=files, media=None if is_held else view.media)


def build_file_views(message_id: str, files: Sequence[FileDescription]) -> list[FileView]:
    return [
        FileView(message_id, number, file.type, file.filename, file.media_type, file.size)
        for number, file in enumerate(files)
    ]


def _build_view(content: Content) -> MessageView:
    match content:
        case Text(body=body):
            return MessageView(text=body)
        case Media(caption=caption):
            return MessageView(text=caption or "", media=_picture(content))
        case Buttons(body=body, buttons=buttons, header=header, footer=footer):
            return MessageView(text=body, header=header, footer=footer, buttons=buttons)
        case Choices(body=body, button=button, sections=sections, header=header, footer=footer):
            return MessageView(text=body, header=header, footer=footer, open_label=button, sections=sections)
        case LinkButton(body=body, display_text=label, url=url):
            return MessageView(text=body, link_label=label, link_url=url)
        case TemplateCall(rendered=rendered, header_media=media):
            return MessageView(text=rendered, media=_picture(media) if media else None)
        case _:
            return MessageView(text=render(content))


def _picture(media: Media) -> Picture:
    return Picture(media.type, media.url, media.filename)


class WidgetDelivery(Struct, frozen=True, rename="camel"):
    """A message for a simulated visitor."""

    reference: str
    visitor_id: str
    content: MessageView


class WidgetError(Struct, frozen=True):
    code: str
    message: str


class WidgetReceipt(Struct, frozen=True, rename="camel"):
    message_id: str | None = None
    error: WidgetError | None = None


_CATEGORIES: dict[int, Literal["auth", "rate", "recipient"]] = {401: "auth", 429: "rate"}


def build_handed(message: OutgoingMessage) -> bytes:
    return msgspec.json.encode(WidgetDelivery(message.reference, message.to.value, build_view(message)))


def parse_receipt(response: ProviderResponse) -> SendReceipt | SendRefusal:
    """Raises Unclear if the outcome is unknown."""
    try:
        receipt = msgspec.json.decode(response.body, type=WidgetReceipt)
    except msgspec.MsgspecError:
        receipt = WidgetReceipt()
    if response.status == 200 and receipt.message_id:
        return SendReceipt(receipt.message_id)
    if response.status >= 500 or receipt.error is None:
        raise Unclear(f"the simulator answered {response.status}")
    wait = RETRY_SECONDS if receipt.error.code == TOO_FAST else None
    return SendRefusal(receipt.error.code, receipt.error.message, _CATEGORIES.get(response.status, "recipient"), wait)


class SimulatedStatus(Struct, frozen=True, rename="camel", tag="status", tag_field="kind"):
    """A simulated page acknowledged a message."""

    status: Status
    message_id: str
    at: datetime
    reference: str | None = None
    reason: str | None = None


class SimulatedMessage(Struct, frozen=True, rename="camel", tag="message", tag_field="kind"):
    """A simulated visitor wrote, or chose an option."""

    message_id: str
    visitor_id: str
    at: datetime
    text: str
    choice: Interaction | None = None
    quoted: str | None = None
    name: str | None = None


class WidgetCallback(Struct, frozen=True):
    """A callback of simulated visitors; real pages call the API directly."""

    events: list[SimulatedStatus | SimulatedMessage]


def build_signature(secret: str, body: bytes) -> str:
    """Uses a key of its own: visitors know the hashes that prove their ids, and those must not be valid here."""
    key = sha256(b"sapa widget callback/" + secret.encode()).digest()
    return hmac.new(key, body, sha256).hexdigest()


def build_callback(secret: str, events: Sequence[SimulatedStatus | SimulatedMessage]) -> tuple[dict[str, str], bytes]:
    """Headers and body."""
    body = msgspec.json.encode(WidgetCallback(list(events)))
    return {"content-type": "application/json", SIGNATURE: build_signature(secret, body)}, body


def check_signature(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    if not hmac.compare_digest(headers.get(SIGNATURE, "").encode(), build_signature(secret, body).encode()):
        raise BadSignature


def parse_callback(body: bytes) -> list[Item]:
    try:
        callback = msgspec.json.decode(body, type=WidgetCallback)
    except msgspec.MsgspecError:
        return []
    return [_item(event) for event in callback.events]


def _item(event: SimulatedStatus | SimulatedMessage) -> Item:
    if isinstance(event, SimulatedStatus):
        return StatusReport(
            event.status, event.at, message_id=event.message_id, reference=event.reference, reason=event.reason
        )
    return build_inbound(
        event.message_id, event.visitor_id, event.at, event.text, event.choice, event.quoted, name=event.name
    )


def _choose_type(choice: Interaction | None, media: Sequence[InboundMedia]) -> str:
    if choice is not None:
        return choice.kind
    return media[0].type if media else "text"


def build_inbound(
    message_id: str,
    visitor_id: str,
    at: datetime,
    text: str,
    choice: Interaction | None,
    quoted: str | None,
    *,
    name: str | None,
    email: str | None = None,
    media: Sequence[InboundMedia] = (),
) -> ReceivedItem:
    identities = [Identity(VISITOR.name, visitor_id), *([Identity(EMAIL.name, email)] if email else [])]
    return ReceivedItem(
        message_id=message_id,
        sender=identities,
        at=at,
        type=_choose_type(choice, media),
        body=text or None,
        media=media,
        sender_name=name,
        interaction=choice,
        quoted=quoted,
    )
