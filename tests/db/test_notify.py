"""The bell rings after a commit, and only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import asyncpg
import pytest

from sapa.db.notify import Notifier
from sapa.db.pool import Database, notify_after_commit

CHANNEL = "test_bell"


@pytest.fixture
async def heard(database: Database) -> AsyncIterator[asyncio.Queue[str]]:
    """What a listener elsewhere hears."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    listener = await asyncpg.connect(database.url)
    await listener.add_listener(CHANNEL, lambda *call: queue.put_nowait(str(call[2])))
    yield queue
    await listener.close()


async def test_it_rings_after_the_commit_and_not_before(database: Database, heard: asyncio.Queue[str]) -> None:
    async with database.transaction() as tx:
        notify_after_commit(tx, CHANNEL)
        await asyncio.sleep(0.1)
        assert heard.empty()
    assert await asyncio.wait_for(heard.get(), 5) == CHANNEL


async def test_what_is_rolled_back_rings_nothing(database: Database, heard: asyncio.Queue[str]) -> None:
    with suppress(ValueError):
        async with database.transaction() as tx:
            notify_after_commit(tx, CHANNEL)
            raise ValueError("changed my mind")
    async with database.transaction() as tx:  # the same connection again: nothing is left over
        await tx.execute("SELECT 1")
    await database.bell.still()
    await asyncio.sleep(0.1)
    assert heard.empty()


async def test_a_closing_database_sends_what_is_due(database: Database, heard: asyncio.Queue[str]) -> None:
    second = Database(database.url, 2)
    async with second.transaction() as tx:
        notify_after_commit(tx, CHANNEL)
    await second.close()
    assert await asyncio.wait_for(heard.get(), 5) == CHANNEL


async def test_rings_that_come_close_together_are_few() -> None:
    sent: list[set[str]] = []

    async def send(channels: set[str]) -> None:
        sent.append(channels)

    bell = Notifier(send)
    for _ in range(1_000):
        bell.ring({"one", "two"})
        await asyncio.sleep(0)
    await bell.still()
    assert 1 <= len(sent) < 100
    assert sent[0] == {"one", "two"}


async def test_a_database_that_is_away_is_not_waited_for() -> None:
    nowhere = Database("postgresql://nobody@127.0.0.1:1/none", 1)
    nowhere.bell.ring({CHANNEL})
    await asyncio.wait_for(nowhere.bell.still(), 10)
