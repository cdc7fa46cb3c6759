"""The text of a template and its parameters. Pure: no database."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import msgspec

from sapa.http.errors import FieldError, Invalid
from sapa.messaging.templates.types import Header, Preview, Template, TemplateButton, TemplateParamsMismatch

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_NUMBER = re.compile(r"[1-9][0-9]{0,2}", re.ASCII).fullmatch


def list_placeholders(body: str) -> list[int]:
    """The parameters' numbers without duplicates; raises Invalid unless they are 1, 2, 3 …"""
    if not body.strip():
        raise Invalid.field("body", "must not be blank")
    if "{{" in (rest := _PLACEHOLDER.sub("", body)) or "}}" in rest:
        raise Invalid.field("body", "must not have braces without a parameter; write a parameter as {{1}}")
    found = list(dict.fromkeys(_PLACEHOLDER.findall(body)))
    if not all(_NUMBER(word) for word in found):
        raise Invalid.field("body", "must number its parameters: {{1}}, {{2}} and so on")
    numbers = sorted(map(int, found))
    if numbers != list(range(1, len(numbers) + 1)):
        raise Invalid.field("body", "must number its parameters from {{1}} without gaps")
    return numbers


def check_params(template: Template, params: Sequence[str]) -> None:
    """Raises for too few or too many parameters, or an empty one, which channels refuse."""
    numbers = list_placeholders(template.body)
    if len(params) != len(numbers):
        expected = ", ".join(f"{{{{{number}}}}}" for number in numbers) or "none"
        message = f"expected {len(numbers)} ({expected}), got {len(params)}"
        raise TemplateParamsMismatch(
            f"The template {template.name} takes other parameters: {message}.", details=[FieldError("params", message)]
        )
    for number, param in enumerate(params):
        if not param.strip():
            raise Invalid.field(f"params[{number}]", "must not be empty")


def preview(template: Template, params: Sequence[str]) -> Preview:
    header, buttons = parse_header(template), parse_buttons(template)
    title = header.text if header and header.type == "text" else None
    body = fill(template.body, params)
    lines = "\n".join(_button_line(button) for button in buttons if button.type != "quick_reply")
    parts = [part for part in (title, body, template.footer, lines) if part]
    return Preview(title, body, template.footer, [button.text for button in buttons], "\n\n".join(parts))


def fill(body: str, params: Sequence[str]) -> str:
    """A parameter that contains a placeholder is not filled in again."""
    return _PLACEHOLDER.sub(lambda number: params[int(number[1]) - 1], body)


def parse_header(template: Template) -> Header | None:
    return None if template.header is None else msgspec.json.decode(template.header, type=Header)


def parse_buttons(template: Template) -> list[TemplateButton]:
    return msgspec.json.decode(template.buttons, type=list[TemplateButton])


def suggest(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=3)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _button_line(button: TemplateButton) -> str:
    return f"{button.text}: {button.url or button.phone_number}"
