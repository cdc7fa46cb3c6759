"""An action that waits for a ticket's lock uses the state that it finds afterwards."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from sapa.access.actions import get_company
from sapa.db.pool import Database, Tx
from sapa.support import tickets
from sapa.values.company import Company
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import simulate_inbound, wait_for_inbound
from tests.messaging.whatsapp_account import build_change, build_text, connect_whatsapp
from tests.support.ticket_steps import NUMBER, Desk, Json

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'tickets|ticket_events'"""
USER = "ID.13491208655302741918"

Change = Callable[[Tx, Company], Awaitable[object]]


@pytest.fixture
async def test_company(database: Database, company: Environments) -> Company:
    async with database.connection() as db:
        return await get_company(db, company.test)


async def receive_during(desk: Desk, database: Database, company: Company, change: Change) -> Json:
    """The customer's ticket after a message that arrived before the change was committed."""
    async with database.transaction() as tx:
        await change(tx, company)
        inbound = await simulate_inbound(desk.client, source="MSGAPP_CLOUD", text="Sebentar", **{"from": NUMBER})
        await eventually(lambda: is_somebody_waiting(database))
    return await eventually(partial(desk.find_ticket_of, inbound["messageId"]))


async def is_somebody_waiting(database: Database) -> bool | None:
    async with database.connection() as db:
        return True if await db.fetchval(WAITING) else None


async def test_a_message_while_it_is_being_resolved(desk: Desk, database: Database, test_company: Company) -> None:
    ticket = await desk.receive()
    seen = await receive_during(
        desk, database, test_company, lambda tx, of: tickets.resolve(tx, of, ticket["id"], None)
    )
    assert (seen["id"], seen["cycle"], seen["status"]) == (ticket["id"], 2, "open")
    assert seen["waitingSince"] is not None


async def test_a_message_while_an_older_one_is_being_reopened(
    desk: Desk, database: Database, test_company: Company
) -> None:
    """The message would open a third ticket, finds another active one, and retries."""
    await desk.client.put("/support/settings", json={"reopenWindowHours": 0})
    first = await desk.receive()
    await desk.act(first, "resolve")
    second = await desk.receive("Lagi")
    await desk.act(second, "resolve")
    seen = await receive_during(desk, database, test_company, lambda tx, of: tickets.reopen(tx, of, first["id"]))
    assert (seen["id"], seen["cycle"], seen["status"]) == (first["id"], 2, "open")
    assert [ticket["id"] for ticket in await desk.get("/tickets")] == [second["id"], first["id"]]


@pytest.mark.parametrize("verb", ["replies", "resolve", "handover"])
async def test_an_ai_agent_while_a_person_is_taking_over(
    desk: Desk, database: Database, test_company: Company, verb: str
) -> None:
    """The action is dropped, and nothing is sent."""
    sari, bot = await desk.create_agent(), await desk.create_agent("Robo", "ai")
    ticket = await desk.receive()
    await desk.reply(ticket, bot)
    bodies: dict[str, Json] = {
        "replies": {"agentId": bot, "body": "Halo"},
        "resolve": {"agentId": bot},
        "handover": {"fromAgentId": bot},
    }
    async with database.transaction() as tx:
        await tickets.assign(tx, test_company, ticket["id"], sari)
        acting = asyncio.create_task(desk.act(ticket, verb, 409, **bodies[verb]))
        await eventually(lambda: is_somebody_waiting(database))
    assert (await acting)["code"] == "TAKEN_OVER"
    seen = await desk.look(ticket)
    assert (seen["status"], seen["agentId"], len(seen["messages"])) == ("assigned", sari, 2)


async def test_contacts_are_merged_while_a_ticket_of_one_is_being_reopened(
    installation: Installation, database: Database, company: Environments
) -> None:
    """They have one active ticket then, with the message that merged them."""
    hook, now = connect_whatsapp(installation, company.live), int(time.time())
    nameless = {"from_user_id": USER, "id": "wamid.1", "timestamp": str(now), "type": "text", "text": {"body": "Satu"}}
    await hook.send_change({"messages": [nameless]})
    await wait_for_inbound(database, company.live, 1)
    key = await make_key(database, company.live)
    async with connect_messaging(installation, key.raw) as client:
        desk = Desk(client)
        (going,) = await desk.get("/tickets")
        await desk.act(going, "resolve")
        await hook.send_change(build_change(build_text(NUMBER[1:], "Dua", at=now)))
        await wait_for_inbound(database, company.live, 2)
        async with database.transaction() as tx:
            await tickets.reopen(tx, await get_company(tx, company.live), going["id"])
            await hook.send_change(build_change(build_text(NUMBER[1:], "Tiga", at=now, from_user_id=USER)))
            await eventually(lambda: is_somebody_waiting(database))
        await wait_for_inbound(database, company.live, 3)
        staying = await desk.get("/tickets", status="open")
        assert [message["body"] for message in (await desk.look(staying[0]))["messages"]] == ["Dua", "Tiga"]
        assert (await desk.look(going))["resolvedReason"] == "merged"
        assert len(staying) == 1
