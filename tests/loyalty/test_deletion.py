"""What becomes of points, reservations and redemptions when their customer is deleted."""

import json
from datetime import timedelta

import httpx
import pytest

from sapa.db.pool import Database
from sapa.loyalty.expiry import jobs
from tests.factories import (
    Environments,
    add_points,
    make_customer,
    make_order,
    make_redemption,
    make_reservation,
    make_reward,
)
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, close, error_of, together
from tests.loyalty.redemption_steps import end, fail, redeem

pytestmark = pytest.mark.usefixtures("whole")


async def delete(api: httpx.AsyncClient, customer_id: str) -> httpx.Response:
    return await api.delete(f"/customers/{customer_id}")


async def entries_of(database: Database, customer_id: str) -> list[tuple[str, int, int, int]]:
    """Type, points, and what was available and reserved after each entry; the API shows them no more."""
    async with database.connection() as db:
        rows = await db.fetch(
            """SELECT entry_type, points_delta, available_after, reserved_after FROM loyalty_entries
                WHERE customer_id = $1 ORDER BY seq""",
            customer_id,
        )
    return [tuple(row) for row in rows]


async def left_to(database: Database, customer_id: str) -> tuple[int, int] | None:
    """Available and reserved points of the wallet, if there is one."""
    async with database.connection() as db:
        row = await db.fetchrow("SELECT available, reserved FROM loyalty_wallets WHERE customer_id = $1", customer_id)
    return None if row is None else (row[0], row[1])


async def test_deleting_a_customer_removes_all_points_also_held_ones(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, rich: str
) -> None:
    reservation = await make_reservation(sandbox, rich, 10)
    reward = await make_reward(sandbox, 100)
    reserved, committed = [await make_redemption(sandbox, rich, reward, voucherCode=code) for code in ("a", "b")]
    await end(sandbox, committed["id"], "commit")
    assert (await delete(sandbox, rich)).status_code == 204
    assert (await entries_of(database, rich))[-3:] == [
        ("redeem_release", 0, 800, 100),
        ("redeem_release", 0, 900, 0),
        ("expire", -900, 0, 0),
    ]
    for response in (
        await close(sandbox, reservation["id"], "commit"),
        await close(sandbox, reservation["id"], "release"),
        await end(sandbox, reserved["id"], "commit"),
        await end(sandbox, reserved["id"], "release"),
        await fail(sandbox, reserved["id"]),
        await end(sandbox, committed["id"], "commit"),
        await fail(sandbox, committed["id"]),
    ):
        assert error_of(response) == (404, "NOT_FOUND"), "the customer is deleted"
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT kind, body FROM events WHERE company_id = $1 ORDER BY number DESC LIMIT 3", company.test
        )
    kinds = {row[0]: json.loads(row[1]) for row in rows}
    assert list(kinds) == ["customer.deleted", "loyalty.points.updated", "loyalty.redemption.updated"]
    assert kinds["loyalty.points.updated"]["availablePoints"] == "0"
    assert (kinds["loyalty.redemption.updated"]["id"], kinds["loyalty.redemption.updated"]["status"]) == (
        reserved["id"],
        "released",
    )
    other = (await make_customer(sandbox))["id"]
    await add_points(sandbox, other, 200)
    assert (await redeem(sandbox, other, reward, voucherCode="a")).status_code == 200, "the code is free"
    assert error_of(await redeem(sandbox, other, reward, voucherCode="b")) == (409, "VOUCHER_TAKEN"), (
        "the code is taken"
    )


async def test_what_is_of_a_deleted_customer_is_not_found(sandbox: httpx.AsyncClient, rich: str) -> None:
    reward = await make_reward(sandbox, 10)
    await delete(sandbox, rich)
    for path in ("wallet", "history", "timeline", "redemptions", "redemptions/summary"):
        assert error_of(await sandbox.get(f"/loyalty/customers/{rich}/{path}")) == (404, "NOT_FOUND")
    for response in (
        await adjust(sandbox, rich, "add", 1),
        await sandbox.post(f"/loyalty/customers/{rich}/reservations", json={"points": 1}),
        await redeem(sandbox, rich, reward),
    ):
        assert error_of(response) == (404, "NOT_FOUND")


