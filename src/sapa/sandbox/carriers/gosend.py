"""Simulates GoSend: its paths, responses and callbacks."""

import asyncio
from decimal import Decimal
from typing import Any

import msgspec

from sapa.context import AppContext
from sapa.sandbox import prices
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.sandbox.areas import SandboxPoint
from sapa.sandbox.carriers import bookings, people
from sapa.sandbox.carriers.bookings import Booking, Posting
from sapa.sandbox.carriers.responses import (
    DOWN_VALUE,
    SLOW_SECONDS,
    SLOW_VALUE,
    gateway_timeout,
    json_response,
    local_text,
    milliseconds,
    read_json,
    service_unavailable,
)
from sapa.sandbox.carriers.scenarios import (
    ScenarioStep,
    cancel,
    find_scenario,
    has_reached,
    is_cancelling,
)
from sapa.sandbox.carriers.simulator import CarrierSimulator
from sapa.sandbox.external_access import RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

NAME = "gosend"
PREFIX = f"/sandbox/{NAME}"
_BOOKING = "/gokilat/v10/booking"
_METHODS = {"Instant": "1-2 hours", "SameDay": "6-8 hours"}

_WORDS = {
    "finding_driver": "confirmed",
    "driver_assigned": "allocated",
    "picking_up": "out_for_pickup",
    "picked_up": "picked",
    "out_for_delivery": "out_for_delivery",
    "on_hold": "on_hold",
    "delivery_failed": "on_hold",
    "lost": "on_hold",
    "returning": "rejected",
    "returned": "rejected",
    "delivered": "delivered",
    "cancelled": "cancelled",
    "no_driver": "no_driver",
}
"""It has no word for a returned parcel: it stays `rejected`, with a hand-over photo."""

_BEFORE_PICKUP = frozenset({"finding_driver", "driver_assigned", "picking_up"})


async def serve(context: AppContext, call: HookCall) -> HookAnswer:
    company_id = find_caller(context, call)
    if company_id is None:
        return refuse(call, "unauthorized")
    path = call.path.removeprefix(PREFIX)
    if (call.method, path) == ("GET", "/gokilat/v10/calculate/price"):
        return await _price(call.query)
    if (call.method, path) == ("POST", _BOOKING):
        return await _book(context, company_id, read_json(call))
    if (call.method, path) == ("PUT", f"{_BOOKING}/cancel"):
        return await _cancel(context, company_id, str(read_json(call).get("orderNo") or ""))
    for prefix in (f"{_BOOKING}/orderno/", f"{_BOOKING}/storeOrderId/"):
        if call.method == "GET" and path.startswith(prefix):
            return await _track(context, company_id, path.removeprefix(prefix))
    return _refuse(404, "Not Found")


def find_caller(context: AppContext, call: HookCall) -> int | None:
    company_id = find_company_id(context, call.headers.get("pass-key", ""), f"{NAME}/pass_key")
    client_id = call.headers.get("client-id", "")
    return company_id if find_company_id(context, client_id, f"{NAME}/client_id") == company_id else None


def refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized":
            return _refuse(401, "Invalid Client-ID or Pass-Key")
        case "too_many":
            return _refuse(429, "Too many requests")
        case "too_large":
            return _refuse(413, "Request entity too large")
        case "malformed":
            return _refuse(400, "Bad request")


