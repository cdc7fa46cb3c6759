"""The check finds rows that were changed outside the ledger, and only the owner can change one."""

import asyncpg
import httpx
import pytest

from sapa.db.due import add_interval
from sapa.db.pool import Connection, Database
from sapa.loyalty.reconciliation import actions as reconciliation
from sapa.loyalty.reconciliation import jobs, queries
from tests.cli.command import sapa
from tests.conftest import TLS, Installation
from tests.factories import (
    Environments,
    add_points,
    make_customer,
    make_order,
    make_redemption,
    make_reservation,
    make_reward,
)
from tests.http.wire import eventually
from tests.loyalty.ledger_steps import adjust, close, drift_of
from tests.loyalty.redemption_steps import end, fail


@pytest.fixture
async def busy(sandbox: httpx.AsyncClient, ayu: str) -> str:
    """A wallet with one of everything, and beside it another that nothing is done to."""
    await add_points(sandbox, (await make_customer(sandbox))["id"], 77)
    await sandbox.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 10000, "points": 1}]})
    order = await make_order(sandbox, customerId=ayu)
    await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    await add_points(sandbox, ayu, 100)
    await adjust(sandbox, ayu, "deduct", 20)
    for verb in ("commit", "release"):
        await close(sandbox, (await make_reservation(sandbox, ayu, 30))["id"], verb)
    await make_reservation(sandbox, ayu, 25)
    assert await drift_of(sandbox) == []
    return ayu.replace("cust_", "wal_")


LATER, EARLIER = "interval '1 s'", "interval '-1 h'"

CORRUPTIONS = {
    "a wallet's points": "UPDATE loyalty_wallets SET available = available + 1, lifetime_earned = lifetime_earned + 1",
    "a wallet's held points": "UPDATE loyalty_wallets SET available = available - 1, reserved = reserved + 1",
    "a wallet's version": "UPDATE loyalty_wallets SET version = version + 1",
    "a wallet's last instant": f"UPDATE loyalty_wallets SET last_ledger_at = {add_interval('last_ledger_at', LATER)}",
    "a wallet's lifetime": "UPDATE loyalty_wallets SET lifetime_earned = lifetime_earned + 1, "
    "lifetime_burned = lifetime_burned + 1",
    "a lot's rest": "UPDATE loyalty_lots SET remaining = remaining - 1 WHERE remaining > 0",
    "a lot's holds": "UPDATE loyalty_lots SET held = held - 1 WHERE held > 0",
    "a lot that is gone": "DELETE FROM loyalty_lots WHERE remaining > 0",
    "an entry's points": "UPDATE loyalty_entries SET available_delta = available_delta + 1 "
    "WHERE entry_type = 'adjust_add'",
    "an entry's balance": "UPDATE loyalty_entries SET available_after = available_after + 1 WHERE seq = 2",
    "an entry's holds": "UPDATE loyalty_entries SET reserved_after = reserved_after + 1 WHERE seq = 4",
    "an entry that is gone": "DELETE FROM loyalty_entries WHERE seq = 3",
    "the last entry gone": "DELETE FROM loyalty_entries WHERE entry_type = 'redeem_reserve' AND seq = 8",
    "an entry's instant": "UPDATE loyalty_entries "
    f"SET occurred_at = {add_interval('occurred_at', EARLIER)} WHERE seq = 3",
    "a move": "UPDATE loyalty_lot_moves SET available_delta = available_delta + 1 WHERE available_delta > 0",
    "a move that is gone": "DELETE FROM loyalty_lot_moves WHERE reserved_delta > 0",
    "a reservation's points": "UPDATE loyalty_reservations SET points = points + 1 WHERE status = 'reserved'",
    "a reservation opened again": "UPDATE loyalty_reservations SET status = 'reserved' WHERE status = 'released'",
    "a reservation closed silently": "UPDATE loyalty_reservations SET status = 'released' WHERE status = 'reserved'",
    "a commit called a release": "UPDATE loyalty_reservations SET status = 'released' WHERE status = 'committed'",
    "an entry of somebody else": "UPDATE loyalty_entries SET customer_id = 'cust_x' WHERE seq = 2",
    "a wallet that is gone": "DELETE FROM loyalty_wallets",
    "an order's position that is gone": "DELETE FROM loyalty_order_positions",
    "an order's position": "UPDATE loyalty_order_positions SET posted = posted - 1, target = target - 1",
}


