"""Reads the templates of a WhatsApp business account. What we do not know is listed, and named as the reason why the
template cannot be sent."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sapa.messaging.channels.abilities import ChannelTemplate
from sapa.messaging.channels.reading import Node, get, node, nodes, text, texts
from sapa.messaging.channels.template_content import (
    Authentication,
    CardExamples,
    Category,
    Header,
    HeaderType,
    LimitedTimeOffer,
    SupportedApp,
    TemplateButton,
    TemplateCard,
    TemplateContent,
    TemplateExamples,
)
from sapa.messaging.channels.template_variables import list_variables
from sapa.values.enum_names import words_of

OtpType = Literal["copy_code", "one_tap", "zero_tap"]

_KNOWN_COMPONENTS = {"HEADER", "BODY", "FOOTER", "BUTTONS", "CAROUSEL", "LIMITED_TIME_OFFER"}
_HEADERS: Mapping[str, HeaderType] = {
    "TEXT": "text",
    "IMAGE": "image",
    "VIDEO": "video",
    "DOCUMENT": "document",
    "LOCATION": "location",
    "PRODUCT": "product",
}
_PLAIN_BUTTONS: Mapping[str, Literal["quick_reply", "catalog", "mpm", "spm", "voice_call", "request_contact_info"]] = {
    "QUICK_REPLY": "quick_reply",
    "CATALOG": "catalog",
    "MPM": "mpm",
    "SPM": "spm",
    "VOICE_CALL": "voice_call",
    "REQUEST_CONTACT_INFO": "request_contact_info",
}
_OTP_TYPES: Mapping[str, OtpType] = {"COPY_CODE": "copy_code", "ONE_TAP": "one_tap", "ZERO_TAP": "zero_tap"}
_QUALITIES = {"GREEN", "YELLOW", "RED"}
_is_name = re.compile(r"[a-z0-9_]+", re.ASCII).fullmatch


def parse_template(found: Node) -> ChannelTemplate | None:
    """None without a name or a language."""
    name, language = text(found, "name"), text(found, "language")
    if name is None or language is None:
        return None
    content = _parse_content(found)
    reason = text(found, "rejected_reason")
    return ChannelTemplate(
        name=name,
        language=language,
        status=text(found, "status") or "PENDING",
        content=content,
        problem=_find_problem(found, content),
        id=text(found, "id"),
        reason=None if reason == "NONE" else reason,
        quality=parse_quality(text(found, "quality_score", "score")),
    )


def parse_category(word: str | None) -> Category | None:
    return next((category for category in words_of(Category) if category == (word or "").upper()), None)


def parse_quality(word: str | None) -> str | None:
    """None while the channel has not rated the template."""
    return word if word in _QUALITIES else None


def _parse_content(found: Node) -> TemplateContent:
    parts = {str(part.get("type", "")).upper(): part for part in nodes(found, "components")}
    content = TemplateContent(
        category=parse_category(text(found, "category")) or "MARKETING",
        parameter_format="NAMED" if text(found, "parameter_format") == "NAMED" else "POSITIONAL",
        header=_parse_header(parts.get("HEADER")),
        body=text(parts.get("BODY"), "text") or "",
        footer=text(parts.get("FOOTER"), "text"),
        buttons=[_parse_button(button) for button in nodes(parts.get("BUTTONS"), "buttons")],
        cards=[_parse_card(card) for card in nodes(parts.get("CAROUSEL"), "cards")],
        limited_time_offer=_parse_offer(parts.get("LIMITED_TIME_OFFER")),
        ttl_seconds=_parse_whole(found, "message_send_ttl_seconds"),
        examples=_parse_examples(parts),
    )
    return _read_authentication(content, parts) if content.category == "AUTHENTICATION" else content


def _read_authentication(content: TemplateContent, parts: Mapping[str, Node]) -> TemplateContent:
    """The channel shows the button with the code as one that opens a URL, and the code in the text as bold."""
    buttons = [_read_otp(button) for button in content.buttons]
    minutes = _parse_whole(parts.get("FOOTER"), "code_expiration_minutes")
    if minutes is None:
        minutes = next((found for button in content.buttons if (found := _find_minutes(button.url))), None)
    has_advice = get(parts.get("BODY"), "add_security_recommendation")
    return replace(
        content,
        body=content.body.replace("*{{1}}*", "{{1}}"),
        buttons=buttons,
        authentication=Authentication(has_advice is True, minutes),
        examples=None,
    )


def _read_otp(button: TemplateButton) -> TemplateButton:
    if button.type != "url" or not list_variables(button.url or ""):
        return button
    words = parse_qs(urlsplit(button.url or "").query).get("otp_type", ["COPY_CODE"])
    return TemplateButton(type="otp", text=button.text, otp_type=_OTP_TYPES.get(words[0], "copy_code"))


def _find_minutes(url: str | None) -> int | None:
    words = parse_qs(urlsplit(url or "").query).get("code_expiration_minutes", [""])
    return int(words[0]) if words[0].isascii() and words[0].isdigit() else None


def _parse_header(part: Node | None) -> Header | None:
    if part is None:
        return None
    type = _HEADERS.get(str(part.get("format", "")).upper(), "unknown")
    return Header(type, text(part, "text") if type == "text" else None)


def _parse_offer(part: Node | None) -> LimitedTimeOffer | None:
    if part is None:
        return None
    offer = node(part, "limited_time_offer")
    return LimitedTimeOffer(text(offer, "text") or "", offer.get("has_expiration") is True)


def _parse_card(card: Node) -> TemplateCard:
    parts = {str(part.get("type", "")).upper(): part for part in nodes(card, "components")}
    return TemplateCard(
        _parse_header(parts.get("HEADER")) or Header("unknown"),
        text(parts.get("BODY"), "text"),
        [_parse_button(button) for button in nodes(parts.get("BUTTONS"), "buttons")],
    )


def _parse_button(part: Node) -> TemplateButton:
    word, label = str(part.get("type", "")).upper(), text(part, "text")
    if word in _PLAIN_BUTTONS:
        return TemplateButton(type=_PLAIN_BUTTONS[word], text=label)
    read = _BUTTONS.get(word)
    return read(part, label) if read else TemplateButton(type="unknown", text=label)


def _parse_url(part: Node, label: str | None) -> TemplateButton:
    example = next(iter(texts(part, "example")), None)
    return TemplateButton(type="url", text=label, url=text(part, "url"), example=example or UNSET)


def _parse_phone(part: Node, label: str | None) -> TemplateButton:
    return TemplateButton(type="phone_number", text=label, phone_number=text(part, "phone_number"))


def _parse_code(part: Node, label: str | None) -> TemplateButton:
    """The example is a text or a list of one."""
    example = text(part, "example") or next(iter(texts(part, "example")), None)
    return TemplateButton(type="copy_code", example=example or UNSET)


def _parse_otp(part: Node, label: str | None) -> TemplateButton:
    apps = [
        SupportedApp(text(app, "package_name") or "", text(app, "signature_hash") or "")
        for app in nodes(part, "supported_apps")
    ]
    return TemplateButton(
        type="otp",
        text=label,
        otp_type=_OTP_TYPES.get(text(part, "otp_type") or "", "copy_code"),
        autofill_text=_optional(part, "autofill_text"),
        supported_apps=apps or UNSET,
    )


def _parse_flow(part: Node, label: str | None) -> TemplateButton:
    action: Literal["navigate", "data_exchange"] = (
        "data_exchange" if (text(part, "flow_action") or "").lower() == "data_exchange" else "navigate"
    )
    return TemplateButton(
        type="flow",
        text=label,
        flow_id=_optional(part, "flow_id"),
        flow_name=_optional(part, "flow_name"),
        flow_action=action,
        navigate_screen=_optional(part, "navigate_screen"),
    )


_BUTTONS: Mapping[str, Callable[[Node, str | None], TemplateButton]] = {
    "URL": _parse_url,
    "PHONE_NUMBER": _parse_phone,
    "COPY_CODE": _parse_code,
    "OTP": _parse_otp,
    "FLOW": _parse_flow,
}


def _parse_examples(parts: Mapping[str, Node]) -> TemplateExamples | None:
    own = _parse_part_examples(parts)
    cards = [
        _parse_part_examples({str(part.get("type", "")).upper(): part for part in nodes(card, "components")})
        for card in nodes(parts.get("CAROUSEL"), "cards")
    ]
    if not cards and own == CardExamples():
        return None
    return TemplateExamples(own.header, own.body, cards or None)


def _parse_part_examples(parts: Mapping[str, Node]) -> CardExamples:
    header, body = node(parts.get("HEADER"), "example"), node(parts.get("BODY"), "example")
    named = nodes(header, "header_text_named_params")
    words = [*texts(header, "header_text"), *texts(header, "header_handle"), *(text(one, "example") for one in named)]
    return CardExamples(next(iter(words), None), _parse_body_examples(body))


def _parse_body_examples(example: Node) -> list[str] | dict[str, str] | None:
    named = {
        text(one, "param_name") or "": text(one, "example") or "" for one in nodes(example, "body_text_named_params")
    }
    rows: Any = example.get("body_text")
    first = rows[0] if isinstance(rows, list) and rows else None
    return named or list(texts({"": first}, "")) or None


def _find_problem(found: Node, content: TemplateContent) -> str | None:
    """The first part that cannot be sent."""
    for part in nodes(found, "components"):
        if (word := str(part.get("type", "")).upper()) not in _KNOWN_COMPONENTS:
            return f"It has a component of the type {word}, which cannot be sent yet."
    if parse_category(text(found, "category")) is None:
        return f"Its category is {text(found, 'category')}, which cannot be sent yet."
    if not content.body:
        return "It has no body."
    headers = [content.header, *(card.header for card in content.cards)]
    if any(header is not None and header.type == "unknown" for header in headers):
        return "It has a header of a type that cannot be sent yet."
    buttons = [*content.buttons, *(button for card in content.cards for button in card.buttons)]
    if any(button.type == "unknown" for button in buttons):
        return "It has a button of a type that cannot be sent yet."
    if any(button.type == "otp" for button in buttons) and not list_variables(content.body):
        return "Its body has no place for the code."
    return _find_bad_variable(content)


def _find_bad_variable(content: TemplateContent) -> str | None:
    for words in (
        content.body,
        content.header.text if content.header else None,
        *(card.body for card in content.cards),
    ):
        names = list_variables(words or "")
        numbers = [str(number) for number in range(1, len(names) + 1)]
        is_valid = all(map(_is_name, names)) if content.parameter_format == "NAMED" else list(names) == numbers
        if not is_valid:
            return f"Its parameters cannot be filled in: {', '.join(names)}."
    return None


def _parse_whole(value: Node | None, name: str) -> int | None:
    found = get(value, name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _optional(part: Node, name: str) -> str | UnsetType:
    return text(part, name) or UNSET
