"""Wakeups: a loop sleeps until its work is announced or due, and misses none when an announcement is lost."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import pytest

from sapa.access.actions import move_clock
from sapa.db.due import build_is_waiting, build_next_due, build_next_real_due
from sapa.db.pool import Database, announce_all_due, announce_due, open_database
from sapa.db.wakeups import GATHER_SECONDS, DueQueue, Wakeup
from sapa.work.loops import repeat_when_due
from tests.conftest import Installation
from tests.db.scratch import migrated_database
from tests.factories import make_company
from tests.http.wire import eventually

PAUSE = 0.05
ANNOUNCED, OTHER = DueQueue("announced"), DueQueue("other")
NEXT_CALLBACK = build_next_due("sandbox_callbacks", "due_at")
NEXT_REAL_CALLBACK = build_next_real_due("sandbox_callbacks", "due_at")
CALLBACK = """INSERT INTO sandbox_callbacks (company_id, due_at, path, headers, body)
              VALUES ($1, now() + make_interval(secs => $2), '/', '{}', '')"""
CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1"


@pytest.fixture(scope="module")
async def quiet(installation: Installation) -> AsyncIterator[Database]:
    """A database that no worker works on."""
    async with (
        migrated_database(installation.server) as scratch,
        open_database(scratch.app_url, size=4, application="wakeups") as database,
    ):
        yield database


def wait(wakeup: Wakeup) -> "asyncio.Task[None]":
    """As a loop does after a pass."""
    wakeup.begin()
    return asyncio.create_task(wakeup.wait(asyncio.Event()))


async def is_awake(waiting: "asyncio.Task[None]") -> None:
    await asyncio.wait_for(waiting, 120)


async def settle(database: Database, wakeup: Wakeup) -> None:
    """Until the channel is up, which wakes everybody once."""
    await asyncio.wait_for(wakeup.sleep(None), 120)
    await eventually(lambda: is_listening(database))


async def is_listening(database: Database) -> bool | None:
    return database.hub.alive_at > 0 or None


async def announce(database: Database, queue: DueQueue, seconds: float = 0.0) -> None:
    async with database.transaction() as tx:
        announce_due(tx, queue, seconds)


async def test_announced_work_wakes_the_loops_of_its_queue(quiet: Database) -> None:
    with quiet.wakeups.open(ANNOUNCED, PAUSE) as announced, quiet.wakeups.open(OTHER, PAUSE) as other:
        await settle(quiet, announced)
        first, second = wait(announced), wait(other)
        await announce(quiet, ANNOUNCED)
        await is_awake(first)
        assert not second.done()
        await announce(quiet, OTHER, 0.1)
        await is_awake(second)
        first, second = wait(announced), wait(other)
        async with quiet.transaction() as tx:
            announce_all_due(tx)
        await is_awake(first)
        await is_awake(second)


async def test_what_is_announced_during_a_pass_ends_the_next_wait(quiet: Database) -> None:
    with quiet.wakeups.open(ANNOUNCED, PAUSE) as wakeup:
        await settle(quiet, wakeup)
        wakeup.begin()
        await announce(quiet, ANNOUNCED)
        await asyncio.wait_for(wakeup.sleep(None), 120)
        await asyncio.wait_for(wakeup.wait(asyncio.Event()), 120)


async def test_what_is_announced_right_after_a_pass_begins_waits_for_the_next_one(quiet: Database) -> None:
    begun: list[float] = []
    stopping = asyncio.Event()

    async def step() -> None:
        begun.append(asyncio.get_running_loop().time())

    loop = asyncio.create_task(repeat_when_due(quiet, ANNOUNCED, step, stopping, pause=PAUSE))
    while len(begun) < 10:
        await announce(quiet, ANNOUNCED)
    stopping.set()
    await asyncio.wait_for(loop, 120)
    clock_step = 0.002
    assert min(later - earlier for earlier, later in pairwise(begun)) >= GATHER_SECONDS - clock_step


async def test_a_loop_wakes_when_its_next_row_is_due(quiet: Database) -> None:
    with quiet.wakeups.open(DueQueue("soon", "SELECT 0.1::float8"), PAUSE) as wakeup:
        await is_awake(wait(wakeup))


async def test_a_loop_that_is_stopped_or_whose_task_is_done_wakes(quiet: Database) -> None:
    with quiet.wakeups.open(DueQueue("never", "SELECT NULL::float8"), PAUSE) as wakeup:
        await settle(quiet, wakeup)
        wakeup.begin()
        stopping = asyncio.Event()
        waiting = asyncio.create_task(wakeup.wait(stopping))
        stopping.set()
        await is_awake(waiting)
        task = asyncio.create_task(asyncio.sleep(0.1))
        await asyncio.wait_for(wakeup.wait(asyncio.Event(), [task]), 120)
        assert task.done()


async def test_the_sweep_finds_what_nobody_announced(quiet: Database) -> None:
    company = await make_company(quiet)
    queue = DueQueue("swept", build_is_waiting("sandbox_callbacks"))
    with quiet.wakeups.open(queue, PAUSE) as wakeup:
        await settle(quiet, wakeup)
        waiting = wait(wakeup)
        async with quiet.connection() as db:
            await db.execute(CALLBACK, company.test, 3600)
        await is_awake(waiting)
        async with quiet.connection() as db:
            await db.execute("DELETE FROM sandbox_callbacks")


async def test_a_cut_listener_wakes_every_loop_when_it_is_back(quiet: Database) -> None:
    with quiet.wakeups.open(ANNOUNCED, PAUSE) as wakeup:
        await settle(quiet, wakeup)
        waiting = wait(wakeup)
        async with quiet.connection() as db:
            assert await db.fetchval(CUT, quiet.hub.application) == 1
        await is_awake(waiting)
        waiting = wait(wakeup)
        await announce(quiet, ANNOUNCED)
        await is_awake(waiting)


async def test_the_next_row_is_due_by_its_company_s_clock(quiet: Database) -> None:
    async def next_due(statement: str) -> float | None:
        async with quiet.connection() as db:
            seconds: float | None = await db.fetchval(statement)
        return seconds

    first, second = await make_company(quiet), await make_company(quiet)
    assert [await next_due(NEXT_CALLBACK), await next_due(NEXT_REAL_CALLBACK)] == [None, None]
    async with quiet.connection() as db:
        await db.execute(CALLBACK, first.test, 3600)
        await db.execute(CALLBACK, second.test, 7200)
    assert 3000 < (await next_due(NEXT_CALLBACK) or 0) <= 3600
    async with quiet.transaction() as tx:
        await move_clock(tx, second.test, timedelta(seconds=5400))
    assert 1200 < (await next_due(NEXT_CALLBACK) or 0) <= 1800
    assert 3000 < (await next_due(NEXT_REAL_CALLBACK) or 0) <= 3600
    async with quiet.transaction() as tx:
        await move_clock(tx, first.test, timedelta(seconds=3600))
    assert await next_due(NEXT_CALLBACK) == 0
