"""Checks the values of a template as the channels that review templates do."""

import re
from collections.abc import Iterator

from sapa.http.errors import Invalid
from sapa.messaging.channels.interface import (
    TemplateCall,
)
from sapa.messaging.channels.native_contents import (
    TemplateParameter,
)

MAX_HEADER = 60
MAX_TEXT = 1024
"""Of a filled body, unless it is the template's only part."""
MAX_CODE = 15
MAX_SUFFIX = 2000

_BAD_SPACE = re.compile(r"[\n\r\t]| {5,}").search
_LONGEST = {"copy_code": MAX_CODE, "otp": MAX_CODE, "url": MAX_SUFFIX}


def check_values(call: TemplateCall) -> None:
    """Raises Invalid for the first value that the channel would refuse."""
    for place, text in _list_texts(call):
        if _BAD_SPACE(text):
            raise Invalid.field(
                "params",
                f"must not have line breaks, tabs or more than 4 spaces in a row on this channel ({place})",
            )
    if isinstance(call.header, TemplateParameter):
        _check_length("the header", call.subject or "", MAX_HEADER)
    if call.rendered != call.text or call.header_media or call.buttons:
        _check_length("the body", call.text, MAX_TEXT)
    for button in call.buttons:
        longest = _LONGEST.get(button.type)
        if longest is not None:
            _check_length(f"buttons[{button.index}]", button.text or "", longest)


def _check_length(place: str, text: str, most: int) -> None:
    if len(text) > most:
        raise Invalid.field("params", f"must be shorter: with them {place} has more than {most} characters")


def _list_texts(call: TemplateCall) -> Iterator[tuple[str, str]]:
    if isinstance(call.header, TemplateParameter):
        yield "header", call.header.text
    for number, parameter in enumerate(call.body, 1):
        yield f"body {{{{{parameter.name or number}}}}}", parameter.text
    for button in call.buttons:
        if button.type in _LONGEST:
            yield f"buttons[{button.index}]", button.text or ""
    for number, card in enumerate(call.cards):
        for place, parameter in enumerate(card.body, 1):
            yield f"cards[{number}] {{{{{parameter.name or place}}}}}", parameter.text
        for button in card.buttons:
            if button.type in _LONGEST:
                yield f"cards[{number}].buttons[{button.index}]", button.text or ""
