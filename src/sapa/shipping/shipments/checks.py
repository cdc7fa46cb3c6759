"""What a shipment must have before its provider can carry it. Pure: no database."""

from collections.abc import Sequence

import msgspec

from sapa.http.errors import Invalid
from sapa.shipping.carriers.interface import Area
from sapa.shipping.shipments import rules
from sapa.shipping.shipments.document import (
    NOBODY,
    NOTHING,
    read_package,
    read_party,
)
from sapa.shipping.types import LOCAL, Party, StoredShipment

NEEDED_OF_PEOPLE = ("name", "phone", "address")
DAYS_AHEAD = {"ev_courier": 3}
MOST_DAYS_AHEAD = 7
"""How far ahead a pick-up can be arranged, with those who say so and with all others."""


def check_shipment(kept: StoredShipment) -> None:
    """Raises Invalid naming the field that is missing or cannot be used."""
    if kept.delivery is None:
        raise Invalid.field("delivery", "is required")
    if kept.bike_fuel_type is not None and kept.vehicle_type not in {None, "TWO_WHEEL"}:
        raise Invalid.field("bikeFuelType", "belongs to the vehicleType TWO_WHEEL only")
    if kept.provider not in LOCAL:
        _check_service(kept)
        _check_ends(kept)
        _check_package(kept)


def _check_service(kept: StoredShipment) -> None:
    rules.check_service_type("serviceType", kept.provider, kept.service_type)
    if kept.provider == "aggregator_carrier" and kept.service_name is None and kept.service_code is None:
        raise Invalid.field("serviceName", "is required: a service that calculate-fee offers")


def _check_ends(kept: StoredShipment) -> None:
    if kept.sender is None:
        raise Invalid.field("sender", "is required, or a storeLocationId that fills it")
    ends = {"sender": read_party(kept.sender), "delivery": read_party(kept.delivery) if kept.delivery else NOBODY}
    for field, party in ends.items():
        _check_party(field, party)
    for field, party in ends.items():
        ids = {f"{field}.kecamatanId": party.kecamatan_id, f"{field}.kelurahanId": party.kelurahan_id}
        rules.check_area_ids(kept.provider, ids)
        rules.check_coordinates(kept.provider, {f"{field}.coordinates": party.coordinates})


def _check_party(field: str, party: Party) -> None:
    for name in NEEDED_OF_PEOPLE:
        if not (getattr(party, name) or "").strip():
            raise Invalid.field(f"{field}.{name}", "is required")
    if party.zip is not None and not (party.zip.isascii() and party.zip.isdigit() and len(party.zip) == 5):
        raise Invalid.field(f"{field}.zip", "must be a postal code of five digits")


def _check_package(kept: StoredShipment) -> None:
    package = NOTHING if kept.package is None else read_package(kept.package)
    if package.weight is None:
        raise Invalid.field("package.weight", "is required, in kilograms")
    if kept.insurance and package.item_value is None:
        raise Invalid.field("package.itemValue", "is required for an insurance")


def check_carriers_fields(kept: StoredShipment, before: StoredShipment) -> None:
    """What a carrier assigns, nobody writes by hand."""
    for name, field in (("awb", "awb"), ("tracking_url", "trackingUrl")):
        if kept.provider not in LOCAL and getattr(kept, name) != getattr(before, name):
            raise Invalid.field(field, "comes from the carrier; only custom and parcel_carrier take it by hand")


def with_pickup_city(kept: StoredShipment, cities: Sequence[Area]) -> StoredShipment:
    """The shipment, once it is clear that the courier fetches parcels in its city."""
    if kept.provider == "ev_courier":
        city = rules.get_pickup_city("pickupCity", kept.pickup_city, cities)
        return msgspec.structs.replace(kept, pickup_city=kept.pickup_city and (kept.pickup_city.strip() or city.name))
    return kept


def count_days_ahead(provider: str) -> int:
    return DAYS_AHEAD.get(provider, MOST_DAYS_AHEAD)


def check_schedule(kept: StoredShipment, before: StoredShipment, soonest: str, latest: str) -> None:
    if kept.pickup_schedule in {None, before.pickup_schedule} or kept.provider in LOCAL:
        return
    if not soonest <= str(kept.pickup_schedule) <= latest:
        raise Invalid.field(
            "pickupSchedule", f"must be in the future and at most {count_days_ahead(kept.provider)} days ahead"
        )