@pytest.mark.parametrize("corruption", CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
async def test_a_row_that_was_changed_outside_the_ledger_is_found(
    sandbox: httpx.AsyncClient, owner: Connection, busy: str, corruption: str
) -> None:
    mark = "customer_id" if "loyalty_wallets" in corruption else "wallet_id"
    value = busy.replace("wal_", "cust_") if mark == "customer_id" else busy
    word = "AND" if "WHERE" in corruption else "WHERE"
    done = await owner.execute(f"{corruption} {word} {mark} = $1", value)
    assert int(done.split()[-1]) > 0
    drift = await drift_of(sandbox)
    assert {one["walletId"] for one in drift} == {busy}
    assert all(one["expected"] != one["found"] for one in drift)


async def test_an_orders_position_that_was_moved_to_another_wallet_is_found(
    sandbox: httpx.AsyncClient, owner: Connection, company: Environments, busy: str
) -> None:
    """Both are checked together, so that the order's entries and its position are in sight of each other."""
    other = "SELECT id FROM loyalty_wallets WHERE company_id = $2 AND id <> $1"
    await owner.execute(
        f"UPDATE loyalty_order_positions SET wallet_id = ({other}) WHERE company_id = $2 AND wallet_id = $1",
        busy,
        company.test,
    )
    drift = await drift_of(sandbox)
    assert len({one["walletId"] for one in drift}) == 2
    assert {one["rule"] for one in drift} == {"an order's posted points are the sum of its entries"}


async def test_a_lot_after_the_last_wallet_is_found(
    sandbox: httpx.AsyncClient, owner: Connection, company: Environments, busy: str
) -> None:
    nowhere = "wal_7zzzzzzzzzzzzzzzzzzzzzzzzz"
    await owner.execute(
        """INSERT INTO loyalty_lots (company_id, id, wallet_id, granted, remaining, earned_at)
           VALUES ($1, 'lot_of_nobody', $2, 5, 0, now())""",
        company.test,
        nowhere,
    )
    assert {(one["walletId"], one["customerId"]) for one in await drift_of(sandbox) if one["found"] == ""} == {
        (nowhere, nowhere.replace("wal_", "cust_"))
    }


async def test_wallets_are_checked_together_while_they_have_few_entries(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    for entries in (2, 2, 2, 9, 1):
        customer = (await make_customer(sandbox))["id"]
        for _ in range(entries):
            await add_points(sandbox, customer, 1)
    batches = []
    position: str | None = ""
    async with database.connection() as db:
        while position is not None:
            batch = await queries.get_batch(db, company.test, position, 500, 3)
            batches.append((batch.wallets, batch.available))
            position = None if batch.is_last else batch.last_id
    assert batches == [(2, 4), (2, 11), (1, 1)]


async def test_a_check_has_its_own_time_and_no_other_statement_has(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, rich: str
) -> None:
    async with database.connection() as db:
        async with db.transaction():
            batch = await reconciliation.get_batch(db, company.test, "")
            assert await queries.list_drift(db, company.test, "", batch, seconds=77) == []
            assert await db.fetchval("SHOW statement_timeout") == "77s"
        assert await db.fetchval("SHOW statement_timeout") == "10s"


async def test_wallets_that_cannot_be_checked_do_not_block_the_others(
    sandbox: httpx.AsyncClient, database: Database, owner: Connection, company: Environments, rich: str
) -> None:
    """A number that cannot be added to makes the check itself fail."""
    await add_points(sandbox, rich, 1)
    broken = "UPDATE loyalty_entries SET available_after = $2 WHERE customer_id = $1 AND seq = 1"
    await owner.execute(broken, rich, 2**63 - 1)
    await owner.execute("DELETE FROM loyalty_checks WHERE company_id = $1", company.test)
    query = "SELECT position, drifting FROM loyalty_checks WHERE company_id = $1"
    for _ in range(50):
        await jobs.check_wallets(database)
        if found := await owner.fetchrow(query, company.test):
            break
    await owner.execute(broken, rich, 1000)
    assert found is not None
    assert tuple(found) == ("", 0)


async def test_the_command_reports_to_people_and_programs(
    installation: Installation, sandbox: httpx.AsyncClient, owner: Connection, company: Environments, busy: str
) -> None:
    command = ("loyalty", "reconcile", "--company", str(company.test))
    report = sapa(installation.data, *command, "--json").json()
    assert report == {
        "wallets": 2,
        "availablePoints": str(77 + 15 + 100 - 20 - 30 - 25),
        "reservedPoints": "25",
        "driftingWallets": 0,
        "drift": [],
    }
    assert (await sandbox.get("/loyalty/reconciliation")).json()["data"] == report
    await owner.execute(
        "UPDATE loyalty_lots SET remaining = remaining - 1 WHERE remaining > 9 AND wallet_id = $1", busy
    )
    outcome = sapa(installation.data, *command)
    assert outcome.code == 1
    assert busy in outcome.out.replace("\n", "")
    assert sapa(installation.data, *command, "--json").code == 1
    unknown = sapa(installation.data, "loyalty", "reconcile", "--company", "999999999")
    assert "No company has this id" in unknown.sentence()


async def test_the_worker_counts_what_drifts_for_the_metrics(
    installation: Installation, database: Database, owner: Connection, company: Environments, busy: str
) -> None:
    async def counted() -> int:
        """A run is for some companies, the longest unchecked first; other tests' may be before ours."""
        await owner.execute("DELETE FROM loyalty_checks WHERE company_id = $1", company.test)
        for _ in range(50):
            await jobs.check_wallets(database)
            query = "SELECT drifting FROM loyalty_checks WHERE company_id = $1"
            found: int | None = await owner.fetchval(query, company.test)
            if found is not None:
                return found
        raise AssertionError("our turn did not come")

    assert await counted() == 0
    await owner.execute("UPDATE loyalty_wallets SET version = version + 1 WHERE id = $1", busy)
    assert await counted() == 1

    async def is_shown() -> bool | None:
        async with httpx.AsyncClient(verify=TLS, timeout=120) as reader:
            metrics = (await reader.get(installation.metrics)).text
        (line,) = [line for line in metrics.splitlines() if line.startswith("sapa_loyalty_drift ")]
        return float(line.split()[1]) >= 1 or None

    await eventually(is_shown)
    await owner.execute("UPDATE loyalty_wallets SET version = version - 1 WHERE id = $1", busy)
    assert await counted() == 0


@pytest.mark.parametrize(
    "statement",
    [
        f"{change} {table}{rest}"
        for table, column in (("loyalty_entries", "seq"), ("loyalty_lot_moves", "lot_id"), ("loyalty_holds", "lot_id"))
        for change, rest in (("UPDATE", f" SET {column} = '1'"), ("DELETE FROM", ""), ("TRUNCATE", ""))
    ]
    + ["DELETE FROM loyalty_wallets", "DELETE FROM loyalty_lots", "DELETE FROM loyalty_reservations"]
    + ["SELECT id FROM loyalty_entries WHERE company_id = 1 FOR UPDATE", "ALTER TABLE loyalty_entries ADD note2 text"],
)
async def test_the_app_cannot_change_stored_entries(database: Database, statement: str) -> None:
    async with database.connection() as db:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await db.execute(statement)


@pytest.mark.one_server("reads the plan, which a machine of the cluster makes")
async def test_the_history_and_the_wallet_are_read_by_their_indexes(owner: Connection) -> None:
    """With many entries of many customers in one company, no read looks through all of them."""
    async with owner.transaction():
        await owner.execute(
            """
            INSERT INTO loyalty_entries (company_id, id, wallet_id, customer_id, seq, entry_type, available_delta,
                   reserved_delta, available_after, reserved_after, occurred_at, created_at)
            SELECT 0, 'led_' || n, 'wal_' || n % 400, 'cust_' || n % 400, n,
                   CASE n % 2 WHEN 0 THEN 'earn' ELSE 'expire' END, CASE n % 2 WHEN 0 THEN 1 ELSE -1 END, 0, 1, 0,
                   now() + n * interval '1 s', now()
              FROM generate_series(1, 20000) AS n"""
        )
        await owner.execute("ANALYZE loyalty_entries")
        for condition in ("", " AND points_delta > 0", " AND points_delta < 0"):
            plan = await owner.fetch(
                f"""EXPLAIN SELECT id FROM loyalty_entries WHERE company_id = 0 AND customer_id = 'cust_7'
                    AND occurred_at < now() + interval '1 day'{condition} ORDER BY occurred_at DESC LIMIT 21"""
            )
            text = "\n".join(row[0] for row in plan)
            assert "Index" in text
            assert "Seq Scan" not in text
            assert "Sort" not in text
        await owner.execute("DELETE FROM loyalty_entries WHERE company_id = 0")


CORRUPTED_REDEMPTIONS = {
    "a redemption that ended alone": "UPDATE loyalty_redemptions SET status = 'released'",
    "a redemption that costs otherwise": "UPDATE loyalty_redemptions SET points_cost = points_cost + 1",
    "a redemption that is gone": "DELETE FROM loyalty_redemptions",
    "a reservation for nothing": "UPDATE loyalty_reservations SET redemption_id = 'rdm_x'",
}


@pytest.mark.parametrize("corruption", CORRUPTED_REDEMPTIONS.values(), ids=CORRUPTED_REDEMPTIONS.keys())
async def test_a_redemption_that_contradicts_its_reservation_is_found(
    sandbox: httpx.AsyncClient, owner: Connection, rich: str, corruption: str
) -> None:
    await make_redemption(sandbox, rich, await make_reward(sandbox, 10))
    wallet = rich.replace("cust_", "wal_")
    await owner.execute(f"{corruption} WHERE wallet_id = $1", wallet)
    drift = await drift_of(sandbox)
    assert {one["walletId"] for one in drift} == {wallet}
    assert {one["rule"] for one in drift} == {"a redemption's status and points are its reservation's"}


@pytest.mark.parametrize(
    "corruption",
    [
        "UPDATE loyalty_redemptions SET status = 'committed', committed_at = now()",
        "UPDATE loyalty_redemptions SET status = 'released'",
        "UPDATE loyalty_reservations SET status = 'reserved'",
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_failed_redemption_returns_its_points_once(
    sandbox: httpx.AsyncClient, owner: Connection, rich: str, corruption: str, is_committed: bool
) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 10))
    if is_committed:
        await end(sandbox, made["id"], "commit")
    await fail(sandbox, made["id"])
    assert await drift_of(sandbox) == []
    await owner.execute(f"{corruption} WHERE wallet_id = $1", rich.replace("cust_", "wal_"))
    silent = not is_committed and "'released'" in corruption
    assert bool(await drift_of(sandbox)) != silent, "released and failed before the commit give the same points back"
