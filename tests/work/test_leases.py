import asyncio
from collections.abc import AsyncIterator

import pytest

from sapa.db.pool import Database, open_database
from sapa.work.leases import release_all, take
from tests.conftest import Installation
from tests.db.scratch import migrated_database


@pytest.fixture(scope="module")
async def quiet(installation: Installation) -> AsyncIterator[Database]:
    """A database that no worker works on."""
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url, size=10) as database:
        yield database


async def try_to_take(database: Database, name: str, holder: str, seconds: float = 60) -> int | None:
    async with database.connection() as db:
        return await take(db, name, holder, seconds)


async def run_out(database: Database, name: str) -> None:
    async with database.connection() as db:
        await db.execute("UPDATE leases SET expires_at = now() - interval '1 ms' WHERE name = $1", name)


async def test_a_lease_has_one_holder_who_may_renew_it(quiet: Database) -> None:
    first = await try_to_take(quiet, "fold", "a")
    assert first is not None
    assert await try_to_take(quiet, "fold", "b") is None
    assert await try_to_take(quiet, "fold", "a") == first
    assert await try_to_take(quiet, "other work", "b") is not None


async def test_a_lease_that_ran_out_is_taken_over_with_a_higher_epoch(quiet: Database) -> None:
    epochs = []
    for holder in ("a", "b", "c", "a"):
        epochs.append(await try_to_take(quiet, "expiring", holder))
        assert await try_to_take(quiet, "expiring", "z") is None
        await run_out(quiet, "expiring")
    assert epochs == sorted({epoch for epoch in epochs if epoch is not None})
    assert len(epochs) == 4


async def test_a_lease_lasts_as_long_as_asked_for(quiet: Database) -> None:
    assert await try_to_take(quiet, "short", "a", 0.2) is not None
    for _ in range(200):
        if await try_to_take(quiet, "short", "b", 60) is not None:
            assert await try_to_take(quiet, "short", "a", 60) is None
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the lease never ran out")


async def test_a_released_lease_is_free_and_its_epoch_still_grows(quiet: Database) -> None:
    first = await try_to_take(quiet, "released", "a")
    await try_to_take(quiet, "released as well", "a")
    await try_to_take(quiet, "kept", "b")
    async with quiet.connection() as db:
        await release_all(db, "a")
    second = await try_to_take(quiet, "released", "c")
    assert await try_to_take(quiet, "released as well", "c") is not None
    assert await try_to_take(quiet, "kept", "c") is None
    # Otherwise a late write of the first holder could not be told from one of the second.
    assert first is not None
    assert second is not None
    assert second > first


async def test_of_many_who_ask_at_once_one_gets_it(quiet: Database) -> None:
    for round_ in range(5):
        request = (try_to_take(quiet, f"race {round_}", f"holder {n}") for n in range(10))
        assert sum(epoch is not None for epoch in await asyncio.gather(*request)) == 1
    await run_out(quiet, "race 0")
    request = (try_to_take(quiet, "race 0", f"new holder {n}") for n in range(10))
    assert sum(epoch is not None for epoch in await asyncio.gather(*request)) == 1