def build_posting(context: AppContext, booking: Booking, step: ScenarioStep) -> Posting | None:
    word = _WORDS.get(step.state)
    if word is None:
        return None
    was_picked_up = has_reached(booking.steps, step.at, "picked_up")
    driver = _find_driver(booking, step)
    body = {
        "entity_id": booking.order_no,
        "type": "COMPLETED" if step.state == "delivered" else "DELIVERY",
        "event_date": milliseconds(step.at),
        "event_id": f"{booking.order_no}-{booking.steps.index(step)}-{milliseconds(step.at)}",
        "partner_id": f"sandbox-{booking.company_id}",
        "booking_id": booking.order_no,
        "status": word,
        "cancelled_by": step.by,
        "booking_type": booking.body.get("shipment_method"),
        "driver_name": driver.name if driver else None,
        "driver_phone": driver.phone if driver else None,
        "driver_photo_url": driver.photo if driver else None,
        "receiver_name": _route(booking).get("destinationName") if step.state == "delivered" else None,
        "total_distance_in_kms": float(_distance(_route(booking))),
        "price": int(_get_price(booking)),
        "cancellation_reason": step.reason,
        "live_tracking_url": _tracking_url(booking),
        "pop_url": f"{_tracking_url(booking)}/pop.jpg" if was_picked_up else None,
        "pod_url": f"{_tracking_url(booking)}/pod.jpg" if step.state in {"delivered", "returned"} else None,
        "store_order_id": booking.reference,
    }
    token = build_secret(context, booking.company_id, f"{NAME}/callback_token")
    return Posting({"authorization": token}, msgspec.json.encode(body))


async def _price(query: dict[str, str]) -> HookAnswer:
    """A quote has no declared value: the last digits of the destination replace it."""
    origin, destination = _parse_point(query.get("origin")), _parse_point(query.get("destination"))
    if origin is None or destination is None:
        return _refuse(400, "origin and destination must be lat,lng")
    latitude = query["destination"].split(",")[0]
    if latitude.endswith(str(DOWN_VALUE)):
        return service_unavailable()
    if latitude.endswith(str(SLOW_VALUE)):
        await asyncio.sleep(SLOW_SECONDS)
    km = prices.build_distance(origin, destination)
    found = {
        "Instant": prices.find_instant_price("bike", km, Decimal(1)),
        "SameDay": prices.find_same_day_price(km, Decimal(1)),
    }
    return json_response({method: _build_method(method, km, price) for method, price in found.items()})


def _build_method(method: str, km: Decimal, price: Decimal | None) -> dict[str, Any]:
    return {
        "shipment_method": method,
        "shipment_method_description": _METHODS[method],
        "serviceable": price is not None,
        "active": True,
        "distance": float(km),
        "route_polyline": "",
        "price": {"total_price": int(price)} if price is not None else None,
    }


