"""Redeeming a reward, and how a redemption ends."""

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.loyalty.expiry import jobs
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import add_points, make_customer, make_redemption, make_reservation, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, error_of, history_of, points_of, types_of, wallet_of
from tests.loyalty.redemption_steps import end, fail, redeem, redemptions_of, statuses_of, summary_of

pytestmark = pytest.mark.usefixtures("whole")


async def test_a_redemption_holds_the_points_and_keeps_the_terms_of_the_reward(
    sandbox: httpx.AsyncClient, rich: str
) -> None:
    reward = await make_reward(
        sandbox, 100, discountType="percentage", discountValue="12.5", voucherPrefix="KOPI-", minimumPurchaseAmount=99.5
    )
    response = await redeem(sandbox, rich, reward, metadata={"till": 7}, idempotencyKey="k")
    assert response.status_code == 200
    made = response.json()["data"]
    redemption, entry = made["redemption"], made["ledger"]
    assert redemption == {
        "id": redemption["id"],
        "customerId": rich,
        "walletId": made["wallet"]["id"],
        "rewardOptionId": reward["id"],
        "rewardName": "Kopi gratis",
        "pointsCost": "100",
        "status": "reserved",
        "voucherCode": redemption["voucherCode"],
        "discountType": "percentage",
        "discountValue": "12.5",
        "minimumPurchaseAmount": 99.5,
        "expirationPreset": "NO_EXPIRATION",
        "metadata": {"till": 7},
        "reservedUntil": redemption["reservedUntil"],
        "committedAt": None,
        "expiresAt": None,
        "createdAt": entry["occurredAt"],
        "updatedAt": entry["occurredAt"],
    }
    assert (entry["entryType"], entry["pointsDelta"], entry["idempotencyKey"]) == ("redeem_reserve", "0", "k")
    assert (entry["referenceType"], entry["referenceId"]) == ("redemption", redemption["id"])
    assert (made["wallet"]["availablePoints"], made["wallet"]["reservedPoints"]) == ("900", "100")
    duration = datetime.fromisoformat(redemption["reservedUntil"]) - datetime.fromisoformat(redemption["createdAt"])
    assert timedelta(seconds=899) < duration <= timedelta(seconds=900)
    assert made["wallet"] == await wallet_of(sandbox, rich)
    assert await redemptions_of(sandbox, rich) == [redemption]


async def test_a_commit_spends_the_points(sandbox: httpx.AsyncClient, rich: str) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100))
    committed = (await end(sandbox, made["id"], "commit")).json()["data"]
    changed = {"status": "committed", "committedAt": committed["updatedAt"], "updatedAt": committed["updatedAt"]}
    assert committed == {**made, **changed}
    assert await redemptions_of(sandbox, rich) == [committed]
    assert await types_of(sandbox, rich) == [("adjust_add", 1000), ("redeem_reserve", 0), ("redeem_commit", -100)]
    assert {(one["referenceType"], one["referenceId"]) for one in (await history_of(sandbox, rich))[:2]} == {
        ("redemption", made["id"])
    }
    assert await points_of(sandbox, rich) == (900, 0)


async def test_a_release_returns_the_points(sandbox: httpx.AsyncClient, rich: str) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100))
    released = (await end(sandbox, made["id"], "release")).json()["data"]
    assert released == {**made, "status": "released", "updatedAt": released["updatedAt"]}
    assert await types_of(sandbox, rich) == [("adjust_add", 1000), ("redeem_reserve", 0), ("redeem_release", 0)]
    assert await points_of(sandbox, rich) == (1000, 0)


@pytest.mark.parametrize("first", ["commit", "release"])
@pytest.mark.parametrize("second", ["commit", "release"])
async def test_a_redemption_ends_once(sandbox: httpx.AsyncClient, rich: str, first: str, second: str) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100))
    ended = (await end(sandbox, made["id"], first)).json()["data"]
    before = await wallet_of(sandbox, rich)
    refused = await end(sandbox, made["id"], second)
    assert error_of(refused) == (409, "RESERVATION_CLOSED")
    assert ended["status"] in refused.json()["error"]["message"]
    assert await wallet_of(sandbox, rich) == before
    assert await redemptions_of(sandbox, rich) == [ended]


async def test_a_failed_redemption_returns_the_points(sandbox: httpx.AsyncClient, rich: str) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100, expirationPreset="SEVEN_DAYS"))
    failed = (await fail(sandbox, made["id"], "No vouchers left")).json()["data"]
    assert failed == {**made, "status": "failed", "updatedAt": failed["updatedAt"]}
    assert await redemptions_of(sandbox, rich) == [failed]
    entry = (await history_of(sandbox, rich))[0]
    assert (entry["entryType"], entry["note"], entry["referenceId"]) == (
        "redeem_release",
        "No vouchers left",
        made["id"],
    )
    assert await points_of(sandbox, rich) == (1000, 0)


