"""Simulates KiriminAja: its paths, responses and callbacks."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec

from sapa.context import AppContext
from sapa.sandbox import areas, prices
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.bookings import Booking, Posting
from sapa.sandbox.carriers.qris import build_qris
from sapa.sandbox.carriers.responses import (
    find_failure,
    gateway_timeout,
    json_response,
    local_text,
    number,
    read_json,
    service_unavailable,
)
from sapa.sandbox.carriers.scenarios import (
    LABELLED,
    PAID,
    ScenarioStep,
    Slow,
    cancel,
    find_scenario,
    has_reached,
)
from sapa.sandbox.carriers.simulator import CarrierSimulator, SandboxStatementLine
from sapa.sandbox.external_access import RefusedCall
from sapa.shipping.labels.content import LabelParty, ParcelContent, PrintRequest, show_money
from sapa.shipping.labels.printer import print_here
from sapa.values.hook_calls import HookAnswer, HookCall

NAME = "kiriminaja"
PREFIX = f"/sandbox/{NAME}"
LABEL = f"{NAME}/label"
"""The purpose of the token in a label's address."""
LABEL_PATH = "/labels.pdf"
_PRINT = "/api/mitra/v6.1/awb/print"
PAYMENT_PREFIX = "SBX-P-"
COURIERS = (("jne", "JNE"), ("sicepat", "SiCepat"))
MIN_CASH, MAX_CASH = 10_000, 3_000_000
_NAMES = {"ECO": "Ekonomi", "REG": "Reguler", "ONS": "Besok Sampai"}

_CODES = {
    "confirmed": 101,
    LABELLED: 105,
    "picked_up": 103,
    "in_transit": 106,
    "delivery_failed": 152,
    "delivered": 200,
    "cancelling": 350,
    "cancelled": 300,
    "returning": 401,
    "returned": 400,
    "lost": 701,
    "on_hold": 500,
}
_WORDS = {
    101: "Permintaan pickup dikirim",
    105: "Resi telah terbit",
    103: "Paket telah dipickup",
    106: "Paket dalam perjalanan",
    152: "Pengiriman ulang",
    200: "Paket telah diterima",
    350: "Pembatalan diajukan",
    300: "Paket dibatalkan",
    401: "Paket dalam proses retur",
    400: "Paket telah diretur",
    701: "Paket hilang",
    500: "Paket bermasalah",
}
_METHODS = {
    LABELLED: ("processed_packages", "date"),
    "picked_up": ("shipped_packages", "shipped_at"),
    "delivered": ("finished_packages", "finished_at"),
    "cancelled": ("canceled_packages", "date"),
    "returned": ("returned_packages", "returned_at"),
}

Handler = Callable[[AppContext, int, dict[str, Any]], Awaitable[HookAnswer]]


async def serve(context: AppContext, call: HookCall) -> HookAnswer:
    if (call.method, call.path) == ("GET", PREFIX + LABEL_PATH):
        return await _serve_labels(context, call)
    company_id = find_caller(context, call)
    if company_id is None:
        return refuse(call, "unauthorized")
    path = call.path.removeprefix(PREFIX)
    if (call.method, path) == ("POST", _PRINT):
        return await _print_labels(context, company_id, call)
    handler = _HANDLERS.get(path)
    if handler is None or call.method != "POST":
        return json_response({"status": False, "text": "Not found"}, 404)
    return await handler(context, company_id, {**call.query, **read_json(call)})


def find_caller(context: AppContext, call: HookCall) -> int | None:
    """The address of a label has a token of its own."""
    if (call.method, call.path) == ("GET", PREFIX + LABEL_PATH):
        return find_company_id(context, call.query.get("token", ""), LABEL)
    key = call.headers.get("authorization", "").removeprefix("Bearer ")
    return find_company_id(context, key, f"{NAME}/api_key")


