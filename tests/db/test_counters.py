import asyncio
import random
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from sapa.db.counters import BATCH, fold, get_total
from sapa.db.pool import Connection, Database, open_database
from sapa.db.queries import FOLD
from tests.conftest import Installation, connect
from tests.db.scratch import connect as connect_to
from tests.db.scratch import migrated_database
from tests.factories import Environments, make_customer, make_key

COUNTED = "SELECT count(*) FROM customers WHERE company_id = $1"


async def assert_exact(database: Database, company_id: int) -> int:
    """Total and count of one instant, whatever goes on around it."""
    async with database.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
        counted: int = await db.fetchval(COUNTED, company_id)
        assert await get_total(db, company_id, "customers") == counted
        return counted


async def come_and_go(api: httpx.AsyncClient, rounds: int) -> int:
    """Creates and deletes customers; how many are left."""
    ids: list[str] = []
    for _ in range(rounds):
        if ids and random.random() < 0.4:
            assert (await api.delete(f"/customers/{ids.pop()}")).status_code == 204
        else:
            ids.append((await make_customer(api))["id"])
    return len(ids)


async def test_totals_are_exact_at_every_instant_of_concurrent_changes_and_folding(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    done = asyncio.Event()

    async def watch() -> int:
        looks = 0
        while not done.is_set():
            await assert_exact(database, company.live)
            looks += 1
        return looks

    async def fold_on() -> None:
        while not done.is_set():
            await fold(database)

    async with connect(installation, key.raw) as api:
        watching = asyncio.gather(watch(), fold_on(), fold_on())
        try:
            left = sum(await asyncio.gather(*(come_and_go(api, 20) for _ in range(8))))
        finally:
            done.set()
        assert (await watching)[0] > 1
        assert (await api.get("/customers")).json()["meta"]["total"] == left
    assert await assert_exact(database, company.live) == left
    await fold(database)
    assert await assert_exact(database, company.live) == left


async def test_refused_changes_are_not_counted(api: httpx.AsyncClient) -> None:
    await make_customer(api, email="a@example.com")
    bodies = [{"email": "a@example.com"}, {"email": "no"}, {}]
    assert {(await api.post("/customers", json=body)).status_code for body in bodies} == {400, 409}
    await api.delete("/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k")
    assert (await api.get("/customers")).json()["meta"]["total"] == 1


@pytest.fixture(scope="module")
async def quiet(installation: Installation) -> AsyncIterator[Database]:
    """A database that no worker folds."""
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url, size=4) as database:
        yield database


async def add(db: Connection, company_id: int, cell: str, delta: int) -> None:
    await db.execute(
        "INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'orders', $2, $3)",
        company_id, cell, delta,
    )  # fmt: skip


async def test_cells_are_summed_alone_together_and_across_folds(quiet: Database) -> None:
    async with quiet.connection() as db:
        for cell, delta in [("active", 1), ("active", 1), ("active", 1), ("cancelled", 1), ("active", -1)]:
            await add(db, 1, cell, delta)
        await add(db, 2, "active", 7)

    async def look() -> list[int]:
        async with quiet.connection() as db:
            choices: list[list[str] | None] = [None, ["active"], ["cancelled"], ["active", "cancelled"], ["x"], []]
            return [await get_total(db, 1, "orders", cells) for cells in choices]

    assert await look() == [3, 2, 1, 3, 0, 0]
    await fold(quiet)
    assert await look() == [3, 2, 1, 3, 0, 0]
    async with quiet.connection() as db:
        await add(db, 1, "active", -2)
        await add(db, 1, "cancelled", 2)
    assert await look() == [3, 0, 3, 3, 0, 0]
    await fold(quiet)
    await fold(quiet)
    assert await look() == [3, 0, 3, 3, 0, 0]
    async with quiet.connection() as db:
        assert await get_total(db, 2, "orders") == 7
        assert await get_total(db, 1, "letters") == 0
        assert await db.fetchval("SELECT count(*) FROM counter_deltas") == 0


async def test_what_is_not_committed_is_neither_counted_nor_folded(quiet: Database) -> None:
    async with quiet.connection() as db:
        undo = db.transaction()
        await undo.start()
        await add(db, 3, "active", 1)
        await fold(quiet)
        async with quiet.connection() as other:
            assert await get_total(other, 3, "orders") == 0
        assert await get_total(db, 3, "orders") == 1
        await undo.commit()
        assert await get_total(db, 3, "orders") == 1
    await fold(quiet)
    async with quiet.connection() as db:
        assert await get_total(db, 3, "orders") == 1


async def test_many_folds_at_once_count_each_change_once(quiet: Database) -> None:
    async with quiet.connection() as db:
        for company_id in (4, 5, 6):
            for _ in range(50):
                await add(db, company_id, "active", 1)
    await asyncio.gather(*(fold(quiet) for _ in range(4)))
    async with quiet.connection() as db:
        assert [await get_total(db, company_id, "orders") for company_id in (4, 5, 6)] == [50, 50, 50]


async def add_many(db: Connection, company_id: int, changes: int) -> None:
    await db.execute(
        """
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, CASE WHEN n % 2 = 0 THEN 'orders' ELSE 'customers' END, 'cell ' || n % 5, 1
          FROM generate_series(1, $2) AS n""",
        company_id, changes,
    )  # fmt: skip


async def test_more_than_a_batch_is_folded_in_several(quiet: Database) -> None:
    changes = 2 * BATCH + 1_000
    async with quiet.connection() as db:
        await add_many(db, 7, changes)
    await fold(quiet)
    async with quiet.connection() as db:
        assert [await get_total(db, 7, counter) for counter in ("orders", "customers")] == [changes / 2] * 2
        assert await db.fetchval("SELECT count(*) FROM counter_deltas WHERE company_id = 7") == 0


@pytest.mark.one_server("reads a plan of the server that has the rows")
async def test_a_fold_reads_each_change_a_few_times_whatever_the_statistics_say(
    installation: Installation,
) -> None:
    """They are taken while nothing waits, as they mostly are. Otherwise a long backlog is never folded in time."""
    changes = 2_000
    async with (
        migrated_database(installation.server) as scratch,
        connect_to(scratch.owner_url) as owner,
        open_database(scratch.app_url) as database,
        database.connection() as db,
    ):
        await add_many(db, 1, changes)
        await fold(database)
        await owner.execute("ANALYZE counter_deltas")
        await add_many(db, 1, changes)
        text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {FOLD.text}"
        plan = msgspec.json.decode(await db.fetchval(text, 1, changes))[0]["Plan"]
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20 * changes
        assert await get_total(db, 1, "orders") == changes
