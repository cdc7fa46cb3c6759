"""Simulates Dash Electric: its paths, responses and callbacks."""

from decimal import Decimal
from typing import Any

import msgspec

from sapa.context import AppContext
from sapa.sandbox import areas, prices
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.sandbox.areas import SandboxPoint
from sapa.sandbox.carriers import bookings, people
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
    ScenarioStep,
    cancel,
    find_scenario,
    has_reached,
    is_cancelling,
)
from sapa.sandbox.carriers.simulator import CarrierSimulator
from sapa.sandbox.external_access import RefusedCall
from sapa.values.hook_calls import HookAnswer, HookCall

NAME = "dash"
PREFIX = f"/sandbox/{NAME}"
_SIGN_IN = "/v1/auth/providers/token"
_BOOK = "/express/v1/deliveries"
_DELIVERIES = "/v1/deliveries"
_TOKEN = f"{NAME}/token"

_WORDS = {
    "finding_driver": "ALLOCATING",
    "driver_assigned": "PENDING_PICKUP",
    "picking_up": "PICKING_UP",
    "picked_up": "PENDING_DELIVERY",
    "out_for_delivery": "IN_DELIVERY",
    "delivered": "COMPLETED",
    "cancelled": "CANCELLED",
    "no_driver": "FAILED",
    "delivery_failed": "FAILED",
    "returning": "FAILED",
    "returned": "RETURNED",
    "lost": "FAILED",
}
"""It has one word for every failure."""

_REASONS = {
    "no_driver": "No driver could be found",
    "delivery_failed": "The recipient was absent",
    "returning": "The recipient refused the parcel",
    "lost": "The parcel cannot be found",
}
_BEFORE_PICKUP = frozenset({"finding_driver", "driver_assigned", "picking_up"})


async def serve(context: AppContext, call: HookCall) -> HookAnswer:
    path = call.path.removeprefix(PREFIX)
    company_id = find_caller(context, call)
    if company_id is None:
        return refuse(call, "unauthorized")
    if (call.method, path) == ("POST", _SIGN_IN):
        return json_response({"token": build_secret(context, company_id, _TOKEN)})
    if (call.method, path) == ("POST", "/v1/deliveries/quotes"):
        return await _quote(read_json(call))
    if (call.method, path) == ("POST", _BOOK):
        return await _book(context, company_id, read_json(call))
    number = path.removeprefix(f"{_DELIVERIES}/")
    if number != path and call.method == "GET":
        return await _track(context, company_id, number)
    if number != path and call.method == "DELETE":
        return await _cancel(context, company_id, number, str(read_json(call).get("notes") or ""))
    return _refuse(404, "NOT_FOUND", "Path not found")


def find_caller(context: AppContext, call: HookCall) -> int | None:
    """By a token, or by the key and secret that a token is requested with."""
    if call.path != PREFIX + _SIGN_IN:
        return find_company_id(context, call.headers.get("authorization", "").removeprefix("Bearer "), _TOKEN)
    body = read_json(call)
    company_id = find_company_id(context, str(body.get("client_secret") or ""), f"{NAME}/client_secret")
    owner = find_company_id(context, str(body.get("client_key") or ""), f"{NAME}/client_key")
    return company_id if company_id == owner else None


def refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized" if call.path == PREFIX + _SIGN_IN:
            return _refuse(401, "UNAUTHORIZED", "The client key or secret is invalid")
        case "unauthorized":
            return _refuse(401, "UNAUTHORIZED", "The token is invalid or has expired")
        case "too_many":
            return _refuse(429, "TOO_MANY_REQUESTS", "Too many requests")
        case "too_large":
            return _refuse(413, "PAYLOAD_TOO_LARGE", "The request is too large")
        case "malformed":
            return _refuse(400, "BAD_REQUEST", "The request is malformed")


def build_posting(context: AppContext, booking: Booking, step: ScenarioStep) -> Posting | None:
    if step.state not in _WORDS:
        return None
    token = build_secret(context, booking.company_id, f"{NAME}/callback_token")
    return Posting({"authorization": f"Bearer {token}"}, msgspec.json.encode(_build_delivery(booking, step)))


def _build_delivery(booking: Booking, step: ScenarioStep) -> dict[str, Any]:
    driver = _find_driver(booking, step)
    courier = driver and {
        "name": driver.name,
        "phone": driver.phone,
        "photoUrl": driver.photo,
        "vehicle": {"licensePlate": driver.plate},
    }
    km = _distance(booking.body) or Decimal(0)
    reason = step.reason or _REASONS.get(step.state)
    recipient, is_received = booking.body["recipient"], step.state == "delivered"
    return {
        "deliveryID": booking.order_no,
        "providerOrderID": booking.reference,
        "status": _WORDS[step.state],
        "serviceType": booking.body.get("serviceType"),
        "quote": {"amount": int(_find_price(booking.body.get("serviceType"), km, booking.body) or 0)},
        "distance": float(km),
        "trackingURL": f"https://sandbox.example/dash/{booking.order_no}",
        "courier": courier or None,
        "media": _build_media(booking, step),
        "updatedAt": step.at.isoformat(timespec="milliseconds"),
        "failedReason": reason if _WORDS[step.state] == "FAILED" else None,
        "cancelledReason": reason if step.state == "cancelled" else None,
        "cancelledBy": step.by,
        "recipient": recipient | {"actualRecipientName": recipient.get("firstName") if is_received else None},
    }


