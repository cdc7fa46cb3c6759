"""Checks a new template as the channels that review templates do. Pure: no database.

What a channel would reject, and we can know, is refused here with its reason.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from msgspec import UNSET

from sapa.http.errors import Invalid
from sapa.messaging.channels.template_content import (
    MEDIA_HEADERS,
    Authentication,
    CardExamples,
    Header,
    ParameterFormat,
    TemplateButton,
    TemplateCard,
    TemplateContent,
    TemplateExamples,
)
from sapa.messaging.channels.template_variables import list_variables, replace_variables, split_at_variables
from sapa.values.web_addresses import is_web_address

MAX_HEADER = MAX_FOOTER = 60
MAX_BODY = 1024
MAX_OFFER_BODY = 600
MAX_CARD_BODY = 160
MAX_OFFER = 16
MAX_LABEL = 25
MAX_URL = 2000
MAX_CODE = 15
MAX_BUTTONS = 10
MAX_CARD_BUTTONS = 2
CARDS = range(2, 11)
EXPIRATION_MINUTES = range(1, 91)
MAX_APPS = 5
MAX_PACKAGE = 224
HASH_LENGTH = 11
TTL_SECONDS: Mapping[str, range] = {
    "AUTHENTICATION": range(30, 901),
    "UTILITY": range(30, 43_201),
    "MARKETING": range(43_200, 2_592_001),
}
MAX_OF_TYPE: Mapping[str, int] = {
    "quick_reply": 10,
    "url": 2,
    "phone_number": 1,
    "copy_code": 1,
    "flow": 1,
    "catalog": 1,
    "mpm": 1,
    "spm": 1,
    "voice_call": 1,
    "request_contact_info": 1,
}
ALONE = frozenset({"catalog", "mpm", "spm"})
WITHOUT_TEXT = frozenset({"copy_code", "request_contact_info"})
CARD_BUTTONS = frozenset({"quick_reply", "url", "phone_number", "spm"})

_FIELDS_OF: Mapping[str, frozenset[str]] = {
    "url": frozenset({"url", "example"}),
    "phone_number": frozenset({"phone_number"}),
    "copy_code": frozenset({"example"}),
    "otp": frozenset({"otp_type", "autofill_text", "supported_apps", "zero_tap_terms_accepted"}),
    "flow": frozenset({"flow_id", "flow_name", "flow_json", "flow_action", "navigate_screen"}),
}
_WIRE_NAMES: Mapping[str, str] = dict(
    zip(TemplateButton.__struct_fields__, TemplateButton.__struct_encode_fields__, strict=True)
)
_NUMBER = re.compile(r"[1-9][0-9]{0,2}", re.ASCII).fullmatch
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII).fullmatch
_PHONE = re.compile(r"\+?[1-9][0-9]{4,18}", re.ASCII).fullmatch
_EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u20e3\U0001f000-\U0001faff]").search
_MARKUP = re.compile(r"\*|```|\b_[^_]+_\b|~[^~]+~").search
_PACKAGE = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)+", re.ASCII).fullmatch


def check_content(content: TemplateContent) -> None:
    """Raises Invalid with the first part that a channel would reject."""
    _check_ttl(content)
    if content.category == "AUTHENTICATION":
        _check_authentication(content)
        return
    if content.authentication is not None:
        raise Invalid.field("authentication", "must be absent unless the category is AUTHENTICATION")
    examples = content.examples or TemplateExamples()
    own = CardExamples(examples.header, examples.body)
    _check_header("header", "examples.header", content.header, own, content.parameter_format)
    _check_body("body", "examples.body", content.body, own, content.parameter_format)
    _check_length("body", content.body, MAX_OFFER_BODY if content.limited_time_offer else MAX_BODY)
    _check_footer(content)
    _check_buttons("buttons", content.buttons, content)
    _check_offer(content)
    _check_products("header", content.header, content.buttons)
    _check_cards(content, examples.cards)


def check_variables(field: str, text: str, format: ParameterFormat) -> Sequence[str]:
    """The names of the text's parameters."""
    rest = replace_variables(text, lambda name: "")
    if "{{" in rest or "}}" in rest:
        raise Invalid.field(field, "must not have braces without a parameter; write a parameter as {{1}}")
    names = list_variables(text)
    if format == "NAMED":
        if not all(_NAME(name) for name in names):
            raise Invalid.field(
                field, "must name its parameters with small letters, digits and underscores, such as {{order_number}}"
            )
        return names
    if not all(_NUMBER(name) for name in names):
        raise Invalid.field(
            field,
            "must number its parameters: {{1}}, {{2}} and so on; to name them, set parameterFormat to NAMED",
        )
    if list(names) != [str(number) for number in range(1, len(names) + 1)]:
        raise Invalid.field(field, "must number its parameters from {{1}} without gaps")
    return names


