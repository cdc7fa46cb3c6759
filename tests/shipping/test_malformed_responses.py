"""Carriers that respond with implausible values: a live company against a real server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from aiohttp import web

from sapa.db.pool import Database, open_database
from tests.conftest import TLS, Installation, connect, start_installation, stop_installation
from tests.factories import Environments, make_company, make_key
from tests.shipping.parcels import cancel, change, create, error_of, field_of, get, track, until_status
from tests.shipping.quotes.quote_steps import (
    Peer,
    ask,
    connect_live,
    open_peer,
)

REG: dict[str, Any] = {"service": "jne", "service_type": "REG23", "service_name": "JNE Reguler", "cost": "18000"}
ODD: dict[str, Any] = {"service": "tiki", "service_type": 1, "cost": "9000", "etd": 2, "drop": None}
DELIVERY: dict[str, Any] = {"deliveryID": "dlv-1", "status": "ALLOCATING"}
JAKARTA = timedelta(hours=7)


class Fake(Peer):
    """All carriers at one address: the test decides the response of each path."""

    def __init__(self) -> None:
        super().__init__()
        self.behave = self.respond
        self.responses: dict[str, Any] = {}

    async def respond(self, request: web.Request) -> web.Response:
        response = next(
            (response for path, response in self.responses.items() if request.path.endswith(path)), {"status": False}
        )
        if request.path.endswith("request_pickup"):
            package = (await request.json())["packages"][0]
            response = {"status": True, "details": [{"order_id": package["order_id"], "kj_order_id": "KA-1"}]}
        return web.Response(text=response if isinstance(response, str) else json.dumps(response))


@pytest.fixture(scope="module")
async def fake() -> AsyncIterator[Fake]:
    created = Fake()
    async with open_peer(created):
        yield created


@pytest.fixture(scope="module")
async def own(fake: Fake, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    at: dict[str, Any] = {f"SAPA_UPSTREAM_{name}": fake.address for name in ("KIRIMINAJA", "DASH", "GOSEND")}
    running = start_installation(tmp_path_factory.mktemp("rubbish") / "data", SAPA_PROCESSES="1", **at)
    yield running
    assert stop_installation(running) == 0


@pytest.fixture(scope="module")
async def own_database(own: Installation) -> AsyncIterator[Database]:
    async with open_database(own.server.app_url) as database:
        yield database


@pytest.fixture(scope="module")
async def own_company(own_database: Database) -> Environments:
    return await make_company(own_database)


@pytest.fixture(scope="module")
async def hook(own: Installation, own_database: Database, own_company: Environments) -> str:
    """Where KiriminAja calls back."""
    await connect_live(own, own_database, own_company.live, "ev_courier", client_key="key", client_secret="secret")
    await connect_live(own, own_database, own_company.live, "instant_carrier", client_id="shop", pass_key="secret")
    url = await connect_live(own, own_database, own_company.live, "aggregator_carrier", api_key="secret")
    return own.address + urlsplit(url).path


@pytest.fixture
async def live(
    own: Installation, own_database: Database, own_company: Environments, hook: str, fake: Fake
) -> AsyncIterator[httpx.AsyncClient]:
    fake.responses = {
        "shipping_price": {"status": True, "results": [REG]},
        "providers/token": {"token": "dash-token"},
        "express/v1/deliveries": DELIVERY,
    }
    fake.asked.clear()
    key = await make_key(own_database, own_company.live)
    async with connect(own, key.raw) as client:
        yield client


def read_strictly(response: httpx.Response) -> Any:
    """Like other JSON readers: without NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(response.text, parse_constant=refuse)


def write(instant: datetime) -> str:
    return (instant + JAKARTA).strftime("%Y-%m-%d %H:%M:%S")


def build_history(*entries: tuple[int, str, str]) -> dict[str, Any]:
    """Newest last; the carrier sends it reversed."""
    rows = [{"status_code": code, "status": text, "created_at": at} for code, text, at in entries]
    return {"status": True, "status_code": 101, "details": {"awb": "JNE1"}, "histories": rows[::-1]}


@pytest.mark.parametrize("cost", ["NaN", "sNaN", "Infinity", "-5", "1e999", "1e-99999", "much"])
async def test_a_price_that_cannot_be_hides_no_other_and_fails_nothing(
    live: httpx.AsyncClient, fake: Fake, cost: str
) -> None:
    bad = {**REG, "cost": cost}
    package = {"weight": 1, "itemValue": 1_000 + sum(cost.encode())}
    fake.responses["shipping_price"] = {"status": True, "results": [bad]}
    alone = await ask(live, package=package)
    assert error_of(alone) == (502, "CARRIER_UNAVAILABLE")
    assert "cannot be read" in alone.text
    fake.responses["shipping_price"] = {"status": True, "results": [bad, ODD, REG]}
    found = read_strictly(await ask(live, package=package))["data"]
    assert [(option["serviceCode"], option["price"]) for option in found["options"]] == [
        ("tiki:1", 9000),
        ("jne:REG23", 18000),
    ]
    assert [note["code"] for note in found["messages"] if note["code"] != "sub_district_missing"] == ["unreadable"]


