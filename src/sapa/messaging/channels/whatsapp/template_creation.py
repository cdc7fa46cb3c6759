"""The request that creates or edits a template."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from sapa.messaging.channels.abilities import NewTemplate
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
from sapa.messaging.channels.template_variables import list_variables

_NO_EXAMPLES = CardExamples()


def build_template(template: NewTemplate, samples: Mapping[str, str]) -> dict[str, Any]:
    """`samples` are the handles of uploaded files, by the URLs in the examples."""
    content = template.content
    built: dict[str, Any] = {"name": template.name, "language": template.language, "category": content.category}
    if content.category != "AUTHENTICATION":
        built["parameter_format"] = content.parameter_format
    if content.ttl_seconds is not None:
        built["message_send_ttl_seconds"] = content.ttl_seconds
    if content.category == "AUTHENTICATION":
        return {**built, "components": _authentication(content)}
    return {**built, "components": _components(content, samples)}


def _components(content: TemplateContent, samples: Mapping[str, str]) -> list[dict[str, Any]]:
    examples = content.examples or TemplateExamples()
    own = CardExamples(examples.header, examples.body)
    return [
        *_header(content.header, own, content.parameter_format, samples),
        *_offer(content),
        *_body(content.body, own, content.parameter_format),
        *([{"type": "FOOTER", "text": content.footer}] if content.footer else []),
        *_buttons(content.buttons),
        *_carousel(content.cards, examples.cards or [], content.parameter_format, samples),
    ]


def _authentication(content: TemplateContent) -> list[dict[str, Any]]:
    """The channel writes the text."""
    rules = content.authentication or Authentication()
    minutes = rules.code_expiration_minutes
    return [
        {"type": "BODY", "add_security_recommendation": rules.security_recommendation},
        *([{"type": "FOOTER", "code_expiration_minutes": minutes}] if minutes else []),
        *_buttons(content.buttons),
    ]


def _header(
    header: Header | None, examples: CardExamples, format: ParameterFormat, samples: Mapping[str, str]
) -> list[dict[str, Any]]:
    if header is None:
        return []
    built: dict[str, Any] = {"type": "HEADER", "format": header.type.upper()}
    if header.type in MEDIA_HEADERS:
        return [{**built, "example": {"header_handle": [samples[examples.header or ""]]}}]
    if header.type != "text":
        return [built]
    names = list_variables(header.text or "")
    example = examples.header or "text 1"
    if names and format == "NAMED":
        return [{**built, "text": header.text, "example": {"header_text_named_params": [_named(names[0], example)]}}]
    shown = {"example": {"header_text": [example]}} if names else {}
    return [{**built, "text": header.text, **shown}]


def _body(text: str | None, examples: CardExamples, format: ParameterFormat) -> list[dict[str, Any]]:
    if text is None:
        return []
    names = list_variables(text)
    values = read_examples(examples.body, names)
    if not names:
        return [{"type": "BODY", "text": text}]
    if format == "NAMED":
        named = [_named(name, value) for name, value in zip(names, values, strict=True)]
        return [{"type": "BODY", "text": text, "example": {"body_text_named_params": named}}]
    return [{"type": "BODY", "text": text, "example": {"body_text": [values]}}]


def read_examples(examples: Sequence[str] | Mapping[str, str] | None, names: Sequence[str]) -> list[str]:
    """One value for each parameter; the channel requires them."""
    if isinstance(examples, Mapping):
        return [examples[name] for name in names]
    return list(examples) if examples else [f"text {number}" for number, _ in enumerate(names, 1)]


def _named(name: str, example: str) -> dict[str, str]:
    return {"param_name": name, "example": example}


def _offer(content: TemplateContent) -> list[dict[str, Any]]:
    offer = content.limited_time_offer
    if offer is None:
        return []
    words = {"text": offer.text, "has_expiration": offer.has_expiration}
    return [{"type": "LIMITED_TIME_OFFER", "limited_time_offer": words}]


def _carousel(
    cards: Sequence[TemplateCard],
    examples: Sequence[CardExamples],
    format: ParameterFormat,
    samples: Mapping[str, str],
) -> list[dict[str, Any]]:
    if not cards:
        return []
    built = []
    for number, card in enumerate(cards):
        own = examples[number] if number < len(examples) else _NO_EXAMPLES
        parts = [*_header(card.header, own, format, samples), *_body(card.body, own, format), *_buttons(card.buttons)]
        built.append({"components": parts})
    return [{"type": "CAROUSEL", "cards": built}]


def _buttons(buttons: Sequence[TemplateButton]) -> list[dict[str, Any]]:
    return [{"type": "BUTTONS", "buttons": [_button(button) for button in buttons]}] if buttons else []


def _button(button: TemplateButton) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "text": button.text,
        "url": button.url,
        "phone_number": button.phone_number,
        "example": _button_example(button),
        "otp_type": button.otp_type and button.otp_type.upper(),
        "autofill_text": button.autofill_text,
        "supported_apps": _apps(button),
        "zero_tap_terms_accepted": button.zero_tap_terms_accepted,
        "flow_id": button.flow_id,
        "flow_name": button.flow_name,
        "flow_json": button.flow_json,
        "flow_action": button.flow_action,
        "navigate_screen": button.navigate_screen,
    }
    present = {name: value for name, value in fields.items() if value is not None and value is not UNSET}
    return {"type": button.type.upper(), **present}


def _button_example(button: TemplateButton) -> object:
    """Of a URL the whole address with an example at its end."""
    if button.type != "url":
        return button.example
    if button.url is None or not list_variables(button.url):
        return UNSET
    base = button.url.partition("{{")[0]
    example = button.example or "example"
    return [example if example.startswith(base) else base + example]


def _apps(button: TemplateButton) -> object:
    return button.supported_apps and [
        {"package_name": app.package_name, "signature_hash": app.signature_hash} for app in button.supported_apps
    ]
