"""The form of a template: what it shows, and the API's body that it makes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from sapa.console.page_request import PageRequest
from sapa.console.translations import build_translator
from sapa.messaging.channels.template_content import Header, TemplateButton, TemplateContent
from sapa.messaging.templates.filling import ParamPlace, list_param_places

HEADERS = ("none", "text", "image", "video", "document", "location", "product")
CODE_BUTTONS = {"otp copy_code": "copy_code", "otp one_tap": "one_tap", "otp zero_tap": "zero_tap"}
"""The form's buttons for one-time codes, by how the code gets to the person. The API has one type for them."""
BUTTONS = (
    "quick_reply", "url", "phone_number", "copy_code", *CODE_BUTTONS, "flow", "catalog", "mpm", "spm", "voice_call",
    "request_contact_info",
)  # fmt: skip
TEXTLESS = {"request_contact_info", *CODE_BUTTONS}
"""Buttons whose text may be the channel's."""
CARD_HEADERS = ("image", "video", "product")
CARD_BUTTONS = ("quick_reply", "url", "phone_number", "spm")
FILES = ("image", "video", "document")
URL_END = "the end of "
"""How the place of a button with an address is described."""
LANGUAGES = (
    "af", "ar", "ar_AE", "ar_EG", "ar_LB", "ar_MA", "ar_QA", "az", "be_BY", "bg", "bn", "bn_IN", "ca", "cs", "da", "de",
    "de_AT", "de_CH", "el", "en", "en_AE", "en_AU", "en_CA", "en_GB", "en_GH", "en_IE", "en_IN", "en_JM", "en_MY",
    "en_NZ", "en_QA", "en_SG", "en_UG", "en_US", "en_ZA", "es", "es_AR", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC",
    "es_ES", "es_HN", "es_MX", "es_PA", "es_PE", "es_UY", "et", "fa", "fi", "fil", "fr", "fr_BE", "fr_CA", "fr_CH",
    "fr_CI", "fr_MA", "ga", "gu", "ha", "he", "hi", "hr", "hu", "id", "it", "ja", "ka", "kk", "kn", "ko", "ky_KG", "lo",
    "lt", "lv", "mk", "ml", "mr", "ms", "nb", "nl", "nl_BE", "pa", "pl", "prs_AF", "ps_AF", "pt_BR", "pt_PT", "ro",
    "ru", "rw_RW", "si_LK", "sk", "sl", "sq", "sr", "sv", "sw", "ta", "te", "th", "tr", "uk", "ur", "uz", "vi", "zh_CN",
    "zh_HK", "zh_TW", "zu",
)  # fmt: skip
"""Those that channels take templates in."""
MIN_BUTTONS = 3
MAX_BUTTONS = 10
BUTTONS_OF_CARD = 2
MAX_CARDS = 10
TARGETS = {"url": "url", "phone_number": "phoneNumber", "copy_code": "example", "flow": "flowId"}
"""The field of the API that a button's target is, by the button's type."""

Json = dict[str, Any]

_EMPTY_BUTTON = {"type": "quick_reply", "text": "", "target": "", "more": ""}
_EMPTY_CARD: Json = {"header": "image", "sample": "", "body": "", "examples": "", "buttons": []}


def list_places(template: Json, language: str) -> Sequence[ParamPlace]:
    """The places that `params` fill, in their order and in words."""
    places = list_param_places(
        TemplateContent(
            category=template["category"],
            parameter_format=template["parameterFormat"],
            header=msgspec.convert(template["header"], Header | None),
            body=template["body"],
            buttons=msgspec.convert(template["buttons"], list[TemplateButton]),
        )
    )
    return [_name_place(build_translator(language), one) for one in places]


def _name_place(say: Callable[..., str], one: ParamPlace) -> ParamPlace:
    if one.place in {"body", "header"}:
        return ParamPlace(say(f"place {one.place}"), one.label)
    url = one.label.removeprefix(URL_END)
    label = say("the end of {url}", url=url) if url != one.label else say(one.label)
    return ParamPlace(say("in button {n}", n=int(one.place[len("buttons[") : -1]) + 1), label)


