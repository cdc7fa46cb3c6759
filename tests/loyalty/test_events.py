"""A change of points emits one event, and records timeline entries."""

import json
from datetime import timedelta
from typing import Any

import httpx

from sapa.db.pool import Database
from tests.factories import Environments, add_points, make_order, make_redemption, make_reservation, make_reward
from tests.javascript import print_again
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, close, wallet_of
from tests.loyalty.redemption_steps import end, fail, redeem, redemptions_of


async def events_of(database: Database, company_id: int, kind: str = "loyalty.points.updated") -> list[dict[str, Any]]:
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND kind = $2 ORDER BY number", company_id, kind
        )
    return [json.loads(row[0]) for row in rows]


async def told_of(api: httpx.AsyncClient, customer_id: str) -> list[tuple[str, str, str, str | None]]:
    response = await api.get(f"/loyalty/customers/{customer_id}/timeline", params={"category": "loyalty", "limit": 100})
    return [(one["type"], one["source"], one["edit_log"], one["notes"]) for one in reversed(response.json()["data"])]


async def test_every_write_announces_the_wallet_once(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str, move_clock: MoveClock
) -> None:
    await sandbox.put("/loyalty/settings", json={"expiryMonths": 1})
    wallets = [(await add_points(sandbox, ayu, 100))["wallet"]]
    reservation = await make_reservation(sandbox, ayu, 30)
    wallets.append(await wallet_of(sandbox, ayu))
    await close(sandbox, reservation["id"], "commit")
    wallets.append(await wallet_of(sandbox, ayu))
    assert await events_of(database, company.test) == wallets
    await adjust(sandbox, ayu, "deduct", 1_000)
    await add_points(sandbox, ayu, 1, idempotencyKey="once")
    await add_points(sandbox, ayu, 1, idempotencyKey="once")
    assert len(await events_of(database, company.test)) == 4
    await move_clock(timedelta(days=40))
    wallets.append((await add_points(sandbox, ayu, 5))["wallet"])
    events = await events_of(database, company.test)
    assert events[-1] == wallets[-1]
    assert wallets[-1]["version"] == "7", "two lots expired, and five points came"
    assert len(events) <= 6, "one event for the three, or one of the worker's before it"


async def test_points_are_recorded_on_the_timeline(sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock) -> None:
    await sandbox.put("/loyalty/settings", json={"expiryMonths": 1})
    await sandbox.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 10000, "points": 1}]})
    order = await make_order(sandbox, customerId=ayu)
    await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    await add_points(sandbox, ayu, 100, reason="Sorry for the wait")
    await close(sandbox, (await make_reservation(sandbox, ayu, 30))["id"], "commit")
    await close(sandbox, (await make_reservation(sandbox, ayu, 10))["id"], "release")
    await sandbox.put(f"/orders/{order['id']}", json={"status": "refunded"})
    await move_clock(timedelta(days=40))
    await adjust(sandbox, ayu, "add", 1)
    assert await told_of(sandbox, ayu) == [
        ("points_earned", "system", "available: 0 → 15", None),
        ("points_adjusted", "api", "available: 15 → 115", "Sorry for the wait"),
        ("points_reserved", "api", "available: 115 → 85; reserved: 0 → 30", None),
        ("points_redeemed", "api", "reserved: 30 → 0", None),
        ("points_reserved", "api", "available: 85 → 75; reserved: 0 → 10", None),
        ("points_released", "api", "available: 75 → 85; reserved: 10 → 0", None),
        ("points_reversed", "system", "available: 85 → 70", None),
        ("points_expired", "system", "available: 70 → 0", None),
        ("points_adjusted", "api", "available: 0 → 1", None),
    ]


async def test_every_change_of_a_redemption_is_announced_once_and_recorded_on_the_timeline(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, rich: str, move_clock: MoveClock
) -> None:
    reward = await make_reward(sandbox, 10)
    expected = [first := await make_redemption(sandbox, rich, reward, idempotencyKey="k")]
    await make_redemption(sandbox, rich, reward, idempotencyKey="k")
    await redeem(sandbox, rich, reward, pointsCost=11)
    expected.append((await end(sandbox, first["id"], "commit")).json()["data"])
    await end(sandbox, first["id"], "commit")
    expected.append(second := await make_redemption(sandbox, rich, reward))
    expected.append((await end(sandbox, second["id"], "release")).json()["data"])
    expected.append(await make_redemption(sandbox, rich, reward))
    await move_clock(timedelta(seconds=901))
    await adjust(sandbox, rich, "add", 1)
    expected.append((await redemptions_of(sandbox, rich))[0])
    expected.append((await fail(sandbox, first["id"], "The till broke")).json()["data"])
    await fail(sandbox, first["id"])
    assert await events_of(database, company.test, "loyalty.redemption.updated") == expected
    timeline = await told_of(sandbox, rich)
    assert {one[2:] for one in timeline if one[0] == "points_reserved"} == {
        ("Kopi gratis: available: 1000 → 990; reserved: 0 → 10", None),
        ("Kopi gratis: available: 990 → 980; reserved: 0 → 10", None),
    }
    entries = [one for one in timeline if not one[0].startswith("points_")]
    assert entries == [
        ("reward_redeemed", "api", "Kopi gratis: reserved", None),
        ("redemption_committed", "api", "Kopi gratis: reserved → committed", None),
        ("reward_redeemed", "api", "Kopi gratis: reserved", None),
        ("redemption_released", "api", "Kopi gratis: reserved → released", None),
        ("reward_redeemed", "api", "Kopi gratis: reserved", None),
        ("redemption_expired", "system", "Kopi gratis: reserved → expired", None),
        ("redemption_failed", "api", "Kopi gratis: committed → failed", "The till broke"),
    ]


async def test_a_receiver_that_prints_a_redemption_again_gets_the_same_bytes(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    await add_points(sandbox, ayu, 100)
    own = {"b": 1.0, "2": 1e5, "1": [1.5, {"9": -0.0, "id": 12345678901234567890}]}
    redeemed = await redeem(sandbox, ayu, await make_reward(sandbox), metadata=own)
    assert redeemed.status_code == 200, redeemed.text
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND kind LIKE 'loyalty.redemption.%'", company.test
        )
    bodies = [bytes(row[0]).decode() for row in rows]
    assert '"metadata":{"1":[1.5,{"9":0,"id":"12345678901234567890"}],"2":100000,"b":1}' in bodies[0]
    assert bodies == [print_again(body) for body in bodies]
