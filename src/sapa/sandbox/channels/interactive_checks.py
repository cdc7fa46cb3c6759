"""How the simulator checks an interactive message."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sapa.sandbox.channels.message_fields import Json, check_size, get_object, invalid, refuse, require

MAX_BODY, MAX_LIST_BODY, MAX_FOOTER, MAX_HEADER = 1024, 4096, 60, 60
MAX_BUTTONS, MAX_ROWS, MAX_SECTIONS, MAX_PRODUCTS = 3, 10, 10, 30
BY_NAME = ("voice_call", "call_permission_request", "request_contact_info", "address_message")
"""Of these only the action's name is checked."""
WITHOUT_BODY = frozenset({"product"})
HEADERS: Mapping[str, Sequence[str]] = {
    "button": ("text", "image", "video", "document"),
    "list": ("text",),
    "cta_url": ("text", "image", "video", "document"),
    "flow": ("text", "image", "video", "document"),
    "product_list": ("text",),
    "product": (),
    "location_request_message": (),
    "catalog_message": (),
    "carousel": (),
    "voice_call": ("text",),
    "call_permission_request": (),
    "request_contact_info": (),
    "address_message": ("text",),
}
"""The types of interactive messages, and of their headers."""


def check_interactive(message: Json) -> None:
    kind = message.get("type")
    require(kind, "interactive.type")
    if not isinstance(kind, str) or kind not in HEADERS:
        refuse(131009, f"Interactive type is not valid. Use one of {', '.join(HEADERS)}")
    _check_header(kind, message)
    if kind not in WITHOUT_BODY or "body" in message:
        most = MAX_LIST_BODY if kind == "list" else MAX_BODY
        check_size("Body text", get_object(message, "body").get("text"), 1, most)
    if "footer" in message:
        check_size("Footer text", get_object(message, "footer").get("text"), 1, MAX_FOOTER)
    _ACTIONS[kind](get_object(message, "action"))


def _check_header(kind: str, message: Json) -> None:
    if "header" not in message:
        if kind == "product_list":
            refuse(131009, "Header is required for the interactive type product_list")
        return
    header = get_object(message, "header")
    if header.get("type") not in HEADERS[kind]:
        refuse(131009, f"Header type {header.get('type')} is not allowed for the interactive type {kind}")
    if header["type"] == "text":
        check_size("Header text", header.get("text"), 1, MAX_HEADER)
        return
    media = get_object(header, header["type"])
    if not media.get("id") and not media.get("link"):
        refuse(131008, f"header.{header['type']}: Either one of media ID or link must be present")
    if "caption" in media:
        invalid(f'Unexpected key "caption" on param "header[\'{header["type"]}\']".')


def _check_buttons(action: Json) -> None:
    buttons = _list(action, "buttons")
    if not 1 <= len(buttons) <= MAX_BUTTONS:
        refuse(131009, f"Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: {MAX_BUTTONS}")
    replies = [get_object(button, "reply") for button in buttons]
    for reply in replies:
        check_size("Button title", reply.get("title"), 1, 20)
        check_size("Button id", reply.get("id"), 1, 256)
    _check_unique("Button id", [reply["id"] for reply in replies])
    _check_unique("Button title", [reply["title"] for reply in replies])


def _check_list(action: Json) -> None:
    check_size("Button label", action.get("button"), 1, 20)
    sections = _list(action, "sections")
    if not 1 <= len(sections) <= MAX_SECTIONS:
        refuse(131009, f"Invalid sections count. Min allowed sections: 1, Max allowed sections: {MAX_SECTIONS}")
    for section in sections:
        if len(sections) > 1 or section.get("title"):
            check_size("Section title", section.get("title"), 1, 24)
    rows = [row for section in sections for row in _list(section, "rows")]
    if not rows:
        refuse(131009, "A section needs at least one row")
    if len(rows) > MAX_ROWS:
        refuse(131009, f"Total row count exceed max allowed count: {MAX_ROWS}")
    for row in rows:
        check_size("Row title", row.get("title"), 1, 24)
        check_size("Row id", row.get("id"), 1, 200)
        if "description" in row:
            check_size("Row description", row["description"], 0, 72)
    _check_unique("Row id", [row["id"] for row in rows])


def _check_link(action: Json) -> None:
    parameters = _get_parameters(action, "cta_url")
    check_size("Button label", parameters.get("display_text"), 1, 20)
    if not str(parameters.get("url", "")).startswith(("https://", "http://")):
        refuse(131009, "URL is not valid")


def _check_flow(action: Json) -> None:
    parameters = _get_parameters(action, "flow")
    if parameters.get("flow_message_version") != "3":
        refuse(131009, "flow_message_version must be 3")
    if bool(parameters.get("flow_id")) == bool(parameters.get("flow_name")):
        refuse(131009, "Exactly one of flow_id and flow_name must be present")
    check_size("Flow button", parameters.get("flow_cta"), 1, 20)
    if parameters.get("flow_action", "navigate") not in {"navigate", "data_exchange"}:
        refuse(131009, "flow_action must be navigate or data_exchange")


def _check_product(action: Json) -> None:
    for name in ("catalog_id", "product_retailer_id"):
        require(action.get(name), f"action.{name}")


def _check_products(action: Json) -> None:
    require(action.get("catalog_id"), "action.catalog_id")
    sections = _list(action, "sections")
    products = [item for section in sections for item in _list(section, "product_items")]
    if not 1 <= len(sections) <= MAX_SECTIONS or not 1 <= len(products) <= MAX_PRODUCTS:
        refuse(131009, f"Invalid products. Max sections: {MAX_SECTIONS}, Max products: {MAX_PRODUCTS}")
    for section in sections:
        if len(sections) > 1 or section.get("title"):
            check_size("Section title", section.get("title"), 1, 24)
    for item in products:
        require(item.get("product_retailer_id"), "product_items.product_retailer_id")


def _check_name(name: str) -> Callable[[Json], None]:
    def check(action: Json) -> None:
        if action.get("name") != name:
            refuse(131009, f"Action name must be {name}")

    return check


def _check_carousel(action: Json) -> None:
    cards = _list(action, "cards")
    if not 2 <= len(cards) <= 10:
        refuse(131009, "Invalid cards count. Min allowed cards: 2, Max allowed cards: 10")
    for card in cards:
        get_object(card, "action")
        if "body" in card:
            check_size("Card body", get_object(card, "body").get("text"), 1, 160)
    if len({card.get("type") for card in cards}) > 1:
        refuse(131009, "All cards must have the same type of buttons")


def _get_parameters(action: Json, name: str) -> Json:
    _check_name(name)(action)
    return get_object(action, "parameters")


def _list(parent: Json, name: str) -> list[Json]:
    found: Any = parent.get(name)
    if found is None:
        refuse(131008, f"{name} is required")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        invalid(f"Param {name} must be an array of objects.")
    return list(found)


def _check_unique(what: str, values: Sequence[str]) -> None:
    if len(set(values)) < len(values):
        refuse(131009, f"{what} must be unique")


_ACTIONS: Mapping[str, Callable[[Json], None]] = {
    "button": _check_buttons,
    "list": _check_list,
    "cta_url": _check_link,
    "flow": _check_flow,
    "product": _check_product,
    "product_list": _check_products,
    "location_request_message": _check_name("send_location"),
    "catalog_message": _check_name("catalog_message"),
    "carousel": _check_carousel,
    **{name: _check_name(name) for name in BY_NAME},
}