def _check_ttl(content: TemplateContent) -> None:
    allowed = TTL_SECONDS[content.category]
    if content.ttl_seconds is None or content.ttl_seconds == -1 or content.ttl_seconds in allowed:
        return
    raise Invalid.field(
        "ttlSeconds",
        f"must be {allowed[0]} to {allowed[-1]} for the category {content.category}, or -1 for 30 days",
    )


def _check_authentication(content: TemplateContent) -> None:
    """The channel writes the text: only the button and two options can be chosen."""
    absent: list[tuple[str, object]] = [
        ("header", content.header),
        ("body", content.body),
        ("footer", content.footer),
        ("cards", content.cards),
        ("limitedTimeOffer", content.limited_time_offer),
        ("examples", content.examples),
    ]
    for field, value in absent:
        if value:
            raise Invalid.field(
                field, "must be absent: the channel writes the text of templates with the category AUTHENTICATION"
            )
    if content.parameter_format != "POSITIONAL":
        raise Invalid.field("parameterFormat", "must be POSITIONAL for the category AUTHENTICATION")
    minutes = (content.authentication or Authentication()).code_expiration_minutes
    if minutes is not None and minutes not in EXPIRATION_MINUTES:
        raise Invalid.field("authentication.codeExpirationMinutes", "must be 1 to 90")
    if [button.type for button in content.buttons] != ["otp"]:
        raise Invalid.field("buttons", "must be one button of the type otp for the category AUTHENTICATION")
    _check_otp("buttons[0]", content.buttons[0])


def _check_otp(field: str, button: TemplateButton) -> None:
    _check_fields(field, button)
    if button.text is not None:
        _check_label(field, button)
    if button.otp_type is UNSET:
        raise Invalid.field(f"{field}.otpType", "is required: copy_code, one_tap or zero_tap")
    if button.otp_type == "copy_code":
        for name in ("autofill_text", "supported_apps", "zero_tap_terms_accepted"):
            _check_absent(f"{field}.{_WIRE_NAMES[name]}", getattr(button, name), "for copy_code")
        return
    if button.autofill_text is not UNSET:
        _check_length(f"{field}.autofillText", button.autofill_text, MAX_LABEL)
    _check_apps(f"{field}.supportedApps", button)
    if button.otp_type == "zero_tap" and button.zero_tap_terms_accepted is not True:
        raise Invalid.field(f"{field}.zeroTapTermsAccepted", "must be true: accept the channel's terms")


def _check_apps(field: str, button: TemplateButton) -> None:
    apps = button.supported_apps or []
    if not 1 <= len(apps) <= MAX_APPS:
        raise Invalid.field(field, f"must have 1 to {MAX_APPS} apps for {button.otp_type}")
    for number, app in enumerate(apps):
        if not _PACKAGE(app.package_name) or len(app.package_name) > MAX_PACKAGE:
            raise Invalid.field(
                f"{field}[{number}].packageName", "must be the name of an Android package, such as com.shop.app"
            )
        if len(app.signature_hash) != HASH_LENGTH:
            raise Invalid.field(f"{field}[{number}].signatureHash", f"must have {HASH_LENGTH} characters")


def _check_header(
    field: str, example_field: str, header: Header | None, examples: CardExamples, format: ParameterFormat
) -> None:
    if header is None:
        _check_absent(example_field, examples.header, "without a header")
        return
    if header.type == "unknown":
        raise Invalid.field(f"{field}.type", "must be one of text, image, video, document, location, product")
    if (header.type == "text") != (header.text is not None):
        raise Invalid.field(
            f"{field}.text", "is required for a header of the type text, and must be absent for any other"
        )
    if header.type in MEDIA_HEADERS:
        if not examples.header or not _is_complete(examples.header):
            raise Invalid.field(
                example_field, f"is required: the public URL of a sample {header.type} for the reviewers"
            )
        return
    names = _check_header_text(f"{field}.text", header.text, format) if header.text is not None else []
    if not names:
        _check_absent(example_field, examples.header, "for a header without a parameter")


def _check_header_text(field: str, text: str, format: ParameterFormat) -> Sequence[str]:
    _check_length(field, text, MAX_HEADER)
    _check_line(field, text)
    if _EMOJI(text) or _MARKUP(text):
        raise Invalid.field(field, "must not have emoji, asterisks or other formatting")
    names = check_variables(field, text, format)
    if len(names) > 1:
        raise Invalid.field(field, "must have at most one parameter")
    return names


