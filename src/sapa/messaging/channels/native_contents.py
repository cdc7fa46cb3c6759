"""Contents that only some channels have: forms, products, places on the map, and the values of templates."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct


def format_degrees(degrees: float) -> str:
    """In plain digits: close to the equator Python writes an exponent."""
    return f"{Decimal(repr(degrees)):f}"


class MapLocation(Struct, frozen=True, tag=True, tag_field="content"):
    """A place on the map."""

    latitude: float
    longitude: float
    name: str | None = None
    address: str | None = None


class CatalogProduct(Struct, frozen=True, tag=True, tag_field="content"):
    """A product of the company's catalogue at the channel."""

    product_id: str
    catalog_id: str | None = None


class ProductSection(Struct, frozen=True):
    """Products of a catalogue under a title."""

    title: str
    product_ids: Sequence[str]


class FlowButton(Struct, frozen=True, tag=True, tag_field="content", kw_only=True):
    """A button that opens a form of the channel."""

    body: str
    button: str
    flow_id: str
    token: str
    screen: str | None = None
    """The first screen; without one the company's server chooses it."""
    data: Mapping[str, Any] | None = None
    is_draft: bool = False
    header: str | None = None
    footer: str | None = None


class ProductCard(Struct, frozen=True, tag=True, tag_field="content"):
    """One product of the company's catalogue."""

    product: CatalogProduct
    body: str | None = None
    footer: str | None = None


class ProductChoices(Struct, frozen=True, tag=True, tag_field="content"):
    """Several products of the company's catalogue."""

    catalog_id: str
    header: str
    body: str
    sections: Sequence[ProductSection]
    footer: str | None = None


class LocationRequest(Struct, frozen=True, tag=True, tag_field="content"):
    """Asks for the customer's location."""

    body: str


class TemplateParameter(Struct, frozen=True, tag=True, tag_field="content"):
    """The value of a text's parameter. Its name is None where parameters are numbered."""

    text: str
    name: str | None = None


class ButtonParameter(Struct, frozen=True, kw_only=True):
    """The value of a template's button."""

    index: int
    """Its place among all buttons, from 0."""
    type: Literal["quick_reply", "url", "copy_code", "otp", "flow", "catalog", "mpm"]
    text: str | None = None
    """The payload, the end of the URL, the code, the flow's token, or the product of the thumbnail."""
    data: Mapping[str, Any] | None = None
    """Of a flow."""
    sections: Sequence[ProductSection] = ()
    """Of several products."""