def is_plain(template: Json) -> bool:
    """Whether params and one file are all that a send needs; the API sends the others."""
    header, offer = template["header"] or {}, template["limitedTimeOffer"] or {}
    return bool(
        template["sendable"]
        and header.get("type") not in {"location", "product"}
        and not template["cards"]
        and not offer.get("hasExpiration")
        and not any(button["type"] == "mpm" for button in template["buttons"])
    )


def fill_rows(typed: Json) -> Json:
    """With empty rows for more buttons and cards."""
    cards = [*typed["cards"], *[_EMPTY_CARD] * max(1, BUTTONS_OF_CARD - len(typed["cards"]))][:MAX_CARDS]
    return {
        "buttons": _pad(typed["buttons"], max(MIN_BUTTONS, min(len(typed["buttons"]) + 1, MAX_BUTTONS))),
        "cards": [card | {"buttons": _pad(card["buttons"], BUTTONS_OF_CARD)} for card in cards],
    }


def _pad(buttons: list[Json], count: int) -> list[Json]:
    shown = buttons[:MAX_BUTTONS]
    return shown + [_EMPTY_BUTTON] * (count - len(shown))


def read_typed(page: PageRequest) -> Json:
    names = (
        "name", "language", "category", "parameter_format", "header", "header_text", "header_example", "footer",
        "offer", "offer_ends", "ttl", "minutes", "advice",
    )  # fmt: skip
    return {
        **{name: page.form_value(name) for name in names},
        "body": _read_lines(page.form_value("body")),
        "examples": _read_lines(page.form_value("examples")),
        "buttons": _read_buttons(page, "button"),
        "cards": _read_cards(page),
    }


def _read_lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _read_buttons(page: PageRequest, prefix: str) -> list[Json]:
    parts = ("type", "text", "target", "more")
    rows = zip(*(page.form_values(f"{prefix}_{part}") for part in parts), strict=False)
    typed = [dict(zip(parts, (word.strip() for word in row), strict=True)) for row in rows]
    return [row for row in typed if row["text"] or row["target"] or row["type"] in TEXTLESS]


def _read_cards(page: PageRequest) -> list[Json]:
    """A card without a word is left out."""
    parts = ("header", "sample", "body", "examples")
    rows = zip(*(page.form_values(f"card_{part}") for part in parts), strict=False)
    cards = []
    for number, row in enumerate(rows):
        card: Json = dict(zip(parts, map(_read_lines, row), strict=True))
        card["buttons"] = _read_buttons(page, f"card{number}")
        if card["sample"].strip() or card["body"].strip() or card["buttons"]:
            cards.append(card)
    return cards


def read_stored(template: Json) -> Json:
    """The form of a stored template. The text of an authentication template is the channel's, so it is not in it."""
    header, offer = template["header"] or {"type": "none"}, template["limitedTimeOffer"]
    rules, examples = template["authentication"] or {}, template["examples"] or {}
    is_code = template["category"] == "AUTHENTICATION"
    card_examples = examples.get("cards") or []
    return {
        **{name: template[name] for name in ("name", "language", "category")},
        "parameter_format": template["parameterFormat"],
        "body": "" if is_code else template["body"],
        "footer": "" if is_code else template["footer"] or "",
        "header": header["type"],
        "header_text": header.get("text") or "",
        "header_example": examples.get("header") or "",
        "examples": _show_examples(examples.get("body")),
        "offer": offer["text"] if offer else "",
        "offer_ends": "on" if offer and offer["hasExpiration"] else "",
        "ttl": template["ttlSeconds"] or "",
        "minutes": rules.get("codeExpirationMinutes") or "",
        "advice": "on" if rules.get("securityRecommendation", True) else "",
        "buttons": [_show_button(button) for button in template["buttons"]],
        "cards": [
            _show_card(card, card_examples[number] if number < len(card_examples) else {})
            for number, card in enumerate(template["cards"])
        ],
    }


def _show_card(card: Json, examples: Mapping[str, Any]) -> Json:
    return {
        "header": card["header"]["type"],
        "sample": examples.get("header") or "",
        "body": card["body"] or "",
        "examples": _show_examples(examples.get("body")),
        "buttons": [_show_button(button) for button in card["buttons"]],
    }


