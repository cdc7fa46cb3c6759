"""Simulates Biteship: its paths, responses and callbacks."""

from datetime import UTC
from decimal import Decimal
from typing import Any

import msgspec

from sapa.context import AppContext
from sapa.sandbox import areas as places
from sapa.sandbox import prices
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.sandbox.areas import SandboxPoint
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.bookings import Booking, Posting
from sapa.sandbox.carriers.responses import (
    find_failure,
    gateway_timeout,
    json_response,
    number,
    read_json,
    service_unavailable,
)
from sapa.sandbox.carriers.scenarios import (
    LABELLED,
    ScenarioStep,
    cancel,
    find_scenario,
    has_reached,
    is_cancelling,
)
from sapa.sandbox.carriers.simulator import CarrierSimulator, SandboxStatementLine
from sapa.sandbox.external_access import RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

NAME = "biteship"
PREFIX = f"/sandbox/{NAME}"
COURIERS = (("jne", "JNE"), ("sicepat", "SiCepat"))
CASH = {"jne": (25_000, 5_000_000), "sicepat": (1_000, 2_500_000)}
"""What each courier collects on delivery, at least and at most."""
_SERVICES = {"ECO": ("eco", "Ekonomi"), "REG": ("reg", "Reguler"), "ONS": ("ons", "Besok Sampai")}

_WORDS = {
    "confirmed": "confirmed",
    "picked_up": "picked",
    "in_transit": "dropping_off",
    "delivery_failed": "on_hold",
    "on_hold": "on_hold",
    "delivered": "delivered",
    "returning": "return_in_transit",
    "returned": "returned",
    "lost": "disposed",
    "cancelled": "cancelled",
}


async def serve(context: AppContext, call: HookCall) -> HookAnswer:
    company_id = find_caller(context, call)
    if company_id is None:
        return refuse(call, "unauthorized")
    path = call.path.removeprefix(PREFIX)
    if call.method == "GET" and path == "/v1/couriers":
        return json_response({"success": True, "couriers": [{"courier_code": code} for code, _ in COURIERS]})
    if call.method == "GET" and path == "/v1/maps/areas":
        return _list_areas(call.query.get("input", ""))
    if call.method == "POST" and path == "/v1/rates/couriers":
        return await _rate(read_json(call))
    if call.method == "POST" and path == "/v1/orders":
        return await _book(context, company_id, read_json(call))
    order_no, _, verb = path.removeprefix("/v1/orders/").partition("/")
    if call.method == "GET" and path.startswith("/v1/orders/") and not verb:
        return await _track(context, company_id, order_no)
    if call.method == "POST" and path.startswith("/v1/orders/") and verb == "cancel":
        return await _cancel(context, company_id, order_no, read_json(call))
    return _refuse(404, 40404001, "Not found")


def find_caller(context: AppContext, call: HookCall) -> int | None:
    return find_company_id(context, call.headers.get("authorization", ""), f"{NAME}/api_key")


def refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized":
            return _refuse(401, 40101001, "Authorization failed. Please check your API key")
        case "too_many":
            return _refuse(429, 42901001, "Too many requests")
        case "too_large":
            return _refuse(413, 41301001, "Request entity too large")
        case "malformed":
            return _refuse(400, 40001001, "Bad request")


def build_posting(context: AppContext, booking: Booking, step: ScenarioStep) -> Posting | None:
    if step.state not in _WORDS and step.state != LABELLED:
        return None
    body = {
        "event": "order.waybill_id" if step.state == LABELLED else "order.status",
        "order_id": booking.order_no,
        "status": _WORDS.get(step.state, "confirmed"),
        "order_price": int(_get_price(booking.body)),
        "courier_tracking_id": f"T{booking.order_no[-12:]}",
        "courier_waybill_id": booking.awb,
        "courier_company": booking.body.get("courier_company"),
        "courier_type": booking.body.get("courier_type"),
        "courier_link": _link(booking),
        "updated_at": step.at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }
    header = build_secret(context, booking.company_id, f"{NAME}/signature_header")
    secret = build_secret(context, booking.company_id, f"{NAME}/signature_secret")
    return Posting({header: secret}, msgspec.json.encode(body))


def _list_areas(search: str) -> HookAnswer:
    areas = []
    for place in places.list_areas(places.DISTRICTS, None, search):
        city = places.find_area(place.parent_id)
        province = places.find_area(city.parent_id) if city else None
        names = [found.name for found in (place, city, province) if found]
        areas.append(
            {
                "id": f"IDNP{province.id if province else 0}IDNC{place.parent_id}IDND{place.id}IDZ{place.zip}",
                "name": f"{', '.join(names)}. {place.zip}",
                "country_code": "ID",
                "postal_code": int(place.zip or 0),
            }
        )
    return json_response({"success": True, "areas": areas})


