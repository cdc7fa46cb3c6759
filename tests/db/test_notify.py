"""Notifications are sent after a commit, and only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import asyncpg
import pytest

from sapa.db.notify import Notification, Notifier
from sapa.db.pool import Database, notify_after_commit

CHANNEL = "test_notify"


@pytest.fixture
async def received(database: Database) -> AsyncIterator[asyncio.Queue[str]]:
    """What a listener of another process receives."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    listener = await asyncpg.connect(database.url)
    await listener.add_listener(CHANNEL, lambda *call: queue.put_nowait(str(call[2])))
    yield queue
    await listener.close()


async def test_listeners_are_notified_after_the_commit(database: Database, received: asyncio.Queue[str]) -> None:
    async with database.transaction() as tx:
        notify_after_commit(tx, CHANNEL)
        await asyncio.sleep(0.1)
        assert received.empty()
    assert await asyncio.wait_for(received.get(), 120) == CHANNEL


async def test_a_rolled_back_transaction_notifies_nobody(database: Database, received: asyncio.Queue[str]) -> None:
    with suppress(ValueError):
        async with database.transaction() as tx:
            notify_after_commit(tx, CHANNEL)
            raise ValueError("changed my mind")
    async with database.transaction() as tx:  # the same connection again: nothing is left over
        await tx.execute("SELECT 1")
    await database.notifier.drain()
    await asyncio.sleep(0.1)
    assert received.empty()


async def test_a_closing_database_sends_what_is_due(database: Database, received: asyncio.Queue[str]) -> None:
    second = Database(database.url, 2)
    async with second.transaction() as tx:
        notify_after_commit(tx, CHANNEL)
    await second.close()
    assert await asyncio.wait_for(received.get(), 120) == CHANNEL


async def test_notifications_within_a_short_time_are_sent_as_few() -> None:
    sent: list[set[Notification]] = []

    async def send(notifications: set[Notification]) -> None:
        sent.append(notifications)

    notifier = Notifier(send)
    for _ in range(1_000):
        notifier.notify({("one", ""), ("two", "now")})
        await asyncio.sleep(0)
    await notifier.drain()
    assert 1 <= len(sent) < 100
    assert sent[0] == {("one", ""), ("two", "now")}


async def test_a_database_that_is_away_is_not_waited_for() -> None:
    nowhere = Database("postgresql://nobody@127.0.0.1:1/none", 1)
    nowhere.notifier.notify({(CHANNEL, "")})
    await asyncio.wait_for(nowhere.notifier.drain(), 120)
