"""Deliveries per second from stored events, beside the bare loop; and a long queue that is drained."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
import psutil
from msgspec import Struct

from bench.ground import Ground, make_company
from bench.servers import cpu_seconds, resident_megabytes
from bench.webhooks.post import Receiver
from bench.webhooks.stored import STORE, make_endpoints
from sapa.events import CHANNEL
from sapa.webhooks.dispatch.slots import MAX_PER_ENDPOINT

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

COMPANIES = 4
ENDPOINTS = 8
CONCURRENCY = COMPANIES * ENDPOINTS * MAX_PER_ENDPOINT
"""As many as the worker has under way at once for so many endpoints."""
SAMPLE_SECONDS = 0.25


class Pace(Struct, frozen=True):
    """One round of one sender."""

    per_second: float
    cpu_us: float
    """CPU of the sender's process per delivery, in microseconds."""
    postgres_cpu_us: float = 0.0


class Progress(Struct, frozen=True):
    """How far the worker is with a long queue."""

    seconds: float
    delivered: int
    megabytes: float


class Shelf:
    """Companies with endpoints at the receiver; stores events for all of them in one transaction."""

    def __init__(self, ground: Ground, receiver: Receiver, company_ids: list[int], db: Connection) -> None:
        self._ground = ground
        self._receiver = receiver
        self._company_ids = company_ids
        self._db = db

    async def drain(self, deliveries: int, worker: psutil.Process) -> Pace:
        """From the commit to the last delivery settled."""
        spent, postgres_spent = cpu_seconds(worker), cpu_seconds(self._ground.postgres)
        expected = await self._receiver.count() + deliveries
        started = await self.store(deliveries)
        await self._receiver.wait_for(expected)
        await self.settled()
        seconds = time.monotonic() - started
        return Pace(
            per_second=deliveries / seconds,
            cpu_us=(cpu_seconds(worker) - spent) / deliveries * 1e6,
            postgres_cpu_us=(cpu_seconds(self._ground.postgres) - postgres_spent) / deliveries * 1e6,
        )

    async def watch(self, deliveries: int, worker: psutil.Process) -> list[Progress]:
        """The same with a long queue, looked at again and again."""
        before = await self._receiver.count()
        started = await self.store(deliveries)
        samples = [Progress(0, 0, resident_megabytes(worker))]
        while samples[-1].delivered < deliveries:
            await asyncio.sleep(SAMPLE_SECONDS)
            delivered = await self._receiver.count() - before
            samples.append(Progress(time.monotonic() - started, delivered, resident_megabytes(worker)))
        await self.settled()
        return samples

    async def store(self, deliveries: int) -> float:
        """The instant at which they were there for the worker to find, all at once."""
        events = deliveries // (COMPANIES * ENDPOINTS)
        await self._db.execute(STORE, self._company_ids, events)
        committed = time.monotonic()
        await self._db.execute("SELECT pg_notify($1, '')", CHANNEL)
        return committed

    async def settled(self) -> None:
        while await self._db.fetchval("SELECT EXISTS (SELECT FROM webhook_queue)"):  # noqa: ASYNC110 - asks PostgreSQL
            await asyncio.sleep(0.01)
        await self._receiver.arrivals()


@asynccontextmanager
async def open_shelf(ground: Ground, receiver: Receiver) -> AsyncIterator[Shelf]:
    company_ids = []
    for number in range(COMPANIES):
        company = await make_company(ground, f"Subscriber {number}")
        urls = [f"{receiver.address}/deliveries/{number}/{place}" for place in range(ENDPOINTS)]
        await make_endpoints(ground, company.id, urls)
        company_ids.append(company.id)
    db = await asyncpg.connect(ground.server.owner_url)
    try:
        yield Shelf(ground, receiver, company_ids, db)
    finally:
        await db.close()


async def post_bare(receiver: Receiver, deliveries: int) -> Pace:
    """The yardstick, in a process of its own as the worker is."""
    command = [sys.executable, "-m", "bench.webhooks.bare", f"{receiver.address}/deliveries/0/0"]
    process = await asyncio.create_subprocess_exec(*command, str(deliveries), str(CONCURRENCY), stdout=PIPE)
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    await receiver.arrivals()
    seconds, spent = map(float, output.split())
    return Pace(deliveries / seconds, spent / deliveries * 1e6)
