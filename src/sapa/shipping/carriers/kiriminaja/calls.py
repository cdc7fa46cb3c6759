"""Builds KiriminAja's requests and parses its responses. Pure."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from sapa.shipping.carriers.calls import Request, join_notes, shorten
from sapa.shipping.carriers.interface import (
    Booked,
    BookedShipment,
    BookingPayment,
    CarrierArea,
    CarrierAway,
    CarrierEvent,
    CashLimits,
    Level,
    Parcel,
    Quote,
    QuoteNote,
    Rejected,
    ServiceOffer,
    ShipmentRequest,
    ShippingPoint,
)
from sapa.shipping.carriers.kiriminaja import wire
from sapa.shipping.carriers.kiriminaja.statuses import (
    BY_CODE,
    BY_METHOD,
    PAYMENT_BY_CODE,
    PAYMENT_BY_WORD,
    find_status,
)
from sapa.shipping.carriers.offers import decode_offers
from sapa.shipping.carriers.parcels import (
    WESTERN_TIME,
    centimetres,
    grams,
    local_phone,
    parse_local,
    volumetric_grams,
    whole,
)
from sapa.shipping.carriers.reading import decode_rows
from sapa.values.web_addresses import is_web_address

NAME = "kiriminaja"
SERVICE_TYPE = "EXPRESS"


def build_price(shipment: ShipmentRequest) -> Request:
    origin, destination = shipment.origin, shipment.destination
    body: dict[str, Any] = {"origin": origin.kecamatan_id, "destination": destination.kecamatan_id}
    if origin.kelurahan_id:
        body["subdistrict_origin"] = origin.kelurahan_id
    if destination.kelurahan_id:
        body["subdistrict_destination"] = destination.kelurahan_id
    body |= _build_measures(shipment.parcel)
    body |= {
        "item_value": _build_value(shipment.parcel),
        "insurance": int(shipment.service.insurance),
        "courier": wire.COURIERS,
    }
    return Request("POST", wire.PRICE, body=body)


def parse_prices(prices: wire.Prices, shipment: ShipmentRequest) -> Quote:
    rows, notes = decode_offers(NAME, prices.results or (), wire.Price)
    if not rows:
        notes.append(QuoteNote(NAME, "no_service", "No courier serves this route and parcel."))
    return Quote([_build_offer(price, shipment) for price in rows], notes)


def _build_offer(price: wire.Price, shipment: ShipmentRequest) -> ServiceOffer:
    is_insured = shipment.service.insurance or bool(price.force_insurance)
    insurance_fee = price.insurance if is_insured else None
    has_cod = bool(price.cod)
    return ServiceOffer(
        service_code=f"{price.service}:{price.service_type}",
        service_name=price.service_name or f"{price.service.upper()} {price.service_type}",
        service_type=SERVICE_TYPE,
        price=price.cost,
        currency="IDR",
        estimate=f"{price.etd} days" if price.etd else None,
        courier=price.service,
        insurance_fee=insurance_fee,
        insurance_required=bool(price.force_insurance),
        cod=has_cod,
        cod_limits=CashLimits(wire.MIN_COD, wire.MAX_COD) if has_cod else None,
        cod_fee=_find_cod_fee(price, shipment, insurance_fee) if has_cod else None,
        package_handover=("PICKUP", "DROP_OFF") if price.drop else ("PICKUP",),
    )


def _find_cod_fee(price: wire.Price, shipment: ShipmentRequest, insurance_fee: Decimal | None) -> Decimal | None:
    """As KiriminAja computed it; else by its rate and with tax, of the goods, the shipping and the insurance."""
    if shipment.service.cod_amount is None:
        return None
    settings, _ = decode_rows([price.setting], wire.PriceSetting)
    if not settings:
        return None
    setting = settings[0]
    if setting.cod_fee_amount:
        return setting.cod_fee_amount
    if setting.cod_fee is None:
        return None
    subtotal = _build_value(shipment.parcel) + price.cost + (insurance_fee or 0)
    fee = Decimal(whole(subtotal * setting.cod_fee * wire.COD_TAX))
    return max(setting.minimum_cod_fee or Decimal(0), fee)


def find_obstacle(shipment: ShipmentRequest, region: str) -> Rejected | None:
    """Finds what KiriminAja would refuse, with a more helpful message."""
    for side, point, longest in (
        ("sender", shipment.origin, wire.LONGEST_SENDER_ADDRESS),
        ("delivery", shipment.destination, wire.LONGEST_RECEIVER_ADDRESS),
    ):
        if not (point.kecamatan_id and point.kelurahan_id):
            return Rejected(
                "MISSING_AREA",
                f"{side}.kecamatanId and {side}.kelurahanId are required; /shipping/coverage lists the ids",
            )
        if len(point.name or "") > wire.LONGEST_NAME:
            return Rejected("NAME_TOO_LONG", f"{side}.name may have at most {wire.LONGEST_NAME} characters")
        if len(point.address or "") > longest:
            return Rejected("ADDRESS_TOO_LONG", f"{side}.address may have at most {longest} characters")
        phone = local_phone(point.phone, region)
        if not (phone.startswith("0") and len(phone) <= wire.LONGEST_PHONE):
            reason = (
                f"{side}.phone must be an Indonesian number of at most {wire.LONGEST_PHONE} digits, such as 08123456789"
            )
            return Rejected("PHONE_NOT_USABLE", reason)
    return None


def build_book(shipment: ShipmentRequest, offer: ServiceOffer, reference: str, region: str, now: datetime) -> Request:
    origin = shipment.origin
    body: dict[str, Any] = {
        "address": _build_pickup_address(origin),
        "phone": local_phone(origin.phone, region),
        "name": origin.name,
        "kecamatan_id": origin.kecamatan_id,
        "kelurahan_id": origin.kelurahan_id,
        "schedule": build_schedule(shipment.service.pickup_schedule, now),
        "platform_name": "Sapa",
        "packages": [_build_package(shipment, offer, reference, region)],
    }
    if origin.zip:
        body["zipcode"] = origin.zip
    if origin.coordinates:
        body |= {"latitude": origin.coordinates.lat, "longitude": origin.coordinates.lng}
    return Request("POST", wire.BOOK, body=body)


def _build_package(shipment: ShipmentRequest, offer: ServiceOffer, reference: str, region: str) -> dict[str, Any]:
    destination, parcel = shipment.destination, shipment.parcel
    service, _, service_type = offer.service_code.partition(":")
    package: dict[str, Any] = {
        "order_id": reference,
        "destination_name": destination.name,
        "destination_phone": local_phone(destination.phone, region),
        "destination_address": destination.address,
        "destination_kecamatan_id": destination.kecamatan_id,
        "destination_kelurahan_id": destination.kelurahan_id,
        **_build_measures(parcel),
        "qty": parcel.item_qty or 1,
        "item_name": parcel.item_name or "Paket",
        "item_value": _build_value(parcel),
        "shipping_cost": whole(offer.price),
        "service": service,
        "service_type": service_type,
        "package_type_id": wire.PACKAGE_TYPE,
        "cod": whole(shipment.service.cod_amount),
        "drop": shipment.service.package_handover == "DROP_OFF",
    }
    if offer.insurance_fee is not None:
        package["insurance_amount"] = whole(offer.insurance_fee)
    if offer.cod_fee is not None:
        package["add_cost"] = whole(offer.cod_fee)
    if destination.zip:
        package["destination_zipcode"] = destination.zip
    if note := build_note(shipment):
        package["note"] = note
    return package


def build_note(shipment: ShipmentRequest) -> str:
    """For the courier: the receiver's notes, then the parcel's, cut at a word boundary."""
    return shorten(join_notes([shipment.destination.notes, shipment.parcel.notes]), wire.LONGEST_NOTE)


def _build_pickup_address(origin: ShippingPoint) -> str:
    """There is no field for the sender's notes: they follow the address if there is room."""
    address, room = origin.address or "", wire.LONGEST_SENDER_ADDRESS - len(origin.address or "") - len(" ()")
    notes = join_notes([origin.notes])
    return f"{address} ({shorten(notes, room)})" if notes and room > 1 else address


