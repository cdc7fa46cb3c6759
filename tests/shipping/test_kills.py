"""kill -9 at every step of a booking: never booked twice, never lost, and always settled."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import httpx
import msgspec
import psutil
import pytest
from aiohttp import web

from sapa.db.pool import Database, open_database
from sapa.runtime.processes import wait_until
from sapa.settings import read_settings
from sapa.shipping.connections import actions as connections
from sapa.startup import build_context
from sapa.values.company import Company
from tests.conftest import TLS, Installation, connect, free_port, start_installation, stop_installation
from tests.factories import Environments, make_company, make_key
from tests.faults.traffic import PATIENCE
from tests.shipping.parcels import change, create, get, until_status

LOCK = 731
"""An advisory lock that the test holds, and that a step of the booking is made to wait for."""

BOOKED = {"confirmed", "picked_up", "in_transit", "delivered"}


class Carrier:
    """KiriminAja's wire format, with a record of its bookings."""

    def __init__(self) -> None:
        self.booked: dict[str, int] = {}
        self.asked = asyncio.Event()
        self.hangs: str | None = None
        """Before booking, or after it; None when it answers."""

    async def serve(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read() or b"{}")
        if request.path.endswith("shipping_price"):
            price = {
                "service": "jne",
                "service_name": "JNE Reguler",
                "service_type": "REG",
                "cost": "18000",
                "etd": "2",
            }
            return web.json_response({"status": True, "results": [price]})
        if request.path.endswith("request_pickup"):
            return await self.book(body["packages"][0]["order_id"])
        if request.path.endswith("tracking"):
            return self.find(body["order_id"])
        return web.json_response({"status": True, "datas": []})

    async def book(self, reference: str) -> web.Response:
        if self.hangs == "before":
            await self.hang()
        self.booked[reference] = self.booked.get(reference, 0) + 1
        if self.hangs == "after":
            await self.hang()
        details = [{"order_id": reference, "kj_order_id": f"KJ-{reference}", "awb": None}]
        return web.json_response({"status": True, "text": "ok", "details": details, "pickup_number": "P-1"})

    async def hang(self) -> None:
        self.asked.set()
        await asyncio.sleep(600)

    def find(self, reference: str) -> web.Response:
        if reference not in self.booked:
            return web.json_response({"status": False, "text": "Order tidak ditemukan", "code": 2})
        details = {"awb": f"AWB-{reference}", "order_id": reference}
        return web.json_response(
            {"status": True, "status_code": 101, "text": "ok", "details": details, "histories": []}
        )


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture
async def carrier(port: int) -> AsyncIterator[Carrier]:
    carrier = Carrier()
    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", carrier.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield carrier
    finally:
        await runner.cleanup()


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Installation]:
    """An installation whose processes may be killed, and whose aggregator is the carrier above."""
    upstream = f"http://127.0.0.1:{port}"
    running = start_installation(
        tmp_path_factory.mktemp("victim") / "data", SAPA_PROCESSES="1", SAPA_UPSTREAM_KIRIMINAJA=upstream
    )
    yield running
    assert stop_installation(running) == 0


@pytest.fixture
async def onlooker(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as pool:
        yield pool


@pytest.fixture
async def owner(victim: Installation) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(victim.server.owner_url)
    yield connection
    await connection.close()


@pytest.fixture
async def shop(onlooker: Database, victim: Installation, carrier: Carrier, port: int) -> Environments:
    """A live company with an account at the carrier."""
    created = await make_company(onlooker)
    variables = {"SAPA_SECRET_KEY": victim.server.secret_key, "SAPA_UPSTREAM_KIRIMINAJA": f"http://127.0.0.1:{port}"}
    context = build_context(read_settings(variables), onlooker)
    company = Company(created.live, "live", "ID", "IDR")
    await connections.connect(context, company, "aggregator_carrier", "kiriminaja", {"api_key": "k" * 20}, verify=False)
    await context.close()
    return created


@pytest.fixture
async def api(victim: Installation, onlooker: Database, shop: Environments) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(victim, (await make_key(onlooker, shop.live)).raw) as client:
        yield client


@asynccontextmanager
async def halted(owner: Any, onlooker: Database, table: str, now: str) -> AsyncIterator[None]:
    """A statement on the table waits forever: a point at which to kill the process."""
    await owner.execute("SELECT pg_advisory_lock($1)", LOCK)
    await owner.execute(
        f"""
        CREATE OR REPLACE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock({LOCK}); RETURN NEW; END $$;
        CREATE TRIGGER halt BEFORE {now.partition(" WHEN ")[0]} ON {table} FOR EACH ROW
        {"WHEN " + now.partition(" WHEN ")[2] if " WHEN " in now else ""} EXECUTE FUNCTION halt();"""
    )
    try:
        yield
    finally:
        async with onlooker.connection() as db:  # with the product's role, which may therefore end its sessions
            await db.execute(
                """SELECT pg_terminate_backend(pid) FROM pg_locks
                    WHERE locktype = 'advisory' AND objid = $1 AND NOT granted""",
                LOCK,
            )
        for _ in range(100):
            if not await is_halted(owner):
                break
            await asyncio.sleep(0.05)
        await owner.execute(f"DROP TRIGGER halt ON {table}")
        await owner.execute("SELECT pg_advisory_unlock($1)", LOCK)


async def is_halted(owner: Any) -> bool:
    return bool(
        await owner.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted", LOCK
        )
    )


