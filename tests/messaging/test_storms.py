"""Many callers write in one conversation while processes are killed and connections are terminated."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count

import httpx
import msgspec
import psutil
import pytest

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database, open_database
from tests.conftest import Installation
from tests.factories import Environments, make_company, make_key
from tests.faults.traffic import api_processes
from tests.http.wire import eventually
from tests.messaging.conftest import connect_messaging
from tests.messaging.send_steps import NUMBER, build_message

CALLERS = 64


@pytest.fixture
async def database(victim: Installation) -> AsyncIterator[Database]:
    async with open_database(victim.server.app_url, size=3, application="onlooker") as opened:
        yield opened


@pytest.fixture
async def company(database: Database) -> Environments:
    return await make_company(database)


class Storm:
    """Calls whose texts are unique, and which of them were acknowledged."""

    def __init__(self, victim: Installation, database: Database, company_id: int) -> None:
        self._victim = victim
        self._database = database
        self._company_id = company_id
        self.acknowledged: list[list[str]] = [[] for _ in range(CALLERS)]

    async def rage(self, key: str, sends: int) -> None:
        faults = asyncio.create_task(self._make_faults())
        async with connect_messaging(self._victim, key) as client:
            await asyncio.gather(*(self._call(client, caller, sends) for caller in range(CALLERS)))
            faults.cancel()
            with suppress(asyncio.CancelledError):
                await faults
            # A short storm on a loaded machine may let nothing through. After it, callers are served again.
            for number in count(sends):
                await self._send(client, 0, number)
                if self.acknowledged[0]:
                    break

    async def _call(self, client: httpx.AsyncClient, caller: int, sends: int) -> None:
        """One after the other; what gets no answer is not repeated."""
        for number in range(sends):
            await self._send(client, caller, number)

    async def _send(self, client: httpx.AsyncClient, caller: int, number: int) -> None:
        text = f"{caller}-{number}"
        with suppress(httpx.TransportError):
            answer = await client.post("/messages/send", json=build_message(to=NUMBER, message=text))
            assert answer.status_code in {200, 202, 503}, answer.text
            if answer.status_code == 200:
                self.acknowledged[caller].append(text)

    async def _make_faults(self) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.1, 1))
            if random.random() < 0.3 and len(processes := api_processes(self._victim)) > 1:
                with suppress(psutil.NoSuchProcess):
                    random.choice(processes).kill()
            with suppress(DatabaseAway):
                async with self._database.connection() as db:
                    await db.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND usename = current_user"
                        "   AND application_name LIKE 'sapa%' AND random() < 0.3"
                    )

    async def find_settled(self) -> bool | None:
        """Whether every acknowledged message has been read."""
        async with self._database.connection() as db:
            read = await db.fetch(
                "SELECT body FROM messages WHERE company_id = $1 AND status = 'read'", self._company_id
            )
        texts = {row["body"] for row in read}
        return all(text in texts for own in self.acknowledged for text in own) or None


@pytest.mark.processes
@pytest.mark.parametrize("sends", [2, pytest.param(1_600, marks=pytest.mark.long)])
async def test_a_storm_on_one_conversation_loses_doubles_and_reorders_nothing(
    victim: Installation, database: Database, company: Environments, sends: int
) -> None:
    key = (await make_key(database, company.test)).raw
    storm = Storm(victim, database, company.test)
    await storm.rage(key, sends)
    await eventually(storm.find_settled, seconds=120 + sends)
    async with database.connection() as db:
        assert await count_doubled(db, company.test) == {}
        order = await db.fetch("SELECT body FROM messages WHERE company_id = $1 ORDER BY created_at, id", company.test)
        await assert_events_in_order(db, company.test)
    texts = [row["body"] for row in order]
    for own in storm.acknowledged:
        assert [text for text in texts if text in set(own)] == own


async def count_doubled(db: Connection, company_id: int) -> dict[str, int]:
    """Texts that the channel got more than once."""
    rows = await db.fetch("SELECT body FROM sandbox_outbox WHERE company_id = $1 AND status = 200", company_id)
    texts = Counter(msgspec.json.decode(row["body"])["text"]["body"] for row in rows)
    return {text: count for text, count in texts.items() if count > 1}


async def assert_events_in_order(db: Connection, company_id: int) -> None:
    """Receivers get each change of a message once, in its order."""
    rows = await db.fetch(
        "SELECT resource_id, body FROM events WHERE company_id = $1 AND kind = $2 ORDER BY number",
        company_id,
        "message.status.updated",
    )
    sequences: dict[str, list[int]] = {}
    for row in rows:
        sequences.setdefault(row["resource_id"], []).append(msgspec.json.decode(row["body"])["sequence"])
    assert all(found == list(range(1, len(found) + 1)) for found in sequences.values())