async def test_gosends_prices_are_read_one_by_one(live: httpx.AsyncClient, fake: Fake) -> None:
    good = {"shipment_method": "Instant", "serviceable": True, "active": True, "price": {"total_price": 20000}}
    fake.responses["calculate/price"] = {"Instant": good, "SameDay": {**good, "price": {"total_price": "NaN"}}}
    found = read_strictly(await ask(live, "instant_carrier"))["data"]
    assert [option["price"] for option in found["options"]] == [20000]
    assert [note["code"] for note in found["messages"]] == ["unreadable"]


@pytest.mark.parametrize("distance", ["NaN", "1e999", "1e200000", "-1"])
async def test_a_booking_stands_whatever_distance_the_response_has(
    live: httpx.AsyncClient, fake: Fake, distance: str
) -> None:
    number = f"dlv{distance}"
    fake.responses["express/v1/deliveries"] = {**DELIVERY, "deliveryID": f"{number}\0", "distance": distance}
    created = await create(live, "ev_courier", autoBook=True)
    assert (created["shippingStatus"], created["awb"], created["distance"]) == ("finding_driver", number, None)
    assert read_strictly(await live.get("/shipping/shipments", params={"awb": number}))["data"][0]["distance"] is None


@pytest.mark.parametrize(
    ("word", "media", "end"), [("FAILED", ["PICKUP_PROOF"], "returning"), ("RETURNED", [], "returned")]
)
async def test_a_bad_end_is_believed_without_all_that_came_before(
    live: httpx.AsyncClient, fake: Fake, word: str, media: list[str], end: str
) -> None:
    created = await create(live, "ev_courier", autoBook=True)
    response = {**DELIVERY, "status": word, "media": [{"type": kind, "url": "https://x.example/1"} for kind in media]}
    fake.responses["deliveries/dlv-1"] = {**response, "timestamp": datetime.now(UTC).isoformat()}
    found = await track(live, created["id"])
    assert (found["shippingStatus"], found["history"][-1]["applied"]) == (end, True)


async def test_an_unconfirmed_cancellation_stays_open(live: httpx.AsyncClient, fake: Fake) -> None:
    created = await create(live, "ev_courier", autoBook=True)
    fake.responses["deliveries/dlv-1"] = "<html>maintenance</html>"
    assert error_of(await cancel(live, created["id"])) == (502, "CARRIER_UNAVAILABLE")
    assert (await get(live, created["id"]))["shippingStatus"] == "cancelling"


async def test_a_no_to_what_may_be_cancelled_already_is_not_believed_blindly(
    live: httpx.AsyncClient, fake: Fake
) -> None:
    first, again = [await create(live, "ev_courier", autoBook=True) for _ in range(2)]
    fake.responses["deliveries/dlv-1"] = {"error": "It cannot be cancelled"}  # without its present status
    assert error_of(await cancel(live, first["id"])) == (409, "NOT_CANCELLABLE")
    assert (await get(live, first["id"]))["shippingStatus"] == "finding_driver"
    fake.responses["deliveries/dlv-1"] = "<html>maintenance</html>"
    assert error_of(await cancel(live, again["id"])) == (502, "CARRIER_UNAVAILABLE")
    fake.responses["deliveries/dlv-1"] = {"error": "It cannot be cancelled"}
    assert error_of(await cancel(live, again["id"])) == (502, "CARRIER_UNAVAILABLE")
    assert (await get(live, again["id"]))["shippingStatus"] == "cancelling"
    fake.responses["deliveries/dlv-1"] = {**DELIVERY, "status": "CANCELLED"}
    gone = await cancel(live, again["id"])
    assert (gone.status_code, gone.json()["data"]["shippingStatus"]) == (200, "cancelled_by_business")


async def test_a_booking_sends_the_carriers_own_price(live: httpx.AsyncClient, fake: Fake) -> None:
    created = await create(live, "aggregator_carrier", serviceCode="jne:REG23", fee=1, autoBook=True)
    assert (created["shippingStatus"], created["fee"]) == ("confirmed", 1)
    booking = next(body for path, body in fake.asked if path.endswith("request_pickup"))
    assert booking["packages"][0]["shipping_cost"] == 18000


