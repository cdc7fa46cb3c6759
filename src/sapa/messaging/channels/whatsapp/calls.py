"""Requests and responses of the Cloud API."""

from collections.abc import Sequence
from typing import Any

from sapa.messaging.channels.identities import WA_ID
from sapa.messaging.channels.interface import (
    Buttons,
    Choices,
    Content,
    Identity,
    LinkButton,
    Media,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.meta import read_refusal
from sapa.messaging.channels.reading import nodes, parse_json, text
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.people import BSUID
from sapa.outbound.client import ProviderResponse, Unclear


def build_message(message: OutgoingMessage) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **_recipient(message.to),
        **_content(message.content),
        **({"context": {"message_id": message.quoted}} if message.quoted else {}),
        "biz_opaque_callback_data": message.reference,
    }


def _recipient(to: Identity) -> dict[str, str]:
    """People without a number have an id of their own, in another field."""
    return {"recipient": to.value} if to.kind == BSUID.name else {"to": to.value.removeprefix("+")}


def _content(content: Content) -> dict[str, Any]:
    match content:
        case Text(body=body):
            return {"type": "text", "text": {"body": body, "preview_url": True}}
        case Media():
            return {"type": content.type, content.type: _media(content)}
        case TemplateCall():
            return {"type": "template", "template": _template(content)}
        case Buttons() | Choices() | LinkButton():
            return {"type": "interactive", "interactive": _interactive(content)}


def _media(media: Media) -> dict[str, str]:
    """By its id if it was uploaded, else by URL: the channel fetches it. Audio has no caption, and only documents have
    names."""
    caption = media.caption if media.type != "audio" else None
    filename = media.filename if media.type == "document" else None
    place = {"id": media.channel_id} if media.channel_id else {"link": media.url}
    named = {**place, "caption": caption, "filename": filename}
    return {name: value for name, value in named.items() if value}


def _template(template: TemplateCall) -> dict[str, Any]:
    components: list[dict[str, Any]] = []
    if template.header_media is not None:
        components.append({"type": "header", "parameters": [_header(template.header_media)]})
    if template.params:
        words = [{"type": "text", "text": param} for param in template.params]
        components.append({"type": "body", "parameters": words})
    named = {"name": template.name, "language": {"code": template.language}}
    return {**named, "components": components} if components else named


def _header(media: Media) -> dict[str, Any]:
    plain = Media(media.type, media.url, filename=media.filename, channel_id=media.channel_id)
    return {"type": media.type, media.type: _media(plain)}


def _interactive(content: Buttons | Choices | LinkButton) -> dict[str, Any]:
    match content:
        case Buttons():
            replies = [{"type": "reply", "reply": {"id": each.id, "title": each.title}} for each in content.buttons]
            return {"type": "button", **_frame(content), "action": {"buttons": replies}}
        case Choices():
            return {"type": "list", **_frame(content), "action": _choices(content)}
        case LinkButton():
            parameters = {"display_text": content.display_text, "url": content.url}
            body = {"text": content.body}
            return {"type": "cta_url", "body": body, "action": {"name": "cta_url", "parameters": parameters}}


def _frame(content: Buttons | Choices) -> dict[str, Any]:
    header = {"header": {"type": "text", "text": content.header}} if content.header else {}
    footer = {"footer": {"text": content.footer}} if content.footer else {}
    return {**header, "body": {"text": content.body}, **footer}


def _choices(content: Choices) -> dict[str, Any]:
    sections = [{"title": section.title, "rows": _rows(section.rows)} for section in content.sections]
    return {"button": content.button, "sections": sections}


def _rows(rows: Sequence[Any]) -> list[dict[str, str]]:
    return [
        {"id": row.id, "title": row.title, **({"description": row.description} if row.description else {})}
        for row in rows
    ]


def parse_sent(response: ProviderResponse, to: Identity) -> SendReceipt | SendRefusal:
    if refused := read_refusal(response, classify):
        return refused
    found = parse_json(response.body)
    message_id = next((text(each, "id") for each in nodes(found, "messages")), None)
    if message_id is None:
        raise Unclear("the channel accepted the message but returned no id")
    return SendReceipt(message_id, _alias(found, to))


def _alias(found: Any, to: Identity) -> Identity | None:
    """The recipient's id at the channel, if it differs."""
    contact = next(iter(nodes(found, "contacts")), {})
    wa_id, user_id = text(contact, "wa_id"), text(contact, "user_id")
    if wa_id and wa_id != to.value.removeprefix("+"):
        return Identity(WA_ID.name, wa_id)
    return Identity(BSUID.name, user_id) if user_id and user_id != to.value else None
