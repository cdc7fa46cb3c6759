"""A stream of writes that goes on through every fault, and the reckoning after it."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx
import psutil

from sapa.db.pool import Database
from sapa.runtime.api_server import HEALTHY_SECONDS
from sapa.runtime.processes import wait_until
from tests.conftest import TLS, Installation

PATIENCE = 120
WRITERS = 8


class Traffic:
    """What writers did, and what they were told."""

    def __init__(self, *, has_balancer: bool = False) -> None:
        self._has_balancer = has_balancer
        self.acknowledged: dict[str, str] = {}
        """E-mail address → id."""
        self._instants: list[float] = []
        """When each of them was acknowledged."""
        self.unavailable = 0
        self.cut = 0
        self.odd: list[str] = []
        self._stopping = False

    @asynccontextmanager
    async def flowing(self, installation: Installation, key: str) -> AsyncIterator[None]:
        """Writers at work for the length of a block."""
        async with self.flowing_to(installation.customer_base, key):
            yield

    @asynccontextmanager
    async def flowing_to(self, base: str, key: str) -> AsyncIterator[None]:
        self._stopping = False
        writers = [asyncio.create_task(self._write(base, key)) for _ in range(WRITERS)]
        try:
            yield
        finally:
            self._stopping = True
            await asyncio.gather(*writers)

    async def _write(self, base: str, key: str) -> None:
        async with httpx.AsyncClient(base_url=base, headers={"x-api-key": key}, timeout=PATIENCE, verify=TLS) as api:
            while not self._stopping:
                await self._write_once(api)

    async def _write_once(self, api: httpx.AsyncClient) -> None:
        email = f"{uuid4().hex}@example.com"
        try:
            response = await api.post("/customers", json={"email": email})
        except httpx.TransportError:
            self.cut += 1
            await asyncio.sleep(0.05)
            return
        if response.status_code == 201:
            self.acknowledged[email] = response.json()["data"]["id"]
            self._instants.append(time.monotonic())
        elif self._has_balancer and "x-request-id" not in response.headers:  # it found no host
            self.cut += 1
            await asyncio.sleep(0.05)
        elif is_unavailable(response):
            self.unavailable += 1
            await asyncio.sleep(0.05)
        else:
            self.odd.append(f"{response.status_code} {response.text[:300]}")

    async def grows(self, by: int) -> None:
        """Waits until so many more writes were acknowledged."""
        goal = len(self.acknowledged) + by
        for _ in range(PATIENCE * 50):
            if len(self.acknowledged) >= goal:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"writes are not acknowledged any more: {self.unavailable} × 503, {self.cut} × cut")

    def measure_pause(self, since: float) -> float:
        """The longest time without an acknowledged write."""
        instants = [since, *(one for one in self._instants if one > since)]
        return max(after - before for before, after in pairwise(instants))

    def measure_return(self, promoted: float) -> float:
        """How long after a promotion the next write was acknowledged."""
        return next(one for one in self._instants if one > promoted) - promoted

    async def is_refused(self) -> None:
        """Waits until one more write is refused."""
        before = self.unavailable
        assert await wait_until(lambda: self.unavailable > before, PATIENCE)


def is_unavailable(response: httpx.Response) -> bool:
    """A 503 in the envelope, and in no other shape."""
    if response.status_code != 503:
        return False
    body: dict[str, Any] = response.json()
    assert list(body) == ["error"]
    assert body["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert set(body["error"]) == {"code", "message"}
    assert response.headers["x-request-id"]
    return True


async def reckon(database: Database, api: httpx.AsyncClient, company_id: int, traffic: Traffic) -> None:
    """All that was acknowledged is there, once, with its event; nothing is there by half; totals are exact."""
    async with database.connection() as db:
        customers = await db.fetch("SELECT email, id FROM customers WHERE company_id = $1", company_id)
        events = await db.fetch("SELECT kind, resource_id FROM events WHERE company_id = $1", company_id)
    stored = {row["email"]: row["id"] for row in customers}
    lost = {email: id for email, id in traffic.acknowledged.items() if stored.get(email) != id}
    assert lost == {}
    assert sorted(row["resource_id"] for row in events) == sorted(stored.values())
    assert {row["kind"] for row in events} == {"customer.created"}
    assert (await api.get("/customers")).json()["meta"]["total"] == len(customers) == len(stored)
    assert traffic.odd == []


def api_processes(installation: Installation) -> list[psutil.Process]:
    """The processes that answer: the children of `sapa api`, except the one of lower priority, which serves the
    metrics."""
    for child in psutil.Process(installation.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if child.cmdline()[-1:] == ["api"]:
                return [process for process in child.children() if process.nice() == child.nice()]
    return []


async def kill_an_api_process(installation: Installation) -> psutil.Process:
    """One that has served for a while: if one dies right after its start, `sapa api` ends, and all of them."""

    def are_healthy() -> bool:
        found = api_processes(installation)
        return len(found) == 2 and all(time.time() - one.create_time() > HEALTHY_SECONDS + 1 for one in found)

    assert await wait_until(are_healthy, PATIENCE)
    doomed = random.choice(api_processes(installation))
    doomed.kill()
    return doomed


def postmaster(installation: Installation) -> psutil.Process:
    number = (installation.data / "pg" / "postmaster.pid").read_text().split("\n", 1)[0]
    return psutil.Process(int(number))
