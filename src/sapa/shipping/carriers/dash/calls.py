"""Builds Dash Electric's requests and parses its responses. Pure."""

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
from sapa.shipping.carriers.offers import decode_offers
from sapa.shipping.carriers.parcels import centimetres, international_phone, parse_local, whole
from sapa.shipping.carriers.reading import decode_rows
from sapa.values.text_folding import fold

NAME = "dash"
_NAMES = {"INSTANT": "Dash Instant", "SAME_DAY": "Dash Same Day"}


def find_city(service: ServiceRequest, origin: ShippingPoint) -> str | None:
    """The pickup city: by the requested code or name, else by the origin's."""
    wanted = service.pickup_city or origin.city or ""
    if wanted.isascii() and wanted.isdigit():
        return wire.CITIES.get(int(wanted))
    return next((name for name in wire.CITIES.values() if _bare(name) == _bare(wanted)), None)


def _bare(city: str) -> str:
    return fold(city).removeprefix("kota ").strip()


def list_cities(search: str | None) -> Sequence[CarrierArea]:
    return [CarrierArea(id, name, None) for id, name in wire.CITIES.items() if fold(search or "") in fold(name)]


def find_note(shipment: ShipmentRequest) -> QuoteNote | None:
    """Why Dash cannot be asked, and how to fix the request."""
    if find_city(shipment.service, shipment.origin) is None:
        message = "pickupCity must be one of coverage/cities?provider=ev_courier."
        return QuoteNote(NAME, "pickup_city_not_served", message)
    if not (shipment.origin.coordinates and shipment.destination.coordinates):
        message = "origin.coordinates and destination.coordinates are required, each with lat and lng."
        return QuoteNote(NAME, "missing_coordinates", message)
    if shipment.service.service_type not in {None, *wire.SERVICE_TYPES}:
        return QuoteNote(NAME, "service_type_not_offered", f"serviceType must be {' or '.join(wire.SERVICE_TYPES)}.")
    return None


def find_service_type(service: ServiceRequest) -> str | None:
    """By the code or the name of an offer, else by the service type, else the default."""
    for service_type, name in _NAMES.items():
        if service_type == service.service_code or fold(service.service_name or "") in {fold(name), fold(service_type)}:
            return service_type
    if service.service_code or service.service_name:
        return service.service_type
    return service.service_type or "SAME_DAY"


def build_token(client_key: str, client_secret: str) -> Request:
    return Request("POST", wire.TOKEN, body={"client_key": client_key, "client_secret": client_secret})


def build_quotes(shipment: ShipmentRequest) -> Request:
    city = find_city(shipment.service, shipment.origin)
    body = {
        "serviceCategory": wire.CATEGORY,
        "packages": [_build_package(shipment.parcel)],
        "origin": _build_place(shipment.origin, city),
        "destination": _build_place(shipment.destination, shipment.destination.city),
    }
    return Request("POST", wire.QUOTES, body=body)


def parse_quotes(quotes: wire.Quotes, service: ServiceRequest) -> Quote:
    rows, notes = decode_offers(NAME, quotes.quotes, wire.QuoteRow)
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
        if service.service_type in {None, offered.service_type}
    ]
    if not offers:
        notes.append(QuoteNote(NAME, "no_service", "Dash offers no service for this route."))
    return Quote(offers, notes)


def build_book(shipment: ShipmentRequest, service_type: str, reference: str, region: str) -> Request:
    service = shipment.service
    body: dict[str, Any] = {
        "providerOrderID": reference,
        "serviceCategory": wire.CATEGORY,
        "serviceType": service_type,
        "paymentMethod": wire.PAYMENT,
        "packages": [_build_package(shipment.parcel)],
        "sender": _build_person(shipment.origin, region),
        "recipient": _build_person(shipment.destination, region),
        "origin": _build_place(shipment.origin, find_city(service, shipment.origin)),
        "destination": _build_place(shipment.destination, shipment.destination.city),
    }
    if notes := join_notes([shipment.destination.notes, shipment.parcel.notes]):
        body["destination"]["notes"] = notes
    if service.pickup_schedule:
        ends = service.pickup_schedule + timedelta(hours=1)
        body["schedule"] = {
            "pickupTimeFrom": service.pickup_schedule.isoformat(),
            "pickupTimeTo": ends.isoformat(),
        }
    return Request("POST", wire.BOOK, body=body)


