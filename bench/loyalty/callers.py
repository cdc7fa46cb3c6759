"""Callers of the API who change points, and who remember what they were told."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import psutil
from msgspec import Struct

from bench.findings import percentile
from bench.ground import SeededCompany
from bench.servers import Server, cpu_seconds

CALLERS = 16
POINTS = 5


class Measured(Struct, frozen=True):
    """Of adjustments: how many a second, what a caller waited, and what one cost."""

    per_second: float
    p50: float
    p99: float
    api_cpu: float
    postgres_cpu: float


class Told(Struct):
    """What the API acknowledged: by customer, the points and the number of entries."""

    points: Counter[str] = Counter()
    entries: Counter[str] = Counter()


class Crowd:
    """Sixteen callers, each of whom waits for an answer before the next call."""

    def __init__(self, session: aiohttp.ClientSession, server: Server, postgres: psutil.Process) -> None:
        self._session = session
        self._server = server
        self._postgres = postgres
        self.told = Told(Counter(), Counter())

    async def make_customers(self, number: int) -> list[str]:
        return [await self._make_customer(n) for n in range(number)]

    async def adjust(self, customers: Sequence[str], seconds: float) -> Measured:
        """Adds points and takes them away again, each caller in turn, on these customers."""
        times: list[float] = []
        before = cpu_seconds(self._server.process), cpu_seconds(self._postgres)
        started = time.monotonic()
        await asyncio.gather(*(self._call(n, customers, started + seconds, times) for n in range(CALLERS)))
        took = time.monotonic() - started
        spent = cpu_seconds(self._server.process) - before[0], cpu_seconds(self._postgres) - before[1]
        api_cpu, postgres_cpu = (one / len(times) * 1e6 for one in spent)
        return Measured(len(times) / took, percentile(times, 50), percentile(times, 99), api_cpu, postgres_cpu)

    async def read(self, path: str) -> float:
        """Milliseconds that one answer took."""
        started = time.monotonic()
        async with self._session.get(path) as answer:
            await _body(answer)
        return (time.monotonic() - started) * 1000

    async def _call(self, caller: int, customers: Sequence[str], until: float, times: list[float]) -> None:
        turn = caller
        while time.monotonic() < until:
            customer = customers[turn % len(customers)]
            times += [await self._adjust(customer, direction) for direction in ("add", "deduct")]
            turn += CALLERS

    async def _adjust(self, customer: str, direction: str) -> float:
        started = time.monotonic()
        path = f"/customer/v1/loyalty/customers/{customer}/points/adjust"
        async with self._session.post(path, json={"direction": direction, "points": POINTS}) as answer:
            await _body(answer)
        self.told.points[customer] += POINTS if direction == "add" else -POINTS
        self.told.entries[customer] += 1
        return (time.monotonic() - started) * 1000

    async def _make_customer(self, number: int) -> str:
        body = {"email": f"{time.monotonic_ns()}-{number}@example.com"}
        async with self._session.post("/customer/v1/customers", json=body) as answer:
            made = await _body(answer)
        return str(made["data"]["id"])


async def _body(answer: aiohttp.ClientResponse) -> dict[str, dict[str, object]]:
    """Raises when it is not a success: what fails fast would look fast."""
    if answer.status >= 300:
        raise RuntimeError(f"{answer.method} {answer.url.path} was answered {answer.status}: {await answer.text()}")
    body: dict[str, dict[str, object]] = await answer.json()
    return body


@asynccontextmanager
async def open_crowd(server: Server, postgres: psutil.Process, company: SeededCompany) -> AsyncIterator[Crowd]:
    connector = aiohttp.TCPConnector(limit=CALLERS)
    async with aiohttp.ClientSession(
        server.address, headers={"x-api-key": company.key}, connector=connector
    ) as session:
        yield Crowd(session, server, postgres)
