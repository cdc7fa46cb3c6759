"""The database moves to another host under load: nothing acknowledged is lost or doubled, nobody restarts anything."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import msgspec
import pytest

from sapa.db.connection import Connection, DatabaseAway
from sapa.db.long_reads import LongReads
from sapa.db.pool import Database, open_database
from sapa.http.health import health_routes
from sapa.http.site import build_site
from sapa.runtime.processes import wait_until
from sapa.values.sealing import Vault
from tests import depth
from tests.conftest import Installation, connect, start_installation, stop_installation
from tests.factories import Environments, make_company, make_endpoint, make_key
from tests.faults.replicas import Forwarder, Node, Replicas, open_replicas
from tests.faults.traffic import PATIENCE, Traffic, reckon
from tests.webhooks.shop import Shop, open_shop

ROUNDS = depth.examples(3)

pytestmark = pytest.mark.processes


class Fleet(msgspec.Struct, frozen=True):
    """An installation on replicated databases."""

    replicas: Replicas
    installation: Installation
    database: Database
    company: Environments
    key: str
    shop: Shop


@pytest.fixture(scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    folder = tmp_path_factory.mktemp("replicas")
    folder.chmod(0o755)
    async with open_replicas(folder) as replicas, open_shop() as shop:
        installation = await asyncio.to_thread(  # the forwarders run in this one
            start_installation,
            folder / "serve",
            SAPA_DATABASE_URL=replicas.app_url,
            SAPA_DATABASE_OWNER_URL=replicas.owner_url,
            SAPA_SECRET_KEY=replicas.secrets.secret_key,
            SAPA_WEBHOOK_ALLOW_INSECURE="1",
        )
        try:
            async with open_database(replicas.app_url, size=3, application="onlooker") as database:
                company = await make_company(database)
                key = (await make_key(database, company.live)).raw
                await make_endpoint(database, Vault(replicas.secrets.secret_key), company.live, shop.url)
                yield Fleet(replicas, installation, database, company, key, shop)
        finally:
            assert await asyncio.to_thread(stop_installation, installation) == 0


async def kill(node: Node) -> None:
    await node.kill()


async def silence(node: Node) -> None:
    """Nothing comes from it any more."""
    node.forwarder.be_silent()


@pytest.mark.parametrize(
    "fault", [pytest.param(kill, id="kill"), pytest.param(silence, id="silence", marks=pytest.mark.long)]
)
async def test_the_next_primary_takes_over(fleet: Fleet, fault: Callable[[Node], Awaitable[None]]) -> None:
    traffic = Traffic()
    for number in range(1, ROUNDS + 1):
        async with traffic.flowing(fleet.installation, fleet.key):
            await traffic.grows(50)
            began = time.monotonic()
            await fault(fleet.replicas.primary)
            if fault is silence:  # then a failover manager makes sure that it takes no writes
                await traffic.is_refused()
                await fleet.replicas.primary.kill()
            promoting = time.monotonic()
            old = await fleet.replicas.fail_over()
            await traffic.grows(50)
            pause, last = traffic.measure_pause(began), traffic.measure_return(promoting)
            print(
                f"{fault.__name__}, round {number}: pause {pause:.1f} s, {last:.1f} s of it since the promotion began"
            )
            old.forwarder.speak()
            await old.rejoin(fleet.replicas.primary)
            await traffic.grows(20)
        await fleet.replicas.wait_until_synchronous()
    print(f"{fault.__name__}: {len(traffic.acknowledged)} acknowledged")
    async with connect(fleet.installation, fleet.key) as api:
        await reckon_everything(fleet, api, traffic)
    assert fleet.installation.process.poll() is None


async def reckon_everything(fleet: Fleet, api: httpx.AsyncClient, traffic: Traffic) -> None:
    """Also the webhooks: each event arrived."""
    await reckon(fleet.database, api, fleet.company.live, traffic)
    async with fleet.database.connection() as db:
        rows = await db.fetch("SELECT id FROM events WHERE company_id = $1", fleet.company.live)
    expected = {row["id"] for row in rows}

    def has_arrived() -> bool:
        return expected <= {arrival.event_id for arrival in fleet.shop.arrivals}

    assert await wait_until(has_arrived, PATIENCE)


@asynccontextmanager
async def open_moving(fleet: Fleet, first: Node) -> AsyncIterator[tuple[Forwarder, Database]]:
    """One address for all servers, as a floating one or a load balancer's is."""
    forwarder = Forwarder(first.port)
    await forwarder.open()
    url = f"postgresql://sapa_app:{fleet.replicas.secrets.app}@127.0.0.1:{forwarder.port}/sapa"
    try:
        async with open_database(url, size=2, application="onlooker") as database:
            yield forwarder, database
    finally:
        await forwarder.close()


async def test_a_process_whose_address_led_to_a_standby_is_ready_when_it_leads_to_the_primary(fleet: Fleet) -> None:
    """It gets no calls before it is ready, so its connections do not find out by themselves."""
    async with open_moving(fleet, fleet.replicas.standbys[0]) as (forwarder, database):
        transport = httpx.ASGITransport(build_site(health_routes(database)))
        async with httpx.AsyncClient(transport=transport, base_url="http://onlooker") as onlooker:

            async def is_read_only() -> bool:
                response = await onlooker.get("/readyz")
                return response.status_code == 503 and "read-only" in response.text

            async def is_ready() -> bool:  # the primary may be full for a moment
                return (await onlooker.get("/readyz")).status_code == 200

            assert await wait_until(is_read_only, PATIENCE)
            forwarder.move(fleet.replicas.primary.port)
            assert await wait_until(is_ready, PATIENCE)


@pytest.mark.long
async def test_nobody_waits_for_the_silent_server_behind_an_address_that_moved(fleet: Fleet) -> None:
    """Neither a call nor a report."""
    connected = asyncio.Barrier(3)

    async def ask(scope: AbstractAsyncContextManager[Connection]) -> None:
        async with scope as db:
            await connected.wait()
            await connected.wait()
            await db.fetchval("SELECT 1", timeout=2 * PATIENCE)

    async with open_moving(fleet, fleet.replicas.primary) as (forwarder, database):
        is_up = asyncio.Event()
        database.hub.subscribe("moves", lambda _: None, up=is_up.set)
        await is_up.wait()
        reads = LongReads(database)
        call, report = database.connection(), reads.snapshot(fleet.company.live)
        asking = asyncio.gather(ask(call), ask(report), return_exceptions=True)
        await connected.wait()
        forwarder.be_silent()
        forwarder.move(fleet.replicas.standbys[0].port)
        await connected.wait()
        outcomes = await asyncio.wait_for(asking, PATIENCE)
        assert [type(outcome) for outcome in outcomes] == [DatabaseAway, DatabaseAway]
        await reads.close()