async def kill_api(victim: Installation) -> None:
    """All API processes, whichever has the call; the supervisor restarts them."""
    children = psutil.Process(victim.process.pid).children()
    parents = [child for child in children if child.is_running() and child.cmdline()[-1:] == ["api"]]
    doomed = [*parents, *(process for parent in parents for process in parent.children())]
    for process in doomed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert await wait_until(lambda: not any(map(is_alive, doomed)), PATIENCE)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def is_back(victim: Installation) -> None:
    for _ in range(PATIENCE * 10):
        with suppress(httpx.TransportError):
            async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
                if (await client.get(f"{victim.address}/readyz")).status_code == 200:
                    return
        await asyncio.sleep(0.1)
    raise AssertionError("the API did not come back")


async def let_time_pass(owner: Any, company_id: int) -> None:
    """An hour, for bookings."""
    await owner.execute(
        """UPDATE shipment_bookings SET sent_at = sent_at - interval '1 hour', due_at = due_at - interval '1 hour'
            WHERE company_id = $1""", company_id,
    )  # fmt: skip


async def until_halted(owner: Any) -> None:
    for _ in range(PATIENCE * 20):
        if await is_halted(owner):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("nobody came to the place")


async def trigger(api: httpx.AsyncClient, id: str) -> None:
    with suppress(httpx.TransportError):
        await change(api, id, triggerBooking=True)


async def settle_and_count(
    api: httpx.AsyncClient, owner: Any, shop: Environments, carrier: Carrier, id: str
) -> dict[str, Any]:
    """In the end it is booked once: by itself, or by booking again once it is known not to be booked."""
    carrier.hangs = None
    settled = await get(api, id)
    for _ in range(PATIENCE * 5):
        settled = await get(api, id)
        if settled["shippingStatus"] in {"booking", "booking_unknown"}:
            await let_time_pass(owner, shop.live)
        elif settled["shippingStatus"] in {"draft", "booking_failed"}:
            response = await change(api, id, triggerBooking=True)
            assert response.status_code in {200, 202}, response.text
        else:
            break
        await asyncio.sleep(0.2)
    assert settled["shippingStatus"] in BOOKED, settled
    assert sorted(carrier.booked.values()) == [1], "one booking, asked for once"
    return settled


PLACES = {
    "before the intent": ("shipment_bookings", "INSERT"),
    "after the intent, before sending": ("shipment_bookings", "UPDATE OF state WHEN (NEW.state = 'sent')"),
    "after the answer, before it is noted": ("carrier_calls", "INSERT"),
    "after the answer was noted, before the outcome": (
        "shipments", "UPDATE WHEN (OLD.shipping_status = 'booking')",
    ),
}  # fmt: skip


MOST_TELLING = "after the answer, before it is noted"


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[] if place == MOST_TELLING else pytest.mark.long) for place in PLACES]
)
async def test_killed_at_the_database(
    victim: Installation,
    owner: Any,
    onlooker: Database,
    shop: Environments,
    api: httpx.AsyncClient,
    carrier: Carrier,
    place: str,
) -> None:
    created = await create(api, "aggregator_carrier")
    async with halted(owner, onlooker, *PLACES[place]):
        request = asyncio.create_task(trigger(api, created["id"]))
        await until_halted(owner)
        await kill_api(victim)
    await request
    await is_back(victim)
    left = await get(api, created["id"])
    was_sent = place.startswith("after the answer")
    assert left["shippingStatus"] in ({"draft"} if place == "before the intent" else {"booking", *BOOKED})
    assert len(carrier.booked) == int(was_sent)
    await settle_and_count(api, owner, shop, carrier, created["id"])


@pytest.mark.parametrize("hangs", [pytest.param("before", marks=pytest.mark.long), "after"])
async def test_killed_while_the_carrier_thinks(
    victim: Installation, owner: Any, shop: Environments, api: httpx.AsyncClient, carrier: Carrier, hangs: str
) -> None:
    created = await create(api, "aggregator_carrier")
    carrier.hangs = hangs
    request = asyncio.create_task(trigger(api, created["id"]))
    await asyncio.wait_for(carrier.asked.wait(), PATIENCE)
    await kill_api(victim)
    await request
    await is_back(victim)
    left = await get(api, created["id"])
    assert left["shippingStatus"] == "booking"
    again = await change(api, created["id"], triggerBooking=True)
    assert again.status_code == 409, "nobody sends it again while it is not known"
    await let_time_pass(owner, shop.live)
    if hangs == "before":
        await until_status(api, created["id"], "booking_unknown", "booking_failed")
    settled = await settle_and_count(api, owner, shop, carrier, created["id"])
    assert settled["awb"] or settled["orderNo"]


async def test_what_was_intended_and_never_sent_is_sent_by_the_worker(
    victim: Installation, owner: Any, onlooker: Database, shop: Environments, api: httpx.AsyncClient, carrier: Carrier
) -> None:
    created = await create(api, "aggregator_carrier")
    async with halted(owner, onlooker, "shipment_bookings", "UPDATE OF state WHEN (NEW.state = 'sent')"):
        request = asyncio.create_task(trigger(api, created["id"]))
        await until_halted(owner)
        await kill_api(victim)
    await request
    await is_back(victim)
    await let_time_pass(owner, shop.live)
    booked = await until_status(api, created["id"], "confirmed")
    assert booked["orderNo"]
    assert sorted(carrier.booked.values()) == [1]
