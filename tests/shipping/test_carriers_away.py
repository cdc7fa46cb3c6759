"""Carriers that hang, send malformed responses or refuse: real servers at a live company's upstream addresses."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from aiohttp import web

from sapa.db.pool import Database, open_database
from sapa.domains import build_process_context
from sapa.http.response_cache import drop_responses
from sapa.settings import read_settings
from sapa.shipping.areas.actions import list_coverage
from sapa.shipping.areas.types import AreaRequest
from sapa.shipping.connections import actions as connections
from sapa.values.company import Company
from tests.conftest import Installation, connect, free_port, start_installation, stop_installation
from tests.factories import Environments, make_company, make_key
from tests.shipping.parcels import PATIENCE, body_of, change, create, get, track
from tests.shipping.quotes.quote_steps import (
    DAGO,
    MENTENG,
    Peer,
    ask,
    connect_live,
    list_options,
    open_peer,
)

SECRET = "planted-secret-key"
GOOD: dict[str, Any] = {
    "status": True,
    "text": "success",
    "results": [
        {"service": "jne", "service_type": "REG23", "service_name": "JNE Reguler", "cost": "12000", "etd": "2-3"},
        {"service": "tiki", "service_type": "ECO", "service_name": "TIKI Eko", "cost": "9000", "etd": "4-6"},
    ],
}
PROVINCES: dict[str, Any] = {
    "status": True,
    "datas": [{"id": 6, "provinsi_name": "DKI Jakarta"}, {"id": 1, "provinsi_name": "Bali"}],
}


@pytest.fixture(scope="module")
async def peer() -> AsyncIterator[Peer]:
    async with open_peer() as server:
        yield server


@pytest.fixture(scope="module")
async def own(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """KiriminAja is the peer; GoSend's address has no listener."""
    running = start_installation(
        tmp_path_factory.mktemp("away") / "data",
        SAPA_PROCESSES="1",
        SAPA_UPSTREAM_KIRIMINAJA=peer.address,
        SAPA_UPSTREAM_GOSEND=f"http://127.0.0.1:{free_port()}",
    )
    yield running
    assert stop_installation(running) == 0


@pytest.fixture(scope="module")
async def own_database(own: Installation) -> AsyncIterator[Database]:
    async with open_database(own.server.app_url) as database:
        yield database


@pytest.fixture
async def own_company(own: Installation, own_database: Database, peer: Peer) -> Environments:
    created = await make_company(own_database)
    await connect_live(own, own_database, created.live, "aggregator_carrier", api_key="planted-secret-key")
    peer.asked.clear()
    return created


