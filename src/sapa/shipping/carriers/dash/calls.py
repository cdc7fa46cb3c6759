"""A journey in Dash Electric's words, and its words in ours. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sapa.shipping.carriers.calls import Request, build_segment, join_notes
from sapa.shipping.carriers.dash import wire
from sapa.shipping.carriers.dash.statuses import REASSIGNED, find_status
from sapa.shipping.carriers.interface import (
    Booked,
    CarrierArea,
    CarrierEvent,
    Driver,
    Parcel,
    Quote,
    QuoteNote,
    ServiceOffer,
    ServiceRequest,
    ShipmentRequest,
    ShippingPoint,
)
from sapa.shipping.carriers.offers import sift_offers
from sapa.shipping.carriers.parcels import centimetres, international_phone, parse_local, whole
from sapa.shipping.carriers.reading import sift
from sapa.values.text_folding import fold

NAME = "dash"
_NAMES = {"INSTANT": "Dash Instant", "SAME_DAY": "Dash Same Day"}


def find_city(wish: ServiceRequest, origin: ShippingPoint) -> str | None:
    """The name of the city to fetch in: by its code or name as wished, else by the origin's."""
    wanted = wish.pickup_city or origin.city or ""
    if wanted.isascii() and wanted.isdigit():
        return wire.CITIES.get(int(wanted))
    return next((name for name in wire.CITIES.values() if _bare(name) == _bare(wanted)), None)


def _bare(city: str) -> str:
    return fold(city).removeprefix("kota ").strip()


def list_cities(search: str | None) -> Sequence[CarrierArea]:
    return [CarrierArea(id, name, None) for id, name in wire.CITIES.items() if fold(search or "") in fold(name)]


def find_note(journey: ShipmentRequest) -> QuoteNote | None:
    """Why Dash cannot be asked, and how to mend it."""
    if find_city(journey.wish, journey.origin) is None:
        words = "pickupCity must be one of coverage/cities?provider=ev_courier."
        return QuoteNote(NAME, "pickup_city_not_served", words)
    if not (journey.origin.coordinates and journey.destination.coordinates):
        words = "origin.coordinates and destination.coordinates are needed, each with lat and lng."
        return QuoteNote(NAME, "missing_coordinates", words)
    if journey.wish.service_type not in {None, *wire.SERVICE_TYPES}:
        return QuoteNote(NAME, "service_type_not_offered", f"serviceType must be {' or '.join(wire.SERVICE_TYPES)}.")
    return None


def find_service_type(wish: ServiceRequest) -> str | None:
    """By the code or the name of an offer, else by the type of service, else what it does for all."""
    for service_type, name in _NAMES.items():
        if service_type == wish.service_code or fold(wish.service_name or "") in {fold(name), fold(service_type)}:
            return service_type
    if wish.service_code or wish.service_name:
        return wish.service_type
    return wish.service_type or "SAME_DAY"


def build_token(client_key: str, client_secret: str) -> Request:
    return Request("POST", wire.TOKEN, body={"client_key": client_key, "client_secret": client_secret})


def build_quotes(journey: ShipmentRequest) -> Request:
    city = find_city(journey.wish, journey.origin)
    body = {
        "serviceCategory": wire.CATEGORY,
        "packages": [_build_package(journey.goods)],
        "origin": _build_place(journey.origin, city),
        "destination": _build_place(journey.destination, journey.destination.city),
    }
    return Request("POST", wire.QUOTES, body=body)


def parse_quotes(quotes: wire.Quotes, wish: ServiceRequest) -> Quote:
    rows, notes = sift_offers(NAME, quotes.quotes, wire.Offered)
    offers = [
        ServiceOffer(
            service_code=offered.service_type,
            service_name=_NAMES.get(offered.service_type, offered.service_type),
            service_type=offered.service_type,
            price=offered.amount,
            currency=offered.currency,
            estimate=offered.estimated_time,
            courier=NAME,
            distance=offered.distance,
            vehicle_type="TWO_WHEEL",
        )
        for offered in rows
        if wish.service_type in {None, offered.service_type}
    ]
    if not offers:
        notes.append(QuoteNote(NAME, "no_service", "Dash offers nothing for this way."))
    return Quote(offers, notes)