async def _book(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    routes = body.get("routes")
    route = routes[0] if isinstance(routes, list) and routes and isinstance(routes[0], dict) else {}
    reference = str(route.get("storeOrderId") or "")
    problem = _find_problem(body, route)
    if problem:
        return _refuse(400, problem)
    scenario = find_scenario(route.get("destinationNote"), route.get("originNote"))
    if scenario == "booking_rejected":
        return _refuse(400, "Insufficient balance")
    if scenario == "booking_timeout_not_booked":
        return gateway_timeout()
    async with context.database.transaction() as tx:
        booking = await bookings.book(
            context, tx, company_id, NAME, "instant", reference, scenario, body, build_posting
        )
    if scenario == "booking_timeout":
        return gateway_timeout()
    if booking is None:
        return _refuse(400, "storeOrderId already exists")
    number = int.from_bytes(booking.order_no.encode()[-4:])
    method = body["shipment_method"]
    return json_response({"id": number, "orderNo": booking.order_no, "bookingType": method, "storeOrderId": reference})


def _find_problem(body: dict[str, Any], route: dict[str, Any]) -> str | None:
    if body.get("shipment_method") not in _METHODS or body.get("paymentType") != 3:
        return "shipment_method and paymentType are not valid"
    for name in ("originContactName", "originAddress", "destinationContactName", "destinationAddress", "storeOrderId"):
        if not route.get(name):
            return f"{name} is required"
    for name in ("originContactPhone", "destinationContactPhone"):
        phone = str(route.get(name) or "")
        if not (phone.startswith("62") and phone.isdigit() and 10 <= len(phone) <= 15):
            return f"{name} is not a valid phone number"
    is_placed = _parse_point(route.get("originLatLong")) and _parse_point(route.get("destinationLatLong"))
    return None if is_placed else "originLatLong and destinationLatLong are required"


async def _track(context: AppContext, company_id: int, key: str) -> HookAnswer:
    async with context.database.connection() as db:
        booking = await bookings.find(db, company_id, NAME, key)
    if booking is None:
        return _refuse(404, "Booking not found")
    if booking.scenario == "carrier_down":
        return service_unavailable()
    reported = [step for step in booking.past if step.state in _WORDS]
    step, times = reported[-1], {step.state: local_text(step.at) for step in reported}
    driver = _find_driver(booking, step)
    closed = next(
        (times[state] for state in ("delivered", "cancelled", "no_driver", "returning") if state in times), None
    )
    return json_response(
        {
            "orderNo": booking.order_no,
            "status": _WORDS[step.state],
            "bookingType": booking.body.get("shipment_method"),
            "driverName": driver.name if driver else None,
            "driverPhone": driver.phone if driver else None,
            "driverPhoto": driver.photo if driver else None,
            "vehicleNumber": driver.plate if driver else None,
            "receiverName": _route(booking).get("destinationName") if step.state == "delivered" else None,
            "totalPrice": int(_get_price(booking)),
            "totalDistanceInKms": float(_distance(_route(booking))),
            "liveTrackingUrl": _tracking_url(booking),
            "cancelDescription": step.reason,
            "orderCreatedTime": times.get("finding_driver"),
            "orderDispatchTime": times.get("driver_assigned"),
            "orderArrivalTime": times.get("picked_up"),
            "orderClosedTime": closed,
            "storeOrderId": booking.reference,
        }
    )


async def _cancel(context: AppContext, company_id: int, order_no: str) -> HookAnswer:
    async with context.database.transaction() as tx:
        booking = await bookings.lock(tx, company_id, NAME, order_no)
        if booking is None:
            return _refuse(404, "Booking not found")
        if booking.scenario == "carrier_down":
            return service_unavailable()
        if booking.state.state not in _BEFORE_PICKUP or booking.scenario == "cancel_refused":
            return _refuse(400, "Booking can not be cancelled anymore")
        is_slow = booking.scenario == "cancel_slow"
        if not is_cancelling(booking.steps):
            steps = cancel(booking.steps, booking.now, "Cancelled by the client", "silently" if is_slow else None)
            await bookings.replace_steps(context, tx, booking, steps, build_posting)
    return gateway_timeout() if is_slow else json_response({"statusCode": 200, "message": "Booking cancelled"})


def _refuse(status: int, reason: str) -> HookAnswer:
    return json_response({"errors": [{"message": reason}]}, status, {"Error-Message": reason})


def _find_driver(booking: Booking, step: ScenarioStep) -> people.Person | None:
    has_driver = has_reached(booking.steps, step.at, "driver_assigned") and step.state != "finding_driver"
    return people.choose(booking.reference, step.driver) if has_driver else None


def _route(booking: Booking) -> dict[str, Any]:
    route: dict[str, Any] = booking.body["routes"][0]
    return route


def _distance(route: dict[str, Any]) -> Decimal:
    origin, destination = _parse_point(route.get("originLatLong")), _parse_point(route.get("destinationLatLong"))
    return prices.build_distance(origin, destination) if origin and destination else Decimal(0)


def _get_price(booking: Booking) -> Decimal:
    km = _distance(_route(booking))
    if booking.body.get("shipment_method") == "SameDay":
        return prices.find_same_day_price(km, Decimal(1)) or Decimal(0)
    return prices.find_instant_price("bike", km, Decimal(1)) or Decimal(0)


def _tracking_url(booking: Booking) -> str:
    return f"https://sandbox.example/gosend/{booking.order_no}"


def _parse_point(text: object) -> SandboxPoint | None:
    try:
        lat, lng = map(float, str(text or "").split(","))
    except ValueError:
        return None
    return SandboxPoint(lat, lng)


SIMULATOR = CarrierSimulator("instant", serve, build_posting, find_caller, refuse)
