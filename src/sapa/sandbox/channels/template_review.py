"""How the simulator reviews a template: it refuses what WhatsApp documents as wrong, and approves the rest at once.

It reads the request's JSON on its own, so that a mistake in the adapter that builds it is found.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from sapa.sandbox.channels.graph_errors import GraphRefusal

CATEGORIES = ("AUTHENTICATION", "MARKETING", "UTILITY")
MAX_NAME = 512
TTL_SECONDS = {"AUTHENTICATION": (30, 900), "UTILITY": (30, 43_200), "MARKETING": (43_200, 2_592_000)}
MEDIA = ("IMAGE", "VIDEO", "DOCUMENT")
HEADERS = ("TEXT", *MEDIA, "LOCATION", "PRODUCT")
MAX_BUTTONS = {
    "QUICK_REPLY": 10,
    "URL": 2,
    "PHONE_NUMBER": 1,
    "COPY_CODE": 1,
    "OTP": 1,
    "FLOW": 1,
    "CATALOG": 1,
    "MPM": 1,
    "SPM": 1,
    "VOICE_CALL": 1,
    "REQUEST_CONTACT_INFO": 1,
}
LANGUAGES = frozenset(
    """
    af sq ar ar_AE ar_EG ar_LB ar_MA ar_QA ar_SA az bn bg ca zh_CN zh_HK zh_TW hr cs da nl en en_AU en_CA en_GB en_IN
    en_US et fil fi fr fr_BE fr_CA ka de el gu ha he hi hu id ga it ja kn kk rw_RW ko ky_KG lo lv lt mk ms ml mr nb fa
    pl pt_BR pt_PT pa ro ru sr sk sl es es_AR es_CL es_CO es_ES es_MX es_PE es_VE sw sv ta te th tr uk ur uz vi zu
    """.split()
)
ALONE = {"OTP", "CATALOG", "MPM", "SPM"}

TOO_LONG, BODY_FORMAT, FOOTER_FORMAT = 2388040, 2388047, 2388073
TOO_MANY_VARIABLES, VARIABLE_AT_END, NO_SAMPLE = 2388293, 2388299, 2388273

Json = Mapping[str, Any]

_VARIABLE = re.compile(r"\{\{([^{}]*)\}\}")
_NAME = re.compile(r"[a-z0-9_]+", re.ASCII).fullmatch
_PHONE = re.compile(r"\+?[1-9][0-9]{4,19}", re.ASCII).fullmatch
_EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u20e3\U0001f000-\U0001faff]").search
_MARKUP = re.compile(r"\*|```|\b_[^_]+_\b|~[^~]+~").search
_WORD = re.compile(r"\w").search


class ReviewRefusal(Exception):
    def __init__(self, refusal: GraphRefusal) -> None:
        self.refusal = refusal


def review(body: Json) -> GraphRefusal | None:
    """Why the template is refused; None if it is approved."""
    try:
        _review(body)
    except ReviewRefusal as refusal:
        return refusal.refusal
    return None


def list_variables(text: str) -> Sequence[str]:
    return list(dict.fromkeys(name.strip() for name in _VARIABLE.findall(text)))


def index_components(components: Sequence[Json]) -> Mapping[str, Json]:
    return {str(part.get("type", "")).upper(): part for part in components}


def _review(body: Json) -> None:
    name, category = body.get("name"), str(body.get("category", "")).upper()
    if not isinstance(name, str) or not _NAME(name) or len(name) > MAX_NAME:
        _refuse("name has to be at most 512 small letters, digits and underscores")
    if body.get("language") not in LANGUAGES:
        _refuse("language is not supported")
    if category not in CATEGORIES:
        _refuse(f"category must be one of {', '.join(CATEGORIES)}")
    components = _list_components(body.get("components"))
    parts = index_components(components)
    if len(parts) != len(components) or "BODY" not in parts:
        _refuse("there has to be one component of the type BODY, and at most one of each other type")
    _review_ttl(body, category)
    if category == "AUTHENTICATION":
        _review_authentication(parts)
        return
    is_named = str(body.get("parameter_format")).upper() == "NAMED"
    _review_header(parts.get("HEADER"), is_named)
    _review_body(parts["BODY"], is_named, 600 if "LIMITED_TIME_OFFER" in parts else 1024)
    _review_footer(parts.get("FOOTER"))
    _review_buttons(parts.get("BUTTONS"), category)
    _review_offer(parts, category)
    _review_carousel(parts, category, is_named)


def _list_components(found: Any) -> Sequence[Json]:
    known = {"HEADER", "BODY", "FOOTER", "BUTTONS", "CAROUSEL", "LIMITED_TIME_OFFER"}
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        _refuse("components has to be a list of objects")
    for part in found:
        if str(part.get("type", "")).upper() not in known:
            _refuse(f"the component type {part.get('type')} is unknown")
    listed: Sequence[Json] = found
    return listed


def _review_ttl(body: Json, category: str) -> None:
    ttl, (least, most) = body.get("message_send_ttl_seconds"), TTL_SECONDS[category]
    if ttl is not None and ttl != -1 and not (isinstance(ttl, int) and least <= ttl <= most):
        _refuse(f"message_send_ttl_seconds has to be {least} to {most} for {category}")


def _review_authentication(parts: Mapping[str, Json]) -> None:
    if set(parts) - {"BODY", "FOOTER", "BUTTONS"} or "text" in parts["BODY"]:
        _refuse("an authentication template has no header and no text of its own", BODY_FORMAT)
    if "FOOTER" in parts:
        minutes = parts["FOOTER"].get("code_expiration_minutes")
        if "text" in parts["FOOTER"] or not isinstance(minutes, int) or not 1 <= minutes <= 90:
            _refuse("code_expiration_minutes has to be 1 to 90", FOOTER_FORMAT)
    buttons = parts.get("BUTTONS", {}).get("buttons") or []
    if [str(button.get("type")).upper() for button in buttons] != ["OTP"]:
        _refuse("an authentication template has one button of the type OTP")
    _review_otp(buttons[0])


def _review_otp(button: Json) -> None:
    word = str(button.get("otp_type", "")).upper()
    if word not in {"COPY_CODE", "ONE_TAP", "ZERO_TAP"}:
        _refuse("otp_type must be one of COPY_CODE, ONE_TAP, ZERO_TAP")
    if word == "COPY_CODE":
        return
    apps = button.get("supported_apps") or []
    if not 1 <= len(apps) <= 5:
        _refuse("supported_apps has to have 1 to 5 apps")
    for app in apps:
        if len(str(app.get("signature_hash", ""))) != 11 or not 1 <= len(str(app.get("package_name", ""))) <= 224:
            _refuse("each app has a package_name and a signature_hash of 11 characters")
    if word == "ZERO_TAP" and button.get("zero_tap_terms_accepted") is not True:
        _refuse("zero_tap_terms_accepted has to be true")


def _review_header(header: Json | None, is_named: bool) -> None:
    if header is None:
        return
    kind, example = str(header.get("format", "")).upper(), header.get("example") or {}
    if kind not in HEADERS:
        _refuse(f"the header format {kind} is unknown", BODY_FORMAT)
    if kind in MEDIA and not example.get("header_handle"):
        _refuse("a header with a file needs a sample", NO_SAMPLE)
    if kind != "TEXT":
        return
    text = _read_text(header, 60)
    if "\n" in text or _EMOJI(text) or _MARKUP(text):
        _refuse("a header has no line breaks, formatting characters, emojis or asterisks", BODY_FORMAT)
    names = _review_variables(text, is_named)
    if len(names) > 1:
        _refuse("a header has at most one variable", BODY_FORMAT)
    if names and not example.get("header_text_named_params" if is_named else "header_text"):
        _refuse("a header with a variable needs an example", BODY_FORMAT)


def _review_body(body: Json, is_named: bool, most: int) -> None:
    text = _read_text(body, most)
    names = _review_variables(text, is_named)
    if not names:
        return
    pieces = _VARIABLE.split(text)[::2]
    if not _WORD(pieces[0]) or not _WORD(pieces[-1]):
        _refuse("variables cannot be at the beginning or the end", VARIABLE_AT_END)
    if any(not piece.strip() for piece in pieces[1:-1]):
        _refuse("variables cannot be side by side", BODY_FORMAT)
    if sum(bool(_WORD(word)) for piece in pieces for word in piece.split()) < len(pieces) - 1:
        _refuse("there are too many variables for the length", TOO_MANY_VARIABLES)
    example = body.get("example") or {}
    if is_named:
        shown = {str(one.get("param_name")) for one in example.get("body_text_named_params") or []}
        is_complete = shown == set(names)
    else:
        rows = example.get("body_text") or [[]]
        is_complete = isinstance(rows[0], list) and len(rows[0]) == len(names)
    if not is_complete:
        _refuse("each variable needs an example", BODY_FORMAT)


def _review_variables(text: str, is_named: bool) -> Sequence[str]:
    names = list_variables(text)
    if "{{" in _VARIABLE.sub("", text) or "}}" in _VARIABLE.sub("", text):
        _refuse("the variables have unmatched braces", BODY_FORMAT)
    numbers = [str(number) for number in range(1, len(names) + 1)]
    if sorted(names) != sorted(numbers) if not is_named else not all(_NAME(name) for name in names):
        _refuse("the variables are not numbered 1, 2, 3, or not named with small letters", BODY_FORMAT)
    return names


def _review_footer(footer: Json | None) -> None:
    if footer is None:
        return
    text = _read_text(footer, 60)
    if "{{" in text or "\n" in text or _EMOJI(text):
        _refuse("a footer has no variables, line breaks or emojis", FOOTER_FORMAT)


def _review_offer(parts: Mapping[str, Json], category: str) -> None:
    if "LIMITED_TIME_OFFER" not in parts:
        return
    offer = parts["LIMITED_TIME_OFFER"].get("limited_time_offer") or {}
    _read_text(offer, 16)
    if category != "MARKETING" or "FOOTER" in parts:
        _refuse("an offer is for MARKETING, and has no footer beside it")


def _review_carousel(parts: Mapping[str, Json], category: str, is_named: bool) -> None:
    if "CAROUSEL" not in parts:
        return
    cards = parts["CAROUSEL"].get("cards") or []
    if category != "MARKETING" or not 2 <= len(cards) <= 10 or set(parts) != {"BODY", "CAROUSEL"}:
        _refuse("a carousel is for MARKETING, and has 2 to 10 cards below a body and nothing else")
    shapes = set()
    for card in cards:
        inner = index_components(_list_components(card.get("components")))
        header = inner.get("HEADER")
        if header is None or str(header.get("format")).upper() not in {"IMAGE", "VIDEO", "PRODUCT"}:
            _refuse("a card has a header with an image, a video or a product", BODY_FORMAT)
        _review_header(header, is_named)
        if "BODY" in inner:
            _review_body(inner["BODY"], is_named, 160)
        _review_buttons(inner.get("BUTTONS"), category)
        buttons = inner.get("BUTTONS", {}).get("buttons") or []
        if not 1 <= len(buttons) <= 2:
            _refuse("a card has 1 or 2 buttons")
        shapes.add((str(header.get("format")).upper(), "BODY" in inner, tuple(one.get("type") for one in buttons)))
    if len(shapes) > 1:
        _refuse("all cards have the same components")


def _review_buttons(part: Json | None, category: str) -> None:
    if part is None:
        return
    buttons = part.get("buttons")
    if not isinstance(buttons, list) or not 1 <= len(buttons) <= 10:
        _refuse("there are 1 to 10 buttons")
    types = [str(button.get("type", "")).upper() for button in buttons]
    for type, count in Counter(types).items():
        if type not in MAX_BUTTONS or type == "OTP":
            _refuse(f"the button type {type} is not for {category}")
        if count > MAX_BUTTONS[type] or (type in ALONE and len(types) > 1):
            _refuse(f"there are too many buttons for {type}")
    if sum((here == "QUICK_REPLY") != (there == "QUICK_REPLY") for here, there in pairwise(types)) > 1:
        _refuse("quick replies and other buttons are not grouped")
    for type, button in zip(types, buttons, strict=True):
        _review_button(type, button, category)


def _review_button(type: str, button: Json, category: str) -> None:
    if type not in {"COPY_CODE", "REQUEST_CONTACT_INFO"} and "\n" in _read_text(button, 25):
        _refuse("the text of a button has no line breaks")
    if check := _BUTTONS.get(type):
        check(button, category)


def _review_url(button: Json, category: str) -> None:
    url = str(button.get("url", ""))
    names = list_variables(url)
    if not url.startswith(("https://", "http://")) or len(url) > 2000:
        _refuse("url has to be an address of at most 2,000 characters")
    if names and (names != ["1"] or not url.endswith("}}")):
        _refuse("a url has one variable, at its end")
    if names and not button.get("example"):
        _refuse("a url with a variable needs an example")


def _review_phone(button: Json, category: str) -> None:
    if not _PHONE(str(button.get("phone_number", ""))):
        raise ReviewRefusal(GraphRefusal(code=192, message="Invalid phone number"))


def _review_code(button: Json, category: str) -> None:
    if category != "MARKETING" or not 1 <= len(str(button.get("example", ""))) <= 15:
        _refuse("a code to copy is for MARKETING, and its example has at most 15 characters")


def _review_flow(button: Json, category: str) -> None:
    if sum(name in button for name in ("flow_id", "flow_name", "flow_json")) != 1:
        _refuse("a flow has exactly one of flow_id, flow_name and flow_json")


_BUTTONS: Mapping[str, Callable[[Json, str], None]] = {
    "URL": _review_url,
    "PHONE_NUMBER": _review_phone,
    "COPY_CODE": _review_code,
    "FLOW": _review_flow,
}


def _read_text(part: Json, most: int) -> str:
    text = part.get("text")
    if not isinstance(text, str) or not text.strip():
        _refuse("a text is missing", BODY_FORMAT)
    if len(str(text)) > most:
        _refuse(f"a text has more than {most} characters", TOO_LONG)
    return str(text)


def _refuse(advice: str, subcode: int | None = None) -> NoReturn:
    raise ReviewRefusal(
        GraphRefusal(
            code=100,
            message="Invalid parameter",
            subcode=subcode,
            title="The template cannot be created",
            advice=advice[0].upper() + advice[1:] + ".",
            has_prefix=False,
        )
    )
