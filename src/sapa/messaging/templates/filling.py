"""Puts the values of a send into a template's places. Pure: no database.

`params` fill the body's parameters, then the header's, then the buttons' in their order. What `components` names, they
leave out.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sapa.http.errors import FieldError, Invalid
from sapa.messaging.channels.interface import (
    CardParameters,
    Media,
    TemplateCall,
)
from sapa.messaging.channels.native_contents import (
    ButtonParameter,
    CatalogProduct,
    MapLocation,
    ProductSection,
    TemplateParameter,
)
from sapa.messaging.channels.template_content import (
    MEDIA_HEADERS,
    Header,
    ParameterFormat,
    TemplateButton,
    TemplateCard,
    TemplateContent,
)
from sapa.messaging.channels.template_variables import list_variables
from sapa.messaging.templates.types import (
    ButtonValue,
    CardValue,
    CatalogProductIn,
    HeaderValue,
    TemplateParamsMismatch,
    TemplateValues,
)

MAX_PRODUCTS = 30
MASK = "••••••"

_BUTTON_FIELDS: Mapping[str, Sequence[str]] = {
    "quick_reply": ["payload"],
    "url": ["suffix"],
    "copy_code": ["code"],
    "flow": ["flow_token", "flow_data"],
    "catalog": ["product_id"],
    "mpm": ["product_id", "sections"],
}
"""The fields of a button's value, by the button's type."""
_WIRE_NAMES: Mapping[str, str] = dict(
    zip(ButtonValue.__struct_fields__, ButtonValue.__struct_encode_fields__, strict=True)
)


class FilledTemplate(Struct, frozen=True, kw_only=True):
    """A template's values, each checked to belong to a place of it."""

    content: TemplateContent
    header: TemplateParameter | MapLocation | CatalogProduct | None = None
    media: Media | None = None
    body: Sequence[TemplateParameter] = ()
    buttons: Sequence[ButtonParameter] = ()
    cards: Sequence[CardParameters] = ()
    offer_ends_at: datetime | None = None


class ParamPlace(Struct, frozen=True):
    """A place that an element of `params` fills."""

    place: str
    """body, header, buttons[0] …"""
    label: str
    """What the channel calls it: {{1}}, or the end of a URL."""


def list_param_places(content: TemplateContent, values: TemplateValues | None = None) -> Sequence[ParamPlace]:
    """The places that `params` fill, in their order."""
    values = values or TemplateValues()
    places: list[ParamPlace] = []
    if values.body is None:
        places += [ParamPlace("body", f"{{{{{name}}}}}") for name in list_variables(content.body)]
    if values.header is None and content.header is not None and content.header.type == "text":
        places += [ParamPlace("header", f"{{{{{name}}}}}") for name in list_variables(content.header.text or "")]
    named = {value.index for value in values.buttons}
    for index, button in enumerate(content.buttons):
        if index not in named and (label := _find_label(button)):
            places.append(ParamPlace(f"buttons[{index}]", label))
    return places


def fill_template(
    name: str,
    content: TemplateContent,
    params: Sequence[str],
    values: TemplateValues | None = None,
    media_url: str | None = None,
) -> FilledTemplate:
    """Raises TemplateParamsMismatch with all places that the template wants, or Invalid for a value that no place can
    have."""
    values = values or TemplateValues()
    mismatches = list(_list_mismatches(content, params, values))
    if mismatches:
        first = mismatches[0]
        reason = first.message if first.field == "params" else f"{first.field}: {first.message}"
        wanted = [FieldError(place, text) for place, text in _list_wanted(content)]
        raise TemplateParamsMismatch(
            f"The template {name} takes other parameters: {reason}.", details=[*mismatches, *wanted]
        )
    _check_params(params)
    supply = iter(params)
    body = _fill_text(content.body, content.parameter_format, values.body, supply)
    return FilledTemplate(
        content=content,
        body=body,
        header=_fill_header(content.header, content.parameter_format, values.header, supply),
        media=_fill_media(content.header, values.header, media_url),
        buttons=_fill_buttons(content.buttons, values.buttons, supply, body),
        cards=[
            _fill_card(card, value, content.parameter_format)
            for card, value in zip(content.cards, values.cards, strict=True)
        ],
        offer_ends_at=values.limited_time_offer.expires_at if values.limited_time_offer else None,
    )


