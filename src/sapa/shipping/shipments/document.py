"""What is given of a shipment, checked and brought into the one form that is stored. Pure: no database."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from sapa.http.errors import Invalid
from sapa.shipping.carriers.interface import (
    Coordinates,
    Driver,
    Parcel,
    ServiceRequest,
    ShipmentRequest,
    Shipped,
    ShippingPoint,
)
from sapa.shipping.shipments import rules
from sapa.shipping.types import (
    LABELS,
    SHIPMENT_ID,
    Package,
    PackageIn,
    Party,
    PartyIn,
    Shipment,
    ShipmentIn,
    ShipmentPatch,
    ShownDriver,
    Spot,
    StoredShipment,
)
from sapa.values.company import Company
from sapa.values.json import encode, encode_values
from sapa.values.money import (
    BadMoney,
    parse_amount,
    parse_currency,
    shorten,
)
from sapa.values.phones import BadPhone, parse_phone

read_party = msgspec.json.Decoder(Party).decode
read_package = msgspec.json.Decoder(Package).decode
read_driver = msgspec.json.Decoder(ShownDriver).decode

NOBODY = Party(**dict.fromkeys(Party.__struct_fields__))
NOTHING = Package(**dict.fromkeys(Package.__struct_fields__))

MOST = Decimal(1_000_000)
_MONEY = ("fee", "insurance_fee", "insurance_amount", "discount_amount")
_MEASURES = ("weight", "length", "width", "height")
_OPTIONS = ("service_type", "pickup_city", "insurance", "vehicle_type")
_OTHERWISE: dict[str, Any] = {"package_handover": "PICKUP", "insurance": False}


def build_blank(company: Company, provider: str) -> StoredShipment:
    """A new draft of which nothing is known but who is to carry it."""
    known = {
        **dict.fromkeys(StoredShipment.__struct_fields__),
        **_OTHERWISE,
        "id": SHIPMENT_ID.new(),
        "provider": provider,
        "provider_label": LABELS[provider],
        "currency": company.currency,
        "shipping_status": "draft",
        "needs_action": False,
        "cancel_tries": 0,
    }
    return StoredShipment(**known)


def with_options(given: ShipmentIn) -> ShipmentIn:
    """The options that a quote was asked with count where the shipment itself says nothing."""
    options = given.options
    if options is None:
        return given
    filled = {
        name: getattr(options, name)
        for name in _OPTIONS
        if getattr(given, name) is UNSET and getattr(options, name) is not None
    }
    return msgspec.structs.replace(given, **filled)


def revise(company: Company, kept: StoredShipment, given: ShipmentPatch, store: Party | None) -> StoredShipment:
    """The shipment with the changes made; what the store says of its sender counts where nothing else is said."""
    changes = {name: value for name in ShipmentPatch.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    defaults = {**_OTHERWISE, "currency": company.currency, "provider_label": LABELS[kept.provider]}
    changes |= {name: defaults[name] for name, value in changes.items() if value is None and name in defaults}
    currency = _currency(changes.get("currency", kept.currency))
    changes |= {name: _amount(name, changes[name], currency) for name in _MONEY if changes.get(name) is not None}
    if changes.get("discount_percentage") is not None:
        changes["discount_percentage"] = _number("discountPercentage", changes["discount_percentage"], Decimal(100))
    if changes.get("distance") is not None:
        changes["distance"] = _number("distance", changes["distance"])
    if changes.get("pickup_schedule") is not None:
        changes["pickup_schedule"] = build_instant(changes["pickup_schedule"])
    changes["sender"] = _party(company, "sender", kept.sender, given.sender, store)
    changes["delivery"] = _party(company, "delivery", kept.delivery, given.delivery, None)
    changes["package"] = _package(kept.package, given.package, currency)
    return msgspec.structs.replace(kept, **changes)


def build_instant(instant: datetime) -> str:
    """As instants are read from the database, so that the two can be compared."""
    if instant.tzinfo is None:
        raise Invalid.field("pickupSchedule", "must be an ISO 8601 date-time with an offset")
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _party(company: Company, field: str, stored: Raw | None, given: Any, store: Party | None) -> Raw | None:
    if given is None:
        return None
    now = store or (None if stored is None else read_party(stored))
    if given is UNSET:
        return stored if store is None else encode_party(store)
    return encode_party(_merge_party(company, field, now or NOBODY, given))


def _merge_party(company: Company, field: str, now: Party, given: PartyIn) -> Party:
    changes = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    if changes.get("phone") is not None:
        changes["phone"] = parse_number(company, f"{field}.phone", changes["phone"])
    if changes.get("coordinates") is not None:
        check_spot(f"{field}.coordinates", changes["coordinates"])
    return msgspec.structs.replace(now, **changes)


def parse_number(company: Company, field: str, text: str) -> str:
    try:
        return parse_phone(text, company.region)
    except BadPhone as error:
        raise Invalid.field(field, str(error)) from None


def check_spot(field: str, spot: Spot) -> None:
    if not -90 <= spot.lat <= 90 and -90 <= spot.lng <= 90:
        raise Invalid.field(field, "has lat and lng swapped: lat is the one from -90 to 90")
    if not (-90 <= spot.lat <= 90 and -180 <= spot.lng <= 180):
        raise Invalid.field(field, "must have a lat from -90 to 90 and a lng from -180 to 180")


def encode_party(party: Party) -> Raw:
    return Raw(encode(msgspec.structs.replace(party, coordinates=encode_spot(party.coordinates))))


def encode_spot(spot: Spot | None) -> Any:
    """As JavaScript would print the numbers."""
    return spot and Raw(encode_values({"lat": spot.lat, "lng": spot.lng}))


def _package(stored: Raw | None, given: Any, currency: str) -> Raw | None:
    if given is UNSET or given is None:
        return stored if given is UNSET else None
    now = NOTHING if stored is None else read_package(stored)
    return Raw(encode(_merge_package(now, given, currency)))


def _merge_package(now: Package, given: PackageIn, currency: str) -> Package:
    changes = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not UNSET}
    for name in _MEASURES:
        if changes.get(name) is not None:
            changes[name] = _measure(f"package.{name}", changes[name])
    if changes.get("item_value") is not None:
        changes["item_value"] = _amount("package.itemValue", changes["item_value"], currency)
    return msgspec.structs.replace(now, **changes)


def _measure(field: str, value: Decimal) -> Decimal:
    rules.check_measure(field, value, rules.MOST_KG if field == "package.weight" else rules.MOST_CM)
    return shorten(value)


def _number(field: str, value: Decimal, most: Decimal = MOST) -> Decimal:
    if value == 0:
        return Decimal(0)
    rules.check_measure(field, value, most)
    return shorten(value)


def _amount(name: str, value: Decimal, currency: str) -> Decimal:
    first, *rest = name.split("_")
    try:
        return parse_amount(value, currency)
    except BadMoney as error:
        raise Invalid.field(first + "".join(word.title() for word in rest), str(error)) from None


def _currency(code: str) -> str:
    try:
        return parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


def build_journey(kept: Shipment) -> ShipmentRequest:
    """What a carrier is asked to do."""
    goods = NOTHING if kept.package is None else read_package(kept.package)
    fields = {name: getattr(goods, name) for name in Parcel.__struct_fields__}
    wish = {name: getattr(kept, name) for name in ServiceRequest.__struct_fields__}
    wish["pickup_schedule"] = kept.pickup_schedule and datetime.fromisoformat(kept.pickup_schedule)
    return ShipmentRequest(
        origin=_place(kept.sender),
        destination=_place(kept.delivery),
        goods=Parcel(**{**fields, "weight": goods.weight or Decimal(1)}),
        wish=ServiceRequest(**wish),
    )


def _place(stored: Raw | None) -> ShippingPoint:
    party = NOBODY if stored is None else read_party(stored)
    fields = {name: getattr(party, name) for name in ShippingPoint.__struct_fields__}
    spot = party.coordinates
    fields["coordinates"] = spot and Coordinates(spot.lat, spot.lng)
    return ShippingPoint(**fields)


def build_shipped(kept: StoredShipment) -> Shipped:
    """The shipment as its carrier knows it."""
    return Shipped(
        reference=kept.reference or kept.id,
        order_no=kept.order_no,
        awb=kept.awb,
        booking_id=kept.booking_id,
        service_type=kept.service_type,
        was_picked_up=kept.picked_up_at is not None,
    )


def encode_driver(driver: Driver | None) -> Raw | None:
    if driver is None:
        return None
    return Raw(encode(ShownDriver(driver.name, driver.phone, driver.photo, driver.license_plate)))
