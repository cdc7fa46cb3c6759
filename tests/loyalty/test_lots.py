"""Which points are spent, and which expire."""

from datetime import UTC, datetime, timedelta

import httpx

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.loyalty import actions
from sapa.loyalty.expiry import jobs
from sapa.runtime.processes import wait_until
from tests.factories import Environments, add_points, make_redemption, make_reservation, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, close, drift_of, error_of, history_of, points_of, types_of, wallet_of
from tests.loyalty.redemption_steps import end, fail

MONTH = timedelta(days=31)
PATIENCE = 120


async def expire_after(api: httpx.AsyncClient, months: int | None) -> None:
    assert (await api.put("/loyalty/settings", json={"expiryMonths": months})).status_code == 200


async def lots_of(database: Database, customer_id: str) -> list[tuple[int, int, int]]:
    """Granted, remaining and held points of each lot, in the order of earning."""
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT granted, remaining, held FROM loyalty_lots WHERE wallet_id = $1 ORDER BY earned_at",
            actions.wallet_id_of(customer_id),
        )
    return [tuple(row) for row in rows]


async def test_points_that_expire_soonest_are_spent_first(
    sandbox: httpx.AsyncClient, database: Database, ayu: str
) -> None:
    for months in (None, 12, 1, 6, 1):
        await expire_after(sandbox, months)
        await add_points(sandbox, ayu, 10)
    steps = []
    for points in (5, 10, 20, 10, 5):
        assert (await adjust(sandbox, ayu, "deduct", points)).status_code == 200
        steps.append([lot[1] for lot in await lots_of(database, ayu)])
    assert steps == [
        [10, 10, 5, 10, 10],
        [10, 10, 0, 10, 5],
        [10, 5, 0, 0, 0],
        [5, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]


async def test_points_expire_months_after_they_were_earned(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await add_points(sandbox, ayu, 7)
    await expire_after(sandbox, 1)
    await add_points(sandbox, ayu, 10)
    await move_clock(timedelta(days=20))
    await add_points(sandbox, ayu, 5)
    assert await points_of(sandbox, ayu) == (22, 0)
    await move_clock(timedelta(days=12))
    assert await points_of(sandbox, ayu) == (12, 0), "32 days after the first, 12 after the second"
    assert error_of(await adjust(sandbox, ayu, "deduct", 13)) == (409, "INSUFFICIENT_POINTS")
    await move_clock(MONTH)
    assert await points_of(sandbox, ayu) == (7, 0)
    await move_clock(timedelta(days=3000))
    assert await points_of(sandbox, ayu) == (7, 0), "these never expire"
    assert (await adjust(sandbox, ayu, "deduct", 7)).status_code == 200
    assert sorted(await types_of(sandbox, ayu)) == sorted(
        [
            ("adjust_add", 7),
            ("adjust_add", 10),
            ("adjust_add", 5),
            ("expire", -10),
            ("expire", -5),
            ("adjust_deduct", -7),
        ]
    )
    assert await drift_of(sandbox) == []


async def test_points_expire_at_their_very_instant(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    """With the clock set so that the instant is some seconds away, and then past."""
    await expire_after(sandbox, 1)
    entry = (await add_points(sandbox, ayu, 10))["ledger"]
    async with database.connection() as db:
        (ends,) = await db.fetchrow(
            "SELECT extract(epoch FROM expires_at)::float8 FROM loyalty_lots WHERE wallet_id = $1", entry["walletId"]
        ) or (0.0,)

    async def set_clock(seconds: float) -> None:
        by = timedelta(seconds=ends + seconds - datetime.now(UTC).timestamp())
        async with database.transaction() as tx:
            await access.move_clock(tx, company.test, None)
            await access.move_clock(tx, company.test, by)

    await set_clock(-20)
    assert await points_of(sandbox, ayu) == (10, 0)
    await set_clock(0)
    assert await points_of(sandbox, ayu) == (0, 0)
    assert error_of(await adjust(sandbox, ayu, "deduct", 1)) == (409, "INSUFFICIENT_POINTS")


async def test_held_points_do_not_expire_and_return_to_their_lots(
    sandbox: httpx.AsyncClient, database: Database, ayu: str, move_clock: MoveClock
) -> None:
    await expire_after(sandbox, 1)
    await add_points(sandbox, ayu, 10)
    await expire_after(sandbox, 2)
    await add_points(sandbox, ayu, 10)
    reservation = await make_reservation(sandbox, ayu, 15, ttlSeconds=30 * 86_400)
    assert await lots_of(database, ayu) == [(10, 0, 10), (10, 5, 5)]
    await move_clock(timedelta(days=29))
    other = await make_reservation(sandbox, ayu, 5, ttlSeconds=30 * 86_400)
    assert (await close(sandbox, reservation["id"], "release")).status_code == 200
    assert await lots_of(database, ayu) == [(10, 10, 0), (10, 5, 5)]
    again = await make_reservation(sandbox, ayu, 10, ttlSeconds=30 * 86_400)
    await move_clock(timedelta(days=20))
    assert await points_of(sandbox, ayu) == (5, 15), "the first lot has expired, and all of it is held"
    await close(sandbox, other["id"], "commit")
    assert (await close(sandbox, again["id"], "release")).status_code == 200
    assert await points_of(sandbox, ayu) == (5, 0), "what returned to the expired lot expired at once"
    assert (await types_of(sandbox, ayu))[-3:] == [("redeem_commit", -5), ("redeem_release", 0), ("expire", -10)]
    assert await drift_of(sandbox) == []


async def test_an_overdue_reservation_on_an_expired_lot_expires_with_it(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await expire_after(sandbox, 1)
    await add_points(sandbox, ayu, 10)
    await make_reservation(sandbox, ayu, 4, ttlSeconds=30 * 86_400)
    await move_clock(timedelta(days=32))
    projected = await wallet_of(sandbox, ayu)
    assert (projected["availablePoints"], projected["reservedPoints"]) == ("0", "0")
    assert (projected["lifetimeEarnedPoints"], projected["lifetimeBurnedPoints"]) == ("10", "10")
    await add_points(sandbox, ayu, 1)
    assert (await types_of(sandbox, ayu))[2:] == [("redeem_release", 0), ("expire", -10), ("adjust_add", 1)]
    assert await drift_of(sandbox) == []


async def test_the_worker_settles_what_is_overdue(
    sandbox: httpx.AsyncClient, database: Database, ayu: str, move_clock: MoveClock
) -> None:
    await expire_after(sandbox, 1)
    await add_points(sandbox, ayu, 10)
    reservation = await make_reservation(sandbox, ayu, 4, ttlSeconds=60)
    await move_clock(timedelta(days=32))
    await jobs.expire_overdue(database)
    entries = await history_of(sandbox, ayu)
    assert [entry["entryType"] for entry in entries] == ["expire", "redeem_release", "redeem_reserve", "adjust_add"]
    assert entries[1]["referenceId"] == reservation["id"]
    await jobs.expire_overdue(database)
    assert await history_of(sandbox, ayu) == entries


async def test_the_running_worker_updates_the_copies(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await add_points(sandbox, ayu, 10)
    await make_reservation(sandbox, ayu, 4)
    await move_clock(timedelta(hours=1))
    for _ in range(PATIENCE * 10):
        if len(await history_of(sandbox, ayu)) == 3:
            break
        await wait_until(lambda: False, 0.1)
    assert (await types_of(sandbox, ayu))[-1] == ("redeem_release", 0)


async def test_a_clock_that_goes_back_keeps_the_ledger_in_order(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await expire_after(sandbox, 1)
    await move_clock(timedelta(days=100))
    first = (await add_points(sandbox, ayu, 10))["ledger"]
    await move_clock(timedelta(days=-90))
    second = (await add_points(sandbox, ayu, 5))["ledger"]
    third = (await adjust(sandbox, ayu, "deduct", 3)).json()["data"]["ledger"]
    assert first["occurredAt"] < second["occurredAt"] < third["occurredAt"]
    assert second["createdAt"] < first["createdAt"]
    assert await history_of(sandbox, ayu, limit=1) == [third, second, first]
    await move_clock(timedelta(days=32))
    assert await points_of(sandbox, ayu) == (10, 0), "42 days on the first clock's are still to expire"
    await move_clock(timedelta(days=90))
    assert await points_of(sandbox, ayu) == (0, 0)
    assert await drift_of(sandbox) == []


async def test_spent_points_return_to_their_lots(
    sandbox: httpx.AsyncClient, database: Database, ayu: str, move_clock: MoveClock
) -> None:
    await expire_after(sandbox, 1)
    await add_points(sandbox, ayu, 10)
    await expire_after(sandbox, None)
    await add_points(sandbox, ayu, 10)
    spent = []
    for points in (12, 5):
        spent.append((await make_redemption(sandbox, ayu, await make_reward(sandbox, points)))["id"])
        await end(sandbox, spent[-1], "commit")
    assert [lot[1] for lot in await lots_of(database, ayu)] == [0, 3]

    assert (await fail(sandbox, spent[1])).status_code == 200
    assert [lot[1] for lot in await lots_of(database, ayu)] == [0, 8]
    await move_clock(timedelta(days=40))
    assert (await fail(sandbox, spent[0])).status_code == 200
    assert [lot[1] for lot in await lots_of(database, ayu)] == [0, 10], (
        "ten returned to an expired lot, and two to a valid one"
    )
    assert (await types_of(sandbox, ayu))[-2:] == [("redeem_reversal", 12), ("expire", -10)]
    wallet = await wallet_of(sandbox, ayu)
    assert (wallet["lifetimeEarnedPoints"], wallet["lifetimeBurnedPoints"]) == ("20", "10")
    assert await drift_of(sandbox) == []
