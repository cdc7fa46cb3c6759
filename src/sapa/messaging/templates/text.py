"""The text of a filled template, for previews and for channels without templates. Pure: no database."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import msgspec

from sapa.messaging.channels.interface import (
    CardParameters,
    Media,
)
from sapa.messaging.channels.native_contents import (
    ButtonParameter,
    CatalogProduct,
    MapLocation,
    TemplateParameter,
    format_degrees,
)
from sapa.messaging.channels.render import paragraphs
from sapa.messaging.channels.template_content import (
    Authentication,
    Header,
    LimitedTimeOffer,
    TemplateButton,
    TemplateCard,
    TemplateContent,
    TemplateExamples,
)
from sapa.messaging.channels.template_variables import list_variables, replace_variables
from sapa.messaging.templates.filling import FilledTemplate
from sapa.messaging.templates.types import Preview, Template


def parse_content(template: Template) -> TemplateContent:
    """The parts of a stored template."""
    decode = msgspec.json.decode
    return TemplateContent(
        category=template.category,
        parameter_format=template.parameter_format,
        header=None if template.header is None else decode(template.header, type=Header),
        body=template.body,
        footer=template.footer,
        buttons=decode(template.buttons, type=list[TemplateButton]),
        cards=decode(template.cards, type=list[TemplateCard]),
        limited_time_offer=(
            None if template.limited_time_offer is None else decode(template.limited_time_offer, type=LimitedTimeOffer)
        ),
        ttl_seconds=template.ttl_seconds,
        authentication=None
        if template.authentication is None
        else decode(template.authentication, type=Authentication),
        examples=None if template.examples is None else decode(template.examples, type=TemplateExamples),
    )


def preview(filled: FilledTemplate) -> Preview:
    content = filled.content
    header = _fill_header(filled)
    body = _fill(content.body, filled.body)
    offer = content.limited_time_offer.text if content.limited_time_offer else None
    lines = "\n".join(_list_lines(content.buttons, filled.buttons))
    cards = [_fill_card(card, values) for card, values in zip(content.cards, filled.cards, strict=True)]
    text = paragraphs(header, offer, body, content.footer, lines, *cards)
    buttons = [button.text or button.type for button in content.buttons]
    return Preview(header, body, content.footer, buttons, text)


def suggest(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=3)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _fill(text: str, parameters: Sequence[TemplateParameter]) -> str:
    values = dict(zip(list_variables(text), (parameter.text for parameter in parameters), strict=True))
    return replace_variables(text, lambda name: values[name])


def _fill_header(filled: FilledTemplate) -> str | None:
    header = filled.content.header
    match filled.header:
        case TemplateParameter() as parameter if header is not None:
            return _fill(header.text or "", [parameter])
        case MapLocation() as place:
            degrees = (format_degrees(place.latitude), format_degrees(place.longitude))
            return paragraphs(place.name, place.address, ",".join(degrees)).replace("\n\n", "\n")
        case CatalogProduct(product_id=id):
            return id
        case _:
            return header.text if header is not None and header.type == "text" else None


def _list_lines(buttons: Sequence[TemplateButton], values: Sequence[ButtonParameter]) -> Iterator[str]:
    """What a reader can use without buttons: addresses, numbers and codes."""
    texts = {value.index: value.text or "" for value in values}
    for index, button in enumerate(buttons):
        if button.type == "url":
            yield f"{button.text}: {_fill_url(button.url or '', texts.get(index, ''))}"
        elif button.type == "phone_number":
            yield f"{button.text}: {button.phone_number}"
        elif button.type == "copy_code":
            yield texts[index]


def _fill_url(url: str, end: str) -> str:
    return replace_variables(url, lambda name: end)


def _fill_card(card: TemplateCard, values: CardParameters) -> str:
    url = values.header.url if isinstance(values.header, Media) else None
    product = values.header.product_id if isinstance(values.header, CatalogProduct) else None
    body = _fill(card.body, values.body) if card.body else None
    return "\n".join(part for part in (body, product, url, *_list_lines(card.buttons, values.buttons)) if part)
