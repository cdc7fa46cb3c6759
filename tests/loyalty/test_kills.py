"""Points survive killed writers: a write is stored whole or not at all."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database, open_database
from sapa.runtime.processes import wait_until
from tests import depth
from tests.conftest import Installation, connect
from tests.factories import Environments, add_points, make_company, make_customer, make_key
from tests.faults.traffic import PATIENCE, api_processes, is_unavailable, postmaster
from tests.loyalty.ledger_steps import drift_of, history_of, points_of

WRITERS = 8
ROUNDS = depth.examples(2)


@pytest.fixture
async def onlooker(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(onlooker: Database) -> Environments:
    return await make_company(onlooker)


@pytest.fixture
async def api(victim: Installation, onlooker: Database, company: Environments) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(victim, (await make_key(onlooker, company.live)).raw) as client:
        yield client


class Writers:
    """Callers who change one customer's points, and repeat each request with its key until it is answered."""

    def __init__(self, api: httpx.AsyncClient, customer_id: str) -> None:
        self.api = api
        self.path = f"/loyalty/customers/{customer_id}"
        self.adjusted: dict[str, int] = {}
        """Key → points, of those that were acknowledged."""
        self.stopping = False

    async def write(self) -> None:
        while not self.stopping:
            points = random.randint(1, 9)
            direction = random.choice(["add", "deduct"])
            body: dict[str, Any] = {"direction": direction, "points": points, "idempotencyKey": uuid4().hex}
            response = await self.insist(f"{self.path}/points/adjust", body)
            assert response.status_code == 200, response.text
            again = await self.insist(f"{self.path}/points/adjust", body)
            assert again.json()["data"]["ledger"] == response.json()["data"]["ledger"]
            self.adjusted[body["idempotencyKey"]] = points if direction == "add" else -points
            with suppress(httpx.TransportError):
                response = await self.api.post(f"{self.path}/reservations", json={"points": 1})
                if response.status_code == 201:
                    await self.api.post(f"/loyalty/reservations/{response.json()['data']['id']}/release")

    async def insist(self, path: str, body: dict[str, Any]) -> httpx.Response:
        for _ in range(PATIENCE * 20):
            with suppress(httpx.TransportError):
                response = await self.api.post(path, json=body)
                if not is_unavailable(response):
                    return response
            await asyncio.sleep(0.05)
        raise AssertionError("the API did not come back")

    async def grows(self, by: int) -> None:
        goal = len(self.adjusted) + by
        assert await wait_until(lambda: len(self.adjusted) >= goal, PATIENCE)


async def kill_a_process(victim: Installation, onlooker: Database) -> None:
    doomed = random.choice(api_processes(victim))
    doomed.kill()
    assert await wait_until(lambda: not doomed.is_running() and is_restored(victim), PATIENCE)


def is_restored(victim: Installation) -> bool:
    """False when a process dies while it is inspected."""
    with suppress(psutil.Error):
        return len(api_processes(victim)) == 2
    return False


async def kill_a_session(victim: Installation, onlooker: Database) -> None:
    async with onlooker.connection() as db:
        sessions = await db.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'sapa api'")
    psutil.Process(random.choice(sessions)["pid"]).kill()


async def kill_the_database(victim: Installation, onlooker: Database) -> None:
    doomed = postmaster(victim)
    doomed.kill()
    assert await wait_until(lambda: not doomed.is_running(), PATIENCE)


@pytest.mark.parametrize("kill", [kill_a_process, kill_a_session, kill_the_database])
async def test_a_ledger_stays_consistent_when_writers_are_killed_and_a_repeated_key_counts_once(
    victim: Installation, onlooker: Database, api: httpx.AsyncClient, kill: Any
) -> None:
    customer = (await make_customer(api))["id"]
    await add_points(api, customer, 1_000_000)
    writers = Writers(api, customer)
    tasks = [asyncio.create_task(writers.write()) for _ in range(WRITERS)]
    try:
        for _ in range(ROUNDS):
            await writers.grows(20)
            await kill(victim, onlooker)
            await writers.grows(20)
    finally:
        writers.stopping = True
        await asyncio.gather(*tasks)
    for _ in range(onlooker.size + 1):
        with suppress(DatabaseAway):
            async with onlooker.connection() as db:
                await db.fetchval("SELECT 1")
    entries = await history_of(api, customer)
    stored = {entry["idempotencyKey"]: int(entry["pointsDelta"]) for entry in entries if entry["idempotencyKey"]}
    assert stored == writers.adjusted
    assert sum(await points_of(api, customer)) == 1_000_000 + sum(stored.values())
    assert await drift_of(api) == []