def refuse(call: HookCall, reason: RefusedCall) -> HookAnswer:
    match reason:
        case "unauthorized":
            return json_response({"status": False, "text": "Unauthenticated."}, 401)
        case "too_many":
            return json_response({"status": False, "text": "Too Many Attempts."}, 429)
        case "too_large":
            return json_response({"status": False, "text": "Payload Too Large"}, 413)
        case "malformed":
            return json_response({"status": False, "text": "The given data was invalid.", "code": 422}, 422)


def build_posting(context: AppContext, booking: Booking, step: ScenarioStep) -> Posting | None:
    """A status without a callback method of its own is sent as a code."""
    parcel: dict[str, Any] = {"order_id": booking.reference, "awb": booking.awb}
    if step.state == PAID:
        paid = {"order_id": booking.reference, "date": local_text(step.at), "status": _CODES["confirmed"]}
        body = {"method": "processed_packages", "data": [], "packages": [paid], "payment": {"status_code": 0}}
    elif step.state in _METHODS:
        method, field = _METHODS[step.state]
        parcel[field] = local_text(step.at)
        body = {"method": method, "data": [parcel | ({"reason": step.reason} if step.reason else {})]}
    else:
        status = {"date": local_text(step.at), "status": _CODES.get(step.state, 500)}
        body = {"method": "shipped_packages", "data": [], "packages": [parcel | status]}
    key = build_secret(context, booking.company_id, f"{NAME}/api_key")
    return Posting({"authorization": f"Bearer {key}"}, msgspec.json.encode(body))