def build_schedule(requested: datetime | None, now: datetime) -> str:
    """In Jakarta's time: as requested, else in an hour, else the next morning."""
    local = (requested or now + timedelta(hours=1)).astimezone(WESTERN_TIME)
    if requested is None and local.hour >= wire.LAST_PICKUP_HOUR:
        local = (local + timedelta(days=1)).replace(hour=wire.NEXT_PICKUP_HOUR, minute=0, second=0)
    return local.strftime("%Y-%m-%d %H:%M:%S")


def parse_booked(
    pickup: wire.Pickup, shipment: ShipmentRequest, reference: str, offer: ServiceOffer
) -> Booked | Rejected | None:
    """None if the response succeeds without naming our parcel."""
    if not pickup.status:
        return Rejected(str(pickup.code or "REFUSED"), pickup.reason)
    detail = next((detail for detail in pickup.details or () if detail.order_id == reference), None)
    if detail is None:
        return None
    payment_status = _find_payment_status(pickup, shipment)
    has_code = payment_status == "pending" and pickup.qr_url is not None and not is_web_address(pickup.qr_url)
    return Booked(
        status="awaiting_dropoff" if shipment.service.package_handover == "DROP_OFF" else "confirmed",
        order_no=detail.kj_order_id,
        booking_id=detail.kj_order_id,
        awb=detail.awb,
        pickup_number=pickup.pickup_number,
        payment_id=pickup.pickup_number,
        payment_status=payment_status,
        payment_qr=pickup.qr_url if has_code else None,
        status_code=100,
        price=offer.price,
        insurance_fee=offer.insurance_fee,
        cod_fee=offer.cod_fee,
        service_code=offer.service_code,
        estimate=offer.estimate,
    )


