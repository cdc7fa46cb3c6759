"""Random histories of tickets through the API, compared with a calculator that follows the definitions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.messaging.messages.types import Source
from sapa.support.samples.types import Sample
from tests import depth
from tests.analytics.calculator import Agent, HistoryEvent, Kind, measure
from tests.analytics.expected_figures import figures_of, list_nonzero
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import make_company, make_key
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.conversation_steps import advance, get_message, simulate_inbound

Json = dict[str, Any]

CONTACTS = [("MSGAPP_CLOUD", "+628123456789"), ("MAIL", "ayu@simulator.test"), ("MSGAPP_COEX", "+12015550111")]
LOSES = 2
"""The contact whom no message reaches: each is reported as failed after it was sent."""

NEWEST = "SELECT at FROM ticket_events WHERE company_id = $1 AND ticket_id = $2 ORDER BY number DESC LIMIT 1"
ARRIVED = """
    SELECT e.ticket_id, e.at
      FROM messages m
      JOIN ticket_events e ON e.company_id = m.company_id AND e.message_id = m.id AND e.kind = 'heard'
     WHERE m.company_id = $1 AND m.provider_id = $2"""


class History:
    """A company of three agents, and all events of its tickets."""

    def __init__(self, client: httpx.AsyncClient, database: Database, company_id: int) -> None:
        self.client = client
        self.database = database
        self.company_id = company_id
        self.agents: list[Agent] = []
        self.tickets: dict[int, str] = {}
        """The newest ticket of each contact."""
        self.events: dict[str, list[HistoryEvent]] = {}
        self.sources: dict[str, Source] = {}

    async def begin(self) -> None:
        for type in ("human", "human", "ai"):
            answer = await self.client.post("/agents", json={"name": f"Agent {len(self.agents)}", "type": type})
            self.agents.append(Agent(answer.json()["data"]["id"], type))
        assert (await self.client.put("/support/settings", json={"autoResolveHours": 0})).status_code == 200

    async def step(self, verb: str, contact: int, place: int | None) -> None:
        agent = None if place is None else self.agents[place]
        if verb == "hear":
            await self.receive(contact)
        elif contact in self.tickets:
            await self.act(verb, contact, agent)

    async def receive(self, contact: int) -> None:
        source, sender = CONTACTS[contact]
        inbound = await simulate_inbound(self.client, source=source, text="Halo", **{"from": sender})

        async def look() -> Any:
            async with self.database.connection() as db:
                return await db.fetchrow(ARRIVED, self.company_id, inbound["messageId"])

        ticket, at = await eventually(look)
        self.tickets[contact] = ticket
        self.sources[ticket] = Source(source)
        self.events.setdefault(ticket, []).append(HistoryEvent("heard", datetime.fromisoformat(at)))

    async def act(self, verb: str, contact: int, agent: Agent | None) -> None:
        ticket = self.tickets[contact]
        before = (await self.client.get(f"/tickets/{ticket}")).json()["data"]
        is_announced = verb == "announce" and contact != LOSES
        path = "replies" if verb == "announce" else verb
        body = self.build_body(path, agent) | ({"handover": True} if is_announced else {})
        answer = await self.client.post(f"/tickets/{ticket}/{path}", json=body)
        if answer.status_code >= 300:
            assert answer.status_code in {400, 409}, answer.text
            return
        await self.remember(ticket, path, agent, before, answer, is_announced)

    def build_body(self, path: str, agent: Agent | None) -> Json:
        if path in {"replies", "notes"}:
            return {"agentId": (agent or self.agents[0]).id, "body": "Baik."}
        return {"agentId": agent and agent.id} if path == "assign" or agent else {}

    async def remember(
        self, ticket: str, path: str, agent: Agent | None, before: Json, answer: httpx.Response, is_announced: bool
    ) -> None:
        data = answer.json()["data"]
        at = await self.read_instant(ticket)
        was_resolved = before["status"] == "resolved"
        if path == "replies":
            writer = agent or self.agents[0]
            kind: Kind = "lost" if await self.is_lost(data) else "announced" if is_announced else "said"
            self.events[ticket].append(HistoryEvent(kind, at, writer, data["messageId2"]))
        elif path == "assign" and before["agentId"] != data["agentId"]:
            self.events[ticket].append(HistoryEvent("assigned", at, agent))
        elif path == "handover":
            self.events[ticket].append(HistoryEvent("handover", at, agent))
        elif path == "resolve" and not was_resolved:
            self.events[ticket].append(HistoryEvent("resolved", at, agent))
        elif path == "reopen" and was_resolved:
            self.events[ticket].append(HistoryEvent("reopened", at))

    async def is_lost(self, message: Json) -> bool:
        if message["clientNumber"] != CONTACTS[LOSES][1]:
            return False

        async def look() -> bool | None:
            return (await get_message(self.client, message["messageId2"]))["status"] == "failed" or None

        return await eventually(look)

    async def read_instant(self, ticket: str) -> datetime:
        async with self.database.connection() as db:
            return datetime.fromisoformat(await db.fetchval(NEWEST, self.company_id, ticket))

    def measure(self) -> list[Sample]:
        measured = [measure(id, self.sources[id], history) for id, history in self.events.items()]
        return [sample for samples in measured for sample in samples]

    async def compare(self) -> None:
        """For all time, and for windows that begin and end at samples."""
        samples = self.measure()
        instants = sorted({one.at for one in samples})
        windows = [(datetime.fromisoformat("2020-01-01T00:00:00Z"), datetime.fromisoformat("2090-01-01T00:00:00Z"))]
        windows += zip(instants, instants[len(instants) // 2 :], strict=False)
        for start, end in windows:
            asked = {"startAt": start.isoformat(), "endAt": end.isoformat()}
            answer = await self.client.get("/analytics/agents", params=asked)
            assert answer.status_code == 200, answer.text
            assert list_nonzero(answer.json()["data"]["records"]) == figures_of(samples, start, end)


WAITS = st.sampled_from([2, 7, 65, 1_200, 5 * 3_600, 30 * 3_600])
VERBS = st.sampled_from(
    ["hear", "hear", "hear", "replies", "replies", "replies", "announce", "notes", "assign", "handover", "resolve",
     "reopen"]
)  # fmt: skip
STEPS = st.tuples(WAITS, VERBS, st.sampled_from([0, 0, 0, 1, LOSES]), st.sampled_from([0, 1, 2, 2, None]))
WORKED = [
    (0, "hear", 0, None), (30, "hear", 0, None), (270, "replies", 0, 0), (20, "replies", 0, 0), (280, "hear", 0, None),
    (120, "replies", 0, 0), (1080, "resolve", 0, 0), (95 * 3600, "hear", 0, None), (600, "replies", 0, 1),
    (0, "hear", 1, None), (5, "replies", 1, 2), (55, "hear", 1, None), (10, "announce", 1, 2), (300, "replies", 1, 0),
    (900, "resolve", 1, 0), (120 * 3600, "hear", LOSES, None), (60, "replies", LOSES, 0), (60, "hear", LOSES, None),
    (60, "resolve", LOSES, 1),
]  # fmt: skip
"""A burst, two answers in a row, an AI agent that hands over, a return days later, and a reply that fails later."""

Steps = list[tuple[int, str, int, int | None]]


@asynccontextmanager
async def live_through(installation: Installation, database: Database, steps: Steps) -> AsyncIterator[History]:
    company = (await make_company(database)).test
    async with connect_messaging(installation, (await make_key(database, company)).raw) as client:
        history = History(client, database, company)
        await history.begin()
        for seconds, verb, contact, agent in steps:
            if seconds:
                await advance(client, seconds)
            await history.step(verb, contact, agent)
        yield history


@given(drawn=st.lists(STEPS, min_size=8, max_size=14))
@settings(
    max_examples=depth.examples(5),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],
)
async def test_figures_are_those_of_the_definitions(
    installation: Installation, database: Database, drawn: Steps
) -> None:
    async with live_through(installation, database, [(0, "hear", 0, None), *drawn]) as history:
        await history.compare()


DAMAGE = [
    "DELETE FROM support_samples WHERE company_id = $1 AND metric = 'resolution'",
    "UPDATE support_samples SET micros = micros + 5000000 WHERE company_id = $1 AND metric = 'response'",
    "UPDATE analytics_sums SET response_count = response_count + 7, last_handled_at = NULL WHERE company_id = $1",
    "DELETE FROM analytics_sums WHERE company_id = $1 AND agent_id % 2 = 0",
    "UPDATE analytics_tickets SET days = '{}', first_day = NULL, last_day = NULL WHERE company_id = $1",
]


async def test_all_derived_data_can_be_rebuilt(installation: Installation, database: Database) -> None:
    """The worked examples, correct as recorded and again after all derived data was damaged."""
    async with live_through(installation, database, WORKED) as history:
        await history.compare()
        async with connect(installation.server.owner_url) as owner:
            for statement in DAMAGE:
                assert await owner.execute(statement, history.company_id) not in {"UPDATE 0", "DELETE 0"}
        with pytest.raises(AssertionError):
            await history.compare()
        done = sapa(installation.data, "analytics", "rebuild", "--company", str(history.company_id), "--json").json()
        assert (done["companyId"], done["tickets"]) == (history.company_id, len(history.events))
        await history.compare()
