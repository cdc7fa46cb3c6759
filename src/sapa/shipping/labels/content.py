"""What labels, packing slips and manifests say. Pure data, which is passed to the printing process."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Struct

from sapa.values.enum_names import EnumName

Format = Annotated[Literal["a6", "roll80"], EnumName("LabelFormat")]


def show_number(number: Decimal) -> str:
    """As Indonesian documents write it: 1.250.000,5."""
    whole, _, fraction = f"{number.normalize():f}".partition(".")
    return f"{int(whole):,}".replace(",", ".") + (f",{fraction}" if fraction else "")


def show_money(amount: Decimal, currency: str) -> str:
    return f"{'Rp' if currency == 'IDR' else currency} {show_number(amount)}"


class LabelParty(Struct, frozen=True):
    name: str
    phone: str
    address: str
    """The street, and the area below the city."""
    city: str
    """With its province and postal code."""
    notes: str = ""


class PackedItem(Struct, frozen=True):
    title: str
    quantity: int
    sku: str | None = None


class ParcelContent(Struct, frozen=True, kw_only=True):
    """One parcel, as every document shows it."""

    number: str
    """What the barcode says: the awb, or the id of a shipment without one."""
    courier: str
    service: str
    sorting_code: str | None
    payment: str
    """COD with its amount, or NON COD."""
    is_cod: bool
    sender: LabelParty
    receiver: LabelParty
    origin: str
    destination: str
    weight: Decimal | None
    """In kilograms, as it was weighed."""
    volumetric_weight: Decimal | None
    """If it is larger than the weight."""
    quantity: int
    insurance: str | None
    items: Sequence[PackedItem]
    order_number: str | None
    return_number: str | None
    pickup_number: str | None
    cod_amount: Decimal | None
    currency: str
    is_test: bool


class PrintRequest(Struct, frozen=True, kw_only=True):
    """A file to print."""

    document: Literal["label", "packing_slip", "manifest"]
    format: Format
    shop: str
    date: str
    """The company's date, as people write it."""
    parcels: Sequence[ParcelContent]