def _find_payment_status(pickup: wire.Pickup, shipment: ShipmentRequest) -> str | None:
    """A parcel that is paid on delivery waits for no payment before, whatever the response says."""
    status = PAYMENT_BY_WORD.get((pickup.payment_status or "").lower())
    return None if status == "pending" and shipment.service.cod_amount is not None else status


def build_payment(payment_id: str) -> Request:
    return Request("POST", wire.PAYMENT, body={"payment_id": payment_id})


def parse_payment(inquiry: wire.PaymentInquiry) -> BookingPayment | None:
    details = inquiry.data
    if details is None:
        return None
    status = None if details.status_code is None else PAYMENT_BY_CODE.get(details.status_code)
    return BookingPayment(status, details.qr_content or None, details.amount)


def build_track(key: str) -> Request:
    """By our reference or the awb."""
    return Request("POST", wire.TRACK, body={"order_id": key})


def parse_found(tracking: wire.Tracking) -> Booked:
    details = tracking.details or wire.TrackDetails()
    status = find_status(tracking.status_code, tracking.text) or "confirmed"
    return Booked(
        status=status,
        order_no=None,
        awb=details.awb,
        status_code=tracking.status_code,
        sorting_code=details.sorting_code,
    )


def parse_tracked(tracking: wire.Tracking, shipment: BookedShipment) -> Sequence[CarrierEvent]:
    details = tracking.details or wire.TrackDetails()
    histories, unreadable = decode_rows(tracking.histories or (), wire.HistoryEntry)
    if unreadable and not histories:
        raise CarrierAway("its response cannot be read")
    oldest = min(histories, key=lambda entry: entry.created_at, default=None)
    events = [
        CarrierEvent(
            dedupe_key=f"{entry.status_code}/{entry.created_at}",
            occurred_at=occurred_at,
            status=find_status(entry.status_code, None if entry is oldest else entry.status),
            text=entry.status,
            reference=details.order_id or shipment.reference,
            awb=details.awb,
            status_code=entry.status_code,
            receiver=entry.receiver or None,
            sorting_code=details.sorting_code,
            proof=_list_proof(details.images) if entry.status_code == 200 else (),
        )
        for entry in reversed(histories)
        if (occurred_at := parse_local(entry.created_at))
    ]
    return sorted(events, key=lambda event: event.occurred_at)


