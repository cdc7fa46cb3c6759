"""How the simulator checks a message: the mistakes that WhatsApp documents, in its order.

It reads the request's JSON on its own, so that a mistake in the adapter that builds it is found. What depends on a
template is in `template_checks`, what a number or a recipient has used up in `limits`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from sapa.sandbox.channels import refusals
from sapa.sandbox.channels.graph_errors import GraphRefusal
from sapa.sandbox.channels.interactive_checks import check_interactive
from sapa.sandbox.channels.message_fields import (
    Json,
    WrongMessage,
    check_length,
    get_object,
    get_text,
    invalid,
    refuse,
    require,
)

TYPES = (
    "audio", "contacts", "document", "image", "interactive", "location", "reaction", "sticker", "template", "text",
    "video",
)  # fmt: skip
NOT_SENT = frozenset({"button", "hsm", "order", "system", "unknown", "unsupported"})
"""Types of messages that only customers send, or that were sent once."""
MEDIA = ("audio", "document", "image", "sticker", "video")
WITHOUT_CAPTION = ("audio", "sticker")
KEYCAP = "\u20e3"
MAX_TEXT, MAX_CAPTION, MAX_CALLBACK_DATA = 4096, 1024, 512

ACCEPTED_MEDIA: Mapping[str, Mapping[str, str]] = {
    "image": {"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png"},
    "video": {"mp4": "video/mp4", "3gp": "video/3gpp"},
    "audio": {
        "aac": "audio/aac", "amr": "audio/amr", "mp3": "audio/mpeg", "m4a": "audio/mp4", "ogg": "audio/ogg",
        "opus": "audio/ogg",
    },
    "sticker": {"webp": "image/webp"},
}  # fmt: skip
"""By the ending of a link, which the simulator does not fetch."""
OTHER_MEDIA = frozenset("gif webp bmp tiff svg heic mov webm avi mkv wav flac pdf".split())
"""Endings of files that are known to be of another type; any other ending may be right."""

_is_number = re.compile(r"\+?[0-9][0-9 ()-]{5,24}", re.ASCII).fullmatch
_is_user_id = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII).fullmatch
_is_simulated = re.compile(r"sim_[a-z0-9_]{1,60}", re.ASCII).fullmatch


def find_mistake(own_number: str, body: Json) -> GraphRefusal | None:
    """The first mistake in a message; None if it can be sent."""
    try:
        _check(own_number, body)
    except WrongMessage as wrong:
        return wrong.refusal
    return None


def find_late_failure(body: Json) -> tuple[int, str] | None:
    """Why a message that was accepted fails a moment later: the code and its details."""
    kind = get_type(body)
    link = str((body.get(kind) or {}).get("link") or "") if kind in ACCEPTED_MEDIA else ""
    ending = urlsplit(link).path.rpartition(".")[2].lower()
    accepted = ACCEPTED_MEDIA.get(kind, {})
    if ending not in OTHER_MEDIA or ending in accepted:
        return None
    usable = ", ".join(dict.fromkeys(accepted.values()))
    return 131053, f"Unsupported {kind.title()} mime type of {ending}. Please use one of {usable}"


def check_read_mark(body: Json) -> GraphRefusal | None:
    if body.get("messaging_product") != "whatsapp":
        return refusals.require("messaging_product")
    if not isinstance(body.get("message_id"), str) or not body["message_id"].startswith("wamid."):
        return refusals.build_error(131009, "Invalid message_id")
    return None


def _check(own_number: str, body: Json) -> None:
    if body.get("messaging_product") != "whatsapp":
        raise WrongMessage(refusals.require("messaging_product"))
    if body.get("to") is None and body.get("recipient") is None:
        raise WrongMessage(refusals.require("to"))
    kind = _read_type(body)
    _check_recipient(own_number, body)
    if str(body.get("recipient_type") or "individual").lower() not in {"individual", "group"}:
        invalid(f'Param recipient_type must be one of {{GROUP, INDIVIDUAL}} - got "{body["recipient_type"]}".')
    if "biz_opaque_callback_data" in body:
        get_text(body, "", "biz_opaque_callback_data", MAX_CALLBACK_DATA)
    if "context" in body:
        require(get_object(body, "context").get("message_id"), "context.message_id")
    _CHECKS[kind](body)


def get_type(body: Mapping[str, Any]) -> str:
    """A message without a type is a text."""
    return str(body.get("type", "text")).lower()


def _read_type(body: Json) -> str:
    kind = body.get("type", "text")
    if not isinstance(kind, str):
        invalid("Param type must be a string.")
    if kind.lower() in NOT_SENT:
        refuse(131051)
    if kind.lower() not in TYPES:
        words = ", ".join(name.upper() for name in TYPES)
        invalid(f'Param type must be one of {{{words}}} - got "{kind}".')
    if kind.lower() != "contacts":
        get_object(body, kind.lower())
    return kind.lower()


def _check_recipient(own_number: str, body: Json) -> None:
    name = "recipient" if body.get("to") is None else "to"
    to = body[name]
    if not isinstance(to, str):
        invalid(f"Param {name} must be a string.")
    is_valid = _is_number(to) if name == "to" else _is_user_id(to)
    if not is_valid and not _is_simulated(to):
        refuse(131009, "The phone number is malformed: Please use the format: +1234567890." if name == "to" else None)
    if re.sub(r"\D", "", to) == own_number.removeprefix("+"):
        refuse(131021)


def _check_text(body: Json) -> None:
    text = get_text(body["text"], "text", "body", MAX_TEXT)
    if not text.strip():
        invalid("Param text['body'] is required.")


def _check_media(body: Json) -> None:
    kind = get_type(body)
    media = body[kind]
    if kind in WITHOUT_CAPTION and "caption" in media:
        invalid(f'Unexpected key "caption" on param "{kind}".')
    if kind != "document" and "filename" in media:
        invalid(f'Unexpected key "filename" on param "{kind}".')
    if "caption" in media:
        get_text(media, kind, "caption", MAX_CAPTION)
    check_file(kind, media)


def check_file(kind: str, media: Json) -> None:
    """By its id or by a link, never by both."""
    present = [name for name in ("id", "link") if media.get(name)]
    if len(present) != 1:
        words = "Either one of media ID or link must be present" if not present else "Only one of media ID and link"
        refuse(131008 if not present else 131009, f"{kind}: {words}")
    if "link" in present and urlsplit(str(media["link"])).scheme not in {"http", "https"}:
        invalid(f"Param {kind}['link'] is not a valid URI.")


def _check_location(body: Json) -> None:
    for name, most in (("latitude", 90), ("longitude", 180)):
        value = body["location"].get(name)
        require(value, f"location.{name}")
        try:
            is_valid = abs(float(value)) <= most
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            refuse(131009, f"Location {name} is not valid")


def _check_contacts(body: Json) -> None:
    contacts = body.get("contacts")
    if not isinstance(contacts, list) or not contacts:
        refuse(131008, "contacts is required")
    for contact in contacts:
        name = get_object(contact, "name") if isinstance(contact, dict) else {}
        require(name.get("formatted_name"), "contacts.name.formatted_name")
        if not any(value for part, value in name.items() if part != "formatted_name"):
            refuse(131009, "Contact name needs formatted_name and at least one more part")


def _check_reaction(body: Json) -> None:
    reaction = body["reaction"]
    require(reaction.get("message_id"), "reaction.message_id")
    emoji = reaction.get("emoji", "")
    if not isinstance(emoji, str) or len(emoji) > 12 or (emoji and not _is_emoji(emoji)):
        refuse(131009, "Reaction emoji is not valid")


def _is_emoji(text: str) -> bool:
    """Digits are part of some: a keycap follows them."""
    return bool(text.strip()) and (KEYCAP in text or not any(each.isalnum() and each.isascii() for each in text))


def _check_template(body: Json) -> None:
    template = body["template"]
    require(template.get("name"), "template.name")
    check_length("template", "name", template["name"], 512)
    require(get_object(template, "language").get("code"), "template.language.code")
    if not isinstance(template.get("components", []), list):
        invalid("Param template['components'] must be an array.")


_CHECKS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "text": _check_text,
    **dict.fromkeys(MEDIA, _check_media),
    "location": _check_location,
    "contacts": _check_contacts,
    "reaction": _check_reaction,
    "template": _check_template,
    "interactive": lambda body: check_interactive(body["interactive"]),
}
