"""How long a delivery is on its way: on an idle installation, and beside endpoints that hang."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from msgspec import Raw, Struct

from bench.ground import Ground, SeededCompany, make_company
from bench.servers import Server
from bench.webhooks.post import Receiver
from bench.webhooks.stored import delete_endpoints, make_endpoints
from sapa.access import actions as access
from sapa.customers.types import CUSTOMER_ID, Customer, CustomerUpdated
from sapa.db.pool import Database, open_database
from sapa.events import emit
from sapa.values.company import Company

PER_SECOND = 100
LEAD_IN_SECONDS = 4
"""Long enough for endpoints that hang to be known for it."""
COMPANIES = 10
HANGING_PER_COMPANY = 5

RESOURCES = "SELECT id, resource_id FROM events WHERE company_id = $1"


class Idle(Struct, frozen=True):
    """Milliseconds from sending the request that changes a customer to the arrival of its event."""

    soon: list[float]
    """Some tenths of a second after the change before."""
    late: list[float]
    """After seconds without any change."""


async def measure_idle(ground: Ground, receiver: Receiver, api: Server, soon: int, late: int) -> Idle:
    company = await make_company(ground, "Idle subscriber")
    await make_endpoints(ground, company.id, [f"{receiver.address}/idle"])
    async with httpx.AsyncClient(base_url=api.address, headers={"x-api-key": company.key}) as client:
        made = await client.post("/customer/v1/customers", json={"email": "ayu@example.com"})
        path = f"/customer/v1/customers/{made.json()['data']['id']}"
        await asyncio.sleep(1)
        await _time_change(client, receiver, path, 0)
        pauses = [random.uniform(0.1, 0.5) for _ in range(soon)] + [random.uniform(2.5, 3) for _ in range(late)]
        times = [await _time_change(client, receiver, path, pause) for pause in pauses]
    return Idle(times[:soon], times[soon:])


async def _time_change(client: httpx.AsyncClient, receiver: Receiver, path: str, pause: float) -> float:
    await asyncio.sleep(pause)
    expected = await receiver.count() + 1
    await receiver.arrivals()
    started = time.monotonic()
    answer = await client.put(path, json={"firstName": f"Ayu {started}"})
    answer.raise_for_status()
    await receiver.wait_for(expected, every=0.005)
    [(_, arrived)] = await receiver.arrivals()
    return (arrived - started) * 1000


class Crowd:
    """Companies with one endpoint each that answers, and perhaps some that hang."""

    def __init__(self, ground: Ground, receiver: Receiver, database: Database, companies: list[Company]) -> None:
        self._ground = ground
        self._receiver = receiver
        self._database = database
        self._companies = companies
        self._committed: dict[str, float] = {}

    async def measure(self, seconds: float) -> list[float]:
        """Milliseconds from commit to arrival, at a steady rate, once the lead-in is over."""
        before = await self._receiver.count()
        ahead = await self._emit_steadily(LEAD_IN_SECONDS)
        self._committed = {}
        number = await self._emit_steadily(seconds)
        await self._receiver.wait_for(before + ahead + number)
        return await self._times()

    async def _emit_steadily(self, seconds: float) -> int:
        number = int(seconds * PER_SECOND)
        started = time.monotonic()
        for n in range(number):
            await asyncio.sleep(max(0, started + n / PER_SECOND - time.monotonic()))
            await self._emit(self._companies[n % len(self._companies)])
        return number

    async def _emit(self, company: Company) -> None:
        customer = build_customer()
        async with self._database.transaction() as tx:
            await emit(tx, company, CustomerUpdated(customer))
        self._committed[customer.id] = time.monotonic()

    async def _times(self) -> list[float]:
        arrived = dict(await self._receiver.arrivals())
        resources: dict[str, str] = {}
        async with self._database.connection() as db:
            for company in self._companies:
                resources |= {row["id"]: row["resource_id"] for row in await db.fetch(RESOURCES, company.id)}
        by_resource = {resources[id]: at for id, at in arrived.items()}
        return [(by_resource[id] - committed) * 1000 for id, committed in self._committed.items()]

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        """Endpoints that take every delivery and answer none."""
        made = {}
        for company in self._companies:
            urls = [f"{self._receiver.address}/hang/{company.id}/{place}" for place in range(HANGING_PER_COMPANY)]
            made[company.id] = await make_endpoints(self._ground, company.id, urls)
        try:
            yield
        finally:
            for company_id, ids in made.items():
                await delete_endpoints(self._ground, company_id, ids)
            await self._receiver.drop_hanging()


@asynccontextmanager
async def open_crowd(ground: Ground, receiver: Receiver) -> AsyncIterator[Crowd]:
    seeded = [await make_company(ground, f"Neighbour {number}") for number in range(COMPANIES)]
    for company in seeded:
        await make_endpoints(ground, company.id, [f"{receiver.address}/healthy/{company.id}"])
    async with open_database(ground.app_url, size=4) as database:
        companies = [await _load(database, company) for company in seeded]
        yield Crowd(ground, receiver, database, companies)


async def _load(database: Database, company: SeededCompany) -> Company:
    async with database.connection() as db:
        return await access.get_company(db, company.id)


def build_customer() -> Customer:
    """About 1 KB as an event."""
    nothing, moment = Raw(b"[]"), "2026-01-31T09:30:00.000Z"
    return Customer(
        id=CUSTOMER_ID.new(), external_id=None, email="ayu@example.com", phone_number=None, first_name="Ayu",
        last_name="x" * 700, image_url=None, tags=[], addresses=nothing, additional_data=Raw(b"{}"),
        subscription_status=nothing, created_at=moment, updated_at=moment,
    )  # fmt: skip