def _list_proof(images: wire.Images | None) -> Sequence[str]:
    found = (images.camera_img, images.signature_img, images.pop_img) if images else ()
    return [image for image in found if image]


def build_cancel(awb: str, reason: str) -> Request:
    """Its documentation shows a body, its own library sends a query: we send both."""
    text = shorten(reason.strip(), wire.LONGEST_REASON)
    text = text if len(text) >= wire.SHORTEST_REASON else f"Dibatalkan {text}".strip()
    params = {"awb": awb, "reason": text}
    return Request("POST", wire.CANCEL, params=params, body=params)


def build_labels(awbs: Sequence[str]) -> Request:
    return Request("POST", wire.PRINT, body={"awb": list(awbs)})


def build_areas(level: Level, parent: str | None) -> Request:
    path, key = wire.AREAS[level]
    return Request("POST", path, body={key: int(parent)} if key and parent else {})


def parse_areas(rows: wire.AreaRows) -> Sequence[CarrierArea]:
    return [
        CarrierArea(
            row.id, _name_area(row), row.kecamatan_id or row.kabupaten_id or row.provinsi_id, row.postal_code or None
        )
        for row in rows.datas or rows.results or ()
    ]


def _name_area(row: wire.AreaRow) -> str:
    if row.kabupaten_name and row.type and not row.kabupaten_name.startswith(row.type):
        return f"{row.type} {row.kabupaten_name}"
    return row.provinsi_name or row.kabupaten_name or row.kecamatan_name or row.kelurahan_name or str(row.id)


def parse_callback(callback: wire.Callback) -> Iterator[CarrierEvent]:
    parcels, _ = decode_rows(callback.data or callback.packages or (), wire.Parcel)
    payments, _ = decode_rows([callback.payment], wire.Payment)
    payment_code = payments[0].status_code if payments else None
    for parcel in parcels:
        code = parcel.status
        ours = BY_CODE.get(code) if code is not None else _find_reported(callback.method, parcel)
        yield CarrierEvent(
            dedupe_key=_build_key(callback.method, parcel, payment_code),
            occurred_at=parse_local(_find_instant(ours, parcel)) or datetime.now(UTC),
            status=ours,
            text=callback.method if code is None else f"{callback.method} {code}",
            reference=parcel.order_id,
            awb=parcel.awb,
            status_code=code,
            tracking_url=parcel.live_tracking_url,
            sorting_code=parcel.sorting_code,
            reason=parcel.reason,
            payment_status=None if payment_code is None else PAYMENT_BY_CODE.get(payment_code),
        )


def _find_reported(method: str, parcel: wire.Parcel) -> str | None:
    """A returned parcel is on its way back until it has arrived."""
    ours = BY_METHOD.get(method)
    return "returned" if ours == "returning" and parcel.returned_at else ours


def _find_instant(ours: str | None, parcel: wire.Parcel) -> str | None:
    """None for a return that has begun: it has only the instants of what happened before."""
    if ours == "returning":
        return None
    instants = (parcel.rejected_at, parcel.returned_at, parcel.canceled_at, parcel.finished_at, parcel.shipped_at)
    return next(filter(None, instants), parcel.date)


def _build_key(method: str, parcel: wire.Parcel, payment_code: int | None) -> str:
    """Events have no id: the key is built from their content."""
    parts = [method, parcel.order_id, parcel.awb, parcel.date, parcel.shipped_at, parcel.finished_at]
    parts += [parcel.returned_at, parcel.rejected_at, str(parcel.status or "")]
    parts += [] if payment_code is None else [str(payment_code)]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def _build_measures(parcel: Parcel) -> dict[str, int]:
    return {
        "weight": max(grams(parcel), volumetric_grams(parcel)),
        "length": centimetres(parcel.length),
        "width": centimetres(parcel.width),
        "height": centimetres(parcel.height),
    }


def _build_value(parcel: Parcel) -> int:
    return max(wire.MIN_VALUE, whole(parcel.item_value))
