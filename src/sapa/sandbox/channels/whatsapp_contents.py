"""Simulated contents of WhatsApp's callbacks."""

from collections.abc import Mapping
from typing import Any

import msgspec

from sapa.sandbox.channels.inbound import SimulatedInbound
from sapa.sandbox.inbound_contents import SimulatedAnswer, SimulatedCard, SimulatedCart, SimulatedContents
from sapa.values.json import encode

Json = dict[str, Any]

CONTENTS = frozenset({
    "order", "flow", "location", "contact_cards", "edit", "revocation", "reaction", "preference", "error", "unknown",
    "referral", "product", "forwarded",
})  # fmt: skip


def build_contents(contents: SimulatedContents) -> Json | None:
    """The message's type and content; None for a text, a button or a file."""
    if contents.order is not None:
        return {"type": "order", "order": _build_cart(contents.order)}
    if contents.flow is not None:
        return {"type": "interactive", "interactive": {"type": "nfm_reply", "nfm_reply": _build_answer(contents.flow)}}
    if contents.location is not None:
        return {"type": "location", "location": _without_none(msgspec.to_builtins(contents.location))}
    if contents.contact_cards is not None:
        return {"type": "contacts", "contacts": [_build_card(card) for card in contents.contact_cards]}
    if contents.edit is not None:
        new = {"type": "text", "text": {"body": contents.edit.text}}
        return {"type": "edit", "edit": {"original_message_id": contents.edit.message_id, "message": new}}
    if contents.revocation is not None:
        return {"type": "revoke", "revoke": {"original_message_id": contents.revocation.message_id}}
    if contents.reaction is not None:
        reaction = {"message_id": contents.reaction.message_id, "emoji": contents.reaction.emoji}
        return {"type": "reaction", "reaction": _without_none(reaction)}
    if contents.unknown is not None:
        return {"type": contents.unknown.type, contents.unknown.type: contents.unknown.content}
    return None


def build_side_parts(contents: SimulatedContents) -> Json:
    """What stands beside the content: the ad, and the context without a quoted message."""
    context: Json = {"forwarded": True} if contents.forwarded else {}
    if contents.product is not None:
        product = {
            "catalog_id": contents.product.catalog_id,
            "product_retailer_id": contents.product.product_id,
        }
        context["referred_product"] = product
    found: Json = {"context": context} if context else {}
    if contents.referral is not None:
        media = {"media_type": "image"} if contents.referral.image_url else {}
        ad = _without_none({name: getattr(contents.referral, name) for name in contents.referral.__struct_fields__})
        found["referral"] = {"source_type": "ad", **media, **ad}
    return found


def build_preference(inbound: SimulatedInbound, people: Mapping[str, Any]) -> Json:
    words = {"stop": "stop", "resume": "resume", "signup": "sign up for"}
    preference = {
        **people,
        "detail": f"User requested to {words[inbound.contents.preference or 'stop']} marketing messages",
        "category": "marketing_messages",
        "value": inbound.contents.preference,
        "timestamp": int(inbound.at.timestamp()),
    }
    return {"user_preferences": [preference]}


def _build_cart(cart: SimulatedCart) -> Json:
    """Prices are numbers with the digits they have."""
    items = [
        {
            "product_retailer_id": item.product_id,
            "quantity": item.quantity,
            "item_price": msgspec.Raw(encode(item.price)),
            "currency": item.currency,
        }
        for item in cart.items
    ]
    return {"catalog_id": cart.catalog_id, "text": cart.text or "", "product_items": items}


def _build_answer(answer: SimulatedAnswer) -> Json:
    """JSON in a string, with the token inside."""
    token = {"flow_token": answer.token} if answer.token else {}
    response = msgspec.json.encode({**answer.data, **token}).decode()
    return {"name": answer.name, "body": "Sent", "response_json": response}


def _build_card(card: SimulatedCard) -> Json:
    found: Json = {"name": {"formatted_name": card.name, "first_name": card.name.split()[0]}}
    if card.phone:
        found["phones"] = [{"phone": card.phone, "type": "CELL"}]
    if card.email:
        found["emails"] = [{"email": card.email, "type": "HOME"}]
    return found


def _without_none(value: Json) -> Json:
    return {name: each for name, each in value.items() if each is not None}
