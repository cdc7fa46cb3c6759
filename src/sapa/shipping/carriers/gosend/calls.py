"""Builds GoSend's requests and parses its responses. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Raw

from sapa.shipping.carriers.calls import Request, join_notes
from sapa.shipping.carriers.gosend import wire
from sapa.shipping.carriers.gosend.statuses import find_status
from sapa.shipping.carriers.interface import (
    Booked,
    BookedShipment,
    CarrierEvent,
    Coordinates,
    Driver,
    Quote,
    QuoteNote,
    ServiceOffer,
    ServiceRequest,
    ShipmentRequest,
)
from sapa.shipping.carriers.offers import list_unreadable
from sapa.shipping.carriers.parcels import digits_of_phone, parse_local, parse_milliseconds, whole, written
from sapa.shipping.carriers.reading import decode_rows

NAME = "gosend"
_TYPES = {method: ours for ours, method in wire.METHODS.items()}


def find_note(shipment: ShipmentRequest) -> QuoteNote | None:
    """Why GoSend cannot be asked, and how to fix the request."""
    if not (shipment.origin.coordinates and shipment.destination.coordinates):
        message = "origin.coordinates and destination.coordinates are required, each with lat and lng."
        return QuoteNote(NAME, "missing_coordinates", message)
    if shipment.parcel.weight > wire.HEAVIEST_KG:
        return QuoteNote(NAME, "too_heavy", f"A parcel may weigh at most {wire.HEAVIEST_KG} kg.")
    if shipment.service.vehicle_type not in {None, wire.VEHICLE}:
        return QuoteNote(NAME, "vehicle_not_offered", f"vehicleType must be {wire.VEHICLE}.")
    if shipment.service.service_type not in {None, *wire.METHODS}:
        return QuoteNote(NAME, "service_type_not_offered", f"serviceType must be {' or '.join(wire.METHODS)}.")
    return None


def build_price(origin: Coordinates, destination: Coordinates) -> Request:
    params = {"origin": written(origin), "destination": written(destination), "paymentType": str(wire.PAYMENT_TYPE)}
    return Request("GET", wire.PRICE, params=params)


def parse_prices(rows: Mapping[str, Raw], service: ServiceRequest) -> Quote:
    methods = {key: method for key, row in rows.items() for method in decode_rows((row,), wire.Method)[0]}
    offers, notes = [], list_unreadable(NAME, len(methods), len(rows) - len(methods))
    for key, method in methods.items():
        name = method.shipment_method or key
        ours = _TYPES.get(name)
        if ours is None or service.service_type not in {None, ours}:
            continue
        if method.price is None or not (method.serviceable and method.active):
            notes.append(QuoteNote(NAME, "out_of_coverage", f"GoSend {name} does not serve this route now."))
        else:
            offers.append(_build_offer(name, ours, method, method.price))
    if not offers and not notes:
        notes.append(QuoteNote(NAME, "no_service", "GoSend offers no service for this route."))
    return Quote(offers, notes)


def _build_offer(name: str, ours: str, method: wire.Method, total: wire.Total) -> ServiceOffer:
    return ServiceOffer(
        service_code=name,
        service_name=f"GoSend {name}",
        service_type=ours,
        price=total.total_price,
        currency="IDR",
        estimate=method.shipment_method_description,
        courier=NAME,
        distance=method.distance,
        vehicle_type=wire.VEHICLE,
    )


def find_method(service: ServiceRequest) -> str | None:
    """By the code or the name of an offer, else by the service type."""
    for label in (service.service_code, service.service_name):
        word = (label or "").lower().removeprefix("gosend").replace(" ", "").replace("-", "").replace("_", "")
        for method in _TYPES:
            if word == method.lower():
                return method
    return wire.METHODS.get(service.service_type or "")


def build_book(shipment: ShipmentRequest, method: str, reference: str, region: str) -> Request:
    origin, destination, parcel = shipment.origin, shipment.destination, shipment.parcel
    route = {
        "originName": origin.name,
        "originNote": origin.notes or "",
        "originContactName": origin.name,
        "originContactPhone": digits_of_phone(origin.phone, region),
        "originLatLong": written(origin.coordinates) if origin.coordinates else "",
        "originAddress": origin.address,
        "destinationName": destination.name,
        "destinationNote": join_notes([destination.notes, parcel.notes]),
        "destinationContactName": destination.name,
        "destinationContactPhone": digits_of_phone(destination.phone, region),
        "destinationLatLong": written(destination.coordinates) if destination.coordinates else "",
        "destinationAddress": destination.address,
        "item": parcel.item_name or "Paket",
        "storeOrderId": reference,
        "insuranceDetails": _build_insurance(shipment),
    }
    body = {
        "paymentType": wire.PAYMENT_TYPE,
        "deviceToken": "",
        "collection_location": "pickup",
        "shipment_method": method,
        "routes": [route],
    }
    return Request("POST", wire.BOOK, body=body)


def _build_insurance(shipment: ShipmentRequest) -> dict[str, Any]:
    """As text, including numbers."""
    if not shipment.service.insurance:
        return {"applied": "false", "fee": "0", "product_description": "", "product_price": ""}
    value = str(whole(shipment.parcel.item_value))
    name = shipment.parcel.item_name or "Paket"
    return {"applied": "true", "fee": "0", "product_description": name, "product_price": value}


def parse_found(status: wire.Status) -> Booked:
    return Booked(
        status=find_status(status.status, was_picked_up=False) or "finding_driver",
        order_no=status.order_no,
        tracking_url=status.live_tracking_url or None,
        driver=_build_driver(status.driver_name, status.driver_phone, status.driver_photo, status.vehicle_number),
        price=status.total_price,
        distance=status.total_distance_in_kms,
    )


def parse_tracked(status: wire.Status, shipment: BookedShipment) -> Sequence[CarrierEvent]:
    """GoSend reports only its present status, with the last known instants."""
    times = (status.order_created_time, status.order_dispatch_time, status.order_arrival_time, status.order_closed_time)
    instants = [instant for text in times if (instant := parse_local(text))]
    occurred_at = max(instants) if instants else datetime.fromtimestamp(0, UTC)
    ours = find_status(status.status, shipment.was_picked_up)
    return [
        CarrierEvent(
            dedupe_key=f"{status.order_no}/{status.status}/{status.driver_phone or ''}",
            occurred_at=occurred_at,
            status=ours,
            text=status.status,
            reference=shipment.reference,
            order_no=status.order_no,
            tracking_url=status.live_tracking_url or None,
            driver=_build_driver(status.driver_name, status.driver_phone, status.driver_photo, status.vehicle_number),
            receiver=status.receiver_name or None if ours == "delivered" else None,
            reason=status.cancel_description or None,
            is_present=True,
        )
    ]


def parse_callback(callback: wire.Callback) -> Iterator[CarrierEvent]:
    """A pickup photo proves the pickup; a hand-over photo, that a rejected parcel is back."""
    instant = callback.event_date
    yield CarrierEvent(
        dedupe_key=callback.event_id or f"{callback.booking_id}/{callback.status}/{instant}",
        occurred_at=parse_milliseconds(instant) or datetime.now(UTC),
        status=find_status(callback.status, bool(callback.pop_url), bool(callback.pod_url)),
        text=callback.status,
        reference=callback.store_order_id,
        order_no=callback.booking_id or None,
        tracking_url=callback.live_tracking_url or callback.liveTrackingUrl or None,
        driver=_build_driver(callback.driver_name, callback.driver_phone, callback.driver_photo_url, None),
        receiver=callback.receiver_name or None,
        proof=[url for url in (callback.pop_url, callback.pod_url) if url],
        reason=callback.cancellation_reason or None,
        cancelled_by=callback.cancelled_by or None,
    )


def _build_driver(name: str | None, phone: str | None, photo: str | None, plate: str | None) -> Driver | None:
    return Driver(name or None, phone or None, photo or None, plate or None) if name or phone else None
