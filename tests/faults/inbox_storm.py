"""Agents who work on one queue in random order while processes die, and the reckoning after it."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
from asyncpg import Record
from msgspec import Struct

from sapa.db.pool import Database
from tests.faults.traffic import PATIENCE
from tests.http.wire import eventually
from tests.support.expected_samples import calculate, read_rows, rows_of
from tests.support.test_filing import build_instant
from tests.support.ticket_steps import Desk

Json = dict[str, Any]

VERBS = ("take", "take", "reply", "reply", "reply", "snooze", "assign", "handover", "resolve", "write")
LONGEST_PAUSE = 0.2
SNOOZE_HOURS = 5
OWNING = {"assigned", "unassigned", "handover", "reopened"}
"""Entries that say whose the ticket is from then on."""

ENTRIES = """
    SELECT ticket_id, number, kind, agent_id, message_id
      FROM ticket_events
     WHERE company_id = $1
     ORDER BY ticket_id, number"""
TICKETS = "SELECT id, connection_id, contact_id, status, agent_id FROM tickets WHERE company_id = $1"
MESSAGES = "SELECT id, direction, body, ticket_id FROM messages WHERE company_id = $1"
SNOOZED = "SELECT count(*) FROM tickets WHERE company_id = $1 AND snoozed_until IS NOT NULL"


class SentReply(Struct, frozen=True):
    """A reply that was acknowledged, and how much of the ticket its agent had seen."""

    ticket_id: str
    agent_id: int
    seen: int
    body: str


class Storm:
    """What agents and customers did, and what they were told. A call that is cut happened, or it did not."""

    def __init__(self, desk: Desk, agents: Sequence[int], senders: Sequence[str]) -> None:
        self.desk, self.agents, self.senders = desk, agents, senders
        self.written: list[str] = []
        self.replies: list[SentReply] = []
        self.takes: set[tuple[str, int]] = set()
        self.assigns: Counter[tuple[str, int]] = Counter()
        self.done = 0
        self.cut = 0
        self._numbers = count(1)
        self._is_over = False

    @asynccontextmanager
    async def raging(self) -> AsyncIterator[None]:
        """Agents at work for the length of a block."""
        workers = [asyncio.create_task(self._work(agent)) for agent in self.agents]
        try:
            yield
        finally:
            self._is_over = True
            await asyncio.gather(*workers)

    async def grows(self, by: int) -> None:
        """Waits until so many more calls were answered."""
        goal = self.done + by
        for _ in range(PATIENCE * 50):
            if self.done >= goal:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"calls are not answered any more: {self.cut} were cut")

    async def write(self, sender: str) -> None:
        text = f"Pertanyaan {next(self._numbers)}"
        body = {"source": "MSGAPP_CLOUD", "text": text, "from": sender}
        if await self._call("POST", "/sandbox/inbound", json=body) is not None:
            self.written.append(text)

    async def _work(self, agent_id: int) -> None:
        while not self._is_over:
            await asyncio.sleep(random.random() * LONGEST_PAUSE)
            verb = random.choice(VERBS)
            if verb == "write":
                await self.write(random.choice(self.senders))
            elif (ticket := await self._pick(agent_id, verb)) is not None:
                await self._act(agent_id, verb, ticket)

    async def _pick(self, agent_id: int, verb: str) -> Json | None:
        """One of those who wait longest in the queue, or of the agent's own."""
        is_from_queue = verb == "take" or random.random() < 0.3
        whose = {"status": "open"} if is_from_queue else {"status": "assigned", "agentId": agent_id}
        query = {"sort": "waitingSince:asc", "snoozed": "false", "limit": 10, **whose}
        found = await self._call("GET", "/tickets", params=query)
        return random.choice(found[:3]) if found else None

    async def _act(self, agent_id: int, verb: str, ticket: Json) -> None:
        path = f"/tickets/{ticket['id']}"
        if verb == "reply":
            await self._reply(agent_id, ticket)
        elif verb == "take":
            if taken := await self._call("POST", f"{path}/take", json={"agentId": agent_id}):
                assert taken["agentId"] == agent_id
                self.takes.add((ticket["id"], agent_id))
        elif verb == "snooze":
            await self._call("PUT", path, json={"snoozedUntil": build_instant(hours=SNOOZE_HOURS)})
        elif verb == "assign":
            await self._assign(ticket["id"], random.choice([None, *self.agents]))
        elif verb == "handover":
            await self._call("POST", f"{path}/handover", json={"agentId": None})
        else:
            await self._call("POST", f"{path}/resolve", json={"agentId": agent_id})

    async def _assign(self, ticket_id: str, agent_id: int | None) -> None:
        if agent_id is not None:
            self.assigns[ticket_id, agent_id] += 1
        await self._call("POST", f"/tickets/{ticket_id}/assign", json={"agentId": agent_id})

    async def _reply(self, agent_id: int, ticket: Json) -> None:
        body, seen = f"Jawaban {next(self._numbers)}", ticket["sequence"]
        reply = {"agentId": agent_id, "body": body, "seenSequence": seen}
        if await self._call("POST", f"/tickets/{ticket['id']}/replies", json=reply) is not None:
            self.replies.append(SentReply(ticket["id"], agent_id, seen, body))

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        """None if it was refused because of what others did, or cut."""
        try:
            answer = await self.desk.client.request(method, path, **options)
        except httpx.TransportError:
            self.cut += 1
            return None
        self.done += 1
        assert answer.status_code in {200, 202, 409}, answer.text
        return None if answer.status_code == 409 else answer.json()["data"]