def _check_body(field: str, example_field: str, text: str, examples: CardExamples, format: ParameterFormat) -> None:
    if not text.strip():
        raise Invalid.field(field, "must not be blank")
    names = check_variables(field, text, format)
    parts = split_at_variables(text)
    if names and not (_has_words(parts[0]) and _has_words(parts[-1])):
        raise Invalid.field(field, "must not begin or end with a parameter; punctuation does not count as text")
    if not all(part.strip() for part in parts):
        raise Invalid.field(field, "must have text between two parameters")
    if sum(_has_words(word) for part in parts for word in part.split()) < len(parts) - 1:
        raise Invalid.field(field, "has too many parameters for its length; add text or remove parameters")
    _check_examples(example_field, examples.body, names)


def _check_examples(field: str, examples: Sequence[str] | Mapping[str, str] | None, names: Sequence[str]) -> None:
    if examples is None:
        return
    is_complete = set(examples) == set(names) if isinstance(examples, Mapping) else len(examples) == len(names)
    values = examples.values() if isinstance(examples, Mapping) else examples
    if not is_complete or not all(value.strip() for value in values):
        wanted = ", ".join(f"{{{{{name}}}}}" for name in names) or "no parameter"
        raise Invalid.field(field, f"must have one value for each of {wanted}")


def _check_footer(content: TemplateContent) -> None:
    if content.footer is None:
        return
    _check_length("footer", content.footer, MAX_FOOTER)
    _check_line("footer", content.footer)
    if _EMOJI(content.footer):
        raise Invalid.field("footer", "must not have emoji")
    if "{{" in content.footer:
        raise Invalid.field("footer", "must not have parameters")


def _check_offer(content: TemplateContent) -> None:
    offer = content.limited_time_offer
    if offer is None:
        return
    if content.category != "MARKETING":
        raise Invalid.field("limitedTimeOffer", "must be absent unless the category is MARKETING")
    if content.footer is not None:
        raise Invalid.field("footer", "must be absent beside limitedTimeOffer")
    _check_length("limitedTimeOffer.text", offer.text, MAX_OFFER)


def _check_buttons(field: str, buttons: Sequence[TemplateButton], content: TemplateContent) -> None:
    if len(buttons) > MAX_BUTTONS:
        raise Invalid.field(field, f"must have at most {MAX_BUTTONS} buttons")
    for number, button in enumerate(buttons):
        _check_button(f"{field}[{number}]", button, content.category)
    for type, count in Counter(button.type for button in buttons).items():
        if count > MAX_OF_TYPE[type]:
            raise Invalid.field(field, f"must have at most {MAX_OF_TYPE[type]} of the type {type}")
        if type in ALONE and len(buttons) > 1:
            raise Invalid.field(field, f"must have no other button beside {type}")
    replies = [button.type == "quick_reply" for button in buttons]
    if sum(here != there for here, there in pairwise(replies)) > 1:
        raise Invalid.field(field, "must have all quick replies together, before or after the other buttons")


def _check_button(field: str, button: TemplateButton, category: str) -> None:
    if button.type not in MAX_OF_TYPE:
        advice = " (only with the category AUTHENTICATION)" if button.type == "otp" else ""
        raise Invalid.field(f"{field}.type", f"must be one of {', '.join(MAX_OF_TYPE)}{advice}")
    _check_fields(field, button)
    if button.type in WITHOUT_TEXT:
        _check_absent(f"{field}.text", button.text, f"for {button.type}: the channel writes it")
    else:
        _check_label(field, button)
    if check := _BUTTON_CHECKS.get(button.type):
        check(field, button, category)


def _check_fields(field: str, button: TemplateButton) -> None:
    """Each type has its own fields."""
    own = {"type", "text"} | _FIELDS_OF.get(button.type, frozenset())
    for name in button.__struct_fields__:
        if name not in own:
            _check_absent(f"{field}.{_WIRE_NAMES[name]}", getattr(button, name), f"for {button.type}")


def _check_label(field: str, button: TemplateButton) -> None:
    if button.text is None or not button.text.strip():
        raise Invalid.field(f"{field}.text", "is required")
    _check_length(f"{field}.text", button.text, MAX_LABEL)
    _check_line(f"{field}.text", button.text)
    if "{{" in button.text:
        raise Invalid.field(f"{field}.text", "must not have parameters")


def _check_url(field: str, button: TemplateButton, category: str) -> None:
    url = button.url
    if not url:
        raise Invalid.field(f"{field}.url", "is required for a button of the type url")
    _check_length(f"{field}.url", url, MAX_URL)
    base, braces, end = url.partition("{{")
    if not _is_complete(base):
        raise Invalid.field(f"{field}.url", "must be a complete URL")
    if braces and end != "1}}":
        raise Invalid.field(f"{field}.url", "may have one parameter, {{1}}, at its very end")
    if not braces:
        _check_absent(f"{field}.example", button.example, "for a URL without a parameter")


