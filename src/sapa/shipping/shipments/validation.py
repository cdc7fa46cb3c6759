"""Validation of a shipment, top to bottom: merge the body with the stored shipment, normalise each field, then check
the whole against what the provider needs. Pure: no database.

Quotes use the same checks for their origin, destination and package, and stores for their address.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from sapa.http.errors import Invalid
from sapa.orders.types import Order
from sapa.shipping.carriers.interface import CarrierArea
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.errors import NotEditable
from sapa.shipping.providers import CASH_PROVIDERS, LOCAL_PROVIDERS, PROVIDERS, ProviderTraits
from sapa.shipping.states import EDITABLE, TERMINAL
from sapa.shipping.types import (
    NO_PACKAGE,
    NO_PARTY,
    SHIPMENT_ID,
    Package,
    PackageIn,
    Party,
    PartyIn,
    ReturnOrigin,
    ShipmentIn,
    ShipmentPatch,
    Spot,
    StoredShipment,
    build_area,
    new_tracking_page,
    read_package,
    read_party,
)
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.json import encode, encode_values
from sapa.values.money import BadMoney, parse_amount, parse_currency, shorten
from sapa.values.phones import BadPhone, parse_phone
from sapa.values.text_folding import fold

MOST = Decimal(1_000_000)
MAX_KG = Decimal(1_000)
MAX_CM = Decimal(1_000)
_DECIMAL_PLACES = 3

SOUTH, NORTH, WEST, EAST = -11.5, 6.5, 94.5, 141.5
"""The bounding box of Indonesia, which the carriers serve."""

COD_CURRENCY = "IDR"
"""What carriers collect on delivery."""

AREA_ADVICE = "is required for express parcels; /shipping/coverage lists the ids, from provinces to sub-districts"

_MONEY = ("fee", "insurance_fee", "insurance_amount", "discount_amount", "cod_amount", "cod_fee")
_MEASURES = ("weight", "length", "width", "height")
_OPTIONS = ("service_type", "pickup_city", "insurance", "cod_amount", "vehicle_type")
_AREA_NAMES = {
    "district_id": ("districtId", "kecamatan_id", "kecamatanId"),
    "sub_district_id": ("subDistrictId", "kelurahan_id", "kelurahanId"),
}
"""The other name of an area's field on the wire, and the field that it means."""
_DEFAULTS: dict[str, Any] = {"package_handover": "PICKUP", "insurance": False}
_NEEDED_OF_PARTIES = ("name", "phone", "address")
_LINKS = ("refund_id",)
"""Fields that no carrier has, so that they can change at any time."""


class ShipmentFacts(Struct, frozen=True):
    """What was loaded for a shipment before it is validated."""

    sender: tuple[str, Party] | None = None
    """The id of the store, and the sender built from it."""
    order: Order | None = None
    """The order that the body names."""
    now: datetime | None = None
    """The company's time; only if a pickup is scheduled."""
    pickup_cities: Sequence[CarrierArea] = ()
    connected: ConnectedCarrier | None = None
    """The carrier to book with; only if a booking is requested."""


def build_shipment(
    company: Company, body: ShipmentIn, facts: ShipmentFacts, origin: ReturnOrigin | None = None
) -> StoredShipment:
    """A new draft. Raises Invalid with the field that is missing or unusable."""
    draft = build_draft(company, body.provider)
    if origin is not None:
        draft = msgspec.structs.replace(
            draft, return_of=origin.shipment_id, return_number=origin.number, order_id=origin.order_id
        )
    if body.options is not None and body.service_type is not UNSET:
        check_service_type("options.serviceType", body.provider, body.options.service_type)
    shipment = _revise(company, draft, with_options(body), facts)
    shipment = _with_pickup_city(shipment, facts.pickup_cities)
    _check_shipment(shipment)
    return shipment


