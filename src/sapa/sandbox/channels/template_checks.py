"""How the simulator checks a message with a template: the mistakes that WhatsApp documents, in its order."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sapa.sandbox.channels.graph_errors import GraphRefusal
from sapa.sandbox.channels.template_review import Json, index_components, list_variables

MEDIA = ("image", "video", "document")
NO_PARAMETERS = {"PHONE_NUMBER": "Call", "VOICE_CALL": "VoiceCall", "SPM": "Spm"}
BUTTON_NAMES = {"URL": "Url", "OTP": "Url", "COPY_CODE": "CopyCode", "MPM": "Mpm"}
SUB_TYPES = {
    "QUICK_REPLY": "quick_reply",
    "URL": "url",
    "OTP": "url",
    "COPY_CODE": "copy_code",
    "FLOW": "flow",
    "CATALOG": "catalog",
    "MPM": "mpm",
}
PARAMETER_OF = {"url": "text", "copy_code": "coupon_code", "quick_reply": "payload"}
MOST, MAX_ALONE = 1024, 32_768
"""Characters of a filled body, beside other components and alone."""
LONGEST = {"url": 2000, "copy_code": 15, "quick_reply": 256}

_BAD_SPACE = re.compile(r"[\n\r\t]| {5,}").search


class WrongTemplate(Exception):
    def __init__(self, code: int, message: str, details: str | None) -> None:
        self.refusal = GraphRefusal(code=code, message=message, details=details)


def find_mistake(stored: Json, template: Json) -> GraphRefusal | None:
    """The first mistake in a message's template; None if it fits the stored one."""
    try:
        _check(stored, template)
    except WrongTemplate as wrong:
        return wrong.refusal
    return None


def find_status_mistake(status: str | None, name: str, language: str) -> GraphRefusal | None:
    """Whether a template with this status can be sent; None as status means that there is no such template."""
    if status == "PAUSED":
        return GraphRefusal(code=132015, message="Template is paused", details="Template is paused due to low quality")
    if status == "DISABLED":
        return GraphRefusal(code=132016, message="Template is disabled", details="Template is permanently disabled")
    if status == "APPROVED":
        return None
    details = f"template name ({name}) does not exist in {language}"
    words = "Template name does not exist in the translation"
    return GraphRefusal(code=132001, message=words, details=details, status=404)


def _check(stored: Json, template: Json) -> None:
    sent = template.get("components") or []
    for number, component in enumerate(sent):
        _check_shape(f"template.components.{number}", component)
    parts = index_components(stored["components"])
    is_named = str(stored.get("parameter_format")).upper() == "NAMED"
    is_code = str(stored.get("category")).upper() == "AUTHENTICATION"
    _check_part("", parts, sent, is_named, is_code)
    _check_offer(parts, sent)
    _check_carousel(parts, sent, is_named)


def _check_part(place: str, parts: Mapping[str, Json], sent: Sequence[Json], is_named: bool, is_code: bool) -> None:
    """A template, or a card of one."""
    header, body = _find(sent, "header"), _find(sent, "body")
    _check_header(place, parts.get("HEADER"), header, is_named)
    text = "{{1}}" if is_code else str(parts.get("BODY", {}).get("text", ""))
    _check_text(f"{place}body", list_variables(text), body, is_named)
    _check_words(f"{place}body", body)
    _check_buttons(place, parts.get("BUTTONS", {}).get("buttons") or [], sent)
    _check_length(f"{place}body", text, body, MAX_ALONE if set(parts) == {"BODY"} and not place else MOST)


def _check_shape(path: str, component: Any) -> None:
    if not isinstance(component, dict) or not isinstance(component.get("type"), str):
        _violate(f"{path}.type")
    for number, parameter in enumerate(component.get("parameters") or []):
        place = f"{path}.parameters.{number}"
        if not isinstance(parameter, dict) or not isinstance(parameter.get("type"), str):
            _violate(f"{place}.type")
        kind = parameter["type"].lower()
        if kind == "text" and not parameter.get("text"):
            prefix = "button: " if component["type"].lower() == "button" else ""
            end = " and cannot be empty" if prefix else ""
            _refuse(
                100,
                "Invalid parameter",
                f"{prefix}Parameter 'text' is mandatory for component parameter type 'text'{end}",
            )
        if kind in {*MEDIA, "location", "product"} and not isinstance(parameter.get(kind), dict):
            _violate(f"{place}.{kind}")
        if kind in MEDIA and not (parameter[kind].get("id") or parameter[kind].get("link")):
            _refuse(132018, _ISSUE, "Either one of media ID or link must be present")


def _check_header(place: str, header: Json | None, sent: Json | None, is_named: bool) -> None:
    expected = "" if header is None else str(header.get("format", "")).upper()
    parameters = (sent or {}).get("parameters") or []
    received = str(parameters[0]["type"]).upper() if parameters else "UNKNOWN"
    if expected in {"", "TEXT"}:
        if received not in {"UNKNOWN", "TEXT"}:
            _refuse(132012, _FORMAT, f"{place}header: Format mismatch, expected TEXT, received {received}")
        names = list_variables(str((header or {}).get("text", "")))
        _check_text(f"{place}header", names, sent, is_named)
        _check_words(f"{place}header", sent)
    elif received != expected:
        _refuse(132012, _FORMAT, f"{place}header: Format mismatch, expected {expected}, received {received}")


