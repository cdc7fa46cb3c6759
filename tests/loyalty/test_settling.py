"""Settling wallets with many overdue lots, without blocking others."""

from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access import actions as access
from sapa.db.pool import Connection, Database, Tx
from sapa.loyalty import actions
from sapa.loyalty.adjust import adjust as adjust_points
from sapa.loyalty.expiry import jobs, queries
from sapa.loyalty.ledger import MAX_EXPIRE_ENTRIES
from sapa.loyalty.queries import FEW_LOTS
from sapa.loyalty.types import AdjustmentIn
from tests.db.query_plans import get_range, scans
from tests.factories import Environments, make_customer, make_reservation
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, drift_of, history_of, points_of

WEEK = timedelta(days=7)

SEED = """
    WITH n AS (
        SELECT n, '0' || lpad(n::text, 6, '0') || right($2, 19) AS name,
               date_trunc('second', now()) + n * interval '1 ms' AS at
          FROM generate_series(1, $4::integer) AS n
    ), w AS (
        INSERT INTO loyalty_wallets (company_id, id, customer_id, available, lifetime_earned, version, last_ledger_at,
                                     created_at, updated_at)
        SELECT $1, $2, $3, count(*), count(*), count(*), max(at), now(), now() FROM n
    ), e AS (
        INSERT INTO loyalty_entries (company_id, id, wallet_id, customer_id, seq, entry_type, available_delta,
                                     reserved_delta, available_after, reserved_after, occurred_at, created_at)
        SELECT $1, 'led_' || name, $2, $3, n, 'adjust_add', 1, 0, n, 0, at, at FROM n
    ), l AS (
        INSERT INTO loyalty_lots (company_id, id, wallet_id, granted, remaining, earned_at, expires_at)
        SELECT $1, 'lot_' || name, $2, 1, 1, at, at + $5::interval FROM n
    )
    INSERT INTO loyalty_lot_moves (company_id, entry_id, lot_id, wallet_id, available_delta, reserved_delta)
    SELECT $1, 'led_' || name, 'lot_' || name, $2, 1, 0 FROM n"""


async def make_lots(
    api: httpx.AsyncClient, database: Database, company: Environments, lots: int, lasting: timedelta = WEEK
) -> str:
    """A customer with so many lots of one point each."""
    customer = str((await make_customer(api))["id"])
    async with database.transaction() as tx:
        await tx.execute(SEED, company.test, actions.wallet_id_of(customer), customer, lots, lasting)
    return customer


async def stored(db: Connection, customer_id: str) -> tuple[int, int]:
    """What is available, and the number of entries, as stored."""
    row = await db.fetchrow("SELECT available, version FROM loyalty_wallets WHERE customer_id = $1", customer_id)
    assert row is not None
    return row[0], row[1]


async def announced(tx: Tx, company: Environments) -> int:
    query = "SELECT count(*) FROM events WHERE company_id = $1 AND kind = 'loyalty.points.updated'"
    return int(await tx.fetchval(query, company.test))


async def expirations(api: httpx.AsyncClient, customer_id: str) -> list[dict[str, Any]]:
    return [entry for entry in await history_of(api, customer_id) if entry["entryType"] == "expire"]