def revise_shipment(
    company: Company, stored: StoredShipment, patch: ShipmentPatch, facts: ShipmentFacts
) -> StoredShipment:
    """The stored shipment with the patch applied. Raises Invalid, and NotEditable once a carrier has it."""
    shipment = _revise(company, stored, patch, facts)
    if shipment == stored:
        return stored
    is_local = PROVIDERS[stored.provider].is_local
    is_open = stored.shipping_status not in TERMINAL if is_local else stored.shipping_status in EDITABLE
    links = {name: getattr(shipment, name) for name in _LINKS}
    if not is_open and msgspec.structs.replace(stored, **links) != shipment:
        raise NotEditable(f"The shipment is {stored.shipping_status} and can no longer be edited.")
    if shipment.cod_amount != stored.cod_amount and (stored.cod_collected_at or stored.cod_remitted_at):
        raise NotEditable("The cash was collected already, so codAmount can no longer be edited.")
    if shipment.pickup_city != stored.pickup_city:
        shipment = _with_pickup_city(shipment, facts.pickup_cities)
    _check_shipment(shipment)
    return shipment


def list_changed_ends(shipment: StoredShipment, stored: StoredShipment | None) -> dict[str, Party]:
    """The sender and the receiver, if they changed."""
    ends = {"sender": shipment.sender, "delivery": shipment.delivery}
    before = {} if stored is None else {"sender": stored.sender, "delivery": stored.delivery}
    return {field: read_party(end) for field, end in ends.items() if end is not None and end != before.get(field)}


def build_draft(company: Company, provider: str) -> StoredShipment:
    """An empty draft of a provider."""
    fields = {
        **dict.fromkeys(StoredShipment.__struct_fields__),
        **_DEFAULTS,
        "id": SHIPMENT_ID.new(),
        "provider": provider,
        "provider_label": PROVIDERS[provider].label,
        "currency": company.currency,
        "shipping_status": "draft",
        "needs_action": False,
        "tracking_page": new_tracking_page(),
        "cancel_tries": 0,
        "failed_attempts": 0,
    }
    return StoredShipment(**fields)


def with_options(body: ShipmentIn) -> ShipmentIn:
    """Quote options fill the fields that the shipment does not set itself."""
    options = body.options
    if options is None:
        return body
    filled = {
        name: getattr(options, name)
        for name in _OPTIONS
        if getattr(body, name) is UNSET and getattr(options, name) is not None
    }
    return msgspec.structs.replace(body, **filled)


def _revise(company: Company, stored: StoredShipment, patch: ShipmentPatch, facts: ShipmentFacts) -> StoredShipment:
    shipment = merge(company, stored, patch, facts.sender and facts.sender[1])
    if facts.sender is not None:
        shipment = msgspec.structs.replace(shipment, store_location_id=facts.sender[0])
    if isinstance(patch.order_id, str) and patch.order_id != stored.order_id:
        shipment = msgspec.structs.replace(shipment, order_id=_get_order_id(facts.order))
    _check_numbers_of_carrier(shipment, stored)
    if facts.now is not None:
        _check_schedule(shipment, stored, facts.now)
    return shipment