def _check_text(place: str, names: Sequence[str], sent: Json | None, is_named: bool) -> None:
    parameters = (sent or {}).get("parameters") or []
    if len(parameters) != len(names):
        _refuse(
            132000,
            "Number of parameters does not match the expected number of params",
            f"{place}: number of localizable_params ({len(parameters)}) does not match the expected number of params "
            f"({len(names)})",
        )
    if not is_named:
        return
    received = [parameter.get("parameter_name") for parameter in parameters]
    if not all(received):
        _refuse(100, "Invalid parameter", "Parameter name is missing or empty")
    for name in names:
        if name not in received:
            _refuse(100, "Invalid parameter", f"Parameter name is missing for the parameter '{{{{{name}}}}}'")


def _check_words(place: str, sent: Json | None) -> None:
    for parameter in (sent or {}).get("parameters") or []:
        if _BAD_SPACE(str(parameter.get("text", ""))):
            words = "cannot have new-line/tab characters or more than 4 consecutive spaces"
            _refuse(132018, _ISSUE, f"{place}: Param text: {parameter['text']} {words}")


def _check_length(place: str, text: str, sent: Json | None, most: int) -> None:
    values = [str(parameter.get("text", "")) for parameter in (sent or {}).get("parameters") or []]
    if len(text) + sum(len(value) - len("{{1}}") for value in values) > most:
        _refuse(132005, "Translated text too long", f"{place}: the text has more than {most} characters")


def _check_buttons(place: str, buttons: Sequence[Json], sent: Sequence[Json]) -> None:
    received = {str(one.get("index")): one for one in sent if str(one.get("type")).lower() == "button"}
    for index, one in received.items():
        if not index.isdigit() or int(index) >= len(buttons):
            _refuse(132018, _ISSUE, f"{place}buttons: There is no button at index {index}")
        _check_button(place, int(index), buttons[int(index)], one)
    for number, button in enumerate(buttons):
        type = str(button.get("type")).upper()
        has_place = bool(list_variables(str(button.get("url", "")))) if type == "URL" else True
        if type in BUTTON_NAMES and has_place and str(number) not in received:
            words = f"{place}buttons: Button at index {number} of type {BUTTON_NAMES[type]} requires a parameter"
            _refuse(131008, "Required parameter is missing", words)


def _check_button(place: str, index: int, button: Json, sent: Json) -> None:
    type = str(button.get("type")).upper()
    if type in NO_PARAMETERS:
        words = f"is of type {NO_PARAMETERS[type]} and does not support parameters"
        _refuse(100, "Invalid parameter", f"{place}buttons: Button at index {index} {words}")
    sub_type = str(sent.get("sub_type")).lower()
    if sub_type != SUB_TYPES.get(type):
        name = BUTTON_NAMES.get(type) or "".join(part.title() for part in type.split("_"))
        _refuse(132018, _ISSUE, f"{place}buttons: Button at index {index} must be of type {name}")
    kind, parameters = PARAMETER_OF.get(sub_type), sent.get("parameters") or [{}]
    if kind is None:
        return
    value = parameters[0].get(kind)
    if not isinstance(value, str) or not value:
        words = f"{place}buttons: Button at index {index} of type {BUTTON_NAMES.get(type, type)} requires a parameter"
        _refuse(131008, "Required parameter is missing", words)
    longest = 15 if type == "OTP" else LONGEST[sub_type]
    if len(str(value)) > longest:
        _refuse(131009, "Parameter value is not valid", f"{place}buttons: The parameter is longer than {longest}")


def _check_offer(parts: Mapping[str, Json], sent: Sequence[Json]) -> None:
    offer = parts.get("LIMITED_TIME_OFFER", {}).get("limited_time_offer") or {}
    found = _find(sent, "limited_time_offer")
    if bool(offer.get("has_expiration")) != (found is not None):
        words = "limited_time_offer: the offer's expiration_time_ms does not fit the template"
        _refuse(131008, "Required parameter is missing", words)
    for parameter in (found or {}).get("parameters") or []:
        ends = (parameter.get("limited_time_offer") or {}).get("expiration_time_ms")
        if not isinstance(ends, int) or ends < 10**12:
            _refuse(131009, "Parameter value is not valid", "expiration_time_ms has to be a time in milliseconds")


def _check_carousel(parts: Mapping[str, Json], sent: Sequence[Json], is_named: bool) -> None:
    cards = parts.get("CAROUSEL", {}).get("cards") or []
    received = (_find(sent, "carousel") or {}).get("cards") or []
    if [card.get("card_index") for card in received] != list(range(len(cards))):
        words = f"carousel: expected {len(cards)} cards with card_index from 0, received {len(received)}"
        _refuse(132012, _FORMAT, words)
    for number, (card, values) in enumerate(zip(cards, received, strict=True)):
        components = values.get("components") or []
        for place, component in enumerate(components):
            _check_shape(f"template.components.carousel.cards.{number}.components.{place}", component)
        _check_part(f"card {number} ", index_components(card["components"]), components, is_named, is_code=False)


_FORMAT = "Parameter format does not match format in the created template"
_ISSUE = "There\u2019s an issue with the parameters in your template"


def _find(sent: Sequence[Json], type: str) -> Json | None:
    return next((part for part in sent if str(part.get("type")).lower() == type), None)


def _refuse(code: int, message: str, details: str) -> NoReturn:
    raise WrongTemplate(code, message, details)


def _violate(field: str) -> NoReturn:
    raise WrongTemplate(
        100, f"Your request has violated JSON schema constraint 'required' for the JSON field '{field}'", None
    )