async def test_a_committed_redemption_can_still_fail_once(sandbox: httpx.AsyncClient, rich: str) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100, expirationPreset="SEVEN_DAYS"))
    await end(sandbox, made["id"], "commit")
    failed = (await fail(sandbox, made["id"])).json()["data"]
    assert failed == {**made, "status": "failed", "updatedAt": failed["updatedAt"]}, "it is not valid any more"
    for response in (
        await fail(sandbox, made["id"]),
        await end(sandbox, made["id"], "commit"),
        await end(sandbox, made["id"], "release"),
    ):
        assert error_of(response) == (409, "RESERVATION_CLOSED")
        assert "already failed" in response.json()["error"]["message"]
    assert (await types_of(sandbox, rich))[1:] == [
        ("redeem_reserve", 0),
        ("redeem_commit", -100),
        ("redeem_reversal", 100),
    ]
    wallet = await wallet_of(sandbox, rich)
    assert (wallet["availablePoints"], wallet["lifetimeBurnedPoints"]) == ("1000", "0")


async def test_a_released_or_expired_redemption_cannot_fail(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    released, late = [await make_redemption(sandbox, rich, await make_reward(sandbox, 100)) for _ in range(2)]
    await end(sandbox, released["id"], "release")
    await move_clock(timedelta(seconds=901))
    for one, status in ((released, "released"), (late, "expired")):
        refused = await fail(sandbox, one["id"])
        assert error_of(refused) == (409, "RESERVATION_CLOSED")
        assert f"already {status}" in refused.json()["error"]["message"]
    assert await points_of(sandbox, rich) == (1000, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": " \n"},
        {"reason": None},
        {"reason": "x" * 1001},
        {"reason": 5},
        {"reason": "x", "failed": True},
    ],
)
async def test_a_failure_has_a_reason(sandbox: httpx.AsyncClient, rich: str, body: dict[str, Any]) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100))
    response = await sandbox.post(f"/loyalty/redemptions/{made['id']}/fail", json=body)
    assert error_of(response) == (400, "VALIDATION_ERROR")
    assert await redemptions_of(sandbox, rich) == [made]


@pytest.mark.parametrize(("verb", "status"), [("commit", "committed"), ("release", "released")])
async def test_a_redemption_ends_with_the_reservation_that_holds_its_points(
    sandbox: httpx.AsyncClient, installation: Installation, rich: str, verb: str, status: str
) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100, expirationPreset="SEVEN_DAYS"))
    async with connect(installation.server.owner_url) as owner:
        id = await owner.fetchval("SELECT id FROM loyalty_reservations WHERE redemption_id = $1", made["id"])
    assert (await sandbox.post(f"/loyalty/reservations/{id}/{verb}")).status_code == 200
    (ended,) = await redemptions_of(sandbox, rich)
    assert (ended["status"], ended["expiresAt"] is not None) == (status, verb == "commit")
    assert error_of(await end(sandbox, made["id"], verb)) == (409, "RESERVATION_CLOSED")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rewardName": "Kopi"}, "rewardName"),
        ({"rewardName": "kopi gratis"}, "rewardName"),
        ({"pointsCost": 99}, "pointsCost"),
        ({"pointsCost": 101}, "pointsCost"),
        ({"pointsCost": "99"}, "pointsCost"),
        ({"pointsCost": "0100"}, "pointsCost"),
        ({"pointsCost": 0}, "pointsCost"),
        ({"pointsCost": "9999999999999"}, "pointsCost"),
        ({"rewardOptionId": "rwd_01jc9y3q5me8w92v7x4t6r0n1k"}, "rewardOptionId"),
        ({"voucherCode": ""}, "voucherCode"),
        ({"voucherCode": "two words"}, "voucherCode"),
        ({"voucherCode": "ß"}, "voucherCode"),
        ({"voucherCode": "x" * 65}, "voucherCode"),
        ({"idempotencyKey": "order:x:1"}, "idempotencyKey"),
        ({"metadata": {"a": "x" * 10_000}}, "metadata"),
        ({"ttlSeconds": 5}, "ttlSeconds"),
    ],
)
async def test_a_redemption_of_something_else_is_refused_by_its_field(
    sandbox: httpx.AsyncClient, rich: str, fields: dict[str, Any], field: str
) -> None:
    response = await redeem(sandbox, rich, await make_reward(sandbox, 100), **fields)
    assert error_of(response) == (400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == field
    assert await redemptions_of(sandbox, rich) == []
    assert await points_of(sandbox, rich) == (1000, 0)


async def test_the_cost_may_be_sent_as_it_was_returned(sandbox: httpx.AsyncClient, rich: str) -> None:
    reward = await make_reward(sandbox, 100)
    assert (await redeem(sandbox, rich, reward, pointsCost=reward["costToRedeem"])).status_code == 200


async def test_a_customer_with_too_few_points_cannot_redeem(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 99)
    response = await redeem(sandbox, ayu, await make_reward(sandbox, 100))
    assert error_of(response) == (409, "INSUFFICIENT_POINTS")
    assert response.json()["error"]["message"] == "The customer has 99 points available; 100 are needed."
    assert await redemptions_of(sandbox, ayu) == []


async def test_a_disabled_program_redeems_and_ends_nothing(sandbox: httpx.AsyncClient, rich: str) -> None:
    reward = await make_reward(sandbox, 100)
    made = await make_redemption(sandbox, rich, reward, idempotencyKey="before")
    await sandbox.put("/loyalty/settings", json={"enabled": False})
    for response in (
        await redeem(sandbox, rich, reward),
        await end(sandbox, made["id"], "commit"),
        await end(sandbox, made["id"], "release"),
        await fail(sandbox, made["id"]),
    ):
        assert error_of(response) == (409, "LOYALTY_DISABLED")
    assert await redemptions_of(sandbox, rich) == [made]
    again = await redeem(sandbox, rich, reward, idempotencyKey="before")
    assert again.json()["data"]["redemption"] == made, "it has happened already"


async def test_an_open_redemption_expires_at_its_instant(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    """Shown as expired at once, even before the worker has settled it."""
    await sandbox.put("/loyalty/settings", json={"reservationTtlSeconds": 3600})
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100))
    await move_clock(timedelta(seconds=3590))
    assert await statuses_of(sandbox, rich) == ["reserved"]
    await move_clock(timedelta(seconds=10))
    assert await statuses_of(sandbox, rich) == ["expired"]
    assert await summary_of(sandbox, rich) == {"total": (1, 100), "expired": (1, 100)}
    assert await redemptions_of(sandbox, rich, status="reserved") == []
    assert len(await redemptions_of(sandbox, rich, status="expired")) == 1
    redeemers = await sandbox.get(f"/loyalty/rewards/{made['rewardOptionId']}/redeemers")
    assert (redeemers.json()["data"], redeemers.json()["meta"]["total"]) == ([], 0)
    for verb in ("commit", "release"):
        refused = await end(sandbox, made["id"], verb)
        assert error_of(refused) == (409, "RESERVATION_CLOSED")
        assert "expired" in refused.json()["error"]["message"]
    assert await points_of(sandbox, rich) == (1000, 0)


