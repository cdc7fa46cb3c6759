"""A customer writes while somebody is about to change the ticket: the message waits, and then finds what there is."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from sapa.access.actions import get_company
from sapa.company import Company
from sapa.db.pool import Database, Tx
from sapa.support import tickets
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversing import speak
from tests.support.desk import NUMBER, Desk, Json

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'tickets|ticket_events'"""

Change = Callable[[Tx, Company], Awaitable[object]]


@pytest.fixture
async def test_company(database: Database, company: Environments) -> Company:
    async with database.connection() as db:
        return await get_company(db, company.test)


async def hear_during(desk: Desk, database: Database, company: Company, change: Change) -> Json:
    """The customer's ticket after a message that came in before the change was committed."""
    async with database.transaction() as tx:
        await change(tx, company)
        told = await speak(desk.client, source="MSGAPP_CLOUD", text="Sebentar", **{"from": NUMBER})
        await eventually(lambda: is_somebody_waiting(database))
    return await eventually(partial(desk.find_ticket_of, told["messageId"]))


async def is_somebody_waiting(database: Database) -> bool | None:
    async with database.connection() as db:
        return True if await db.fetchval(WAITING) else None


async def test_while_it_is_being_resolved(desk: Desk, database: Database, test_company: Company) -> None:
    ticket = await desk.hear()
    seen = await hear_during(desk, database, test_company, lambda tx, of: tickets.resolve(tx, of, ticket["id"], None))
    assert (seen["id"], seen["cycle"], seen["status"]) == (ticket["id"], 2, "open")
    assert seen["waitingSince"] is not None


async def test_while_an_older_one_is_being_reopened(desk: Desk, database: Database, test_company: Company) -> None:
    """The message would open a third ticket, finds the customer's place taken, and looks again."""
    await desk.client.put("/support/settings", json={"reopenWindowHours": 0})
    first = await desk.hear()
    await desk.act(first, "resolve")
    second = await desk.hear("Lagi")
    await desk.act(second, "resolve")
    seen = await hear_during(desk, database, test_company, lambda tx, of: tickets.reopen(tx, of, first["id"]))
    assert (seen["id"], seen["cycle"], seen["status"]) == (first["id"], 2, "open")
    assert [ticket["id"] for ticket in await desk.get("/tickets")] == [second["id"], first["id"]]
