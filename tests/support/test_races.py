"""Concurrency: no message is lost, no customer has two tickets, and the samples are correct."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from sapa.db.pool import Database
from sapa.support.backfill import rebuild_company
from sapa.support.samples.backfill import recount
from tests.analytics.expected_figures import figures_of, list_nonzero
from tests.conftest import Installation
from tests.factories import Environments
from tests.http.wire import eventually
from tests.messaging.conversation_steps import simulate_inbound
from tests.messaging.provider import Live, open_live
from tests.messaging.whatsapp_account import build_change, build_text
from tests.support.expected_samples import calculate, read_rows, rows_of
from tests.support.slow_channel import SLOW, SlowChannel, open_slow_channel
from tests.support.ticket_steps import NUMBER, WIDEST, Desk

Json = dict[str, Any]

ROUNDS = 20
CLOCKS = "SELECT id, clock::text, waiting_since FROM tickets WHERE company_id = $1 ORDER BY id"
ACTIVE = "SELECT count(*) FROM tickets WHERE company_id = $1 AND status <> 'resolved'"
UNCOUNTED = """
    SELECT count(*) FROM messages m
     WHERE company_id = $1 AND direction = 'in'
       AND NOT EXISTS (
           SELECT FROM ticket_events e WHERE e.company_id = $1 AND e.message_id = m.id AND e.kind = 'heard')"""


@pytest.fixture
async def slow() -> AsyncIterator[SlowChannel]:
    async with open_slow_channel() as channel:
        yield channel


async def open_ticket(live: Live, text: str = "Masih ada?") -> Json:
    await live.hook.send_change(build_change(build_text(NUMBER[1:], text, at=int(time.time()))))

    async def look() -> Json | None:
        found = await live.get("/tickets")
        return found[0] if found else None

    return await eventually(look)


async def create_agent(live: Live, name: str, type: str = "human") -> int:
    return int((await live.post("/agents", name=name, type=type)).json()["data"]["id"])


async def measured(live: Live, agent_id: int) -> list[str]:
    answer = await live.client.get(f"http://probe/messaging/v1/analytics/agents/{agent_id}/samples", params=WIDEST)
    return sorted(sample["metric"] for sample in answer.json()["data"])


async def test_a_person_takes_over_while_the_ai_agent_s_answer_is_on_its_way(
    installation: Installation, database: Database, company: Environments, slow: SlowChannel
) -> None:
    """Both messages are sent. The AI agent's was written first and is the answer; it writes no other."""
    async with open_live(installation, database, company.live, slow.address) as live:
        ticket = await open_ticket(live)
        bot, sari = await create_agent(live, "Robo", "ai"), await create_agent(live, "Sari")
        replies = f"/tickets/{ticket['id']}/replies"
        under_way = asyncio.create_task(live.post(replies, agentId=bot, body=f"Jawaban {SLOW}"))
        await slow.has_slow.wait()
        person = await live.post(replies, agentId=sari, body="Saya bantu")
        assert person.status_code == 200, person.text
        assert await measured(live, sari) == ["first_response", "handled", "response"]
        refused = await live.post(replies, agentId=bot, body="Lagi")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "TAKEN_OVER")
        slow.may_go_on.set()
        late = await under_way
        assert (late.status_code, late.json()["data"]["status"]) == (200, "sent")
        assert slow.taken == ["Saya bantu", f"Jawaban {SLOW}"]
        assert await measured(live, bot) == ["first_response", "handled", "response"]
        assert await measured(live, sari) == ["handled"]
        timeline = f"http://probe/customer/v1/loyalty/customers/{ticket['customerId']}/timeline?category=support"
        entries = (await live.client.get(timeline)).json()["data"]
        told_of = [entry["type"].removeprefix("ticket_") for entry in entries]
        assert sorted(told_of) == ["answered", "assigned", "assigned", "opened"]
        seen = await live.get(f"/tickets/{ticket['id']}")
        assert (seen["agentId"], seen["aiPaused"], len(seen["messages"])) == (sari, True, 3)
        assert (await live.post(f"/tickets/{ticket['id']}/assign", agentId=bot)).json()["data"]["aiPaused"] is False
        assert (await live.post(replies, agentId=bot, body="Lagi")).status_code == 200


async def test_two_agents_answer_at_the_same_time(desk: Desk) -> None:
    """Both messages are sent; the ticket and the answer belong to the first."""
    sari, budi = await desk.create_agent(), await desk.create_agent("Budi")
    ticket = await desk.receive()
    await asyncio.gather(*(desk.reply(ticket, agent, f"Halo dari {agent}") for agent in (sari, budi)))
    seen = await desk.look(ticket)
    assert len(seen["messages"]) == 3
    mine = {agent: await desk.measured(agent) for agent in (sari, budi)}
    assert [len(mine[agent]["handled"]) for agent in (sari, budi)] == [1, 1]
    owner, other = (sari, budi) if seen["agentId"] == sari else (budi, sari)
    assert (len(mine[owner]["first_response"]), len(mine[other]["first_response"])) == (1, 0)
    assert [event["kind"] for event in seen["events"]] == ["opened", "assigned"]