def mask_values(filled: FilledTemplate) -> FilledTemplate:
    """The same without the values of texts and codes, which are secret in authentication templates."""
    header = filled.header
    return replace(
        filled,
        header=replace(header, text=MASK) if isinstance(header, TemplateParameter) else header,
        body=_mask_texts(filled.body),
        buttons=_mask_buttons(filled.buttons),
        cards=[
            replace(card, body=_mask_texts(card.body), buttons=_mask_buttons(card.buttons)) for card in filled.cards
        ],
    )


def _mask_texts(parameters: Sequence[TemplateParameter]) -> Sequence[TemplateParameter]:
    return [replace(parameter, text=MASK) for parameter in parameters]


def _mask_buttons(buttons: Sequence[ButtonParameter]) -> Sequence[ButtonParameter]:
    return [replace(button, text=MASK) if button.text else button for button in buttons]


def list_secrets(filled: FilledTemplate | TemplateCall) -> Sequence[str]:
    """The values that `mask_values` hides."""
    header = [filled.header.text] if isinstance(filled.header, TemplateParameter) else []
    texts = [parameter.text for part in (filled, *filled.cards) for parameter in part.body]
    buttons = [button.text for part in (filled, *filled.cards) for button in part.buttons if button.text]
    return list(dict.fromkeys([*header, *texts, *buttons]))


def hide_secrets(text: str, secrets: Sequence[str]) -> str:
    """A channel's words, which may repeat a one-time code."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _find_label(button: TemplateButton) -> str | None:
    """What a button takes from `params`; None for nothing."""
    if button.type == "url" and list_variables(button.url or ""):
        return f"the end of {button.url}"
    return "the code to copy" if button.type == "copy_code" else None


def _list_wanted(content: TemplateContent) -> Iterator[tuple[str, str]]:
    """Everything that the template takes, by place."""
    yield from _list_wanted_of("", content.header, content.body, content.buttons)
    if content.limited_time_offer is not None and content.limited_time_offer.has_expiration:
        yield "components.limitedTimeOffer", "takes expiresAt"
    for number, card in enumerate(content.cards):
        yield from _list_wanted_of(f"cards[{number}].", card.header, card.body or "", card.buttons)


def _list_wanted_of(
    prefix: str, header: Header | None, body: str, buttons: Sequence[TemplateButton]
) -> Iterator[tuple[str, str]]:
    if names := list_variables(body):
        yield f"components.{prefix}body", f"takes {_join(names)}"
    if header is not None and (label := _describe_header(header)):
        yield f"components.{prefix}header", f"takes {label}"
    for index, button in enumerate(buttons):
        if fields := _list_fields(button):
            yield f"components.{prefix}buttons[{index}]", f"{button.type} takes {', '.join(fields)}"


def _describe_header(header: Header) -> str | None:
    if header.type == "text":
        names = list_variables(header.text or "")
        return f"text for {_join(names)}" if names else None
    if header.type in MEDIA_HEADERS:
        return f"mediaUrl or attachmentId, a file of the type {header.type}"
    return header.type


def _list_fields(button: TemplateButton) -> Sequence[str]:
    if button.type == "url" and not list_variables(button.url or ""):
        return []
    return [_WIRE_NAMES[name] for name in _BUTTON_FIELDS.get(button.type, [])]


def _join(names: Sequence[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in names)


def _list_mismatches(content: TemplateContent, params: Sequence[str], values: TemplateValues) -> Iterator[FieldError]:
    places = list_param_places(content, values)
    if len(params) != len(places):
        labels = [place.label if place.place == "body" else f"{place.place}: {place.label}" for place in places]
        yield FieldError("params", f"expected {len(places)} ({', '.join(labels) or 'none'}), got {len(params)}")
    yield from _compare_text("components.body", content.body, values.body)
    yield from _compare_header("components.header", content.header, values.header)
    yield from _compare_buttons("components.buttons", content.buttons, values.buttons)
    yield from _compare_cards(content, values)
    offer, offer_ends = content.limited_time_offer, values.limited_time_offer
    if (offer is not None and offer.has_expiration) != (offer_ends is not None):
        wanted = "is required: when the offer ends" if offer_ends is None else "must be absent: the offer does not end"
        yield FieldError("components.limitedTimeOffer", wanted)


def _compare_cards(content: TemplateContent, values: TemplateValues) -> Iterator[FieldError]:
    if len(values.cards) != len(content.cards):
        yield FieldError("components.cards", f"expected {len(content.cards)} cards, got {len(values.cards)}")
        return
    for number, (card, value) in enumerate(zip(content.cards, values.cards, strict=True)):
        place = f"components.cards[{number}]"
        yield from _compare_text(f"{place}.body", card.body or "", value.body or [])
        yield from _compare_header(f"{place}.header", card.header, value.header)
        if card.header.type in MEDIA_HEADERS and value.header is None:
            yield FieldError(f"{place}.header", f"is required: mediaUrl or attachmentId of the {card.header.type}")
        yield from _compare_buttons(f"{place}.buttons", card.buttons, value.buttons)
        for index, button in enumerate(card.buttons):
            if _find_label(button) and index not in {one.index for one in value.buttons}:
                yield FieldError(f"{place}.buttons", f"the button {index} needs its suffix")


def _compare_text(field: str, text: str, values: Sequence[str] | Mapping[str, str] | None) -> Iterator[FieldError]:
    if values is None:
        return
    names = list_variables(text)
    if isinstance(values, Mapping):
        missing, unknown = set(names) - set(values), set(values) - set(names)
        if missing:
            yield FieldError(field, f"lacks {_join(sorted(missing))}")
        if unknown:
            yield FieldError(field, f"has {_join(sorted(unknown))}, which the template does not have")
    elif len(values) != len(names):
        yield FieldError(field, f"expected {len(names)} ({_join(names) or 'none'}), got {len(values)}")


def _compare_header(field: str, header: Header | None, value: HeaderValue | None) -> Iterator[FieldError]:
    if value is None:
        if header is not None and header.type in {"location", "product"}:
            yield FieldError(field, f"is required: a {header.type}")
        return
    allowed = _list_header_fields(header)
    present = [wire for name, wire in _HEADER_FIELDS.items() if getattr(value, name) is not None]
    if not allowed and present:
        yield FieldError(field, "must be absent: the header takes no value")
    elif allowed and (len(present) != 1 or present[0] not in allowed):
        yield FieldError(field, f"must have {' or '.join(allowed)} and nothing else")


_HEADER_FIELDS: Mapping[str, str] = {
    "text": "text",
    "media_url": "mediaUrl",
    "attachment_id": "attachmentId",
    "location": "location",
    "product": "product",
}


def _list_header_fields(header: Header | None) -> Sequence[str]:
    """The fields of a header's value, which has one of them; none if the header takes no value."""
    if header is None or (header.type == "text" and not list_variables(header.text or "")):
        return []
    return ["mediaUrl", "attachmentId"] if header.type in MEDIA_HEADERS else [header.type]


