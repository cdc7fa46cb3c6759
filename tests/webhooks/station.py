"""A station that deliveries arrive at, with as many addresses as a test needs, and the bookkeeping of what came."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from sapa.customers.types import CustomerUpdated
from sapa.db.pool import Database
from sapa.events import emit_all
from sapa.values.company import Company

PATIENCE = 120


class Arrival(Struct, frozen=True):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event_id(self) -> str:
        return self.headers["X-Service-Webhook-Id"]

    @property
    def resource(self) -> str:
        return str(msgspec.json.decode(self.body)["id"])

    @property
    def number(self) -> int:
        return int(msgspec.json.decode(self.body)["number"])


class Station:
    def __init__(self) -> None:
        self.address = ""
        self.arrivals: list[Arrival] = []
        self.under_way: dict[str, int] = {}
        self.answer: Callable[[Arrival], Awaitable[int]] = answer_with(200)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"

    def at(self, path: str) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival.path == path]

    def has(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.arrivals) == count

    def has_more_than(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.arrivals) > count

    async def receive(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix("/")
        arrival = Arrival(path, dict(request.headers), await request.read())
        self.arrivals.append(arrival)
        self.under_way[path] = self.under_way.get(path, 0) + 1
        try:
            return web.Response(status=await self.answer(arrival))
        finally:
            self.under_way[path] -= 1


def answer_with(*statuses: int) -> Callable[[Arrival], Awaitable[int]]:
    """These answers in turn, then the last one for ever."""
    left = list(statuses)

    async def answer(_: Arrival) -> int:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


@asynccontextmanager
async def open_station() -> AsyncIterator[Station]:
    station = Station()
    app = web.Application()
    app.router.add_post("/{anything:.*}", station.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        station.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield station
    finally:
        await runner.cleanup()


async def until(condition: Callable[[], Any], what: str = "it did not happen") -> Any:
    """The condition's first true value; the condition may be a coroutine function."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError(what)


class Thing(Struct, frozen=True):
    """A resource as an event carries it."""

    id: str
    number: int
    text: str = ""


async def happen(database: Database, company_id: int, things: Iterable[Thing]) -> None:
    """One event for each, in their order, recorded in one transaction."""
    company = Company(company_id, "live", "ID", "IDR")
    async with database.transaction() as tx:
        await emit_all(tx, company, [CustomerUpdated(thing) for thing in things])


def things(count: int, resources: int | None = None, start: int = 0) -> list[Thing]:
    """Numbered changes, taking turns over so many resources; each its own unless told otherwise."""
    return [Thing(f"cust_{number % (resources or count + start)}", number) for number in range(start, start + count)]


async def count(database: Database, statement: str, *parameters: object) -> int:
    async with database.connection() as db:
        number: int = await db.fetchval(statement, *parameters)
        return number


async def waiting(database: Database, company_id: int) -> int:
    return await count(database, "SELECT count(*) FROM webhook_queue WHERE company_id = $1", company_id)


async def attempts(database: Database, company_id: int) -> Sequence[Any]:
    async with database.connection() as db:
        rows: Sequence[Any] = await db.fetch(
            "SELECT * FROM webhook_attempts WHERE company_id = $1 ORDER BY started_at, number", company_id
        )
        return rows