async def _rate(body: dict[str, Any]) -> HookAnswer:
    failure = await find_failure(_item(body).get("value"))
    if failure is not None:
        return failure
    km = _distance(body)
    if km is None:
        return _refuse(400, 40001010, "No courier available for the requested location")
    wanted = str(body.get("couriers") or "").split(",")
    insurance = (
        prices.build_insurance_fee(number(body.get("courier_insurance"))) if body.get("courier_insurance") else 0
    )
    cash = number(body.get("destination_cash_on_delivery"))
    pricing = [
        _build_price(code, name, express, int(insurance), cash)
        for code, name in COURIERS
        if code in wanted
        for express in prices.list_express_prices(km, _weigh(body))
    ]
    return json_response({"success": True, "object": "courier_pricing", "code": 20001003, "pricing": pricing})


def _build_price(code: str, name: str, express: prices.Express, insurance: int, cash: Decimal) -> dict[str, Any]:
    service, service_name = _SERVICES[express.service]
    has_cash = prices.collects_cash(express.service)
    fee = int(prices.build_cash_on_delivery_fee(cash)) if cash and has_cash else 0
    return {
        "company": code,
        "courier_name": name,
        "courier_code": code,
        "courier_service_name": service_name,
        "courier_service_code": service,
        "duration": f"{express.min_days} - {express.max_days} days",
        "service_type": "overnight" if service == "ons" else "standard",
        "shipping_type": "parcel",
        "type": service,
        "price": int(express.price) + insurance + fee,
        "shipping_fee": int(express.price),
        "insurance_fee": insurance,
        "cash_on_delivery_fee": fee,
        "currency": "IDR",
        "available_collection_method": ["pickup"],
        "available_for_insurance": True,
        "available_for_cash_on_delivery": has_cash,
    }


