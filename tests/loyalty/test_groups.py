"""Adjustments that arrive together share a transaction, and each has its own outcome."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Literal

import httpx

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.http import queries as edge
from sapa.loyalty.adjust import adjust_all
from sapa.loyalty.types import AdjustmentIn
from tests.factories import Environments, add_points, make_customer
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, drift_of, error_of, history_of, points_of, together, types_of, wallet_of

MANY = 40
UNKNOWN = "cust_01jd0000000000000000000000"


async def test_a_refused_call_changes_nothing_for_the_others(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    calls = [adjust(sandbox, ayu, "deduct", 10) for _ in range(MANY)]
    calls += [adjust(sandbox, UNKNOWN, "add", 1) for _ in range(5)]
    calls += [adjust(sandbox, ayu, "add", 1, idempotencyKey="order:x") for _ in range(5)]
    responses = await together(*calls)
    assert Counter(response.status_code for response in responses[:MANY]) == {200: 10, 409: MANY - 10}
    assert {error_of(one)[1] for one in responses[:MANY] if one.status_code == 409} == {"INSUFFICIENT_POINTS"}
    assert {response.status_code for response in responses[MANY : MANY + 5]} == {404}
    assert {response.status_code for response in responses[MANY + 5 :]} == {400}
    assert await points_of(sandbox, ayu) == (0, 0)
    assert await drift_of(sandbox) == []


async def test_each_response_has_the_wallet_right_after_its_own_entry(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 1_000)
    responses = await together(
        *(adjust(sandbox, ayu, "deduct" if number % 2 else "add", number + 1) for number in range(MANY))
    )
    adjusted = sorted((one.json()["data"] for one in responses), key=lambda one: int(one["wallet"]["version"]))
    assert [int(one["wallet"]["version"]) for one in adjusted] == list(range(2, MANY + 2))
    for one in adjusted:
        assert one["wallet"]["availablePoints"] == one["ledger"]["availableAfter"]
        assert one["wallet"]["lastLedgerAt"] == one["ledger"]["occurredAt"]
    assert [one["ledger"] for one in reversed(adjusted)] == (await history_of(sandbox, ayu))[:MANY]
    assert adjusted[-1]["wallet"] == await wallet_of(sandbox, ayu)
    assert await drift_of(sandbox) == []


async def test_points_of_the_same_group_are_deducted_in_the_order_of_their_expiry(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str, move_clock: MoveClock
) -> None:
    """What is granted under the new settings expires, and so is spent before the points that never do."""
    await add_points(sandbox, ayu, 100)
    await sandbox.put("/loyalty/settings", json={"expiryMonths": 1})
    steps: list[tuple[Literal["add", "deduct"], int]] = [("add", 10), ("deduct", 7), ("add", 20), ("deduct", 15)]
    async with database.transaction() as tx:
        environment = await access.get_company(tx, company.test)
        adjustments = [(ayu, AdjustmentIn(direction=direction, points=points)) for direction, points in steps]
        await adjust_all(tx, environment, adjustments)
    assert await points_of(sandbox, ayu) == (108, 0)
    assert await drift_of(sandbox) == []
    await move_clock(timedelta(days=40))
    assert await points_of(sandbox, ayu) == (100, 0)


async def test_every_adjustment_announces_its_wallet(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    await together(*(adjust(sandbox, ayu, "add", 1) for _ in range(MANY)))
    query = """
        SELECT convert_from(body, 'UTF8')::json->>'version' FROM events
         WHERE company_id = $1 AND kind = 'loyalty.points.updated' ORDER BY id"""
    async with database.connection() as db:
        versions = [int(version) for (version,) in await db.fetch(query, company.test)]
    assert sorted(versions) == list(range(1, MANY + 1))
    timeline = await sandbox.get(f"/loyalty/customers/{ayu}/timeline", params={"category": "loyalty"})
    assert timeline.json()["meta"]["total"] == MANY


async def test_idempotency_keys_of_a_group_are_stored_and_those_of_refused_calls_freed(
    sandbox: httpx.AsyncClient, ayu: str
) -> None:
    path = f"/loyalty/customers/{ayu}/points/adjust"

    async def deduct(key: str) -> httpx.Response:
        body = {"direction": "deduct", "points": 5, "reason": key}
        return await sandbox.post(path, json=body, headers={"idempotency-key": key})

    await add_points(sandbox, ayu, 5)
    keys = [f"key-{number}" for number in range(10)]
    first = dict(zip(keys, await together(*map(deduct, keys)), strict=True))
    (won,) = [key for key, response in first.items() if response.status_code == 200]
    await add_points(sandbox, ayu, 45)
    second = dict(zip(keys, await together(*map(deduct, keys)), strict=True))
    assert {response.status_code for response in second.values()} == {200}
    assert [key for key, one in second.items() if "idempotency-replayed" in one.headers] == [won]
    assert second[won].content == first[won].content
    assert Counter(type for type, _ in await types_of(sandbox, ayu)) == {"adjust_add": 2, "adjust_deduct": 10}
    assert await points_of(sandbox, ayu) == (0, 0)


async def test_a_call_whose_key_is_in_flight_elsewhere_holds_up_no_other(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    path, body = f"/loyalty/customers/{ayu}/points/adjust", {"direction": "add", "points": 5}
    async with database.transaction() as tx:
        await edge.claim(tx, company.test, "one", f"POST /customer/v1{path}", b"")
        stuck = asyncio.create_task(sandbox.post(path, json=body, headers={"idempotency-key": "one"}))
        other = (await make_customer(sandbox))["id"]
        responses = await together(*(adjust(sandbox, id, "add", 1) for id in (ayu, other) for _ in range(10)))
        assert {response.status_code for response in responses} == {200}
        assert not stuck.done()
        await tx.execute("DELETE FROM idempotency_records WHERE company_id = $1 AND key = 'one'", company.test)
    assert (await stuck).status_code == 200
    assert await points_of(sandbox, ayu) == (15, 0)
