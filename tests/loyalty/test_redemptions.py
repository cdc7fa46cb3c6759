import json
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.loyalty import jobs
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, add_points, make_customer, make_redemption, make_reservation, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger import adjust, drift_of, error_of, history_of, points_of, types_of, wallet_of
from tests.loyalty.redeeming import end, redeem, redemptions_of, statuses_of, summary_of


@pytest.fixture(autouse=True)
async def whole(sandbox: httpx.AsyncClient) -> AsyncIterator[None]:
    """Whatever a test does, the ledger does not contradict itself afterwards."""
    yield
    assert await drift_of(sandbox) == []


@pytest.fixture
async def rich(sandbox: httpx.AsyncClient, ayu: str) -> str:
    """A customer with a thousand points."""
    await add_points(sandbox, ayu, 1_000)
    return ayu


async def test_a_redemption_holds_the_points_and_says_what_the_reward_was(
    sandbox: httpx.AsyncClient, rich: str
) -> None:
    reward = await make_reward(
        sandbox, 100, discountType="percentage", discountValue="12.5", voucherPrefix="KOPI-", minimumPurchaseAmount=99.5
    )
    answer = await redeem(sandbox, rich, reward, metadata={"till": 7}, idempotencyKey="k")
    assert answer.status_code == 200
    made = answer.json()["data"]
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
    held = datetime.fromisoformat(redemption["reservedUntil"]) - datetime.fromisoformat(redemption["createdAt"])
    assert timedelta(seconds=899) < held <= timedelta(seconds=900)
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


async def test_a_release_gives_the_points_back(sandbox: httpx.AsyncClient, rich: str) -> None:
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
    ("preset", "valid"),
    [
        ("NO_EXPIRATION", None),
        ("SEVEN_DAYS", timedelta(days=7)),
        ("THIRTY_DAYS", timedelta(days=30)),
        ("NINETY_DAYS", timedelta(days=90)),
        ("ONE_YEAR", None),
    ],
)
async def test_a_voucher_is_valid_from_its_commit_on(
    sandbox: httpx.AsyncClient, rich: str, preset: str, valid: timedelta | None, move_clock: MoveClock
) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100, expirationPreset=preset))
    await move_clock(timedelta(seconds=600))
    committed = (await end(sandbox, made["id"], "commit")).json()["data"]
    at = datetime.fromisoformat(committed["committedAt"])
    assert at - datetime.fromisoformat(made["createdAt"]) >= timedelta(seconds=600)
    until = committed["expiresAt"] and datetime.fromisoformat(committed["expiresAt"])
    if preset == "ONE_YEAR":
        assert (until.year, until.month, until.day) in {(at.year + 1, at.month, at.day), (at.year + 1, 2, 28)}
    else:
        assert until == (valid and at + valid)


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
    answer = await redeem(sandbox, rich, await make_reward(sandbox, 100), **fields)
    assert error_of(answer) == (400, "VALIDATION_ERROR")
    assert answer.json()["error"]["details"][0]["field"] == field
    assert await redemptions_of(sandbox, rich) == []
    assert await points_of(sandbox, rich) == (1000, 0)


async def test_the_cost_may_be_sent_as_it_was_answered(sandbox: httpx.AsyncClient, rich: str) -> None:
    reward = await make_reward(sandbox, 100)
    assert (await redeem(sandbox, rich, reward, pointsCost=reward["costToRedeem"])).status_code == 200


async def test_who_has_too_few_points_redeems_nothing(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 99)
    answer = await redeem(sandbox, ayu, await make_reward(sandbox, 100))
    assert error_of(answer) == (409, "INSUFFICIENT_POINTS")
    assert answer.json()["error"]["message"] == "100 points were asked for and 99 are available."
    assert await redemptions_of(sandbox, ayu) == []