def _build_package(parcel: Parcel) -> dict[str, Any]:
    """Kilograms, as in our API."""
    package: dict[str, Any] = {
        "name": parcel.item_name or "Paket",
        "quantity": parcel.item_qty or 1,
        "weight": float(parcel.weight),
        "price": whole(parcel.item_value),
    }
    if parcel.length and parcel.width and parcel.height:
        package |= {name: centimetres(getattr(parcel, name)) for name in ("length", "width", "height")}
    return package


def _build_person(place: ShippingPoint, region: str) -> dict[str, Any]:
    person: dict[str, Any] = {"firstName": place.name, "phone": international_phone(place.phone, region)}
    return person | ({"email": place.email} if place.email else {})


def _build_place(place: ShippingPoint, city: str | None) -> dict[str, Any]:
    point = place.coordinates
    fields: dict[str, Any] = {"address": place.address or ""}
    if point is not None:
        fields["coordinates"] = {"latitude": point.lat, "longitude": point.lng}
    parts = {
        "province": place.province,
        "city": city,
        "district": place.kecamatan,
        "subDistrict": place.kelurahan,
        "postalCode": place.zip,
        "notes": place.notes,
    }
    return fields | {name: value for name, value in parts.items() if value}


def parse_booked(delivery: wire.Delivery) -> Booked:
    """Its delivery number is also the awb."""
    return Booked(
        status=find_status(delivery.status, was_picked_up=False) or "finding_driver",
        order_no=delivery.deliveryID,
        booking_id=delivery.deliveryID,
        awb=delivery.deliveryID,
        tracking_url=delivery.trackingURL or None,
        driver=_build_driver(delivery.courier),
        price=None if delivery.quote is None else delivery.quote.amount,
        distance=delivery.distance,
    )


def build_cancel(number: str, reason: str) -> Request:
    path = f"{wire.DELIVERIES}/{build_segment(number)}"
    return Request("DELETE", path, body={"notes": reason} if reason else None)


def parse_event(delivery: wire.Delivery, was_picked_up: bool) -> CarrierEvent:
    """Its instant or a photo proves the pickup."""
    media, _ = decode_rows(delivery.media or (), wire.Medium)
    has_proof = bool(delivery.pickupAt) or any(medium.type == wire.PICKUP_PROOF for medium in media)
    return CarrierEvent(
        dedupe_key=f"{delivery.deliveryID}/{delivery.status}/{delivery.updatedAt}",
        occurred_at=parse_local(delivery.updatedAt) or datetime.now(UTC),
        status=find_status(delivery.status, was_picked_up or has_proof),
        text=delivery.status,
        reference=delivery.providerOrderID,
        order_no=delivery.deliveryID,
        awb=delivery.deliveryID,
        tracking_url=delivery.trackingURL or None,
        driver=_build_driver(delivery.courier),
        is_reassignment=delivery.status == REASSIGNED,
        receiver=(delivery.recipient and delivery.recipient.actualRecipientName) or None,
        proof=[medium.url for medium in media],
        reason=delivery.failedReason or delivery.cancelledReason or None,
        cancelled_by=delivery.cancelledBy or None,
    )


def _build_driver(courier: wire.Courier | None) -> Driver | None:
    if courier is None or not (courier.name or courier.phone):
        return None
    plate = courier.vehicle.license_plate if courier.vehicle else None
    return Driver(courier.name or None, courier.phone or None, courier.photo_url or None, plate or None)
