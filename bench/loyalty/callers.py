"""Callers of the API who change points, and who remember what they were told."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import psutil
from msgspec import Struct

from bench.findings import percentile
from bench.servers import Server, cpu_seconds

CALLERS = 16
POINTS = 5
ADJUST = "/customer/v1/loyalty/customers/{}/points/adjust"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


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


class Caller:
    """One connection, and as little work for a call as possible: callers share the machine with what they measure."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = f"host: 127.0.0.1\r\nx-api-key: {key}\r\ncontent-type: application/json\r\n"

    async def adjust(self, path: str, direction: str) -> float:
        """Milliseconds that the answer took. Raises when it is not a success: what fails fast would look fast."""
        body = f'{{"direction":"{direction}","points":{POINTS}}}'
        started = time.monotonic()
        request = f"POST {path} HTTP/1.1\r\n{self._head}content-length: {len(body)}\r\n\r\n{body}"
        self._writer.write(request.encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        answer = await self._reader.readexactly(int(LENGTH.search(head)[1]))  # type: ignore[index]
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"POST {path} was answered {head[9:12].decode()}: {answer.decode()}")
        return (time.monotonic() - started) * 1000

    def close(self) -> None:
        self._writer.close()


class Crowd:
    """Sixteen callers, each of whom waits for an answer before the next call."""

    def __init__(self, session: aiohttp.ClientSession, key: str, server: Server, postgres: psutil.Process) -> None:
        self._session = session
        self._key = key
        self._server = server
        self._postgres = postgres
        self.told = Told(Counter(), Counter())

    async def make_customers(self, number: int) -> list[str]:
        return [await self._make_customer(n) for n in range(number)]

    async def adjust(self, customers: Sequence[str], seconds: float, path: str = ADJUST) -> Measured:
        """Adds points and takes them away again, each caller in turn, on these customers."""
        times: list[float] = []
        callers = await self._open_callers()
        before = cpu_seconds(self._server.process), cpu_seconds(self._postgres)
        started = time.monotonic()
        until = started + seconds
        await asyncio.gather(*(self._call(n, one, customers, until, times, path) for n, one in enumerate(callers)))
        took = time.monotonic() - started
        spent = cpu_seconds(self._server.process) - before[0], cpu_seconds(self._postgres) - before[1]
        for caller in callers:
            caller.close()
        api_cpu, postgres_cpu = (one / len(times) * 1e6 for one in spent)
        return Measured(len(times) / took, percentile(times, 50), percentile(times, 99), api_cpu, postgres_cpu)

    async def read(self, path: str) -> float:
        """Milliseconds that one answer took."""
        started = time.monotonic()
        async with self._session.get(path) as answer:
            await _body(answer)
        return (time.monotonic() - started) * 1000

    async def _open_callers(self) -> list[Caller]:
        """New ones, because a server closes connections that were idle for long."""
        host, port = self._server.address.removeprefix("http://").split(":")
        return [Caller(*await asyncio.open_connection(host, int(port)), self._key) for _ in range(CALLERS)]

    async def _call(
        self, place: int, caller: Caller, customers: Sequence[str], until: float, times: list[float], path: str
    ) -> None:
        turn = place
        while time.monotonic() < until:
            customer = customers[turn % len(customers)]
            for direction in ("add", "deduct"):
                times.append(await caller.adjust(path.format(customer), direction))
                self.told.points[customer] += POINTS if direction == "add" else -POINTS
                self.told.entries[customer] += 1
            turn += CALLERS

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
async def open_crowd(server: Server, postgres: psutil.Process, key: str) -> AsyncIterator[Crowd]:
    async with aiohttp.ClientSession(server.address, headers={"x-api-key": key}) as session:
        yield Crowd(session, key, server, postgres)