async def test_while_the_program_is_off_nothing_is_redeemed_or_ended(sandbox: httpx.AsyncClient, rich: str) -> None:
    reward = await make_reward(sandbox, 100)
    made = await make_redemption(sandbox, rich, reward, idempotencyKey="before")
    await sandbox.put("/loyalty/settings", json={"enabled": False})
    for answer in (
        await redeem(sandbox, rich, reward),
        await end(sandbox, made["id"], "commit"),
        await end(sandbox, made["id"], "release"),
    ):
        assert error_of(answer) == (409, "LOYALTY_DISABLED")
    assert await redemptions_of(sandbox, rich) == [made]
    again = await redeem(sandbox, rich, reward, idempotencyKey="before")
    assert again.json()["data"]["redemption"] == made, "it has happened already"


async def test_a_redemption_that_nobody_ends_expires_at_that_instant(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    """Shown as expired from the first moment, though the worker may take its time to write it down."""
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


async def test_the_settlement_writes_down_that_it_expired(
    sandbox: httpx.AsyncClient, database: Database, rich: str, move_clock: MoveClock
) -> None:
    made = [await make_redemption(sandbox, rich, await make_reward(sandbox, 100)) for _ in range(3)]
    held = await make_reservation(sandbox, rich, 5)
    await move_clock(timedelta(seconds=901))
    await jobs.expire_overdue(database)
    async with database.connection() as db:
        rows = await db.fetch("SELECT status FROM loyalty_redemptions WHERE customer_id = $1", rich)
    assert [row[0] for row in rows] == ["expired"] * 3
    releases = [one for one in await history_of(sandbox, rich) if one["entryType"] == "redeem_release"]
    wanted = {("redemption", one["id"]) for one in made} | {("reservation", held["id"])}
    assert {(one["referenceType"], one["referenceId"]) for one in releases} == wanted


async def test_a_code_is_made_unless_one_is_given(sandbox: httpx.AsyncClient, rich: str) -> None:
    plain, prefixed = await make_reward(sandbox, 1), await make_reward(sandbox, 1, voucherPrefix="kopi_")
    codes = [(await make_redemption(sandbox, rich, plain))["voucherCode"] for _ in range(20)]
    codes += [(await make_redemption(sandbox, rich, prefixed))["voucherCode"].removeprefix("kopi_") for _ in range(20)]
    assert len(set(codes)) == 40
    symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    for code in codes:
        assert re.fullmatch(f"[{symbols}]{{11}}", code)
        number = 0
        for char in code[:10]:
            number = number * 32 + symbols.index(char)
        assert symbols.index(code[10]) == number % 37
    own = await make_redemption(sandbox, rich, prefixed, voucherCode="Own-Code!1")
    assert own["voucherCode"] == "Own-Code!1"


async def test_a_code_is_one_redemptions_until_that_is_over(sandbox: httpx.AsyncClient, rich: str) -> None:
    other = (await make_customer(sandbox))["id"]
    await add_points(sandbox, other, 1_000)
    reward = await make_reward(sandbox, 10)
    first = await make_redemption(sandbox, rich, reward, voucherCode="Lebaran-1")
    for who in (rich, other):
        assert error_of(await redeem(sandbox, who, reward, voucherCode="LEBARAN-1")) == (409, "VOUCHER_TAKEN")
    assert await points_of(sandbox, other) == (1000, 0)
    await end(sandbox, first["id"], "release")
    second = await make_redemption(sandbox, other, reward, voucherCode="lebaran-1")
    await end(sandbox, second["id"], "commit")
    assert error_of(await redeem(sandbox, rich, reward, voucherCode="Lebaran-1")) == (409, "VOUCHER_TAKEN")


async def test_a_code_is_free_when_its_time_is_over_however_late_the_worker_is(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    other = (await make_customer(sandbox))["id"]
    await add_points(sandbox, other, 1_000)
    reward = await make_reward(sandbox, 10)
    for who in (rich, other, other):
        await make_redemption(sandbox, who, reward, voucherCode="again")
        await move_clock(timedelta(seconds=901))
    assert await statuses_of(sandbox, rich) == ["expired"]
    assert await statuses_of(sandbox, other) == ["expired", "expired"]


async def test_an_idempotency_key_is_one_redemption_for_ever(sandbox: httpx.AsyncClient, rich: str) -> None:
    other = (await make_customer(sandbox))["id"]
    reward = await make_reward(sandbox, 100)
    fields: dict[str, Any] = {"idempotencyKey": "one", "metadata": {"a": 1, "b": 2}, "voucherCode": "X"}
    first = await redeem(sandbox, rich, reward, **fields)
    again = await redeem(sandbox, rich, reward, **{**fields, "metadata": {"b": 2, "a": 1}})
    assert again.content == first.content
    made = first.json()["data"]
    committed = (await end(sandbox, made["redemption"]["id"], "commit")).json()["data"]
    await sandbox.delete(f"/loyalty/reward-options/{reward['id']}")
    later = (await redeem(sandbox, rich, reward, **fields)).json()["data"]
    assert later == {"wallet": await wallet_of(sandbox, rich), "redemption": committed, "ledger": made["ledger"]}
    changes: list[dict[str, Any]] = [{"pointsCost": 5}, {"rewardName": "x"}, {"voucherCode": "Y"}, {"metadata": {}}]
    for changed in changes:
        assert error_of(await redeem(sandbox, rich, reward, **{**fields, **changed})) == (409, "IDEMPOTENCY_KEY_REUSED")
    for answer in (
        await redeem(sandbox, other, reward, **fields),
        await adjust(sandbox, rich, "add", 1, idempotencyKey="one"),
    ):
        assert error_of(answer) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert len(await redemptions_of(sandbox, rich)) == 1


async def test_redemptions_are_searched_filtered_and_paged(sandbox: httpx.AsyncClient, rich: str) -> None:
    coffee, tea = await make_reward(sandbox, 10), await make_reward(sandbox, 1, rewardName="Téh Manis")
    made = [await make_redemption(sandbox, rich, coffee if n % 2 else tea, voucherCode=f"C-{n}") for n in range(7)]
    made = [
        (await end(sandbox, one["id"], "commit" if n < 2 else "release")).json()["data"] if n < 3 else one
        for n, one in enumerate(made)
    ]
    newest = made[::-1]
    for limit in (1, 2, 7, 100):
        assert await redemptions_of(sandbox, rich, limit=limit) == newest
    for status in ("reserved", "committed", "released", "expired", "failed"):
        wanted = [one for one in newest if one["status"] == status]
        assert await redemptions_of(sandbox, rich, limit=2, status=status) == wanted
    assert await redemptions_of(sandbox, rich, limit=2, search="TEH m") == newest[::2]
    assert await redemptions_of(sandbox, rich, search="c-4") == [made[4]]
    assert await redemptions_of(sandbox, rich, search="gratis", status="committed") == [made[1]]
    assert await redemptions_of(sandbox, rich, search="_") == []
    assert await redemptions_of(sandbox, rich, before=made[3]["createdAt"]) == newest[4:]
    assert await summary_of(sandbox, rich) == {
        "total": (7, 34), "committed": (2, 11), "released": (1, 1), "reserved": (4, 22),
    }  # fmt: skip
    empty = (await make_customer(sandbox))["id"]
    assert (await redemptions_of(sandbox, empty), await summary_of(sandbox, empty)) == ([], {})


async def test_redemptions_keep_their_order_though_the_clock_goes_back(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    reward = await make_reward(sandbox, 10)
    made = []
    await move_clock(timedelta(hours=5))
    for _ in range(3):
        made.append(await make_redemption(sandbox, rich, reward))
        await move_clock(-timedelta(hours=1))
    assert await redemptions_of(sandbox, rich, limit=1) == made[::-1]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "before=yesterday", "status=open", "status=", "search=", "search=%20", "page=1"]
)
async def test_a_query_that_cannot_be_is_refused(sandbox: httpx.AsyncClient, ayu: str, query: str) -> None:
    answer = await sandbox.get(f"/loyalty/customers/{ayu}/redemptions?{query}")
    assert error_of(answer) == (400, "VALIDATION_ERROR")


async def test_every_change_is_announced_once_and_told_on_the_timeline(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, rich: str, move_clock: MoveClock
) -> None:
    reward = await make_reward(sandbox, 10)
    wanted = [first := await make_redemption(sandbox, rich, reward, idempotencyKey="k")]
    await make_redemption(sandbox, rich, reward, idempotencyKey="k")
    await redeem(sandbox, rich, reward, pointsCost=11)
    wanted.append((await end(sandbox, first["id"], "commit")).json()["data"])
    await end(sandbox, first["id"], "commit")
    wanted.append(second := await make_redemption(sandbox, rich, reward))
    wanted.append((await end(sandbox, second["id"], "release")).json()["data"])
    wanted.append(await make_redemption(sandbox, rich, reward))
    await move_clock(timedelta(seconds=901))
    await adjust(sandbox, rich, "add", 1)
    wanted.append((await redemptions_of(sandbox, rich))[0])
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT body FROM events WHERE company_id = $1 AND kind = 'loyalty.redemption.updated' ORDER BY number",
            company.test,
        )
    assert [json.loads(row[0]) for row in rows] == wanted
    answer = await sandbox.get(f"/loyalty/customers/{rich}/timeline", params={"category": "loyalty", "limit": 100})
    told = [(one["type"], one["source"], one["edit_log"]) for one in reversed(answer.json()["data"])]
    assert [one for one in told if not one[0].startswith("points_")] == [
        ("reward_redeemed", "api", "Kopi gratis: reserved"),
        ("redemption_committed", "api", "Kopi gratis: reserved → committed"),
        ("reward_redeemed", "api", "Kopi gratis: reserved"),
        ("redemption_released", "api", "Kopi gratis: reserved → released"),
        ("reward_redeemed", "api", "Kopi gratis: reserved"),
        ("redemption_expired", "system", "Kopi gratis: reserved → expired"),
    ]