def _compare_buttons(
    field: str, buttons: Sequence[TemplateButton], values: Sequence[ButtonValue]
) -> Iterator[FieldError]:
    indexes = [value.index for value in values]
    if len(set(indexes)) != len(indexes):
        yield FieldError(field, "must not name a button twice")
    for number, value in enumerate(values):
        place = f"{field}[{number}]"
        if value.index >= len(buttons):
            yield FieldError(f"{place}.index", f"the template has {len(buttons)} buttons, numbered from 0")
            continue
        yield from _compare_button(place, buttons[value.index], value)
    for index, button in enumerate(buttons):
        if button.type == "mpm" and index not in indexes:
            yield FieldError(field, f"the button {index} needs its productId and sections")


def _compare_button(place: str, button: TemplateButton, value: ButtonValue) -> Iterator[FieldError]:
    allowed = _list_fields(button)
    present = [
        _WIRE_NAMES[name] for name in value.__struct_fields__ if name != "index" and getattr(value, name) is not None
    ]
    if not set(present) <= set(allowed) or not present:
        words = f"must have {' or '.join(allowed)}" if allowed else "must be absent: the button takes no value"
        yield FieldError(place, f"{words} ({button.type})")
    elif button.type == "mpm" and len(present) < len(allowed):
        yield FieldError(place, "must have productId and sections (mpm)")


def _check_params(params: Sequence[str]) -> None:
    for number, param in enumerate(params):
        if not param.strip():
            raise Invalid.field(f"params[{number}]", "must not be empty")