def merge(company: Company, stored: StoredShipment, patch: ShipmentPatch, store: Party | None) -> StoredShipment:
    """The shipment with the body's fields; a store provides the sender if the body has none."""
    changes = {name: value for name in ShipmentPatch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    defaults = {**_DEFAULTS, "currency": company.currency, "provider_label": PROVIDERS[stored.provider].label}
    changes |= {name: defaults[name] for name, value in changes.items() if value is None and name in defaults}
    currency = _parse_currency(changes.get("currency", stored.currency))
    changes |= {name: _parse_amount(name, changes[name], currency) for name in _MONEY if changes.get(name) is not None}
    if changes.get("discount_percentage") is not None:
        percentage = changes["discount_percentage"]
        changes["discount_percentage"] = _parse_number("discountPercentage", percentage, Decimal(100))
    if changes.get("distance") is not None:
        changes["distance"] = _parse_number("distance", changes["distance"], MOST)
    if isinstance(changes.get("pickup_city"), int):
        changes["pickup_city"] = str(changes["pickup_city"])
    if changes.get("pickup_schedule") is not None:
        changes["pickup_schedule"] = _parse_schedule(changes["pickup_schedule"])
    changes["sender"] = _merge_party(company, "sender", stored.sender, patch.sender, store)
    changes["delivery"] = _merge_party(company, "delivery", stored.delivery, patch.delivery, None)
    changes["package"] = _merge_package(stored.package, patch.package, currency)
    if changes["delivery"] != stored.delivery:
        changes["area"] = None if changes["delivery"] is None else build_area(read_party(changes["delivery"]))
    return msgspec.structs.replace(stored, **changes)


def _parse_currency(code: str) -> str:
    try:
        return parse_currency(code)
    except BadMoney as error:
        raise Invalid.field("currency", str(error)) from None


def _parse_amount(name: str, value: Decimal, currency: str) -> Decimal:
    first, *rest = name.split("_")
    try:
        return parse_amount(value, currency)
    except BadMoney as error:
        raise Invalid.field(first + "".join(word.title() for word in rest), str(error)) from None


def _parse_number(field: str, value: Decimal, most: Decimal) -> Decimal:
    if value == 0:
        return Decimal(0)
    check_measure(field, value, most)
    return shorten(value)


def _parse_schedule(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise Invalid.field("pickupSchedule", "must be an ISO 8601 date-time with an offset")
    return truncate_to_milliseconds(instant)


def _merge_party(company: Company, field: str, stored: Raw | None, patch: Any, store: Party | None) -> Raw | None:
    if patch is None:
        return None
    if patch is UNSET:
        return stored if store is None else encode_party(store)
    before = store or (None if stored is None else read_party(stored))
    return encode_party(_change_party(company, field, before or NO_PARTY, patch))


def _change_party(company: Company, field: str, before: Party, patch: PartyIn) -> Party:
    sent = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    changes = merge_area_names(field, sent)
    if changes.get("phone") is not None:
        changes["phone"] = parse_phone_field(company, f"{field}.phone", changes["phone"])
    if changes.get("coordinates") is not None:
        check_spot(f"{field}.coordinates", changes["coordinates"])
    return msgspec.structs.replace(before, **changes)


def merge_area_names(field: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a party with one name for each area id: either name may be sent, and both if they agree."""
    fields = {name: value for name, value in sent.items() if name not in _AREA_NAMES}
    for other, (shown, name, meant) in _AREA_NAMES.items():
        if other in sent and fields.setdefault(name, sent[other]) != sent[other]:
            raise Invalid.field(f"{field}.{shown}", f"contradicts {meant}, which means the same; send one of them")
    return fields


def parse_phone_field(company: Company, field: str, text: str) -> str:
    try:
        return parse_phone(text, company.region)
    except BadPhone as error:
        raise Invalid.field(field, str(error)) from None


def check_spot(field: str, spot: Spot) -> None:
    """Any point on earth; `check_coordinates` checks whether carriers serve it."""
    if not -90 <= spot.lat <= 90 and -90 <= spot.lng <= 90:
        raise Invalid.field(field, "has lat and lng swapped: lat is from -90 to 90")
    if not (-90 <= spot.lat <= 90 and -180 <= spot.lng <= 180):
        raise Invalid.field(field, "must have a lat from -90 to 90 and a lng from -180 to 180")


def encode_party(party: Party) -> Raw:
    return Raw(encode(msgspec.structs.replace(party, coordinates=encode_spot(party.coordinates))))


def encode_spot(spot: Spot | None) -> Any:
    """Numbers as JavaScript prints them."""
    return spot and Raw(encode_values({"lat": spot.lat, "lng": spot.lng}))


def _merge_package(stored: Raw | None, patch: Any, currency: str) -> Raw | None:
    if patch is UNSET or patch is None:
        return stored if patch is UNSET else None
    before = NO_PACKAGE if stored is None else read_package(stored)
    return Raw(encode(_change_package(before, patch, currency)))


def _change_package(before: Package, patch: PackageIn, currency: str) -> Package:
    changes = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    for name in _MEASURES:
        if changes.get(name) is not None:
            check_measure(f"package.{name}", changes[name], MAX_KG if name == "weight" else MAX_CM)
            changes[name] = shorten(changes[name])
    if changes.get("item_value") is not None:
        changes["item_value"] = _parse_amount("package.itemValue", changes["item_value"], currency)
    return msgspec.structs.replace(before, **changes)


def check_measure(field: str, value: Decimal | None, most: Decimal) -> None:
    """A weight or a length: above 0, at most `most`, with at most three decimals."""
    if value is None:
        return
    # Checked before any arithmetic: 1e999999 is a short text and a very long number.
    if not value.is_finite() or value <= 0 or value.adjusted() > most.adjusted() or value > most:
        raise Invalid.field(field, f"must be more than 0 and at most {most:f}")
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > _DECIMAL_PLACES:
        raise Invalid.field(field, f"must have at most {_DECIMAL_PLACES} decimal places")


def _get_order_id(order: Order | None) -> str:
    if order is None:
        raise Invalid.field("orderId", "is not the id of an order")
    if order.status == "cancelled":
        raise Invalid.field("orderId", "is the id of a cancelled order, which cannot be shipped")
    return order.id


def _check_numbers_of_carrier(shipment: StoredShipment, stored: StoredShipment) -> None:
    for name, field in (("awb", "awb"), ("tracking_url", "trackingUrl")):
        if not PROVIDERS[shipment.provider].is_local and getattr(shipment, name) != getattr(stored, name):
            raise Invalid.field(field, f"comes from the carrier; you can set it for {LOCAL_PROVIDERS} only")


def _check_schedule(shipment: StoredShipment, stored: StoredShipment, now: datetime) -> None:
    provider, schedule = PROVIDERS[shipment.provider], shipment.pickup_schedule
    if schedule is None or schedule == stored.pickup_schedule or provider.is_local:
        return
    if not now <= schedule <= now + timedelta(days=provider.days_ahead):
        message = f"must be in the future and at most {provider.days_ahead} days ahead"
        raise Invalid.field("pickupSchedule", message)


def _with_pickup_city(shipment: StoredShipment, cities: Sequence[CarrierArea]) -> StoredShipment:
    """Checks that the courier picks up in the shipment's city."""
    provider = PROVIDERS[shipment.provider]
    if not provider.has_pickup_cities:
        return shipment
    city = get_pickup_city("pickupCity", provider, shipment.pickup_city, cities)
    name = shipment.pickup_city and (shipment.pickup_city.strip() or city.name)
    return msgspec.structs.replace(shipment, pickup_city=name)


def get_pickup_city(
    field: str, provider: ProviderTraits, city_name: str | None, cities: Iterable[CarrierArea]
) -> CarrierArea:
    """Finds a city by id or by name, ignoring case."""
    advice = f"/shipping/coverage/cities?provider={provider.name} lists the cities"
    if city_name is None or not city_name.strip():
        raise Invalid.field(field, f"is required for {provider.name}; {advice}")
    wanted = _without_kind(city_name)
    for city in cities:
        if str(city.id) == city_name.strip() or _without_kind(city.name) == wanted:
            return city
    raise Invalid.field(field, f"is not a city in which {provider.name} picks up parcels; {advice}")


def _without_kind(city: str) -> str:
    return fold(city).removeprefix("kota ").removeprefix("kabupaten ")


def _check_shipment(shipment: StoredShipment) -> None:
    """Checks that the shipment as a whole has what its provider needs."""
    provider = PROVIDERS[shipment.provider]
    if shipment.delivery is None:
        raise Invalid.field("delivery", "is required")
    if shipment.bike_fuel_type is not None and shipment.vehicle_type not in {None, "TWO_WHEEL"}:
        raise Invalid.field("bikeFuelType", "needs the vehicleType TWO_WHEEL")
    check_cod_amount("codAmount", provider, shipment.cod_amount, shipment.currency)
    _check_return(shipment)
    if provider.is_local:
        return
    check_service_type("serviceType", provider.name, shipment.service_type)
    if provider.needs_service and shipment.service_name is None and shipment.service_code is None:
        raise Invalid.field("serviceName", "is required; calculate-fee lists the services that are offered")
    if shipment.sender is None:
        raise Invalid.field("sender", "is required; send it, or a storeLocationId")
    _check_parties(provider.name, {"sender": read_party(shipment.sender), "delivery": read_party(shipment.delivery)})
    package = NO_PACKAGE if shipment.package is None else read_package(shipment.package)
    if package.weight is None:
        raise Invalid.field("package.weight", "is required, in kilograms")
    if shipment.insurance and package.item_value is None:
        raise Invalid.field("package.itemValue", "is required for insurance")


def check_cod_amount(field: str, provider: ProviderTraits, amount: Decimal | None, currency: str) -> None:
    """Carriers collect whole rupiah; a person who delivers can collect any amount."""
    if amount is None:
        return
    if not provider.collects_cash:
        message = f"is not available at {provider.name}; cash on delivery is offered by {CASH_PROVIDERS}"
        raise Invalid.field(field, message)
    if amount <= 0:
        raise Invalid.field(field, "must be more than 0; leave it out if nothing is collected on delivery")
    if not provider.is_local and (currency != COD_CURRENCY or amount != amount.to_integral_value()):
        raise Invalid.field(field, f"must be a whole amount in {COD_CURRENCY}; carriers collect nothing else")


def _check_return(shipment: StoredShipment) -> None:
    if shipment.return_of is None and shipment.refund_id is not None:
        raise Invalid.field("refundId", "can only be set for a return; POST /shipping/shipments/{id}/return makes one")
    if shipment.return_of is not None and shipment.cod_amount is not None:
        raise Invalid.field("codAmount", "cannot be collected by a return")


def check_service_type(field: str, provider: str, service_type: str | None) -> None:
    advice = PROVIDERS[provider].refused_service_types.get(service_type or "")
    if advice is not None:
        raise Invalid.field(field, f"{service_type} is not available at {provider}; {advice}")


def _check_parties(provider: str, parties: Mapping[str, Party]) -> None:
    for field, party in parties.items():
        for name in _NEEDED_OF_PARTIES:
            if not (getattr(party, name) or "").strip():
                raise Invalid.field(f"{field}.{name}", "is required")
        if party.zip is not None and not (party.zip.isascii() and party.zip.isdigit() and len(party.zip) == 5):
            raise Invalid.field(f"{field}.zip", "must be a postal code of five digits")
    for field, party in parties.items():
        ids = {f"{field}.kecamatanId": party.kecamatan_id, f"{field}.kelurahanId": party.kelurahan_id}
        check_area_ids(provider, ids)
        check_coordinates(provider, {f"{field}.coordinates": party.coordinates})


def check_area_ids(provider: str, ids: Mapping[str, int | None]) -> None:
    """Requires an id per field if the provider locates by areas: `{"origin.districtId": 317106}`."""
    for field, id in ids.items():
        if PROVIDERS[provider].locates_by == "areas" and id is None:
            raise Invalid.field(field, AREA_ADVICE)


class HasCoordinates(Protocol):
    @property
    def lat(self) -> float: ...

    @property
    def lng(self) -> float: ...


def check_coordinates(provider: str, ends: Mapping[str, HasCoordinates | None]) -> None:
    """Requires coordinates if the provider locates by them; coordinates that are present must be usable."""
    for field, point in ends.items():
        if point is None:
            if PROVIDERS[provider].locates_by == "coordinates":
                raise Invalid.field(field, f"is required for {provider}, which locates addresses by coordinates")
        elif not _is_served(point.lat, point.lng):
            raise Invalid.field(field, _explain_point(point))


def _is_served(lat: float, lng: float) -> bool:
    return SOUTH <= lat <= NORTH and WEST <= lng <= EAST


def _explain_point(point: HasCoordinates) -> str:
    if _is_served(point.lng, point.lat):
        return f"has lat and lng swapped; send lat {point.lng:g} and lng {point.lat:g}"
    return f"must be in Indonesia: lat from {SOUTH:g} to {NORTH:g}, lng from {WEST:g} to {EAST:g}"
