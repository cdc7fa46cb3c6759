"""Requests and responses of the Cloud API."""

from collections.abc import Sequence
from typing import Any

from sapa.messaging.channels.identities import WA_ID
from sapa.messaging.channels.interface import (
    Buttons,
    Choices,
    Content,
    Identity,
    Interactive,
    LinkButton,
    Media,
    OutgoingMessage,
    SendReceipt,
    SendRefusal,
    TemplateCall,
    Text,
)
from sapa.messaging.channels.meta import read_refusal
from sapa.messaging.channels.native_contents import (
    FlowButton,
    LocationRequest,
    ProductCard,
    ProductChoices,
)
from sapa.messaging.channels.reading import nodes, parse_json, text
from sapa.messaging.channels.whatsapp.errors import classify
from sapa.messaging.channels.whatsapp.people import BSUID
from sapa.messaging.channels.whatsapp.template_sends import build_media, build_sections, build_template
from sapa.outbound.client import ProviderResponse, Unclear

HELD = "The channel holds messages with this template until it knows how customers receive the first ones."


def build_message(message: OutgoingMessage) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **_recipient(message.to),
        **_content(message.content),
        **({"context": {"message_id": message.quoted}} if message.quoted else {}),
        "biz_opaque_callback_data": message.reference,
    }


def build_reaction(to: Identity, message_id: str, emoji: str | None) -> dict[str, Any]:
    """An empty emoji removes the reaction."""
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        **_recipient(to),
        "type": "reaction",
        "reaction": {"message_id": message_id, "emoji": emoji or ""},
    }


def build_read_mark(message_id: str, is_typing: bool) -> dict[str, Any]:
    typing = {"typing_indicator": {"type": "text"}} if is_typing else {}
    return {"messaging_product": "whatsapp", "status": "read", "message_id": message_id, **typing}


def _recipient(to: Identity) -> dict[str, str]:
    """People without a number have an id of their own, in another field."""
    return {"recipient": to.value} if to.kind == BSUID.name else {"to": to.value.removeprefix("+")}


def _content(content: Content) -> dict[str, Any]:
    match content:
        case Text(body=body):
            return {"type": "text", "text": {"body": body, "preview_url": True}}
        case Media():
            return {"type": content.type, content.type: build_media(content)}
        case TemplateCall():
            return {"type": "template", "template": build_template(content)}
        case _:
            return {"type": "interactive", "interactive": _interactive(content)}


def _interactive(content: Interactive) -> dict[str, Any]:
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
        case FlowButton():
            return {"type": "flow", **_frame(content), "action": {"name": "flow", "parameters": _flow(content)}}
        case ProductCard():
            shown = {"catalog_id": content.product.catalog_id, "product_retailer_id": content.product.product_id}
            return {"type": "product", **_frame(content), "action": shown}
        case ProductChoices():
            listed = {"catalog_id": content.catalog_id, "sections": build_sections(content.sections)}
            return {"type": "product_list", **_frame(content), "action": listed}
        case LocationRequest():
            return {"type": "location_request_message", **_frame(content), "action": {"name": "send_location"}}


def _flow(content: FlowButton) -> dict[str, Any]:
    """Without a first screen the company's own server is asked for it."""
    opened: dict[str, Any] = {"flow_action": "data_exchange"}
    if content.screen is not None:
        data = {"data": content.data} if content.data is not None else {}
        opened = {"flow_action": "navigate", "flow_action_payload": {"screen": content.screen, **data}}
    return {
        "mode": "draft" if content.is_draft else "published",
        "flow_message_version": "3",
        "flow_token": content.token,
        "flow_id": content.flow_id,
        "flow_cta": content.button,
        **opened,
    }


def _frame(content: Interactive) -> dict[str, Any]:
    header, body, footer = (getattr(content, name, None) for name in ("header", "body", "footer"))
    return {
        **({"header": {"type": "text", "text": header}} if header else {}),
        **({"body": {"text": body}} if body else {}),
        **({"footer": {"text": footer}} if footer else {}),
    }


def _choices(content: Choices) -> dict[str, Any]:
    sections = [
        {**({"title": section.title} if section.title.strip() else {}), "rows": _rows(section.rows)}
        for section in content.sections
    ]
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
    message = next(iter(nodes(found, "messages")), {})
    message_id = text(message, "id")
    if message_id is None:
        raise Unclear("the channel accepted the message but returned no id")
    held = HELD if text(message, "message_status") == "held_for_quality_assessment" else None
    return SendReceipt(message_id, _alias(found, to), held=held)


def _alias(found: Any, to: Identity) -> Identity | None:
    """The recipient's id at the channel, if it differs."""
    contact = next(iter(nodes(found, "contacts")), {})
    wa_id, user_id = text(contact, "wa_id"), text(contact, "user_id")
    if wa_id and wa_id != to.value.removeprefix("+"):
        return Identity(WA_ID.name, wa_id)
    return Identity(BSUID.name, user_id) if user_id and user_id != to.value else None