def _check_phone(field: str, button: TemplateButton, category: str) -> None:
    if not button.phone_number:
        raise Invalid.field(f"{field}.phoneNumber", "is required for a button of the type phone_number")
    if not _PHONE(button.phone_number):
        raise Invalid.field(
            f"{field}.phoneNumber", "must be a phone number with its country code, such as +6281234567890"
        )


def _check_code(field: str, button: TemplateButton, category: str) -> None:
    if category != "MARKETING":
        raise Invalid.field(f"{field}.type", "copy_code is only for the category MARKETING")
    if not button.example:
        raise Invalid.field(f"{field}.example", "is required: an example of the code")
    _check_length(f"{field}.example", button.example, MAX_CODE)


def _check_flow(field: str, button: TemplateButton, category: str) -> None:
    names = [name for name in ("flow_id", "flow_name", "flow_json") if getattr(button, name)]
    if len(names) != 1:
        raise Invalid.field(field, "must have one of flowId, flowName and flowJson")
    if button.flow_action == "data_exchange":
        _check_absent(f"{field}.navigateScreen", button.navigate_screen, "for data_exchange")


_BUTTON_CHECKS: Mapping[str, Callable[[str, TemplateButton, str], None]] = {
    "url": _check_url,
    "phone_number": _check_phone,
    "copy_code": _check_code,
    "flow": _check_flow,
}


def _check_products(field: str, header: Header | None, buttons: Sequence[TemplateButton]) -> None:
    has_product = header is not None and header.type == "product"
    if has_product != any(button.type == "spm" for button in buttons):
        raise Invalid.field(field, "of the type product and a button of the type spm belong together")


def _check_cards(content: TemplateContent, examples: Sequence[CardExamples] | None) -> None:
    cards = content.cards
    if not cards:
        _check_absent("examples.cards", examples, "without cards")
        return
    if content.category != "MARKETING":
        raise Invalid.field("cards", "must be absent unless the category is MARKETING")
    beside: Mapping[str, object] = {
        "header": content.header,
        "footer": content.footer,
        "buttons": content.buttons,
        "limitedTimeOffer": content.limited_time_offer,
    }
    for field, value in beside.items():
        if value:
            raise Invalid.field(field, "must be absent beside cards; only the body may stand above them")
    if len(cards) not in CARDS:
        raise Invalid.field("cards", f"must have {CARDS[0]} to {CARDS[-1]} cards")
    if examples is not None and len(examples) != len(cards):
        raise Invalid.field("examples.cards", "must have one element for each card")
    for number, card in enumerate(cards):
        _check_card(number, card, examples[number] if examples else CardExamples(), content)
    if len({_shape(card) for card in cards}) > 1:
        raise Invalid.field("cards", "must have the same parts: the same header type, a body or none, the same buttons")


def _check_card(number: int, card: TemplateCard, examples: CardExamples, content: TemplateContent) -> None:
    field, example_field = f"cards[{number}]", f"examples.cards[{number}]"
    if card.header.type not in {"image", "video", "product"}:
        raise Invalid.field(f"{field}.header.type", "must be image, video or product")
    _check_header(f"{field}.header", f"{example_field}.header", card.header, examples, content.parameter_format)
    if card.body is not None:
        _check_body(f"{field}.body", f"{example_field}.body", card.body, examples, content.parameter_format)
        _check_length(f"{field}.body", card.body, MAX_CARD_BODY)
    if not 1 <= len(card.buttons) <= MAX_CARD_BUTTONS:
        raise Invalid.field(f"{field}.buttons", f"must have 1 to {MAX_CARD_BUTTONS} buttons")
    for place, button in enumerate(card.buttons):
        if button.type not in CARD_BUTTONS:
            raise Invalid.field(f"{field}.buttons[{place}].type", f"must be one of {', '.join(sorted(CARD_BUTTONS))}")
    _check_buttons(f"{field}.buttons", card.buttons, content)
    _check_products(f"{field}.header", card.header, card.buttons)


def _shape(card: TemplateCard) -> object:
    return card.header.type, card.body is None, tuple(button.type for button in card.buttons)


def _check_absent(field: str, value: Any, condition: str) -> None:
    if value is not None and value is not UNSET and value != []:
        raise Invalid.field(field, f"must be absent {condition}")


def _check_length(field: str, text: str, most: int) -> None:
    if not text.strip():
        raise Invalid.field(field, "must not be blank")
    if len(text) > most:
        raise Invalid.field(field, f"must have at most {most} characters")


def _check_line(field: str, text: str) -> None:
    if text.splitlines() != [text]:
        raise Invalid.field(field, "must be one line")


def _is_complete(url: str) -> bool:
    try:
        return is_web_address(url) and bool(urlsplit(url).hostname) and not any(map(str.isspace, url))
    except ValueError:
        return False


def _has_words(text: str) -> bool:
    return any(unicodedata.category(character)[0] not in "PZC" for character in text)