def _show_button(button: Json) -> Json:
    apps = button.get("supportedApps") or []
    more = " ".join(f"{app['packageName']} {app['signatureHash']}" for app in apps)
    if "autofillText" in button:
        more += f" | {button['autofillText']}"
    if button["type"] == "url":
        more = button.get("example") or ""
    elif button["type"] == "flow":
        more = button.get("navigateScreen") or ""
    type = f"otp {button.get('otpType', 'copy_code')}" if button["type"] == "otp" else button["type"]
    target = button.get(TARGETS.get(type, ""))
    return {"type": type, "text": button["text"] or "", "target": target or "", "more": more}


def _show_examples(examples: Any) -> str:
    if isinstance(examples, dict):
        return "\n".join(f"{name}={value}" for name, value in examples.items())
    return "\n".join(examples or [])


def build_content(typed: Json) -> Json:
    """A template's content as the API's body."""
    if typed["category"] == "AUTHENTICATION":
        return _build_code(typed)
    is_named = typed["parameter_format"] == "NAMED"
    header = {"type": typed["header"]} if typed["header"] not in {"", "none"} else None
    if header and header["type"] == "text":
        header["text"] = typed["header_text"]
    offer = {"text": typed["offer"], "hasExpiration": bool(typed["offer_ends"])} if typed["offer"] else None
    return {
        "category": typed["category"],
        "parameterFormat": typed["parameter_format"] or "POSITIONAL",
        "header": header,
        "body": typed["body"],
        "footer": typed["footer"] or None,
        "buttons": [build_button(button) for button in typed["buttons"]],
        "cards": [_build_card(card) for card in typed["cards"]],
        "limitedTimeOffer": offer,
        "ttlSeconds": _build_number(typed["ttl"]),
        "examples": {
            "header": typed["header_example"] or None,
            "body": _build_examples(typed["examples"], is_named),
            "cards": [_build_card_examples(card, is_named) for card in typed["cards"]] or None,
        },
    }


def _build_code(typed: Json) -> Json:
    minutes = _build_number(typed["minutes"])
    return {
        "category": "AUTHENTICATION",
        "ttlSeconds": _build_number(typed["ttl"]),
        "buttons": [build_button(button) for button in typed["buttons"]],
        "authentication": {"securityRecommendation": bool(typed["advice"]), "codeExpirationMinutes": minutes},
    }


def _build_card(card: Json) -> Json:
    return {
        "header": {"type": card["header"]},
        "body": card["body"] or None,
        "buttons": [build_button(button) for button in card["buttons"]],
    }


def _build_card_examples(card: Json, is_named: bool) -> Json:
    return {"header": card["sample"] or None, "body": _build_examples(card["examples"], is_named)}


def _build_examples(text: str, is_named: bool) -> list[str] | dict[str, str] | None:
    """One value in each line; with names, as name=value."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return None
    return dict((line.partition("=")[::2]) for line in lines) if is_named else lines


def build_button(typed: Mapping[str, str]) -> Json:
    type, target, more = typed["type"], typed["target"], typed["more"]
    button: Json = {"type": type, "text": typed["text"] or None}
    if type in CODE_BUTTONS:
        return button | {"type": "otp", "otpType": CODE_BUTTONS[type]} | _build_apps(CODE_BUTTONS[type], more)
    if field := TARGETS.get(type):
        button[field] = target
    match type:
        case "url" if more:
            button["example"] = more
        case "flow":
            button |= {"flowAction": "navigate", "navigateScreen": more} if more else {}
    return button


def _build_apps(kind: str, more: str) -> Json:
    """The apps that read a one-time code, each a package and its hash, and after a bar the second button's text."""
    apps, _, autofill = more.partition("|")
    words = apps.split()
    pairs = zip(words[::2], words[1::2], strict=False)
    listed = [{"packageName": name, "signatureHash": hash} for name, hash in pairs]
    return {
        **({"supportedApps": listed} if listed else {}),
        **({"autofillText": autofill.strip()} if autofill.strip() else {}),
        **({"zeroTapTermsAccepted": True} if kind == "zero_tap" else {}),
    }


def _build_number(text: Any) -> int | str | None:
    """What is not a number goes to the API as it is, which says what is wrong."""
    word = str(text).strip()
    return int(word) if word.removeprefix("-").isdigit() and word.isascii() else word or None
