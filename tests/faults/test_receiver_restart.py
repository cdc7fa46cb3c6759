"""A receiver that restarts for five seconds on a busy shop loses nothing, and nobody has to do anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sapa.db.pool import Database
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions
from tests.conftest import Installation, free_port
from tests.factories import Environments, make_company, make_endpoint
from tests.webhooks.dispatch.test_dispatcher import move
from tests.webhooks.shop import Arrival, open_shop
from tests.webhooks.station import Thing, happen, until

AWAY_SECONDS = 5
EVENTS_PER_SECOND = 40


@pytest.fixture
def seal(post_office: Installation) -> Vault:
    return Vault(post_office.server.secret_key)


@pytest.fixture
async def company(post: Database) -> Environments:
    return await make_company(post)


class BusyShop:
    """Changes that go on all the time."""

    def __init__(self, database: Database, company_id: int) -> None:
        self.changes = 0
        self._database = database
        self._company_id = company_id

    @asynccontextmanager
    async def trading(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._trade())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _trade(self) -> None:
        while True:
            thing = Thing(f"cust_{self.changes % 50}", self.changes)
            self.changes += 1
            await asyncio.shield(happen(self._database, self._company_id, [thing]))
            await asyncio.sleep(1 / EVENTS_PER_SECOND)


async def restart_receiver(post: Database, seal: Vault, company_id: int, is_waiting: bool) -> None:
    """Everything that happened before, during and after the restart arrives; the clock is moved unless it waits."""
    port = free_port()
    made = await make_endpoint(post, seal, company_id, f"http://127.0.0.1:{port}/hook", ["customer.updated"])
    shop = BusyShop(post, company_id)
    arrived: list[Arrival] = []
    async with shop.trading():
        async with open_shop(port) as receiver:
            await receiver.gets(EVENTS_PER_SECOND)
        arrived += receiver.arrivals
        await asyncio.sleep(AWAY_SECONDS)
        async with open_shop(port) as receiver:
            await until_status(post, seal, company_id, made.endpoint.id, "suspended")
            if not is_waiting:
                await move(post, company_id, 60)
            await until_status(post, seal, company_id, made.endpoint.id, "active", patience=90)
            await receiver.gets(EVENTS_PER_SECOND)
            await is_complete(post, company_id, shop, arrived, receiver.arrivals)


async def is_complete(
    post: Database, company_id: int, shop: BusyShop, before: list[Arrival], after: list[Arrival]
) -> None:
    """Every event recorded so far has arrived; the shop goes on meanwhile."""
    async with post.connection() as db:
        rows = await db.fetch("SELECT id FROM events WHERE company_id = $1 AND kind = 'customer.updated'", company_id)
    expected = {row[0] for row in rows}
    assert len(expected) >= shop.changes - 1

    def have_arrived() -> bool:
        return expected <= {arrival.event_id for arrival in [*before, *after]}

    await until(have_arrived, "events were lost")


async def until_status(
    post: Database, seal: Vault, company_id: int, id: str, status: str, patience: float = 60
) -> None:
    async def look() -> None:
        while True:
            async with post.connection() as db:
                if (await actions.get(db, seal, company_id, id)).status == status:
                    return
            await asyncio.sleep(0.1)

    await asyncio.wait_for(look(), patience)


@pytest.mark.long
async def test_a_receiver_that_restarts_loses_nothing_and_needs_nobody(
    post: Database, seal: Vault, company: Environments
) -> None:
    await restart_receiver(post, seal, company.test, is_waiting=False)


@pytest.mark.long
async def test_the_same_by_the_real_clock(post: Database, seal: Vault, company: Environments) -> None:
    await restart_receiver(post, seal, company.live, is_waiting=True)