def _build_media(booking: Booking, step: ScenarioStep) -> list[dict[str, str]]:
    kinds = ["PICKUP_PROOF"] if has_reached(booking.steps, step.at, "picked_up") else []
    kinds += ["DELIVERY_PROOF"] if step.state == "delivered" else []
    kinds += ["FAILED_PROOF"] if step.state == "delivery_failed" else []
    return [{"type": kind, "url": f"https://sandbox.example/dash/{booking.order_no}/{kind}.jpg"} for kind in kinds]


async def _quote(body: dict[str, Any]) -> HookAnswer:
    failure = await find_failure(_package(body).get("price"))
    if failure is not None:
        return failure
    km = _distance(body)
    if km is None:
        return _refuse(400, "BAD_REQUEST", "coordinates are required")
    if not _is_served(body):
        return _refuse(422, "OUT_OF_COVERAGE", "The origin is outside the service area")
    found = {kind: _find_price(kind, km, body) for kind in ("INSTANT", "SAME_DAY")}
    return json_response(
        {
            "quotes": [
                {
                    "serviceType": kind,
                    "amount": int(price),
                    "currency": "IDR",
                    "distance": float(km),
                    "estimatedTime": "1-2 hours" if kind == "INSTANT" else "6-8 hours",
                }
                for kind, price in found.items()
                if price is not None
            ]
        }
    )


async def _book(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    reference = str(body.get("providerOrderID") or "")
    problem = _find_problem(body)
    if problem or not reference:
        return _refuse(400, "BAD_REQUEST", problem or "providerOrderID is required")
    if not _is_served(body):
        return _refuse(422, "OUT_OF_COVERAGE", "The origin is outside the service area")
    scenario = find_scenario(body["destination"].get("notes"), body["origin"].get("notes"))
    if scenario == "booking_rejected":
        return _refuse(422, "INSUFFICIENT_BALANCE", "Insufficient balance")
    if scenario == "booking_timeout_not_booked":
        return gateway_timeout()
    async with context.database.transaction() as tx:
        booking = await bookings.book(
            context, tx, company_id, NAME, "instant", reference, scenario, body, build_posting
        )
    if scenario == "booking_timeout":
        return gateway_timeout()
    if booking is None:
        return _refuse(409, "DUPLICATE_ORDER", "providerOrderID already exists")
    return json_response(_build_delivery(booking, booking.steps[0]), 201)


def _find_problem(body: dict[str, Any]) -> str | None:
    for name in ("sender", "recipient", "origin", "destination"):
        if not isinstance(body.get(name), dict):
            return f"{name} is required"
    for name in ("sender", "recipient"):
        if not body[name].get("firstName") or not str(body[name].get("phone") or "").startswith("+62"):
            return f"{name} needs firstName and a phone number with +62"
    if body.get("serviceType") not in {"INSTANT", "SAME_DAY"} or body.get("serviceCategory") != "EXPRESS":
        return "serviceType or serviceCategory is not valid"
    return None if _distance(body) is not None else "coordinates are required"


async def _track(context: AppContext, company_id: int, key: str) -> HookAnswer:
    async with context.database.connection() as db:
        booking = await bookings.find(db, company_id, NAME, key)
    if booking is None or booking.order_no != key:
        return _refuse(404, "NOT_FOUND", "Delivery not found")
    if booking.scenario == "carrier_down":
        return service_unavailable()
    reported = [step for step in booking.past if step.state in _WORDS]
    return json_response(_build_delivery(booking, reported[-1]))


async def _cancel(context: AppContext, company_id: int, key: str, reason: str) -> HookAnswer:
    async with context.database.transaction() as tx:
        booking = await bookings.lock(tx, company_id, NAME, key)
        if booking is None or booking.order_no != key:
            return _refuse(404, "NOT_FOUND", "Delivery not found")
        if booking.scenario == "carrier_down":
            return service_unavailable()
        if booking.state.state not in _BEFORE_PICKUP or booking.scenario == "cancel_refused":
            return _refuse(409, "NOT_CANCELLABLE", "The delivery can no longer be cancelled")
        is_slow = booking.scenario == "cancel_slow"
        if not is_cancelling(booking.steps):
            steps = cancel(booking.steps, booking.now, reason, "silently" if is_slow else None)
            await bookings.replace_steps(context, tx, booking, steps, build_posting)
    return gateway_timeout() if is_slow else HookAnswer(204)


def _refuse(status: int, code: str, message: str) -> HookAnswer:
    return json_response({"code": code, "message": message}, status)


def _is_served(body: dict[str, Any]) -> bool:
    city = areas.find_city(str(body["origin"].get("city") or ""))
    return city is not None and city.id in areas.PICKUP_CITIES


def _package(body: dict[str, Any]) -> dict[str, Any]:
    packages = body.get("packages")
    return packages[0] if isinstance(packages, list) and packages and isinstance(packages[0], dict) else {}


def _distance(body: dict[str, Any]) -> Decimal | None:
    try:
        ends = [body[end]["coordinates"] for end in ("origin", "destination")]
        origin, destination = (SandboxPoint(float(end["latitude"]), float(end["longitude"])) for end in ends)
    except (KeyError, TypeError, ValueError):
        return None
    return prices.build_distance(origin, destination)


def _find_price(kind: object, km: Decimal, body: dict[str, Any]) -> Decimal | None:
    kg = number(_package(body).get("weight"))
    if kind == "INSTANT":
        return prices.find_instant_price("bike", km, kg)
    return prices.find_electric_price(km, kg)


def _find_driver(booking: Booking, step: ScenarioStep) -> people.Person | None:
    has_driver = has_reached(booking.steps, step.at, "driver_assigned")
    return people.choose(booking.reference, step.driver) if has_driver else None


SIMULATOR = CarrierSimulator(
    "instant", serve, build_posting, find_caller, refuse, sign_in_paths=frozenset({_SIGN_IN.removeprefix("/")})
)
