"""Parses the contents of a message by its type."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from sapa.messaging.channels.interface import InboundMedia, Interaction
from sapa.messaging.channels.reading import Node, node, nodes, number, parse_json, text
from sapa.messaging.channels.received_parts import (
    NO_PARTS,
    CardAddress,
    CardEmail,
    CardPhone,
    CardUrl,
    Cart,
    CartItem,
    ContactCard,
    ContentError,
    FlowAnswer,
    MessageParts,
    UnsupportedContent,
    build_location,
    describe_location,
    keep_raw,
)
from sapa.values.json import encode_document, to_storable

MAX_ANSWER_LENGTH = 4096
MAX_UNITS = 2**31 - 1
MAX_DIGITS = 15


class Contents(Struct, frozen=True):
    type: str
    body: str | None = None
    media: tuple[InboundMedia, ...] = ()
    interaction: Interaction | None = None
    parts: MessageParts = NO_PARTS


def read_contents(message: Node) -> Contents:
    """An unknown type is reported as `unsupported` with its JSON, never dropped."""
    kind = text(message, "type") or ""
    read = _READERS.get(kind)
    contents = read(node(message, kind), kind) if read else _WHOLE_READERS.get(kind, _unsupported)(message)
    return contents or _unsupported(message)


def _text(part: Node, kind: str) -> Contents:
    return Contents("text", text(part, "body"))


def _media(part: Node, kind: str) -> Contents:
    file = InboundMedia(
        type=kind,
        mime_type=text(part, "mime_type"),
        media_id=text(part, "id"),
        url=text(part, "url"),
        filename=text(part, "filename"),
    )
    return Contents(kind, text(part, "caption"), (file,))


def _interactive(part: Node, kind: str) -> Contents | None:
    """None for an answer of another form, or none at all, which occurs."""
    if button := node(part, "button_reply"):
        return _chosen("button", Interaction("button", text(button, "id") or "", text(button, "title") or ""))
    if row := node(part, "list_reply"):
        return _chosen("list", Interaction("list", text(row, "id") or "", text(row, "title") or ""))
    if reply := node(part, "nfm_reply"):
        return _flow(reply)
    return None


def _button(part: Node, kind: str) -> Contents:
    """A pressed button of a template."""
    title = text(part, "text") or ""
    return _chosen("button", Interaction("button", text(part, "payload") or title, title))


def _chosen(type: str, interaction: Interaction) -> Contents:
    return Contents(type, interaction.title or None, interaction=interaction)


def _flow(reply: Node) -> Contents:
    """The answer is JSON in a string; the token is part of it and may be missing."""
    answer = text(reply, "response_json")
    found = keep_raw(parse_json((answer or "").encode()))
    data = found if isinstance(found, dict) else None
    flow = FlowAnswer(
        name=text(reply, "name"),
        token=text(data, "flow_token"),
        data=data,
        text=answer if data is None else None,
    )
    fields = {name: value for name, value in (data or {}).items() if name != "flow_token"}
    lines = [f"{name}: {_show(value)}" for name, value in fields.items()]
    body = to_storable("\n".join(lines))[:MAX_ANSWER_LENGTH] or text(reply, "body")
    return Contents("flow", body, parts=MessageParts(flow=flow))


def _show(value: object) -> str:
    return value if isinstance(value, str) else encode_document(value).decode()


def _location(part: Node, kind: str) -> Contents | None:
    location = build_location(
        number(part, "latitude"),
        number(part, "longitude"),
        name=text(part, "name"),
        address=text(part, "address"),
        url=text(part, "url"),
    )
    if location is None:
        return None
    return Contents("location", describe_location(location), parts=MessageParts(location=location))


def _contacts(message: Node) -> Contents:
    cards = [_card(contact) for contact in nodes(message, "contacts")]
    lines = [", ".join(word for word in (card.name, *(phone.phone for phone in card.phones)) if word) for card in cards]
    return Contents("contacts", "\n".join(filter(None, lines)) or None, parts=MessageParts(contact_cards=cards))


def _card(contact: Node) -> ContactCard:
    organization = [text(contact, "org", name) for name in ("company", "department", "title")]
    return ContactCard(
        name=text(contact, "name", "formatted_name"),
        phones=[
            CardPhone(phone=text(phone, "phone"), type=text(phone, "type"), wa_id=text(phone, "wa_id"))
            for phone in nodes(contact, "phones")
        ],
        emails=[CardEmail(email=text(one, "email"), type=text(one, "type")) for one in nodes(contact, "emails")],
        addresses=[
            CardAddress(**{name: text(address, name) for name in CardAddress.__struct_fields__})
            for address in nodes(contact, "addresses")
        ],
        urls=[CardUrl(url=text(one, "url"), type=text(one, "type")) for one in nodes(contact, "urls")],
        organization=", ".join(word for word in organization if word) or None,
        birthday=text(contact, "birthday"),
    )


def _order(part: Node, kind: str) -> Contents:
    items = [_cart_item(item) for item in nodes(part, "product_items")]
    cart = Cart(catalog_id=text(part, "catalog_id"), text=text(part, "text"), items=items)
    lines = [f"{item.quantity or '?'} × {item.product_id}" for item in items]
    return Contents("order", "\n".join([*filter(None, [cart.text]), *lines]) or None, parts=MessageParts(order=cart))


def _cart_item(item: Node) -> CartItem:
    """A quantity or price that nobody can mean is left out; an exponent would make it a number of any length."""
    quantity, price = number(item, "quantity"), number(item, "item_price")
    is_count = quantity is not None and 0 < quantity <= MAX_UNITS and quantity == int(quantity)
    is_price = price is not None and abs(price.adjusted()) <= MAX_DIGITS
    return CartItem(
        product_id=text(item, "product_retailer_id") or "?",
        quantity=int(quantity) if quantity is not None and is_count else None,
        price=price if is_price else None,
        currency=text(item, "currency"),
    )


def _unsupported(message: Node) -> Contents:
    """The channel names the kind of some messages that it cannot pass on."""
    kind = text(message, "unsupported", "type") or text(message, "interactive", "type") or text(message, "type")
    content = UnsupportedContent(type=kind, errors=read_errors(message), raw=keep_raw(message))
    return Contents("unsupported", parts=MessageParts(unsupported=content))


def read_errors(part: Node) -> Sequence[ContentError]:
    return [
        ContentError(
            text(error, "code"),
            text(error, "error_data", "details") or text(error, "message") or text(error, "title"),
        )
        for error in nodes(part, "errors")
    ]


_READERS: Mapping[str, Callable[[Node, str], Contents | None]] = {
    "text": _text,
    "image": _media,
    "video": _media,
    "audio": _media,
    "document": _media,
    "sticker": _media,
    "interactive": _interactive,
    "button": _button,
    "location": _location,
    "order": _order,
}
_WHOLE_READERS: Mapping[str, Callable[[Node], Contents]] = {"contacts": _contacts}
