"""Parses the contents of a message by its type."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from sapa.messaging.channels.interface import InboundMedia, Interaction
from sapa.messaging.channels.reading import Node, node, nodes, text


class Contents(Struct, frozen=True):
    type: str
    body: str | None = None
    media: tuple[InboundMedia, ...] = ()
    interaction: Interaction | None = None


def read_contents(message: Node) -> Contents:
    """An unknown type is reported as `unsupported`, never dropped."""
    kind = text(message, "type") or ""
    read = _READERS.get(kind)
    return read(node(message, kind), kind) if read else _WHOLE_READERS.get(kind, _unsupported)(message)


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


def _interactive(part: Node, kind: str) -> Contents:
    if button := node(part, "button_reply"):
        return _chosen("button", Interaction("button", text(button, "id") or "", text(button, "title") or ""))
    if row := node(part, "list_reply"):
        return _chosen("list", Interaction("list", text(row, "id") or "", text(row, "title") or ""))
    return Contents("unsupported")


def _button(part: Node, kind: str) -> Contents:
    """A pressed button of a template."""
    title = text(part, "text") or ""
    return _chosen("button", Interaction("button", text(part, "payload") or title, title))


def _chosen(type: str, interaction: Interaction) -> Contents:
    return Contents(type, interaction.title or None, interaction=interaction)


def _location(part: Node, kind: str) -> Contents:
    place = f"{text(part, 'latitude') or '?'},{text(part, 'longitude') or '?'}"
    words = [text(part, "name"), text(part, "address"), place]
    return Contents("location", "\n".join(word for word in words if word))


def _contacts(message: Node) -> Contents:
    cards = [_card(contact) for contact in nodes(message, "contacts")]
    return Contents("contacts", "\n".join(card for card in cards if card) or None)


def _card(contact: Node) -> str:
    phones = [text(phone, "phone") for phone in nodes(contact, "phones")]
    words = [text(contact, "name", "formatted_name"), *phones]
    return ", ".join(word for word in words if word)


def _order(part: Node, kind: str) -> Contents:
    lines = [
        f"{text(item, 'quantity') or '1'} × {text(item, 'product_retailer_id') or '?'}"
        for item in nodes(part, "product_items")
    ]
    return Contents("order", "\n".join([*filter(None, [text(part, "text")]), *lines]) or None)


def _unsupported(message: Node) -> Contents:
    return Contents("unsupported")


_READERS: Mapping[str, Callable[[Node, str], Contents]] = {
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