def build_book(journey: ShipmentRequest, service_type: str, reference: str, region: str) -> Request:
    wish = journey.wish
    body: dict[str, Any] = {
        "providerOrderID": reference,
        "serviceCategory": wire.CATEGORY,
        "serviceType": service_type,
        "paymentMethod": wire.PAYMENT,
        "packages": [_build_package(journey.goods)],
        "sender": _build_person(journey.origin, region),
        "recipient": _build_person(journey.destination, region),
        "origin": _build_place(journey.origin, find_city(wish, journey.origin)),
        "destination": _build_place(journey.destination, journey.destination.city),
    }
    if notes := join_notes([journey.destination.notes, journey.goods.notes]):
        body["destination"]["notes"] = notes
    if wish.pickup_schedule:
        ends = wish.pickup_schedule + timedelta(hours=1)
        body["schedule"] = {
            "pickupTimeFrom": wish.pickup_schedule.isoformat(),
            "pickupTimeTo": ends.isoformat(),
        }
    return Request("POST", wire.DELIVERIES, body=body)


def _build_package(goods: Parcel) -> dict[str, Any]:
    """Kilograms, as on our side."""
    package: dict[str, Any] = {
        "name": goods.item_name or "Paket",
        "quantity": goods.item_qty or 1,
        "weight": float(goods.weight),
        "price": whole(goods.item_value),
    }
    if goods.length and goods.width and goods.height:
        names = ("length", "width", "height")
        package["dimensions"] = {name: centimetres(getattr(goods, name)) for name in names}
    return package


def _build_person(place: ShippingPoint, region: str) -> dict[str, Any]:
    person: dict[str, Any] = {"firstName": place.name, "phone": international_phone(place.phone, region)}
    return person | ({"email": place.email} if place.email else {})


def _build_place(place: ShippingPoint, city: str | None) -> dict[str, Any]:
    point = place.coordinates
    said: dict[str, Any] = {"address": place.address or ""}
    if point is not None:
        said["coordinates"] = {"latitude": point.lat, "longitude": point.lng}
    parts = {
        "province": place.province,
        "city": city,
        "district": place.kecamatan,
        "subDistrict": place.kelurahan,
        "postalCode": place.zip,
        "notes": place.notes,
    }
    return said | {name: value for name, value in parts.items() if value}


def parse_booked(delivery: wire.Delivery) -> Booked:
    """Its own number is the awb, too: there is no other."""
    return Booked(
        status=find_status(delivery.status, was_picked_up=False) or "finding_driver",
        order_no=delivery.deliveryID,
        booking_id=delivery.deliveryID,
        awb=delivery.deliveryID,
        tracking_url=delivery.trackingURL or None,
        driver=_build_driver(delivery.courier),
        price=delivery.amount,
        distance=delivery.distance,
    )


def build_cancel(number: str, reason: str) -> Request:
    path = f"{wire.DELIVERIES}/{build_segment(number)}"
    return Request("DELETE", path, params={"reason": reason} if reason else None)


def parse_event(delivery: wire.Delivery, was_picked_up: bool) -> CarrierEvent:
    """A photo of the pick-up tells that there was one."""
    media, _ = sift(delivery.media or (), wire.Medium)
    has_proof = any(medium.type == wire.PICKUP_PROOF for medium in media)
    return CarrierEvent(
        dedupe_key=f"{delivery.deliveryID}/{delivery.status}/{delivery.timestamp}",
        occurred_at=parse_local(delivery.timestamp) or datetime.now(UTC),
        status=find_status(delivery.status, was_picked_up or has_proof),
        text=delivery.status,
        reference=delivery.providerOrderID,
        order_no=delivery.deliveryID,
        awb=delivery.deliveryID,
        tracking_url=delivery.trackingURL or None,
        driver=_build_driver(delivery.courier),
        is_reassignment=delivery.status == REASSIGNED,
        receiver=delivery.receiverName or None,
        proof=[medium.url for medium in media],
        reason=delivery.reason or None,
        cancelled_by=delivery.cancelledBy or None,
    )


def _build_driver(courier: wire.Courier | None) -> Driver | None:
    if courier is None or not (courier.name or courier.phone):
        return None
    plate = courier.vehicle.license_plate if courier.vehicle else None
    return Driver(courier.name or None, courier.phone or None, courier.photo_url or None, plate or None)