async def test_resolving_while_a_customer_writes(desk: Desk, database: Database, company: Environments) -> None:
    """Repeated: whichever comes first, the message is in an active ticket."""
    sari = await desk.create_agent()
    ticket = await desk.receive()
    for n in range(ROUNDS):
        inbound, _ = await asyncio.gather(
            simulate_inbound(desk.client, source="MSGAPP_CLOUD", text=f"Pesan {n}", **{"from": NUMBER}),
            resolve_while(desk, ticket, n),
        )
        seen = await eventually(partial(desk.find_ticket_of, inbound["messageId"]))
        async with database.connection() as db:
            assert await db.fetchval(ACTIVE, company.test) <= 1
        if seen["status"] == "resolved":  # it arrived just before the resolution
            assert seen["resolvedAt"] >= seen["lastMessageAt"]
            await desk.act(ticket, "reopen")
    await desk.reply(ticket, sari)
    async with database.connection() as db:
        assert await db.fetchval(UNCOUNTED, company.test) == 0
        assert await db.fetchval("SELECT count(*) FROM tickets WHERE company_id = $1", company.test) == 1
    await check_measured(desk, database, company.test)


async def resolve_while(desk: Desk, ticket: Json, n: int) -> None:
    """At a different point of the message's processing each time."""
    await asyncio.sleep(0.02 * (n % 10))
    await desk.act(ticket, "resolve")


async def test_everything_at_once(desk: Desk, database: Database, company: Environments) -> None:
    """Customers on two channels, agents who answer, assign, hand over, resolve and reopen in random order, while the
    samples are rebuilt."""
    agents = [await desk.create_agent(f"Agen {n}", type) for n, type in enumerate(["human", "human", "ai"])]
    tickets = [await desk.receive(), await desk.receive(sender="ayu@example.com", source="MAIL")]

    room = asyncio.Semaphore(12)

    async def work(n: int) -> int:
        path, agent = f"/tickets/{tickets[n % 2]['id']}", agents[n % 3]
        verbs: list[tuple[str, Json]] = [
            ("replies", {"agentId": agent, "body": f"Jawaban {n}"}), ("assign", {"agentId": agent}),
            ("resolve", {"agentId": agent}), ("replies", {"agentId": agent, "body": "!", "handover": True}),
            ("reopen", {}), ("handover", {}), ("notes", {"agentId": agent, "body": "Catatan"}),
        ]  # fmt: skip
        verb, body = verbs[n % len(verbs)]
        async with room:
            return (await desk.client.post(f"{path}/{verb}", json=body)).status_code

    async def write(n: int) -> None:
        sender, source = [(NUMBER, "MSGAPP_CLOUD"), ("ayu@example.com", "MAIL")][n % 2]
        async with room:
            await simulate_inbound(desk.client, source=source, text=f"Pesan {n}", **{"from": sender})

    async def rebuild() -> None:
        for _ in range(3):
            await rebuild_company(database, company.test, lambda _: None)
            await recount(database, company.test, lambda done, of: None)

    answers = await asyncio.gather(*map(work, range(84)), *map(write, range(12)), rebuild())
    assert {answer for answer in answers if answer} <= {200, 201, 409}
    await eventually(lambda: all_heard(database, company.test, 14))
    async with database.connection() as db:
        assert await db.fetchval(UNCOUNTED, company.test) == 0
        per_thread = (
            "SELECT count(*) FROM tickets WHERE company_id = $1 AND status <> 'resolved' GROUP BY connection_id"
        )
        assert all(row[0] == 1 for row in await db.fetch(per_thread, company.test))
        counted = "SELECT count(*) FROM tickets WHERE company_id = $1 AND status = $2"
        for status in ("open", "assigned", "resolved"):
            answer = (await desk.client.get("/tickets", params={"status": status})).json()
            assert answer["meta"]["total"] == await db.fetchval(counted, company.test, status)
    await check_measured(desk, database, company.test)


async def all_heard(database: Database, company_id: int, count: int) -> bool | None:
    async with database.connection() as db:
        found = await db.fetchval(
            "SELECT count(*) FROM messages WHERE company_id = $1 AND direction = 'in'", company_id
        )
    return True if found >= count else None


async def check_measured(desk: Desk, database: Database, company_id: int) -> None:
    """The samples recorded one by one equal those of the calculator, the sums of the report, and the samples after a
    rebuild."""
    async with database.connection() as db:
        expected = await calculate(db, company_id)
        assert await read_rows(db, company_id) == rows_of(expected)
        clocks = await db.fetch(CLOCKS, company_id)
    start, end = (datetime.fromisoformat(str(WIDEST[name])) for name in ("startAt", "endAt"))
    query = {"startAt": start.isoformat(), "endAt": end.isoformat()}
    assert list_nonzero((await desk.get("/analytics/agents", **query))["records"]) == figures_of(expected, start, end)
    done: list[int] = []
    assert await rebuild_company(database, company_id, done.append) == len(done) > 0
    async with database.connection() as db:
        assert await read_rows(db, company_id) == rows_of(expected)
        assert [tuple(row) for row in await db.fetch(CLOCKS, company_id)] == [tuple(row) for row in clocks]


async def test_a_reply_requested_twice_is_sent_once(desk: Desk) -> None:
    sari = await desk.create_agent()
    ticket = await desk.receive()
    once = {"idempotency-key": uuid4().hex}
    body = {"agentId": sari, "body": "Sekali saja"}
    answers = await asyncio.gather(
        *(desk.client.post(f"/tickets/{ticket['id']}/replies", json=body, headers=once) for _ in range(3))
    )
    assert {answer.json()["data"]["messageId2"] for answer in answers} == {answers[0].json()["data"]["messageId2"]}
    assert len((await desk.look(ticket))["messages"]) == 2
    assert len((await desk.measured(sari))["handled"]) == 1