async def reckon_inbox(database: Database, company_id: int, storm: Storm) -> None:
    """No ticket is lost, has two owners, is answered unawares, or sleeps for good; totals and samples are exact."""
    await eventually(lambda: _has_arrived(database, company_id, storm.written))
    await storm.desk.pass_time(SNOOZE_HOURS * 3600)
    await eventually(lambda: _is_awake(database, company_id))
    async with database.connection() as db:
        tickets = {row["id"]: row for row in await db.fetch(TICKETS, company_id)}
        messages = await db.fetch(MESSAGES, company_id)
        entries: dict[str, list[Record]] = {id: [] for id in tickets}
        for entry in await db.fetch(ENTRIES, company_id):
            entries[entry["ticket_id"]].append(entry)
        assert await read_rows(db, company_id) == rows_of(await calculate(db, company_id))
    active = Counter(
        (one["connection_id"], one["contact_id"]) for one in tickets.values() if one["status"] != "resolved"
    )
    assert set(active.values()) <= {1}
    heard = {entry["message_id"] for journal in entries.values() for entry in journal if entry["kind"] == "heard"}
    assert {one["id"] for one in messages if one["direction"] == "in"} == heard
    for id, ticket in tickets.items():
        _check_owner(ticket, entries[id], storm)
    _check_replies(storm.replies, messages, entries)
    await _check_queue(storm, tickets)


def _check_owner(ticket: Record, journal: Sequence[Record], storm: Storm) -> None:
    """The journal leads to the present owner, and nobody got it from an agent who had it by taking it.

    Who takes what was assigned to them in the meantime takes nothing, and is told the same.
    """
    assert [entry["number"] for entry in journal] == list(range(1, len(journal) + 1))
    owner, found_free, passed_on = None, set[int](), Counter[int]()
    for entry in journal:
        if entry["kind"] in OWNING:
            if entry["kind"] == "assigned" and owner is None:
                found_free.add(entry["agent_id"])
            elif entry["kind"] == "assigned":
                passed_on[entry["agent_id"]] += 1
            owner = entry["agent_id"]
    assert ticket["agent_id"] == owner
    assert passed_on <= Counter({agent: times for (id, agent), times in storm.assigns.items() if id == ticket["id"]})
    takers = {agent for taken, agent in storm.takes if taken == ticket["id"]}
    assert takers <= found_free | passed_on.keys()
    if ticket["status"] != "resolved":
        assert ticket["status"] == ("open" if owner is None else "assigned")


def _check_replies(replies: Sequence[SentReply], messages: Sequence[Record], entries: dict[str, list[Record]]) -> None:
    """Each went out once, and none after an answer that its agent had not seen."""
    sent = Counter(one["body"] for one in messages if one["direction"] == "out")
    assert set(sent.values()) <= {1}
    ids = {one["body"]: one["id"] for one in messages}
    for reply in replies:
        said = [entry for entry in entries[reply.ticket_id] if entry["kind"] == "said"]
        (mine,) = [entry for entry in said if entry["message_id"] == ids[reply.body]]
        unseen = [entry for entry in said if reply.seen < entry["number"] < mine["number"]]
        assert {entry["agent_id"] for entry in unseen} <= {reply.agent_id}


async def _check_queue(storm: Storm, tickets: dict[str, Record]) -> None:
    """Every active ticket is in the queue or with somebody, and can be resolved."""
    states = Counter(ticket["status"] for ticket in tickets.values())
    counts = await storm.desk.get("/tickets/counts")
    assert (counts["all"], counts["unassigned"]) == (states["open"] + states["assigned"], states["open"])
    for status in ("open", "assigned", "resolved"):
        answer = (await storm.desk.client.get("/tickets", params={"status": status})).json()
        assert answer["meta"]["total"] == states[status]
    for id, ticket in tickets.items():
        if ticket["status"] != "resolved":
            await storm.desk.post(f"/tickets/{id}/resolve", agentId=storm.agents[0])
    assert (await storm.desk.get("/tickets/counts"))["all"] == 0


async def _has_arrived(database: Database, company_id: int, texts: Sequence[str]) -> bool | None:
    async with database.connection() as db:
        stored = {row["body"] for row in await db.fetch(MESSAGES, company_id) if row["ticket_id"]}
    return stored >= set(texts) or None


async def _is_awake(database: Database, company_id: int) -> bool | None:
    async with database.connection() as db:
        return not await db.fetchval(SNOOZED, company_id) or None