async def test_a_history_with_rubbish_in_it_is_read_as_far_as_it_can_be(live: httpx.AsyncClient, fake: Fake) -> None:
    created = await create(live, "aggregator_carrier", autoBook=True)
    now = datetime.now(UTC)
    for code, at in ((99_999_999_999, write(now)), (103, "0001-01-01 00:00:00")):
        fake.responses["mitra/tracking"] = build_history((code, "?", at))
        assert (await track(live, created["id"]))["shippingStatus"] == "confirmed"
    fake.responses["mitra/tracking"] = build_history(
        (101, "re\0quested", write(now)), (99_999_999_999, "?", write(now))
    )
    found = await track(live, created["id"])
    assert (found["live"], found["statusText"], found["awb"]) == (True, "requested", "JNE1")
    ahead = (105, "waiting", "9999-12-31 23:59:59")
    fake.responses["mitra/tracking"] = build_history(ahead)
    assert datetime.fromisoformat((await track(live, created["id"]))["eventTimestamp"]) <= datetime.now(UTC)
    fake.responses["mitra/tracking"] = build_history(
        (103, "picked", write(datetime.now(UTC) + timedelta(seconds=2))), ahead
    )
    assert (await track(live, created["id"]))["shippingStatus"] == "picked_up", "what is yet to come makes nothing late"


async def test_a_parcel_with_rubbish_holds_up_no_other(live: httpx.AsyncClient, hook: str, fake: Fake) -> None:
    created = [await create(live, "aggregator_carrier", autoBook=True) for _ in range(3)]
    references = [body["packages"][0]["order_id"] for path, body in fake.asked if path.endswith("request_pickup")]
    parcels: list[dict[str, Any]] = [{"order_id": reference, "awb": "JNE2"} for reference in references]
    parcels[0] |= {"status": 99_999_999_999}
    parcels[1] |= {"finished_at": "0001-01-01 00:00:00"}
    body = {"method": "finished_packages", "data": parcels}
    async with httpx.AsyncClient(verify=TLS, timeout=120) as carrier:
        headers = {"authorization": "Bearer secret"}
        assert (await carrier.post(hook, json=body, headers=headers)).status_code == 200
    for shipment in created[1:]:
        await until_status(live, shipment["id"], "delivered")


async def test_an_event_that_cannot_be_applied_does_not_block_the_others(
    live: httpx.AsyncClient, fake: Fake, own_database: Database, own_company: Environments
) -> None:
    bad, good = [await create(live, "aggregator_carrier", autoBook=True) for _ in range(2)]
    references = [body["packages"][0]["order_id"] for path, body in fake.asked if path.endswith("request_pickup")]
    instants = ("0001-01-01T00:00:00+07:00", datetime.now(UTC).isoformat())
    events = [
        {"dedupe_key": reference, "occurred_at": at, "status": "delivered", "text": "done", "reference": reference}
        for reference, at in zip(references, instants, strict=True)
    ]
    async with own_database.connection() as db:
        id = await db.fetchval(
            """INSERT INTO carrier_callbacks (company_id, adapter, digest, body, events, tries)
               VALUES ($1, 'kiriminaja', $2, $3, $4, 7) RETURNING id""",
            own_company.live, sha256(b"old").digest(), b"old", msgspec.json.encode(events),
        )  # fmt: skip
        await until_status(live, good["id"], "delivered")
        await until_note(db, id)
        await db.execute("UPDATE carrier_callbacks SET due_at = now() WHERE id = $1", id)
        await until_note(db, id, is_over=True)
    assert (await get(live, bad["id"]))["shippingStatus"] == "confirmed"


async def until_note(db: Any, id: int, is_over: bool = False) -> None:
    deadline = time.monotonic() + 120
    while True:
        row = await db.fetchrow("SELECT note, processed_at FROM carrier_callbacks WHERE id = $1", id)
        if row["note"] and (row["processed_at"] is not None) == is_over:
            assert "OverflowError" in row["note"]
            return
        assert time.monotonic() < deadline, row
        await asyncio.sleep(0.1)


async def test_a_refusal_is_no_empty_country(live: httpx.AsyncClient, fake: Fake) -> None:
    fake.responses["mitra/province"] = {"status": False, "text": "Too many requests, account suspended"}
    response = await live.get("/shipping/coverage/provinces")
    assert error_of(response) == (502, "CARRIER_UNAVAILABLE")
    assert "account suspended" in response.text


async def test_an_order_number_leads_to_no_other_path(live: httpx.AsyncClient, fake: Fake) -> None:
    fake.responses["express/v1/deliveries"] = "<html>?</html>"
    created = await create(live, "ev_courier", status=202, autoBook=True)
    for number in ("../../admin/keys?x=1", "..", "a/b", "", "a b"):
        response = await change(live, created["id"], resolveBooking={"outcome": "booked", "orderNo": number})
        assert field_of(response) == "resolveBooking.orderNo"
    resolved = await change(live, created["id"], resolveBooking={"outcome": "booked", "orderNo": "dlv-1.x_2:3"})
    assert resolved.json()["data"]["orderNo"] == "dlv-1.x_2:3"