async def _list_couriers(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    return json_response({"status": True, "datas": [{"code": code, "name": name} for code, name in COURIERS]})


def _list_areas(level: int, field: str, parent: str | None, found: str) -> Handler:
    async def handle(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
        if parent is not None and parent not in body:
            return json_response({"status": False, "text": f"The {parent} field is required.", "code": 422})
        rows = []
        for place in areas.list_areas(level, body.get(parent) if parent else None):
            kind, _, bare = place.name.partition(" ")
            is_city = level == areas.CITIES and kind in {"Kota", "Kabupaten"}
            row: dict[str, Any] = {"id": place.id, field: bare if is_city else place.name}
            if is_city:
                row["type"] = kind
            if parent is not None:
                row[parent] = place.parent_id
            if place.zip:
                row["postal_code"] = place.zip
            rows.append(row)
        return json_response({"status": True, "text": "Success", found: rows})

    return handle


async def _price(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    failure = await find_failure(body.get("item_value"))
    if failure is not None:
        return failure
    origin, destination = body.get("origin"), body.get("destination")
    if not (areas.find_area(origin) and areas.find_area(destination)):
        return json_response({"status": False, "text": "Area origin atau destination tidak ditemukan", "code": 422})
    km = prices.build_area_distance(str(origin), str(destination))
    kg = prices.build_chargeable_kg(number(body.get("weight")) / 1000)
    insurance = prices.build_insurance_fee(number(body.get("item_value"))) if body.get("insurance") else Decimal(0)
    value = number(body.get("item_value"))
    wanted = body.get("courier") or []
    results = [
        _build_result(code, name, express, insurance, value)
        for code, name in COURIERS
        if code in wanted
        for express in prices.list_express_prices(km, kg)
    ]
    return json_response({"status": True, "text": "success", "results": results})


def _build_result(code: str, name: str, express: prices.Express, insurance: Decimal, value: Decimal) -> dict[str, Any]:
    has_cod = prices.collects_cash(express.service)
    return {
        "service": code,
        "service_name": f"{name} {_NAMES[express.service]}",
        "service_type": express.service,
        "cost": str(express.price),
        "etd": f"{express.min_days}-{express.max_days}",
        "cod": has_cod,
        "group": "regular",
        "drop": express.service != "ONS",
        "cut_off_time": None,
        "force_insurance": False,
        "insurance": int(insurance),
        "discount_amount": 0,
        "discount_percentage": 0,
        "setting": {
            "cod_fee": "0.03",
            "minimum_cod_fee": "2500",
            "insurance_fee": "0.002",
            "insurance_add_cost": 0,
            "cod_fee_amount": int(_get_cod_fee(value, express.price, insurance)) if has_cod else 0,
        },
    }


def _get_cod_fee(value: Decimal, cost: Decimal, insurance: Decimal) -> Decimal:
    return prices.build_cash_on_delivery_fee(value + cost + insurance)


async def _book(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    packages = body.get("packages")
    package = packages[0] if isinstance(packages, list) and packages and isinstance(packages[0], dict) else {}
    reference = package.get("order_id")
    if not isinstance(reference, str) or not 1 <= len(reference) <= 20 or not reference[0].isalpha():
        return json_response(
            {"status": False, "text": "order_id must have a prefix and at most 20 characters", "code": 422}
        )
    problem = _find_problem(body, package)
    if problem:
        return json_response({"status": False, "text": problem, "code": 422})
    if package.get("insurance_amount") and number(package.get("item_value")) > prices.MAX_INSURED:
        return json_response({"status": False, "text": "Nilai barang melebihi batas asuransi", "code": 4101})
    scenario = find_scenario(package.get("note"), body.get("address"))
    if scenario == "booking_rejected":
        return json_response({"status": False, "text": "Saldo kredit tidak mencukupi", "code": 4002})
    if scenario == "booking_timeout_not_booked":
        return gateway_timeout()
    async with context.database.transaction() as tx:
        booking = await bookings.book(
            context, tx, company_id, NAME, "express", reference, scenario, package, build_posting
        )
    if scenario == "booking_timeout":
        return gateway_timeout()
    if booking is None:
        return json_response({"status": False, "text": f"order_id {reference} already exists", "code": 422})
    detail = {
        "order_id": reference,
        "kj_order_id": booking.order_no,
        "awb": None,
        "service": package.get("service"),
        "service_type": package.get("service_type"),
    }
    return json_response(
        {
            "status": True,
            "text": "Success",
            "payment_status": "unpaid" if _awaits_payment(booking) else "paid",
            "qr_url": None,
            "details": [detail],
            "pickup_number": PAYMENT_PREFIX + reference,
        }
    )


def _find_problem(body: dict[str, Any], package: dict[str, Any]) -> str | None:
    """KiriminAja's own validation."""
    for part, name, least, most in (
        (body, "name", 1, 50),
        (body, "address", 10, 200),
        (body, "phone", 9, 13),
        (package, "destination_name", 1, 50),
        (package, "destination_address", 10, 255),
        (package, "destination_phone", 9, 13),
    ):
        if not least <= len(str(part.get(name) or "")) <= most:
            return f"The {name} must be between {least} and {most} characters."
    if len(str(package.get("note") or "")) > 50:
        return "The note may not be greater than 50 characters."
    for part, name in ((body, "kecamatan_id"), (package, "destination_kecamatan_id")):
        if areas.find_area(part.get(name)) is None:
            return f"The selected {name} is invalid."
    if number(package.get("item_value")) < 1000:
        return "The item_value must be at least 1000."
    cash = number(package.get("cod"))
    if cash and not prices.collects_cash(str(package.get("service_type"))):
        return "The service does not support cod."
    if cash and not MIN_CASH <= cash <= MAX_CASH:
        return f"The cod must be between {MIN_CASH} and {MAX_CASH}."
    return None


def _awaits_payment(booking: Booking) -> bool:
    """A parcel that is paid on delivery needs no payment before."""
    is_paid = has_reached(booking.steps, booking.now, PAID)
    return booking.scenario == "unpaid" and not number(booking.body.get("cod")) and not is_paid


async def _get_payment(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    reference = str(body.get("payment_id") or "").removeprefix(PAYMENT_PREFIX)
    async with context.database.connection() as db:
        booking = await bookings.find(db, company_id, NAME, reference)
    if booking is None:
        return json_response({"status": False, "text": "Pembayaran tidak ditemukan", "code": 2})
    if booking.scenario == "carrier_down":
        return service_unavailable()
    amount, is_open = number(booking.body.get("shipping_cost")), _awaits_payment(booking)
    payment = {
        "payment_id": PAYMENT_PREFIX + booking.reference,
        "qr_content": build_qris(booking.order_no, int(amount)),
        "method": "08",
        "status_code": "9" if is_open else "0",
        "amount": int(amount),
        "paid_at": None if is_open else local_text(booking.now),
    }
    return json_response({"status": True, "text": "Success", "method": "payment", "data": payment})


def build_statement_line(booking: Booking) -> SandboxStatementLine:
    """KiriminAja keeps the shipping, the insurance and its fee."""
    parcel = booking.body
    amounts = {name: number(parcel.get(name)) for name in ("cod", "shipping_cost", "insurance_amount", "item_value")}
    fee = _get_cod_fee(amounts["item_value"], amounts["shipping_cost"], amounts["insurance_amount"])
    return SandboxStatementLine(
        parcel=booking.awb,
        amount=amounts["cod"] - amounts["shipping_cost"] - amounts["insurance_amount"] - fee,
        cod_amount=amounts["cod"],
        cod_fee=fee,
        carrier_fee=amounts["shipping_cost"],
        insurance_fee=amounts["insurance_amount"] or None,
    )


async def _track(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    async with context.database.connection() as db:
        booking = await bookings.find(db, company_id, NAME, str(body.get("order_id") or ""))
    if booking is None:
        return json_response({"status": False, "text": "Paket tidak ditemukan", "code": 2})
    if booking.scenario == "carrier_down":
        return service_unavailable()
    has_awb = has_reached(booking.steps, booking.now, LABELLED)
    histories = [
        {
            "created_at": local_text(step.at),
            "status": _WORDS[_CODES.get(step.state, 500)],
            "status_code": _CODES.get(step.state, 500),
            "driver": "",
            "receiver": booking.body.get("destination_name", "") if step.state == "delivered" else "",
        }
        for step in reversed(booking.past)
        if step.state != PAID
    ]
    details = {
        "awb": booking.awb if has_awb else None,
        "sorting_code": build_sorting_code(booking) if has_awb else None,
        "order_id": booking.reference,
        "service": booking.body.get("service"),
        "service_name": booking.body.get("service_type"),
        "delivered": booking.state.state == "delivered",
        "images": {"camera_img": None, "signature_img": None, "pop_img": None},
    }
    code = _CODES.get(booking.state.state, 500)
    return json_response(
        {"status": True, "text": _WORDS[code], "status_code": code, "details": details, "histories": histories}
    )


def build_sorting_code(booking: Booking) -> str:
    """By the destination's district, as couriers sort."""
    return f"{str(booking.body.get('service') or 'SBX').upper()}-{booking.body.get('destination_kecamatan_id')}"


async def _print_labels(context: AppContext, company_id: int, call: HookCall) -> HookAnswer:
    """The address of a file, which needs no key: its token names the company."""
    body = read_json(call)
    awbs = [str(awb) for awb in body["awb"]] if isinstance(body.get("awb"), list) else []
    async with context.database.connection() as db:
        found = [await bookings.find(db, company_id, NAME, awb) for awb in awbs]
    if not awbs or None in found:
        return json_response({"status": False, "text": "AWB tidak ditemukan", "code": 2})
    query = urlencode({"awb": ",".join(awbs), "token": build_secret(context, company_id, LABEL)})
    base = context.settings.server.address if call.is_external else await context.loopback.address()
    url = f"{base}{PREFIX}{LABEL_PATH}?{query}"
    return json_response(
        {"status": True, "text": "Success", "method": "print_awb", "code": "200", "data": {"data": {"url": url}}}
    )


async def _serve_labels(context: AppContext, call: HookCall) -> HookAnswer:
    company_id = find_caller(context, call)
    if company_id is None:
        return json_response({"status": False, "text": "Not found"}, 404)
    async with context.database.connection() as db:
        awbs = call.query.get("awb", "").split(",")
        found = [await bookings.find(db, company_id, NAME, awb) for awb in awbs]
    parcels = [_build_parcel(booking) for booking in found if booking]
    request = PrintRequest(document="label", format="a6", shop="KiriminAja (sandbox)", date="", parcels=parcels)
    return HookAnswer(200, await print_here(request), {"content-type": "application/pdf"})


def _build_parcel(booking: Booking) -> ParcelContent:
    package = booking.body
    cash = number(package.get("cod"))
    receiver = LabelParty(
        name=str(package.get("destination_name")),
        phone=str(package.get("destination_phone")),
        address=str(package.get("destination_address")),
        city=str(package.get("destination_zipcode") or ""),
    )
    return ParcelContent(
        number=booking.awb,
        courier=str(package.get("service") or "").upper(),
        service=str(package.get("service_type") or ""),
        sorting_code=build_sorting_code(booking),
        payment=f"COD {show_money(cash, 'IDR')}" if cash else "NON COD",
        is_cod=bool(cash),
        sender=LabelParty("KiriminAja", "", "", ""),
        receiver=receiver,
        origin="",
        destination="",
        weight=number(package.get("weight")) / 1000,
        volumetric_weight=None,
        quantity=int(number(package.get("qty")) or 1),
        insurance=None,
        items=[],
        order_number=None,
        return_number=None,
        pickup_number=None,
        cod_amount=cash or None,
        currency="IDR",
        is_test=True,
    )


async def _cancel(context: AppContext, company_id: int, body: dict[str, Any]) -> HookAnswer:
    if not 5 <= len(str(body.get("reason") or "")) <= 200:
        return json_response({"status": False, "text": "The reason must be between 5 and 200 characters.", "code": 422})
    async with context.database.transaction() as tx:
        booking = await bookings.lock(tx, company_id, NAME, str(body.get("awb") or ""))
        if booking is None:
            return json_response({"status": False, "text": "AWB tidak ditemukan", "code": 2})
        if booking.scenario == "carrier_down":
            return service_unavailable()
        if booking.state.state != "confirmed" or booking.scenario == "cancel_refused":
            return json_response({"status": False, "text": "Paket tidak dapat dibatalkan", "code": 422})
        slow: Slow | None = "aloud" if booking.scenario == "cancel_slow" else None
        steps = cancel(booking.steps, booking.now, str(body["reason"]), slow)
        await bookings.replace_steps(context, tx, booking, steps, build_posting)
    return json_response(
        {"status": True, "text": "Success", "data": {"success": "pending", "date": local_text(booking.now)}}
    )


_HANDLERS: dict[str, Handler] = {
    "/api/mitra/couriers": _list_couriers,
    "/api/mitra/province": _list_areas(areas.PROVINCES, "provinsi_name", None, "datas"),
    "/api/mitra/city": _list_areas(areas.CITIES, "kabupaten_name", "provinsi_id", "datas"),
    "/api/mitra/kecamatan": _list_areas(areas.DISTRICTS, "kecamatan_name", "kabupaten_id", "datas"),
    "/api/mitra/kelurahan": _list_areas(areas.SUB_DISTRICTS, "kelurahan_name", "kecamatan_id", "results"),
    "/api/mitra/v6.1/shipping_price": _price,
    "/api/mitra/v6.1/request_pickup": _book,
    "/api/mitra/tracking": _track,
    "/api/mitra/v3/cancel_shipment": _cancel,
    "/api/mitra/v2/get_payment": _get_payment,
}


SIMULATOR = CarrierSimulator("express", serve, build_posting, find_caller, refuse, build_statement_line)
