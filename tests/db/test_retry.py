"""Trying again, in one way."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sapa.db import races
from sapa.db.pool import Database
from sapa.db.retry import Backoff, retry


class Busy(Exception):
    pass


class VeryBusy(Busy):
    pass


def fails(times: int, error: type[Exception] = Busy) -> tuple[Callable[[], Awaitable[int]], list[int]]:
    """Work that succeeds after so many failures, and the tries it was given."""
    tries: list[int] = []

    async def work() -> int:
        tries.append(len(tries) + 1)
        if len(tries) <= times:
            raise error
        return len(tries)

    return work, tries


async def test_a_passing_failure_is_tried_again_until_it_succeeds() -> None:
    work, tries = fails(2, VeryBusy)
    assert await retry(work, Busy) == 3
    assert tries == [1, 2, 3]


async def test_the_last_failure_is_raised() -> None:
    work, tries = fails(9)
    with pytest.raises(Busy):
        await retry(work, Busy, tries=3)
    assert tries == [1, 2, 3]


async def test_another_failure_is_raised_at_once() -> None:
    work, tries = fails(9, KeyError)
    with pytest.raises(KeyError):
        await retry(work, Busy, tries=3)
    assert tries == [1]


async def test_no_try_begins_after_the_time_is_up() -> None:
    work, tries = fails(9)
    async with asyncio.timeout(120):
        with pytest.raises(Busy):
            await retry(work, Busy, seconds=30, pause=60)
    assert tries == [1]


async def test_the_failure_says_how_long_to_wait_or_that_it_is_final() -> None:
    work, tries = fails(9)
    pauses = iter([0.0, 0.01, None])
    with pytest.raises(Busy):
        await retry(work, Busy, pause=lambda failure: next(pauses) if isinstance(failure, Busy) else None)
    assert tries == [1, 2, 3]


async def test_between_runs_between_two_tries_only() -> None:
    work, tries = fails(9)
    between: list[int] = []

    async def note() -> None:
        between.append(len(tries))

    with pytest.raises(Busy):
        await retry(work, Busy, tries=3, between=note)
    assert between == [1, 2]


def test_pauses_grow_to_the_longest_and_start_again() -> None:
    backoff = Backoff(0.25, 1.0)
    assert [backoff.next() for _ in range(4)] == [0.25, 0.5, 1.0, 1.0]
    backoff.reset()
    assert backoff.next() == 0.25


async def test_who_loses_a_race_finds_what_the_winner_created(database: Database) -> None:
    """The twin commits between the look and the insertion."""
    async with database.connection() as db:
        await db.execute("INSERT INTO leases (name, holder, expires_at) VALUES ('race', 'nobody', now())")
    looks: list[str | None] = []

    async with database.transaction() as tx:

        async def find() -> str | None:
            looks.append(None if not looks else await tx.fetchval("SELECT holder FROM leases WHERE name = 'race'"))
            return looks[-1]

        async def create() -> str:
            await tx.execute("INSERT INTO leases (name, holder, expires_at) VALUES ('race', 'me', now())")
            return "me"

        assert await races.find_or_create(tx, find, create) == ("nobody", False)
        assert await tx.fetchval("SELECT 1") == 1
    assert looks == [None, "nobody"]
    async with database.connection() as db:
        await db.execute("DELETE FROM leases WHERE name = 'race'")