async def test_the_redemptions_of_a_deleted_customer_are_out_of_sight_and_can_still_end(
    sandbox: httpx.AsyncClient, rich: str
) -> None:
    made = await make_redemption(sandbox, rich, reward := await make_reward(sandbox, 10))
    await sandbox.delete(f"/customers/{rich}")
    for answer in (
        await sandbox.get(f"/loyalty/customers/{rich}/redemptions"),
        await sandbox.get(f"/loyalty/customers/{rich}/redemptions/summary"),
        await redeem(sandbox, rich, reward),
    ):
        assert error_of(answer) == (404, "NOT_FOUND")
    assert (await end(sandbox, made["id"], "release")).json()["data"]["status"] == "released"


CORRUPTIONS = {
    "a redemption that ended alone": "UPDATE loyalty_redemptions SET status = 'released'",
    "a redemption that costs otherwise": "UPDATE loyalty_redemptions SET points_cost = points_cost + 1",
    "a redemption that is gone": "DELETE FROM loyalty_redemptions",
    "a reservation for nothing": "UPDATE loyalty_reservations SET redemption_id = 'rdm_x'",
}


@pytest.mark.parametrize("corruption", CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
async def test_a_redemption_that_is_not_as_its_reservation_is_found(
    sandbox: httpx.AsyncClient, installation: Installation, rich: str, corruption: str
) -> None:
    await make_redemption(sandbox, rich, await make_reward(sandbox, 10))
    wallet = rich.replace("cust_", "wal_")
    async with connect(installation.server.owner_url) as owner:
        await owner.execute(f"CREATE TEMP TABLE kept AS SELECT * FROM loyalty_redemptions WHERE wallet_id = '{wallet}'")
        await owner.execute(f"{corruption} WHERE wallet_id = $1", wallet)
        drift = await drift_of(sandbox)
        assert {one["walletId"] for one in drift} == {wallet}
        assert {one["rule"] for one in drift} == {"a redemption's status and points are its reservation's"}
        await owner.execute("DELETE FROM loyalty_redemptions WHERE wallet_id = $1", wallet)
        await owner.execute("INSERT INTO loyalty_redemptions SELECT * FROM kept")
        await owner.execute(
            "UPDATE loyalty_reservations SET redemption_id = (SELECT id FROM kept) WHERE wallet_id = $1", wallet
        )