async def test_batches_are_settled_one_after_the_other_and_announced_with_the_last(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """In one transaction, so that the running worker sees nothing to do before the commit."""
    customer = await make_lots(sandbox, database, company, 7)
    reservation = await make_reservation(sandbox, customer, 2)
    async with database.transaction() as tx:
        before = await announced(tx, company)
        await access.move_clock(tx, company.test, 2 * WEEK)
        environment = await access.get_company(tx, company.test)
        seen = []
        for _ in range(3):
            is_settled = await actions.settle_wallet(tx, environment, customer, 3)
            available, version = await stored(tx, customer)
            seen.append((is_settled, available, version - 8, await announced(tx, company) - before))
    assert seen == [(False, 4, 1 + 3, 0), (False, 1, 1 + 6, 0), (True, 0, 1 + 7, 1)]
    entries = await history_of(sandbox, customer)
    assert len({one["referenceId"] for one in entries if one["entryType"] == "expire"}) == 7
    assert [one["referenceId"] for one in entries if one["entryType"] == "redeem_release"] == [reservation["id"]]
    assert await drift_of(sandbox) == []


async def test_a_write_settles_all_at_once_and_the_rest_with_one_entry(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    customer = await make_lots(sandbox, database, company, MAX_EXPIRE_ENTRIES + 3)
    async with database.transaction() as tx:
        await access.move_clock(tx, company.test, 2 * WEEK)
        environment = await access.get_company(tx, company.test)
        await adjust_points(tx, environment, customer, AdjustmentIn(direction="add", points=5))
    assert await points_of(sandbox, customer) == (5, 0)
    rest, *single = await expirations(sandbox, customer)
    assert (rest["pointsDelta"], rest["referenceType"], rest["referenceId"]) == ("-3", "lots", None)
    assert {(one["pointsDelta"], one["referenceType"]) for one in single} == {("-1", "lot")}
    assert len(single) == MAX_EXPIRE_ENTRIES
    assert await drift_of(sandbox) == []


async def test_one_run_settles_all_wallets_however_many_lots_they_have(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, move_clock: MoveClock
) -> None:
    customers = [
        await make_lots(sandbox, database, company, jobs.BATCH // 2, WEEK + timedelta(hours=index))
        for index in range(5)
    ]
    customers.append(await make_lots(sandbox, database, company, jobs.MAX_PER_TRANSACTION + 2))
    await move_clock(2 * WEEK)
    await jobs.expire_overdue(database)
    async with database.connection() as db:
        assert [(await stored(db, customer))[0] for customer in customers] == [0] * 6
    assert len(await expirations(sandbox, customers[-1])) == jobs.MAX_PER_TRANSACTION + 2
    assert await drift_of(sandbox) == []


async def test_a_wallet_that_cannot_be_settled_does_not_block_others(
    sandbox: httpx.AsyncClient, database: Database, owner: Connection, company: Environments, move_clock: MoveClock
) -> None:
    broken = await make_lots(sandbox, database, company, jobs.BATCH + 1)
    later = await make_lots(sandbox, database, company, 2, WEEK + timedelta(days=1))
    change = "UPDATE loyalty_wallets SET available = $2, lifetime_earned = $2 WHERE customer_id = $1"
    await owner.execute(change, broken, 0)
    await move_clock(2 * WEEK)
    await jobs.expire_overdue(database)
    assert await stored(owner, later) == (0, 4)
    assert await stored(owner, broken) == (0, jobs.BATCH + 1)
    await owner.execute(change, broken, jobs.BATCH + 1)
    await jobs.expire_overdue(database)
    assert await stored(owner, broken) == (0, 2 * (jobs.BATCH + 1))
    assert await drift_of(sandbox) == []


@pytest.mark.parametrize("points", [1, FEW_LOTS, FEW_LOTS + 1])
async def test_the_first_lots_are_spent_however_many_there_are(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, points: int
) -> None:
    customer = await make_lots(sandbox, database, company, FEW_LOTS + 5)
    assert (await adjust(sandbox, customer, "deduct", points)).status_code == 200
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT remaining FROM loyalty_lots WHERE wallet_id = $1 ORDER BY expires_at",
            actions.wallet_id_of(customer),
        )
    assert [row[0] for row in rows] == [0] * points + [1] * (FEW_LOTS + 5 - points)
    assert await drift_of(sandbox) == []


async def test_lots_that_are_not_due_are_not_read_for_those_that_are(
    api: httpx.AsyncClient, database: Database, company: Environments, owner: Connection
) -> None:
    await make_lots(api, database, company, 2_000)
    await owner.execute("ANALYZE loyalty_lots, companies")
    async with database.connection() as db:
        plan = msgspec.json.decode(await db.fetchval(f"EXPLAIN (FORMAT JSON) {queries.LIST_DUE.text}", 200, []))
    ranges = [get_range(scan) for scan in scans(plan[0]["Plan"], "loyalty_lots")]
    assert ["expires_at" in searched for searched in ranges] == [True, True]
