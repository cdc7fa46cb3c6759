"""The components of a template in a message: the values of its parameters."""

from collections.abc import Sequence
from typing import Any

from sapa.messaging.channels.interface import (
    CardParameters,
    Media,
    TemplateCall,
)
from sapa.messaging.channels.native_contents import (
    ButtonParameter,
    CatalogProduct,
    MapLocation,
    ProductSection,
    TemplateParameter,
    format_degrees,
)

_SUB_TYPES = {"otp": "url"}
"""The button with a one-time code takes it like the end of a URL."""


def build_template(template: TemplateCall) -> dict[str, Any]:
    components = [
        *_header(template.header_media or template.header),
        *_body(template.body),
        *_offer(template),
        *(_button(button) for button in template.buttons),
        *_carousel(template.cards),
    ]
    named = {"name": template.name, "language": {"code": template.language}}
    return {**named, "components": components} if components else named


def build_media(media: Media) -> dict[str, str]:
    """By its id if it was uploaded, else by URL: the channel fetches it. Audio has no caption, and only documents have
    names."""
    file = {"id": media.channel_id} if media.channel_id else {"link": media.url}
    caption = media.caption if media.type != "audio" else None
    filename = media.filename if media.type == "document" else None
    return file | {name: value for name, value in (("caption", caption), ("filename", filename)) if value}


def build_sections(sections: Sequence[ProductSection]) -> list[dict[str, Any]]:
    return [
        {"title": section.title, "product_items": [{"product_retailer_id": id} for id in section.product_ids]}
        for section in sections
    ]


def _header(value: Media | TemplateParameter | MapLocation | CatalogProduct | None) -> list[dict[str, Any]]:
    match value:
        case None:
            return []
        case TemplateParameter():
            parameter = _text(value)
        case Media():
            file = build_media(Media(value.type, value.url, filename=value.filename, channel_id=value.channel_id))
            parameter = {"type": value.type, value.type: file}
        case MapLocation():
            parameter = {"type": "location", "location": _location(value)}
        case CatalogProduct():
            catalog = {"catalog_id": value.catalog_id} if value.catalog_id else {}
            parameter = {"type": "product", "product": {"product_retailer_id": value.product_id, **catalog}}
    return [{"type": "header", "parameters": [parameter]}]


def _body(parameters: Sequence[TemplateParameter]) -> list[dict[str, Any]]:
    return [{"type": "body", "parameters": [_text(each) for each in parameters]}] if parameters else []


def _text(parameter: TemplateParameter) -> dict[str, Any]:
    name = {"parameter_name": parameter.name} if parameter.name else {}
    return {"type": "text", **name, "text": parameter.text}


def _location(place: MapLocation) -> dict[str, str]:
    """Coordinates are texts here."""
    named = {"name": place.name, "address": place.address}
    position = {"latitude": format_degrees(place.latitude), "longitude": format_degrees(place.longitude)}
    return position | {name: value for name, value in named.items() if value}


def _offer(template: TemplateCall) -> list[dict[str, Any]]:
    if template.offer_ends_at is None:
        return []
    offer = {"expiration_time_ms": round(template.offer_ends_at.timestamp() * 1000)}
    parameter = {"type": "limited_time_offer", "limited_time_offer": offer}
    return [{"type": "limited_time_offer", "parameters": [parameter]}]


def _button(button: ButtonParameter) -> dict[str, Any]:
    return {
        "type": "button",
        "sub_type": _SUB_TYPES.get(button.type, button.type),
        "index": str(button.index),
        "parameters": [_button_parameter(button)],
    }


def _button_parameter(button: ButtonParameter) -> dict[str, Any]:
    match button.type:
        case "quick_reply":
            return {"type": "payload", "payload": button.text}
        case "url" | "otp":
            return {"type": "text", "text": button.text}
        case "copy_code":
            return {"type": "coupon_code", "coupon_code": button.text}
        case "flow":
            token = {"flow_token": button.text} if button.text else {}
            data = {"flow_action_data": button.data} if button.data is not None else {}
            return {"type": "action", "action": {**token, **data}}
        case "catalog" | "mpm":
            thumbnail = {"thumbnail_product_retailer_id": button.text} if button.text else {}
            sections = {"sections": build_sections(button.sections)} if button.sections else {}
            return {"type": "action", "action": {**thumbnail, **sections}}


def _carousel(cards: Sequence[CardParameters]) -> list[dict[str, Any]]:
    if not cards:
        return []
    built = [
        {
            "card_index": number,
            "components": [*_header(card.header), *_body(card.body), *(_button(button) for button in card.buttons)],
        }
        for number, card in enumerate(cards)
    ]
    return [{"type": "carousel", "cards": built}]
