import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import psutil
import pytest
from playwright.async_api import Browser, expect

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database, open_database
from sapa.runtime.processes import wait_until
from tests import depth
from tests.conftest import Installation, connect
from tests.console.people import make_person
from tests.console.test_workplace_browser import open_seat
from tests.factories import Environments, make_company, make_key
from tests.faults.inbox_storm import Storm, reckon_inbox
from tests.faults.traffic import (
    PATIENCE,
    Traffic,
    api_processes,
    is_unavailable,
    kill_an_api_process,
    postmaster,
    reckon,
)
from tests.messaging.conftest import connect_messaging
from tests.support.ticket_steps import Desk

ROUNDS = depth.examples(3)


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.live)).raw


@pytest.fixture
async def api(victim: Installation, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(victim, key) as client:
        yield client


async def test_writes_survive_the_death_of_an_api_process(
    victim: Installation, database: Database, company: Environments, key: str, api: httpx.AsyncClient
) -> None:
    traffic = Traffic()
    for _ in range(ROUNDS):
        async with traffic.flowing(victim, key):
            await traffic.grows(20)
            doomed = await kill_an_api_process(victim)
            await traffic.grows(20)
            await is_gone(doomed)
            assert await wait_until(lambda: len(api_processes(victim)) == 2, PATIENCE)
        await reckon(database, api, company.live, traffic)
    assert traffic.unavailable == 0


async def is_gone(process: psutil.Process) -> None:
    assert await wait_until(lambda: not process.is_running(), PATIENCE)


async def test_writes_survive_a_crash_of_the_database_and_the_api_continues(
    victim: Installation, database: Database, company: Environments, key: str, api: httpx.AsyncClient
) -> None:
    traffic = Traffic()
    assert await wait_until(lambda: len(api_processes(victim)) == 2, PATIENCE)
    before = api_processes(victim)
    for _ in range(ROUNDS):
        async with traffic.flowing(victim, key):
            await traffic.grows(20)
            doomed = postmaster(victim)
            doomed.kill()
            await is_gone(doomed)
            await traffic.grows(30)
        assert postmaster(victim) != doomed
        await reckon(await settled(database), api, company.live, traffic)
    assert api_processes(victim) == before
    assert traffic.cut == 0


async def settled(database: Database) -> Database:
    """The onlooker's own connections may have died with the server."""
    for _ in range(database.size + 1):
        with suppress(DatabaseAway):
            async with database.connection() as db:
                await db.fetchval("SELECT 1")
    return database


async def test_writes_survive_the_loss_of_a_session_and_the_api_continues(
    victim: Installation, database: Database, company: Environments, key: str, api: httpx.AsyncClient
) -> None:
    traffic = Traffic()
    before, server = api_processes(victim), postmaster(victim)
    for _ in range(ROUNDS):
        async with traffic.flowing(victim, key):
            await traffic.grows(20)
            async with database.connection() as db:
                sessions = await db.fetch(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'sapa api' AND pid <> pg_backend_pid()"
                )
            psutil.Process(random.choice(sessions)["pid"]).kill()
            await traffic.grows(30)
        await reckon(await settled(database), api, company.live, traffic)
    assert (api_processes(victim), postmaster(victim)) == (before, server)
    assert traffic.cut == 0


async def test_a_write_that_is_repeated_through_a_kill_happens_once(
    victim: Installation, database: Database, company: Environments, key: str, api: httpx.AsyncClient
) -> None:
    """What a careful caller does: the same Idempotency-Key until there is an answer."""
    for number in range(ROUNDS):
        async with Traffic().flowing(victim, key):
            postmaster(victim).kill()
            response = await insist(api, number)
        assert response.status_code == 201
        again = await insist(api, number)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == response.json()
    found = (await api.get("/customers?search=careful")).json()
    assert found["meta"]["total"] == ROUNDS


async def insist(api: httpx.AsyncClient, number: int) -> httpx.Response:
    body, once = {"email": f"careful-{number}@example.com"}, {"Idempotency-Key": f"n{number}"}
    for _ in range(PATIENCE * 20):
        with suppress(httpx.TransportError):
            response = await api.post("/customers", json=body, headers=once)
            if not is_unavailable(response):
                return response
        await asyncio.sleep(0.05)
    raise AssertionError("the database did not come back")


@pytest.mark.parametrize(
    ("agents", "kills"), [(6, 1), pytest.param(20, 8, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
async def test_agents_on_one_queue_lose_no_ticket_when_api_processes_die(
    victim: Installation, database: Database, company: Environments, agents: int, kills: int
) -> None:
    senders = [f"+6281320{number:05}" for number in range(agents * 2)]
    async with connect_messaging(victim, (await make_key(database, company.test)).raw) as client:
        desk = Desk(client)
        storm = Storm(desk, [await desk.create_agent(f"Agen {number}") for number in range(agents)], senders)
        for sender in senders:
            await storm.write(sender)
        async with storm.raging():
            for _ in range(kills):
                await storm.grows(10 * agents)
                await is_gone(await kill_an_api_process(victim))
            await storm.grows(10 * agents)
        await reckon_inbox(database, company.test, storm)


@pytest.mark.long
async def test_a_form_that_is_sent_again_after_a_restart_counts_once(
    victim: Installation, database: Database, company: Environments, api: httpx.AsyncClient, browser: Browser
) -> None:
    """As a restored tab sends it: the same entry by the same browser."""
    async with open_seat(browser, victim, database, await make_person(database, company)) as page:
        await page.goto("/console/live/draft-orders/new")
        await page.fill("[name=title] >> nth=0", "Kopi Gayo")
        await page.fill("[name=price] >> nth=0", "75.000")
        async with page.expect_request(lambda request: request.method == "POST") as sending:
            await page.click("button.main")
        await expect(page.locator(".toasts")).to_be_visible()
        form = await sending.value
        await is_gone(await kill_an_api_process(victim))
        headers = {"content-type": form.headers["content-type"]}
        again = await page.request.post(form.url, data=form.post_data, headers=headers)
        assert (again.status, again.url) == (200, page.url)
        assert (await api.get("/draft-orders")).json()["meta"]["total"] == 1