@pytest.fixture
async def live(
    own: Installation, own_database: Database, own_company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(own_database, own_company.live)
    async with connect(own, key.raw) as client:
        yield client


async def until(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    """Another process changed it, and this one hears of it a moment later."""
    deadline = time.monotonic() + PATIENCE
    while (found := await look()) != wanted:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


async def code_of(call: Callable[[], Awaitable[httpx.Response]]) -> tuple[int, str | None]:
    response = await call()
    return response.status_code, response.json().get("error", {}).get("code")


async def is_asked_again(peer: Peer, live: httpx.AsyncClient, asked: int) -> bool:
    assert (await live.get("/shipping/coverage/provinces")).status_code == 200
    return len(peer.asked) > asked


def refused(response: httpx.Response) -> str:
    assert (response.status_code, response.json()["error"]["code"]) == (502, "CARRIER_UNAVAILABLE"), response.text
    assert "planted-secret-key" not in response.text
    return str(response.json()["error"]["message"])


async def test_a_live_company_gets_its_carriers_prices(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply(GOOD)
    options = await list_options(live)
    assert [(option["serviceCode"], option["price"], option["estimate"]) for option in options] == [
        ("tiki:ECO", 9000, "4-6 days"),
        ("jne:REG23", 12000, "2-3 days"),
    ]
    assert await list_options(live) == options
    assert len(peer.asked) == 1, "the second answer was cached"


async def test_what_is_cached_belongs_to_the_account_that_is_connected_now(
    own: Installation, own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    peer.behave = peer.reply(GOOD)
    options = [await list_options(live) for _ in range(2)]
    peer.behave = peer.reply(GOOD | {"results": GOOD["results"][:1]})
    await connect_live(own, own_database, own_company.live, "aggregator_carrier", api_key="another-key")
    await until(lambda: list_options(live), options[0][1:])
    peer.behave = peer.reply(PROVINCES)
    provinces = [(await live.get("/shipping/coverage/provinces")).json()["data"] for _ in range(2)]
    assert provinces[0] == provinces[1] != []
    async with own_database.transaction() as tx:
        await connections.disconnect(tx, Company(own_company.live, "live", "ID", "IDR"), "aggregator_carrier")
    for call in (lambda: ask(live), lambda: live.get("/shipping/coverage/provinces")):
        await until(partial(code_of, call), (409, "PROVIDER_NOT_CONNECTED"))


async def test_a_cached_response_belongs_to_its_company_and_request(
    own: Installation, own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    peer.behave = peer.reply(GOOD)
    options = [await list_options(live) for _ in range(3)]
    assert options[0] == options[1] == options[2]
    other = await make_company(own_database)
    await connect_live(own, own_database, other.live, "aggregator_carrier", api_key="third-key")
    peer.behave = peer.reply(GOOD | {"results": GOOD["results"][:1]})
    key = await make_key(own_database, other.live)
    async with connect(own, key.raw) as neighbour:
        assert await list_options(neighbour) == options[0][1:]
    assert await list_options(live, package={"weight": 7.5}) != options[0]
    assert await list_options(live) == options[0]
    reader = await make_key(own_database, own_company.live, scopes=["orders:WRITE"])
    async with connect(own, reader.raw) as client:
        assert (await ask(client)).status_code == 401, "a key without the scope gets nothing that is cached"


async def test_a_cached_quote_keeps_the_promises_of_an_idempotency_key(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply(GOOD)
    body = {"provider": "aggregator_carrier", "origin": MENTENG, "destination": DAGO, "package": {"weight": 3}}
    heavier = {**body, "package": {"weight": 4}}
    for one in (body, heavier):
        assert (await live.post("/shipping/calculate-fee", json=one)).status_code == 200
    claim = {"idempotency-key": "quote-1"}
    first = await live.post("/shipping/calculate-fee", json=body, headers=claim)
    assert (await live.post("/shipping/calculate-fee", json=body, headers=claim)).json() == first.json()
    reused = await live.post("/shipping/calculate-fee", json=heavier, headers=claim)
    assert reused.status_code in {409, 422}, reused.text


async def test_a_success_clears_the_error_of_the_account(
    own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    async def find_error() -> str | None:
        query = "SELECT last_error FROM carrier_connections WHERE company_id = $1"
        async with own_database.connection() as db:
            error: str | None = await db.fetchval(query, own_company.live)
        return error

    peer.behave = peer.reply("down", 500)
    refused(await ask(live))
    assert "500" in str(await find_error())
    peer.behave = peer.reply(GOOD)
    await list_options(live)
    assert await find_error() is None


async def test_a_carrier_that_hangs_does_not_hang_the_caller(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.hang
    live.timeout = httpx.Timeout(8)  # far below what the carrier would take
    assert "no response in time" in refused(await ask(live))


@pytest.mark.parametrize(
    ("body", "status"),
    [("<html>Bad gateway</html>", 200), ("", 200), ("[]", 200), ("Internal error", 500), ("busy", 503), ('{"a":', 200)],
)
async def test_malformed_prices_are_rejected(live: httpx.AsyncClient, peer: Peer, body: str, status: int) -> None:
    peer.behave = peer.reply(body, status)
    assert "KiriminAja returned no prices" in refused(await ask(live))
    peer.behave = peer.reply(GOOD)
    assert len(await list_options(live)) == 2, "and it is not cached"


async def test_a_carrier_that_fails_again_and_again_is_left_alone(
    own: Installation, own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    draft = await create(live, "aggregator_carrier")
    peer.behave = peer.reply("down", 500)
    for value in range(5):
        assert "it answered 500" in refused(await ask(live, package={"weight": 1, "itemValue": value + 1_000}))
    peer.asked.clear()
    assert "failed 5 times in a row and is called again in" in refused(await ask(live))
    response = await live.post("/shipping/shipments", json=body_of("aggregator_carrier", autoBook=True))
    assert "Nothing was booked. KiriminAja is unavailable" in refused(response)
    assert "Nothing was booked" in refused(await change(live, draft["id"], triggerBooking=True, name="Kept out"))
    assert await get(live, draft["id"]) == draft
    assert (await live.get("/shipping/shipments")).json()["meta"]["total"] == 1, "nothing was stored"
    assert peer.asked == [], "the carrier heard nothing of it"

    other = await make_company(own_database)
    await connect_live(own, own_database, other.live, "aggregator_carrier", api_key="planted-secret-key")
    peer.behave = peer.reply(GOOD)
    key = await make_key(own_database, other.live)
    async with connect(own, key.raw) as client:
        assert await list_options(client), "another company's account is another matter"


async def test_refused_credentials_are_reported_apart_from_an_outage(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply({"status": False, "text": "Unauthenticated planted-secret-key"}, 401)
    assert "refuses" in refused(await ask(live))


async def test_a_carriers_no_is_a_message(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply({"status": False, "text": "Berat melebihi batas"})
    response = await ask(live)
    assert response.status_code == 200
    assert response.json()["options"] == []
    assert "Berat melebihi batas" in response.json()["data"]["messages"][0]["text"]


async def test_what_a_carrier_echoes_of_the_account_is_found_nowhere(
    own: Installation, own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    """Neither in a response, nor in the log, nor in the database."""
    echo = f"Authorization: Bearer {SECRET}, and {SECRET} is wrong"
    no = {"status": False, "text": echo, "message": echo}
    booking = body_of("aggregator_carrier", autoBook=True)
    answers: list[httpx.Response] = []
    for status, prices in ((200, GOOD), (200, no), (401, no), (500, no)):

        async def behave(request: web.Request, body: Any = prices, status: int = status) -> web.Response:
            is_price = request.path.endswith("shipping_price")
            return web.json_response(body if is_price else no, status=status if is_price else 400)

        peer.behave = behave
        answers.append(await ask(live, package={"weight": 1, "itemValue": 5_000 + len(answers)}))
        answers.append(await live.post("/shipping/shipments", json=booking))
        answers.append(await live.get("/shipping/coverage/provinces"))
    answers.append(await live.get("/shipping/shipments"))
    answers.append(await live.get("/shipping/providers"))
    assert any("is wrong" in response.text for response in answers), "the carrier's words are passed on"
    assert await list_tables_with(own_database, own_company.live, "is wrong") >= {"shipments", "carrier_calls"}
    assert not any(SECRET in response.text for response in answers)
    assert SECRET not in own.log.read_text()
    assert await list_tables_with(own_database, own_company.live, SECRET) == set()


async def list_tables_with(database: Database, company_id: int, text: str) -> set[str]:
    """The tables in which a company's rows hold the text, as it is or as bytes."""
    found = set()
    async with database.connection() as db:
        tables = await db.fetch(
            """SELECT c.table_name AS name
                 FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
                WHERE c.table_schema = 'public' AND c.column_name = 'company_id' AND t.table_type = 'BASE TABLE'
                  AND has_table_privilege(format('%I.%I', c.table_schema, c.table_name), 'SELECT')"""
        )
        for (table,) in tables:
            like = f"SELECT count(*) FROM {table} t WHERE company_id = $1 AND (strpos(t::text, $2) > 0"
            if await db.fetchval(f"{like} OR strpos(t::text, $3) > 0)", company_id, text, text.encode().hex()):
                found.add(table)
    return found


async def test_the_test_environment_never_meets_the_carrier(
    own: Installation, own_database: Database, own_company: Environments, peer: Peer
) -> None:
    peer.behave = peer.hang
    key = await make_key(own_database, own_company.test)
    async with connect(own, key.raw) as client:
        assert await list_options(client)
        assert (await client.get("/shipping/coverage/provinces")).status_code == 200
    assert peer.asked == []


async def lease(request: web.Request) -> web.Response:
    """As the carrier normally responds."""
    if not request.path.endswith("request_pickup"):
        return web.json_response(GOOD)
    reference = (await request.json())["packages"][0]["order_id"]
    details = [{"order_id": reference, "kj_order_id": "KA-1", "awb": "JNE1"}]
    return web.json_response({"status": True, "details": details})


async def test_tracking_returns_the_stored_state_while_a_carrier_hangs(
    own: Installation, own_database: Database, own_company: Environments, live: httpx.AsyncClient, peer: Peer
) -> None:
    await connect_live(own, own_database, own_company.live, "instant_carrier", **GOSEND)
    peer.behave = lease
    created = await create(live, "aggregator_carrier", autoBook=True)
    for behave in (peer.reply("<html>?</html>"), peer.reply("down", 500)):
        peer.behave = behave
        assert_last_known(await track(live, created["id"]))
    peer.behave = peer.hang
    peer.asked.clear()
    hanging = asyncio.create_task(track(live, created["id"]))
    for _ in range(PATIENCE * 20):
        if peer.asked:
            break
        await asyncio.sleep(0.05)
    key = await make_key(own_database, own_company.test)
    async with connect(own, key.raw) as client:
        assert await list_options(client), "another account"
    assert "returned no prices" in refused(await ask(live, "instant_carrier")), "nobody listens there, and that is said"
    assert_last_known(await hanging)


def assert_last_known(found: dict[str, Any]) -> None:
    assert (found["live"], found["stale"], found["error"]["code"]) == (False, True, "CARRIER_UNAVAILABLE")
    assert (found["shippingStatus"], found["awb"]) == ("confirmed", "JNE1")


GOSEND = {"client_id": "planted-client", "pass_key": "planted-secret-key", "callback_token": "planted-secret-token"}


async def test_coverage_is_asked_once_and_then_cached(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply(PROVINCES)
    for _ in range(2):
        response = await live.get("/shipping/coverage/provinces")
        assert response.json()["data"] == [
            {"id": 1, "name": "Bali", "parentId": None, "zip": None},
            {"id": 6, "name": "DKI Jakarta", "parentId": None, "zip": None},
        ]
    found = await live.get("/shipping/coverage/provinces", params={"search": "bal"})
    assert [area["id"] for area in found.json()["data"]] == [1]
    assert [path for path, _ in peer.asked] == ["/api/mitra/province"]


async def test_a_carrier_that_is_slow_to_list_its_areas_holds_no_connection(
    own: Installation, own_company: Environments, peer: Peer
) -> None:
    was_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        was_asked.set()
        await may_answer.wait()
        return web.json_response(PROVINCES)

    peer.behave = wait
    environ = {"SAPA_DATABASE_URL": own.server.app_url, "SAPA_SECRET_KEY": own.server.secret_key}
    settings = read_settings(environ | {"SAPA_UPSTREAM_KIRIMINAJA": peer.address})
    company = Company(own_company.live, "live", "ID", "IDR")
    async with open_database(own.server.app_url, size=1) as single:
        context = build_process_context(settings, single)
        request = AreaRequest("aggregator_carrier", "provinces", None)
        listing = asyncio.create_task(list_coverage(context, company, request, None))
        await was_asked.wait()
        async with single.connection() as db:
            assert await db.fetchval("SELECT 1") == 1, "the only connection is free"
        may_answer.set()
        assert [area.name for area in await listing] == ["Bali", "DKI Jakarta"]
        await context.close()


async def test_coverage_that_is_out_of_date_is_asked_for_again_and_serves_while_the_carrier_is_away(
    live: httpx.AsyncClient, peer: Peer, own_database: Database, own_company: Environments
) -> None:
    async def age(days: int) -> None:
        """As time would: what processes remember ends when the list does."""
        async with own_database.transaction() as tx:
            drop_responses(tx, own_company.live)
            await tx.execute(
                "UPDATE coverage_cache SET fetched_at = now() - make_interval(days => $2) WHERE company_id = $1",
                own_company.live, days,
            )  # fmt: skip

    peer.behave = peer.reply(PROVINCES)
    assert (await live.get("/shipping/coverage/provinces")).status_code == 200
    await age(6)
    assert (await live.get("/shipping/coverage/provinces")).status_code == 200
    assert len(peer.asked) == 1
    peer.behave = peer.reply("down", 500)
    await age(8)
    asked = len(peer.asked)
    await until(lambda: is_asked_again(peer, live, asked), wanted=True)
    for _ in range(2):
        peer.asked.clear()
        stale = await live.get("/shipping/coverage/provinces")
        assert len(stale.json()["data"]) == 2
        assert peer.asked, "what is out of date stays so"
    await age(91)
    assert "did not return its areas" in refused(await live.get("/shipping/coverage/provinces"))
    peer.behave = peer.reply({**PROVINCES, "datas": PROVINCES["datas"][:1]})
    assert len((await live.get("/shipping/coverage/provinces")).json()["data"]) == 1


async def test_an_unknown_area_is_not_cached(live: httpx.AsyncClient, peer: Peer) -> None:
    peer.behave = peer.reply({"status": True, "datas": []})
    unknown = await live.get("/shipping/coverage/cities", params={"provinceId": "77"})
    assert unknown.status_code == 404
    peer.behave = peer.reply({"status": True, "datas": [{"id": 5, "provinsi_id": 77, "kabupaten_name": "Baru"}]})
    assert (await live.get("/shipping/coverage/cities", params={"provinceId": "77"})).status_code == 200
    assert peer.asked[-1][1] == {"provinsi_id": 77}