async def test_the_settlement_records_the_expiry(
    sandbox: httpx.AsyncClient, database: Database, rich: str, move_clock: MoveClock
) -> None:
    made = [await make_redemption(sandbox, rich, await make_reward(sandbox, 100)) for _ in range(3)]
    reservation = await make_reservation(sandbox, rich, 5)
    await move_clock(timedelta(seconds=901))
    await jobs.expire_overdue(database)
    async with database.connection() as db:
        rows = await db.fetch("SELECT status FROM loyalty_redemptions WHERE customer_id = $1", rich)
    assert [row[0] for row in rows] == ["expired"] * 3
    releases = [one for one in await history_of(sandbox, rich) if one["entryType"] == "redeem_release"]
    expected = {("redemption", one["id"]) for one in made} | {("reservation", reservation["id"])}
    assert {(one["referenceType"], one["referenceId"]) for one in releases} == expected


async def test_an_idempotency_key_is_one_redemption_for_ever(sandbox: httpx.AsyncClient, rich: str) -> None:
    other = (await make_customer(sandbox))["id"]
    reward = await make_reward(sandbox, 100)
    fields: dict[str, Any] = {"idempotencyKey": "one", "metadata": {"a": 1, "b": 2}, "voucherCode": "X"}
    first = await redeem(sandbox, rich, reward, **fields)
    again = await redeem(sandbox, rich, reward, **{**fields, "metadata": {"b": 2, "a": 1}})
    assert again.content == first.content
    as_answered = await redeem(sandbox, rich, reward, **fields, pointsCost=reward["costToRedeem"])
    assert as_answered.content == first.content, "the cost may be a number or a string"
    made = first.json()["data"]
    committed = (await end(sandbox, made["redemption"]["id"], "commit")).json()["data"]
    await sandbox.delete(f"/loyalty/reward-options/{reward['id']}")
    later = (await redeem(sandbox, rich, reward, **fields)).json()["data"]
    assert later == {"wallet": await wallet_of(sandbox, rich), "redemption": committed, "ledger": made["ledger"]}
    changes: list[dict[str, Any]] = [{"pointsCost": 5}, {"rewardName": "x"}, {"voucherCode": "Y"}, {"metadata": {}}]
    for changed in changes:
        assert error_of(await redeem(sandbox, rich, reward, **{**fields, **changed})) == (409, "IDEMPOTENCY_KEY_REUSED")
    for response in (
        await redeem(sandbox, other, reward, **fields),
        await adjust(sandbox, rich, "add", 1, idempotencyKey="one"),
    ):
        assert error_of(response) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert len(await redemptions_of(sandbox, rich)) == 1
