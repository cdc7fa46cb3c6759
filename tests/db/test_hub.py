"""The hub: what others announce reaches every subscriber of this process, also after the connection was lost."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from sapa.db.hub import BEAT_SECONDS
from sapa.db.pool import Database, open_database
from tests.http.wire import eventually

CHANNEL, OTHER = "test_hub", "test_hub_other"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1"

Received = asyncio.Queue[str]


@pytest.fixture
async def own(database: Database) -> AsyncIterator[Database]:
    async with open_database(database.url, application="hub test") as opened:
        yield opened


def listen(own: Database, channel: str) -> Received:
    """What a subscriber is told, in order."""
    calls = Received()
    own.hub.subscribe(channel, calls.put_nowait, lambda: calls.put_nowait("<up>"), lambda: calls.put_nowait("<down>"))
    return calls


async def say(database: Database, channel: str, payload: str) -> None:
    async with database.connection() as db:
        await db.execute("SELECT pg_notify($1, $2)", channel, payload)


async def hears(calls: Received) -> str:
    return await asyncio.wait_for(calls.get(), 120)


async def count(database: Database, own: Database, statement: str = SESSIONS) -> int:
    async with database.connection() as db:
        number: int = await db.fetchval(statement, own.hub.application)
    return number


async def wait_for_end(database: Database, own: Database) -> None:
    async def look() -> bool | None:
        return await count(database, own) == 0 or None

    await eventually(look)


async def test_each_subscriber_hears_its_own_channel_on_one_connection(database: Database, own: Database) -> None:
    first, twin, other = listen(own, CHANNEL), listen(own, CHANNEL), listen(own, OTHER)
    assert [await hears(calls) for calls in (first, twin, other)] == ["<up>"] * 3
    await say(database, CHANNEL, "one")
    await say(database, OTHER, "two")
    assert [await hears(calls) for calls in (first, twin, other)] == ["one", "one", "two"]
    assert await count(database, own) == 1


async def test_a_late_subscriber_is_called_when_its_channel_is_up(database: Database, own: Database) -> None:
    assert await hears(listen(own, CHANNEL)) == "<up>"
    late, new = listen(own, CHANNEL), listen(own, OTHER)
    assert [await hears(late), await hears(new)] == ["<up>", "<up>"]
    await say(database, OTHER, "hello")
    assert await hears(new) == "hello"


async def test_a_lost_connection_is_reported_and_reopened(database: Database, own: Database) -> None:
    calls = listen(own, CHANNEL)
    assert await hears(calls) == "<up>"
    assert await count(database, own, CUT) == 1
    assert [await hears(calls), await hears(calls)] == ["<down>", "<up>"]
    await say(database, CHANNEL, "back")
    assert await hears(calls) == "back"


async def test_without_an_up_of_its_own_a_subscriber_gets_an_empty_notification(own: Database) -> None:
    calls = Received()
    own.hub.subscribe(CHANNEL, calls.put_nowait)
    assert await hears(calls) == ""


async def test_nobody_listens_once_nobody_subscribes(database: Database, own: Database) -> None:
    calls = Received()
    subscription = own.hub.subscribe(CHANNEL, calls.put_nowait)
    await hears(calls)
    own.hub.unsubscribe(subscription)
    await wait_for_end(database, own)
    assert await hears(listen(own, CHANNEL)) == "<up>"


async def test_a_hub_that_hears_the_beat_asks_nothing(database: Database, own: Database) -> None:
    """Of nobody's beat it asks PostgreSQL itself."""
    calls = listen(own, CHANNEL)
    assert await hears(calls) == "<up>"
    async with open_database(database.url, application="beating") as beating:
        beating.hub.is_beating = True
        assert await hears(listen(beating, CHANNEL)) == "<up>"
        await eventually(lambda: hears_without_asking(database, own))
    heard = own.hub.alive_at
    await eventually(lambda: is_heard_after(own, heard))
    assert calls.empty()


async def hears_without_asking(database: Database, own: Database) -> bool | None:
    """For several beats; a late one on a busy machine makes it ask."""
    asked, heard = await asked_at(database, own), own.hub.alive_at
    await eventually(lambda: is_heard_after(own, heard + 3 * BEAT_SECONDS))
    return asked == await asked_at(database, own) or None


async def is_heard_after(own: Database, heard: float) -> bool | None:
    return own.hub.alive_at > heard or None


async def asked_at(database: Database, own: Database) -> datetime:
    async with database.connection() as db:
        statement = "SELECT query_start FROM pg_stat_activity WHERE application_name = $1"
        asked: datetime = await db.fetchval(statement, own.hub.application)
    return asked


async def test_the_connection_ends_with_the_database(database: Database) -> None:
    async with open_database(database.url, application="hub test") as own:
        await hears(listen(own, CHANNEL))
    await wait_for_end(database, own)