async def _book(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    problem = _find_problem(body)
    if problem:
        return _refuse(400, 40002001, problem)
    reference = str(body.get("reference_id"))
    scenario = find_scenario(body.get("destination_note"), body.get("origin_note"))
    scenario = None if scenario == "unpaid" else scenario  # its bookings are paid from a balance
    if scenario == "booking_rejected":
        return _refuse(400, 40002031, "Insufficient balance")
    if scenario == "booking_timeout_not_booked":
        return gateway_timeout()
    async with context.database.transaction() as tx:
        booking = await bookings.book(
            context, tx, company_id, NAME, "express", reference, scenario, body, build_posting
        )
        twin = None if booking else await bookings.find(tx, company_id, NAME, reference)
    if scenario == "booking_timeout":
        return gateway_timeout()
    if twin is not None:
        details = {"order_id": twin.order_no, "waybill_id": twin.awb, "reference_id": reference}
        return _refuse(400, 40002060, "reference_id already exists", details)
    return json_response(_build_order(booking)) if booking else _refuse(500, 50000001, "Internal error")


def _find_problem(body: dict[str, Any]) -> str | None:
    for side in ("origin", "destination"):
        for part in ("contact_name", "contact_phone", "address"):
            if not body.get(f"{side}_{part}"):
                return f"{side}_{part} is required"
    if not body.get("reference_id"):
        return "reference_id is required"
    offered = {(code, service) for code, _ in COURIERS for service, _ in _SERVICES.values()}
    if (body.get("courier_company"), body.get("courier_type")) not in offered:
        return "courier_company or courier_type is not valid"
    if number(body.get("courier_insurance")) > prices.MAX_INSURED:
        return "courier_insurance exceeds the maximum"
    if number(body.get("destination_cash_on_delivery")) and not _is_collected(body):
        return "destination_cash_on_delivery is not available for this courier"
    return None if _distance(body) is not None else "The postal code is not valid"


def _is_collected(body: dict[str, Any]) -> bool:
    """Whether the courier collects the cash of a booking."""
    least, most = CASH[str(body.get("courier_company"))]
    service = next(ours for ours, (code, _) in _SERVICES.items() if code == body.get("courier_type"))
    return prices.collects_cash(service) and least <= number(body.get("destination_cash_on_delivery")) <= most


async def _track(context: AppContext, company_id: int, order_no: str) -> HookAnswer:
    async with context.database.connection() as db:
        booking = await bookings.find(db, company_id, NAME, order_no)
    if booking is None or booking.order_no != order_no:
        return _refuse(404, 40402001, "Order not found")
    return service_unavailable() if booking.scenario == "carrier_down" else json_response(_build_order(booking))


async def _cancel(context: AppContext, company_id: int, order_no: str, body: dict[str, Any]) -> HookAnswer:
    if not body.get("cancellation_reason_code"):
        return _refuse(400, 40002001, "cancellation_reason_code is required")
    async with context.database.transaction() as tx:
        booking = await bookings.lock(tx, company_id, NAME, order_no)
        if booking is None or booking.order_no != order_no:
            return _refuse(404, 40402001, "Order not found")
        if booking.scenario == "carrier_down":
            return service_unavailable()
        if booking.state.state != "confirmed" or booking.scenario == "cancel_refused":
            return _refuse(400, 40002042, "The order can not be cancelled")
        is_slow, reason = booking.scenario == "cancel_slow", str(body.get("cancellation_reason") or "")
        if not is_cancelling(booking.steps):
            steps = cancel(booking.steps, booking.now, reason, "silently" if is_slow else None)
            await bookings.replace_steps(context, tx, booking, steps, build_posting)
    return gateway_timeout() if is_slow else json_response({"success": True, "id": order_no, "status": "cancelled"})


def _build_order(booking: Booking) -> dict[str, Any]:
    reported = [step for step in booking.past if step.state in _WORDS]
    has_waybill = has_reached(booking.steps, booking.now, LABELLED)
    history = [
        {"note": step.state, "status": _WORDS[step.state], "updated_at": step.at.isoformat(timespec="milliseconds")}
        for step in reported
    ]
    courier = {
        "tracking_id": f"T{booking.order_no[-12:]}",
        "waybill_id": booking.awb if has_waybill else None,
        "company": booking.body.get("courier_company"),
        "type": booking.body.get("courier_type"),
        "link": _link(booking),
        "routing_code": f"SBX-{booking.order_no[-4:]}" if has_waybill else None,
        "history": history,
        "insurance": _build_insurance(booking.body),
    }
    km = _distance(booking.body) or Decimal(0)
    return {
        "success": True,
        "object": "order",
        "id": booking.order_no,
        "status": _WORDS[reported[-1].state],
        "price": int(_get_price(booking.body)),
        "currency": "IDR",
        "courier": courier,
        "destination": {"cash_on_delivery": _build_cash(booking.body)},
        "delivery": {"distance": float(km), "distance_unit": "kilometer"},
        "reference_id": booking.reference,
    }


def _build_insurance(body: dict[str, Any]) -> dict[str, Any]:
    amount = number(body.get("courier_insurance"))
    return {"amount": int(amount), "fee": int(prices.build_insurance_fee(amount)) if amount else 0}


def _build_cash(body: dict[str, Any]) -> dict[str, Any] | None:
    amount = number(body.get("destination_cash_on_delivery"))
    if not amount:
        return None
    fee = prices.build_cash_on_delivery_fee(amount)
    return {"amount": int(amount), "fee": int(fee), "type": body.get("destination_cash_on_delivery_type")}


def build_statement_line(booking: Booking) -> SandboxStatementLine:
    """Biteship keeps its fee; the shipping is paid from a balance."""
    amount = number(booking.body.get("destination_cash_on_delivery"))
    fee = prices.build_cash_on_delivery_fee(amount)
    return SandboxStatementLine(booking.awb, amount - fee, amount, fee, carrier_fee=None, insurance_fee=None)


def _refuse(status: int, code: int, error: str, details: dict[str, Any] | None = None) -> HookAnswer:
    body: dict[str, Any] = {"success": False, "error": error, "code": code}
    return json_response(body | ({"details": details} if details else {}), status)


def _item(body: dict[str, Any]) -> dict[str, Any]:
    items = body.get("items")
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}


def _weigh(body: dict[str, Any]) -> int:
    item = _item(body)
    measures = (number(item.get(name)) for name in ("length", "width", "height"))
    return prices.build_chargeable_kg(number(item.get("weight")) / 1000, *measures)


def _distance(body: dict[str, Any]) -> Decimal | None:
    origin, destination = _find_spot(body, "origin"), _find_spot(body, "destination")
    return prices.build_distance(origin, destination) if origin and destination else None


def _find_spot(body: dict[str, Any], side: str) -> SandboxPoint | None:
    place = places.find_by_zip(str(body.get(f"{side}_postal_code") or ""))
    if place is not None:
        return place.centre
    point = body.get(f"{side}_coordinate") or {name: body.get(f"{side}_{name}") for name in ("latitude", "longitude")}
    lat, lng = point.get("latitude"), point.get("longitude")
    return SandboxPoint(float(lat), float(lng)) if lat is not None and lng is not None else None


def _get_price(body: dict[str, Any]) -> Decimal:
    km = _distance(body) or Decimal(0)
    services = {
        _SERVICES[express.service][0]: express.price for express in prices.list_express_prices(km, _weigh(body))
    }
    return services.get(str(body.get("courier_type")), Decimal(0))


def _link(booking: Booking) -> str:
    return f"https://sandbox.example/biteship/{booking.order_no}"


SIMULATOR = CarrierSimulator("express", serve, build_posting, find_caller, refuse, build_statement_line)