async def test_a_customer_can_be_deleted_while_the_program_is_disabled(
    sandbox: httpx.AsyncClient, database: Database, rich: str
) -> None:
    await make_reservation(sandbox, rich, 10)
    await sandbox.put("/loyalty/settings", json={"enabled": False})
    assert (await delete(sandbox, rich)).status_code == 204
    assert await left_to(database, rich) == (0, 0)


async def test_a_deleted_customer_without_points_leaves_no_wallet(
    sandbox: httpx.AsyncClient, database: Database, ayu: str
) -> None:
    assert (await delete(sandbox, ayu)).status_code == 204
    assert await left_to(database, ayu) is None


async def test_expired_points_expire_before_the_others_are_forfeited(
    sandbox: httpx.AsyncClient, database: Database, ayu: str, move_clock: MoveClock
) -> None:
    await sandbox.put("/loyalty/settings", json={"expiryMonths": 1})
    await add_points(sandbox, ayu, 10)
    await make_reservation(sandbox, ayu, 4, ttlSeconds=30 * 86_400)
    await move_clock(timedelta(days=25))
    await add_points(sandbox, ayu, 5)
    await make_reservation(sandbox, ayu, 7, ttlSeconds=30 * 86_400)
    await move_clock(timedelta(days=10))
    await delete(sandbox, ayu)
    assert await left_to(database, ayu) == (0, 0)
    assert sum(entry[1] for entry in await entries_of(database, ayu)) == 0


async def test_the_worker_finds_nothing_to_do_for_a_deleted_customer(
    sandbox: httpx.AsyncClient, database: Database, ayu: str, move_clock: MoveClock
) -> None:
    await sandbox.put("/loyalty/settings", json={"expiryMonths": 1})
    await add_points(sandbox, ayu, 10)
    await make_reservation(sandbox, ayu, 4)
    await delete(sandbox, ayu)
    written = await entries_of(database, ayu)
    await move_clock(timedelta(days=60))
    await jobs.expire_overdue(database)
    assert await entries_of(database, ayu) == written


async def test_orders_of_a_deleted_customer_earn_nothing_and_can_still_change(
    sandbox: httpx.AsyncClient, database: Database
) -> None:
    await sandbox.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 10000, "points": 1}]})
    for had_points in (False, True):
        customer = (await make_customer(sandbox))["id"]
        paid, unpaid = [await make_order(sandbox, customerId=customer) for _ in range(2)]
        if had_points:
            await sandbox.put(f"/orders/{paid['id']}", json={"financialStatus": "paid"})
        await delete(sandbox, customer)
        for order, change in (
            (unpaid, {"financialStatus": "paid"}),
            (unpaid, {"status": "refunded"}),
            (paid, {"status": "refunded"} if had_points else {"status": "cancelled"}),
        ):
            assert (await sandbox.put(f"/orders/{order['id']}", json=change)).status_code == 200
        assert await left_to(database, customer) == ((0, 0) if had_points else None)


async def test_a_customer_deleted_during_ledger_writes_keeps_no_points(
    sandbox: httpx.AsyncClient, database: Database
) -> None:
    await sandbox.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 10000, "points": 1}]})
    reward = await make_reward(sandbox, 5)
    for round in range(8):
        customer = (await make_customer(sandbox))["id"]
        order = await make_order(sandbox, customerId=customer)
        if round % 2:
            await add_points(sandbox, customer, 50)
        calls = [adjust(sandbox, customer, "add", 7) for _ in range(4)]
        calls += [redeem(sandbox, customer, reward) for _ in range(3)]
        calls += [sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})]
        calls += [sandbox.post(f"/loyalty/customers/{customer}/reservations", json={"points": 3}) for _ in range(3)]
        calls.insert(round, delete(sandbox, customer))
        responses = await together(*calls)
        assert {response.status_code for response in responses} <= {200, 201, 204, 404, 409}
        assert responses[round].status_code == 204
        assert await left_to(database, customer) in {None, (0, 0)}