def _fill_text(
    text: str, format: ParameterFormat, values: Sequence[str] | Mapping[str, str] | None, supply: Iterator[str]
) -> Sequence[TemplateParameter]:
    names = list_variables(text)
    if values is None:
        texts = [next(supply) for _ in names]
    else:
        texts = [values[name] for name in names] if isinstance(values, Mapping) else list(values)
    if not all(value.strip() for value in texts):
        raise Invalid.field("components.body", "must not have empty values")
    is_named = format == "NAMED"
    return [TemplateParameter(value, name if is_named else None) for name, value in zip(names, texts, strict=True)]


def _fill_header(
    header: Header | None, format: ParameterFormat, value: HeaderValue | None, supply: Iterator[str]
) -> TemplateParameter | MapLocation | CatalogProduct | None:
    match header:
        case Header(type="text") if list_variables(header.text or ""):
            text = next(supply) if value is None else value.text or ""
            if not text.strip():
                raise Invalid.field("components.header.text", "must not be empty")
            name = list_variables(header.text or "")[0] if format == "NAMED" else None
            return TemplateParameter(text, name)
        case Header(type="location") if value is not None and value.location is not None:
            place = value.location
            return MapLocation(place.latitude, place.longitude, place.name, place.address)
        case Header(type="product") if value is not None and value.product is not None:
            return _build_product(value.product)
        case _:
            return None


def _build_product(product: CatalogProductIn) -> CatalogProduct:
    return CatalogProduct(product.product_id, product.catalog_id)


def _fill_media(header: Header | None, value: HeaderValue | None, media_url: str | None) -> Media | None:
    """`mediaUrl` of the request and that of the header mean the same."""
    if header is None or header.type not in ("image", "video", "document"):
        if media_url:
            raise Invalid.field("mediaUrl", "must be absent: the template has no media header")
        return None
    value = value or HeaderValue()
    if media_url and (value.media_url or value.attachment_id):
        raise Invalid.field("mediaUrl", "must be absent beside components.header")
    url = media_url or value.media_url or ""
    if not url and value.attachment_id is None:
        advice = "Send mediaUrl, or components.header with attachmentId"
        raise Invalid.field("mediaUrl", f"is required: the template has a header of the type {header.type}. {advice}")
    return Media(header.type, url, filename=value.filename, file_id=value.attachment_id)


def _fill_buttons(
    buttons: Sequence[TemplateButton],
    values: Sequence[ButtonValue],
    supply: Iterator[str],
    body: Sequence[TemplateParameter],
) -> Sequence[ButtonParameter]:
    """A button without a value is left out, where the channel permits that. The one-time code goes into body and
    button alike."""
    named = {value.index: value for value in values}
    filled: list[ButtonParameter] = []
    for index, button in enumerate(buttons):
        if button.type == "otp":
            filled.append(ButtonParameter(index=index, type="otp", text=body[0].text))
        elif index in named:
            filled.append(_fill_button(index, button, named[index]))
        elif _find_label(button):
            filled.append(
                ButtonParameter(
                    index=index, type="copy_code" if button.type == "copy_code" else "url", text=next(supply)
                )
            )
    return filled


def _fill_button(index: int, button: TemplateButton, value: ButtonValue) -> ButtonParameter:
    sections = [ProductSection(section.title, section.product_ids) for section in value.sections or []]
    if sum(len(section.product_ids) for section in sections) > MAX_PRODUCTS:
        raise Invalid.field("components.buttons", f"must name at most {MAX_PRODUCTS} products")
    match button.type:
        case "quick_reply" | "url" | "copy_code" | "flow" | "catalog" | "mpm" as type:
            text = value.payload or value.suffix or value.code or value.flow_token or value.product_id
            return ButtonParameter(index=index, type=type, text=text, data=value.flow_data, sections=sections)
        case _:
            raise Invalid.field("components.buttons", f"the button {index} takes no value")


def _fill_card(card: TemplateCard, value: CardValue, format: ParameterFormat) -> CardParameters:
    """A card's values come from `components` only."""
    header: Media | CatalogProduct | None = None
    if value.header is not None and value.header.product is not None:
        header = _build_product(value.header.product)
    elif value.header is not None:
        header = _fill_media(card.header, value.header, None)
    body = _fill_text(card.body or "", format, value.body or [], iter(()))
    return CardParameters(header=header, body=body, buttons=_fill_buttons(card.buttons, value.buttons, iter(()), body))
