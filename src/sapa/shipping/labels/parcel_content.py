"""Builds what a document says about a shipment. Pure: no database."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.orders.settlement.types import Fulfillment, Refund
from sapa.orders.types import Order
from sapa.shipping.errors import NotBooked
from sapa.shipping.labels.content import LabelParty, PackedItem, ParcelContent, show_money
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments.actions import name_courier
from sapa.shipping.states import BOOKABLE, NOT_BOOKED_YET
from sapa.shipping.types import NO_PACKAGE, Package, Party, StoredShipment, read_package
from sapa.shipping.weights import build_volumetric_kg
from sapa.values.company import Company

CASHLESS = frozenset({"JNE"})
"""Couriers whose labels say CASHLESS on parcels that are dropped off."""


class _Variant(Struct, frozen=True, rename="camel"):
    inventory_sku: str | None = None


class _LineItem(Struct, frozen=True, rename="camel"):
    """The fields of an order's line that say what is packed. Lines of earlier versions have not all of them."""

    id: str
    title: str
    quantity: int
    product_variant: _Variant | None = None
    fulfilled_quantity: int = 0
    refunded_quantity: int = 0


_read_lines = msgspec.json.Decoder(list[_LineItem]).decode
_read_fulfillments = msgspec.json.Decoder(list[Fulfillment]).decode
_read_refunds = msgspec.json.Decoder(list[Refund]).decode


def get_number(shipment: StoredShipment) -> str:
    """What the barcode says. Raises NotBooked for a shipment that its carrier has no number for yet."""
    traits = PROVIDERS[shipment.provider]
    if traits.is_local:
        return shipment.awb if shipment.awb and is_encodable(shipment.awb) else shipment.id
    number = shipment.awb or (shipment.order_no if traits.pace == "ride" else None)
    if shipment.shipping_status in {"booking", "booking_unknown"}:
        raise NotBooked(f"The carrier has not confirmed the booking of the shipment {shipment.id} yet.")
    if shipment.shipping_status in BOOKABLE | NOT_BOOKED_YET:
        raise NotBooked(f"The shipment {shipment.id} is {shipment.shipping_status}. Book it, then print its label.")
    if number is None and shipment.payment_status == "pending":
        raise NotBooked(f"The booking of the shipment {shipment.id} is not paid yet. Pay it, then print its label.")
    if number is None:
        raise NotBooked(f"The carrier has not assigned an awb to the shipment {shipment.id} yet. Try again shortly.")
    return number


def is_encodable(number: str) -> bool:
    """Whether a barcode can say it: Code 128 has the characters of ASCII."""
    return number.isascii() and number.isprintable()


def build_parcel(
    company: Company, shipment: StoredShipment, sender: Party, receiver: Party, order: Order | None
) -> ParcelContent:
    """Raises NotBooked."""
    package = NO_PACKAGE if shipment.package is None else read_package(shipment.package)
    courier, cod_amount = name_courier(shipment), shipment.cod_amount
    return ParcelContent(
        number=get_number(shipment),
        courier=courier,
        service=shipment.service_name or shipment.service_code or shipment.service_type or "",
        sorting_code=shipment.sorting_code,
        payment=_build_payment(shipment, courier, cod_amount),
        is_cod=cod_amount is not None,
        sender=_build_party(sender),
        receiver=_build_party(receiver),
        origin=_name_place(sender),
        destination=_name_place(receiver),
        weight=package.weight,
        volumetric_weight=_find_volumetric(package, courier),
        quantity=package.item_qty or 1,
        insurance=_build_insurance(shipment, package),
        items=_list_items(shipment, package, order),
        order_number=order.order_number if order else None,
        return_number=shipment.return_number,
        pickup_number=shipment.pickup_number,
        cod_amount=cod_amount,
        currency=shipment.currency,
        is_test=company.is_test,
    )


def _build_payment(shipment: StoredShipment, courier: str, cod_amount: Decimal | None) -> str:
    payment = "NON COD" if cod_amount is None else f"COD {show_money(cod_amount, shipment.currency)}"
    is_cashless = courier.upper() in CASHLESS and shipment.package_handover == "DROP_OFF"
    return f"CASHLESS {payment}" if is_cashless else payment


def _build_insurance(shipment: StoredShipment, package: Package) -> str | None:
    """Also of a service that insures every parcel."""
    if not shipment.insurance and shipment.insurance_fee is None:
        return None
    value = shipment.insurance_amount or package.item_value
    return "Ya" if value is None else show_money(value, shipment.currency)


def _find_volumetric(package: Package, courier: str) -> Decimal | None:
    volumetric = build_volumetric_kg(package.length, package.width, package.height, courier)
    return volumetric if volumetric is not None and volumetric > (package.weight or 0) else None


def _build_party(party: Party) -> LabelParty:
    street = [party.address, party.kelurahan, party.kecamatan]
    city = [party.city, party.province]
    place = ", ".join(part for part in city if part)
    return LabelParty(
        name=party.name or "",
        phone=party.phone or "",
        address=", ".join(part for part in street if part),
        city=" ".join(part for part in (place, party.zip) if part),
        notes=party.notes or "",
    )


def _name_place(party: Party) -> str:
    """The city, or the nearest area to it that is known."""
    names = (party.city, party.kecamatan, party.kelurahan, party.province)
    return next((name for name in names if name), "")


def _list_items(shipment: StoredShipment, package: Package, order: Order | None) -> Sequence[PackedItem]:
    """The units of the order that the parcel carries; without an order, the package's contents."""
    if order is None:
        return [PackedItem(package.item_name, package.item_qty or 1)] if package.item_name else []
    lines = _read_lines(order.line_items)
    units = _count_units(shipment, order, lines)
    return [
        PackedItem(line.title, units[line.id], line.product_variant.inventory_sku if line.product_variant else None)
        for line in lines
        if units.get(line.id)
    ]


def _count_units(shipment: StoredShipment, order: Order, lines: Sequence[_LineItem]) -> Mapping[str, int]:
    """Of each line: what was refunded for a return, what was fulfilled with the shipment, else what is still open, or
    everything if nothing is."""
    linked: Iterator[Fulfillment | Refund]
    if shipment.return_of is not None:
        linked = (refund for refund in _read_refunds(order.refunds) if refund.id == shipment.refund_id)
    else:
        valid = (one for one in _read_fulfillments(order.fulfillments) if not one.cancelled_at)
        linked = (fulfillment for fulfillment in valid if fulfillment.shipment_id == shipment.id)
    units: Counter[str] = Counter()
    for part in linked:
        for line in part.line_items:
            units[line.id] += line.quantity
    if units:
        return units
    left = {item.id: item.quantity - item.fulfilled_quantity - item.refunded_quantity for item in lines}
    is_open = shipment.return_of is None and any(number > 0 for number in left.values())
    return {item.id: max(0, left[item.id]) if is_open else item.quantity for item in lines}
