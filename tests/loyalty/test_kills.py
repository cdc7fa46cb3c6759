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
from tests.faults.traffic import PATIENCE, api_processes, is_unavailable, kill_an_api_process, postmaster
from tests.loyalty.ledger_steps import drift_of, history_of, points_of

WRITERS = 8
ROUNDS = depth.examples(2)
STORM_CALLERS = 64


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


SERVER = pytest.mark.one_server("kills processes of the server, which others use")


@pytest.mark.long
@pytest.mark.parametrize(
    "kill",
    [
        kill_a_process,
        pytest.param(kill_a_session, marks=SERVER),
        pytest.param(kill_the_database, marks=SERVER),
    ],
)
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


class Storm:
    """Many callers of one wallet, each with one call at a time, which it repeats until it is answered."""

    def __init__(self, api: httpx.AsyncClient, customer_id: str, operations: int) -> None:
        self.api = api
        self.path = f"/loyalty/customers/{customer_id}/points/adjust"
        self.left = operations
        self.answered: list[list[tuple[str, int]]] = []
        """By caller, the note and the points of each call in the order of its answers."""

    @property
    def done(self) -> int:
        return sum(map(len, self.answered))

    async def reaches(self, goal: int) -> None:
        assert await wait_until(lambda: self.done >= goal, PATIENCE)

    async def call(self) -> None:
        answered: list[tuple[str, int]] = []
        self.answered.append(answered)
        while self.left > 0:
            self.left -= 1
            note, points = uuid4().hex, random.choice([-3, -2, 4, 5])
            body = {"direction": "add" if points > 0 else "deduct", "points": abs(points), "reason": note}
            # Half of the calls are repeated by the ledger's key, half by the edge's.
            if random.random() < 0.5:
                response = await self.insist(body | {"idempotencyKey": note}, {})
            else:
                response = await self.insist(body, {"idempotency-key": note})
            assert response.status_code == 200, response.text
            assert response.json()["data"]["ledger"]["note"] == note
            answered.append((note, points))

    async def insist(self, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        for _ in range(PATIENCE * 20):
            with suppress(httpx.TransportError):
                response = await self.api.post(self.path, json=body, headers=headers)
                is_in_progress = "IDEMPOTENCY_IN_PROGRESS" in response.text
                if not is_in_progress and not is_unavailable(response):
                    return response
            await asyncio.sleep(0.05)
        raise AssertionError("the API did not come back")


async def terminate_backends(onlooker: Database) -> None:
    async with onlooker.connection() as db:
        await db.fetch(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'sapa api' AND random() < 0.5"""
        )


async def test_a_storm_on_one_wallet_loses_doubles_and_reorders_nothing(
    victim: Installation, onlooker: Database, company: Environments
) -> None:
    operations, faults = (100_000, 60) if depth.is_long() else (600, 3)
    key = (await make_key(onlooker, company.live, rate_limit=100_000)).raw
    async with connect(victim, key) as api:
        customer = (await make_customer(api))["id"]
        await add_points(api, customer, 10**6)
        storm = Storm(api, customer, operations)
        callers = [asyncio.create_task(storm.call()) for _ in range(STORM_CALLERS)]
        for number in range(faults):
            await storm.reaches(operations * (number + 1) // (faults + 1))
            if number % 3 == 1:
                await kill_an_api_process(victim)
            else:
                await terminate_backends(onlooker)
        await asyncio.gather(*callers)
    # A connection to a process that was killed, or of one to the database, may end a moment later than the storm.
    await asyncio.sleep(1)
    async with connect(victim, key) as api:
        history = [entry for entry in reversed(await history_of(api, customer)) if entry["note"]]
        stored = [(entry["note"], int(entry["pointsDelta"])) for entry in history]
        place = {call: number for number, call in enumerate(stored)}
        assert len(place) == len(stored) == operations, "nothing is lost or doubled"
        for answered in storm.answered:
            places = [place[call] for call in answered]
            assert places == sorted(places), "each caller's entries stand in the order of its calls"
        balance = 10**6
        for entry in history:
            balance += int(entry["pointsDelta"])
            assert int(entry["availableAfter"]) == balance
        assert await drift_of(api) == []
