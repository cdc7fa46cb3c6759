"""Builds Biteship's requests and parses its responses. Pure."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from sapa.shipping.carriers.biteship import wire
from sapa.shipping.carriers.biteship.statuses import find_status
from sapa.shipping.carriers.calls import Request, build_segment, join_notes, shorten
from sapa.shipping.carriers.interface import (
    Booked,
    BookedShipment,
    CarrierArea,
    CarrierEvent,
    CashLimits,
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
from sapa.shipping.carriers.parcels import (
    WESTERN_TIME,
    centimetres,
    digits_of_phone,
    grams,
    parse_local,
    whole,
)
from sapa.shipping.carriers.reading import decode_rows

NAME = "biteship"
SERVICE_TYPE = "EXPRESS"


def find_note(shipment: ShipmentRequest) -> QuoteNote | None:
    """Why Biteship cannot be asked, and how to fix the request."""
    if shipment.service.service_type not in {None, SERVICE_TYPE}:
        message = f"{shipment.service.service_type} is not offered here; use the provider instant_carrier."
        return QuoteNote(NAME, "service_type_not_offered", message)
    if not (_build_spot(shipment.origin, "origin") and _build_spot(shipment.destination, "destination")):
        message = "zip of the origin and the destination is required, or the coordinates of both."
        return QuoteNote(NAME, "missing_postal_code", message)
    return None


def _build_spot(point: ShippingPoint, side: str) -> dict[str, Any]:
    """By postal code if there is one: express couriers locate by it."""
    if point.zip and point.zip.isascii() and point.zip.isdigit():
        return {f"{side}_postal_code": int(point.zip)}
    if point.coordinates:
        return {f"{side}_latitude": point.coordinates.lat, f"{side}_longitude": point.coordinates.lng}
    return {}


def build_rates(shipment: ShipmentRequest) -> Request:
    body = {
        **_build_spot(shipment.origin, "origin"),
        **_build_spot(shipment.destination, "destination"),
        "couriers": wire.COURIERS,
        "items": [_build_item(shipment.parcel)],
        **_build_extras(shipment),
    }
    return Request("POST", wire.RATES, body=body)


def _build_extras(shipment: ShipmentRequest) -> dict[str, Any]:
    """Insurance and cash on delivery, which change the price."""
    service, extras = shipment.service, dict[str, Any]()
    if service.insurance:
        extras["courier_insurance"] = whole(service.insurance_amount or shipment.parcel.item_value)
    if service.cod_amount is not None:
        extras["destination_cash_on_delivery"] = whole(service.cod_amount)
        extras["destination_cash_on_delivery_type"] = wire.COD_TERM
    return extras


def parse_rates(rates: wire.Rates, service: ServiceRequest) -> Quote:
    prices, notes = decode_offers(NAME, rates.pricing or (), wire.Price)
    offers = [_build_offer(price, service) for price in prices if _is_express(price)]
    if not offers:
        notes.append(QuoteNote(NAME, "no_service", "No courier serves this route and parcel."))
    return Quote(offers, notes)


def _is_express(price: wire.Price) -> bool:
    return wire.SERVICE_TYPES.get(price.service_type or "") is None


def _build_offer(price: wire.Price, service: ServiceRequest) -> ServiceOffer:
    handover, ways = {"pickup": "PICKUP", "drop_off": "DROP_OFF"}, price.available_collection_method or ()
    name = (
        f"{price.courier_name or price.courier_code.upper()} {price.courier_service_name or price.courier_service_code}"
    )
    return ServiceOffer(
        service_code=f"{price.courier_code}:{price.courier_service_code}",
        service_name=name,
        service_type=SERVICE_TYPE,
        price=price.shipping,
        currency=price.currency,
        estimate=price.duration,
        courier=price.courier_code,
        insurance_fee=price.insurance_fee if service.insurance else None,
        cod=bool(price.available_for_cash_on_delivery),
        cod_limits=_find_cod_limits(price),
        cod_fee=None if service.cod_amount is None else price.cash_on_delivery_fee,
        package_handover=[handover[method] for method in ways if method in handover] or ["PICKUP"],
    )


def _find_cod_limits(price: wire.Price) -> CashLimits | None:
    limits = wire.COD_LIMITS.get(price.courier_code) if price.available_for_cash_on_delivery else None
    return None if limits is None else CashLimits(Decimal(limits[0]), Decimal(limits[1]))


def build_book(shipment: ShipmentRequest, service_code: str, reference: str, region: str) -> Request:
    company, _, kind = service_code.partition(":")
    body: dict[str, Any] = {
        **_build_end(shipment.origin, "origin", region),
        **_build_end(shipment.destination, "destination", region),
        "origin_collection_method": "drop_off" if shipment.service.package_handover == "DROP_OFF" else "pickup",
        "courier_company": company,
        "courier_type": kind,
        **_build_time(shipment.service.pickup_schedule),
        "reference_id": reference,
        "items": [_build_item(shipment.parcel)],
        **_build_extras(shipment),
    }
    if notes := join_notes([shipment.parcel.notes]):
        body["order_note"] = notes
    return Request("POST", wire.ORDERS, body=body)


def _build_end(point: ShippingPoint, side: str, region: str) -> dict[str, Any]:
    end: dict[str, Any] = {
        f"{side}_contact_name": point.name,
        f"{side}_contact_phone": digits_of_phone(point.phone, region),
        f"{side}_address": point.address,
    }
    if point.email:
        end[f"{side}_contact_email"] = point.email
    if point.notes:
        end[f"{side}_note"] = point.notes
    if point.zip and point.zip.isascii() and point.zip.isdigit():
        end[f"{side}_postal_code"] = int(point.zip)
    if point.coordinates:
        end[f"{side}_coordinate"] = {"latitude": point.coordinates.lat, "longitude": point.coordinates.lng}
    return end


def _build_time(wanted: datetime | None) -> dict[str, str]:
    if wanted is None:
        return {"delivery_type": "now"}
    local = wanted.astimezone(WESTERN_TIME)
    return {
        "delivery_type": "scheduled",
        "delivery_date": local.strftime("%Y-%m-%d"),
        "delivery_time": local.strftime("%H:%M"),
    }


def _build_item(parcel: Parcel) -> dict[str, Any]:
    """The whole parcel as one item, because items have no weights of their own."""
    return {
        "name": parcel.item_name or "Paket",
        "description": parcel.item_type or parcel.item_name or "Paket",
        "category": wire.LOCAL_CATEGORY,
        "value": whole(parcel.item_value),
        "length": centimetres(parcel.length),
        "width": centimetres(parcel.width),
        "height": centimetres(parcel.height),
        "weight": grams(parcel),
        "quantity": 1,
    }


def parse_booked(order: wire.Order, handover: str, offer: ServiceOffer | None) -> Booked:
    """The fees are those of the response, else of the offer."""
    courier, status = order.courier or wire.Courier(), find_status(order.status) or "confirmed"
    insurances, _ = decode_rows([courier.insurance], wire.OrderInsurance)
    destinations, _ = decode_rows([order.destination], wire.OrderDestination)
    cash, _ = decode_rows([destination.cash_on_delivery for destination in destinations], wire.OrderCash)
    insurance_fee = next((one.fee for one in insurances if one.fee), None if offer is None else offer.insurance_fee)
    cod_fee = next((one.fee for one in cash if one.fee), None if offer is None else offer.cod_fee)
    return Booked(
        status="awaiting_dropoff" if status == "confirmed" and handover == "DROP_OFF" else status,
        order_no=order.id,
        booking_id=courier.tracking_id,
        awb=courier.waybill_id or None,
        tracking_url=courier.link or None,
        driver=_build_driver(courier),
        price=order.price if offer is None else offer.price,
        insurance_fee=insurance_fee,
        cod_fee=cod_fee,
        service_code=None if offer is None else offer.service_code,
        estimate=None if offer is None else offer.estimate,
        distance=_find_distance(order.delivery),
        sorting_code=courier.routing_code,
    )


def _find_distance(delivery: wire.Delivery | None) -> Decimal | None:
    if delivery is None or delivery.distance is None:
        return None
    return delivery.distance / 1000 if delivery.distance_unit == "meter" else delivery.distance


def parse_twin(twin: wire.Twin | None, reference: str) -> Booked | None:
    """An existing order with our reference is our booking."""
    if twin is None or not twin.order_id or twin.reference_id != reference:
        return None
    return Booked("confirmed", order_no=twin.order_id, awb=twin.waybill_id or None)


def parse_tracked(order: wire.Order, shipment: BookedShipment) -> Sequence[CarrierEvent]:
    courier = order.courier or wire.Courier()
    history, _ = decode_rows(courier.history or (), wire.HistoryEntry)
    dated = [(entry, instant) for entry in history if (instant := parse_local(entry.updated_at))]
    return [
        CarrierEvent(
            dedupe_key=f"{order.id}/{entry.status}/{entry.updated_at}",
            occurred_at=instant,
            status=find_status(entry.status),
            text=entry.note or entry.status,
            reference=order.reference_id or shipment.reference,
            order_no=order.id,
            awb=courier.waybill_id or None,
            tracking_url=courier.link or None,
            driver=_build_driver(courier),
            sorting_code=courier.routing_code,
        )
        for entry, instant in sorted(dated, key=lambda pair: pair[1])
    ]


def build_cancel(order_no: str, reason: str) -> Request:
    body = {"cancellation_reason_code": wire.REASON_CODE}
    if reason.strip():
        body["cancellation_reason"] = shorten(reason.strip(), wire.LONGEST_REASON)
    return Request("POST", f"{wire.ORDERS}/{build_segment(order_no)}/cancel", body=body)


def build_areas(search: str) -> Request:
    return Request("GET", wire.AREAS, params={"countries": "ID", "input": search, "type": "single"})


def parse_areas(areas: wire.Areas) -> Sequence[CarrierArea]:
    return [
        CarrierArea(row.id, row.name, None, str(row.postal_code) if row.postal_code else None)
        for row in areas.areas or ()
    ]


def parse_callback(callback: wire.Callback) -> Iterator[CarrierEvent]:
    """Weight and waybill changes are recorded without a status."""
    tells = callback.event == "order.status"
    payload = msgspec.json.encode(callback)
    yield CarrierEvent(
        dedupe_key=hashlib.sha256(payload).hexdigest()[:32],
        occurred_at=parse_local(callback.updated_at) or datetime.now(UTC),
        status=find_status(callback.status) if tells else None,
        text=callback.status or callback.event,
        order_no=callback.order_id or None,
        awb=callback.courier_waybill_id or None,
        tracking_url=callback.courier_link or None,
        driver=_build_driver(
            wire.Courier(
                driver_name=callback.courier_driver_name,
                driver_phone=callback.courier_driver_phone,
                driver_photo_url=callback.courier_driver_photo_url,
                driver_plate_number=callback.courier_driver_plate_number,
            )
        ),
    )


def _build_driver(courier: wire.Courier) -> Driver | None:
    if not (courier.driver_name or courier.driver_phone):
        return None
    photo, plate = courier.driver_photo_url or None, courier.driver_plate_number or None
    return Driver(courier.driver_name or None, courier.driver_phone or None, photo, plate)
