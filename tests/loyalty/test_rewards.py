import asyncio
import time
from typing import Any

import httpx
import pytest

from sapa.db.pool import Connection, Database
from tests.conftest import Installation, connect
from tests.db.scratch import connect as connect_owner
from tests.factories import (
    Environments,
    add_points,
    make_company,
    make_customer,
    make_key,
    make_redemption,
    make_reward,
)
from tests.loyalty.ledger_steps import error_of
from tests.loyalty.redemption_steps import end, redeem, redemptions_of

FIVE_OFF: dict[str, Any] = {"discountType": "fixed_amount", "discountValue": "5000"}


async def post(api: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    body = {"rewardName": "Kopi", "costToRedeem": 50, "discountType": "free_shipping", **fields}
    return await api.post("/loyalty/reward-options", json=body)


async def put(api: httpx.AsyncClient, id: str, **fields: Any) -> httpx.Response:
    return await api.put(f"/loyalty/reward-options/{id}", json=fields)


async def test_a_reward_is_stored_as_sent(sandbox: httpx.AsyncClient) -> None:
    body = {
        "rewardName": "Potongan 25rb",
        "costToRedeem": 250,
        "discountType": "fixed_amount",
        "discountValue": "25000.50",
        "expirationPreset": "NINETY_DAYS",
        "voucherPrefix": "HEMAT-",
        "minimumPurchaseAmount": 100000,
    }
    response = await sandbox.post("/loyalty/reward-options", json=body)
    assert response.status_code == 201
    made = response.json()["data"]
    assert made == {
        **body,
        "id": made["id"],
        "costToRedeem": "250",
        "discountValue": "25000.5",
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert made["id"].startswith("rwd_")
    assert (await sandbox.get(f"/loyalty/reward-options/{made['id']}")).json()["data"] == made


async def test_absent_fields_are_null_and_points_never_expire(sandbox: httpx.AsyncClient) -> None:
    made = await make_reward(sandbox)
    absent = ("discountValue", "voucherPrefix", "minimumPurchaseAmount")
    assert [made[name] for name in absent] == [None, None, None]
    assert made["expirationPreset"] == "NO_EXPIRATION"


async def test_a_reward_that_was_read_can_be_written_back(sandbox: httpx.AsyncClient) -> None:
    made = await make_reward(sandbox, **FIVE_OFF, minimumPurchaseAmount=0.5, voucherPrefix="K")
    sent = {name: value for name, value in made.items() if name not in {"id", "createdAt", "updatedAt"}}
    assert (await put(sandbox, made["id"], **sent)).json()["data"] == made, "nothing changed, not even updatedAt"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"costToRedeem": 0}, "costToRedeem"),
        ({"costToRedeem": -1}, "costToRedeem"),
        ({"costToRedeem": 1.5}, "costToRedeem"),
        ({"costToRedeem": "0"}, "costToRedeem"),
        ({"costToRedeem": "1e3"}, "costToRedeem"),
        ({"costToRedeem": 1_000_000_000_001}, "costToRedeem"),
        ({"costToRedeem": "1000000000001"}, "costToRedeem"),
        ({"rewardName": ""}, "rewardName"),
        ({"rewardName": "  "}, "rewardName"),
        ({"discountType": "gift"}, "discountType"),
        ({"discountType": "percentage"}, "discountValue"),
        ({"discountType": "percentage", "discountValue": "0"}, "discountValue"),
        ({"discountType": "percentage", "discountValue": "100.01"}, "discountValue"),
        ({"discountType": "percentage", "discountValue": "33.333"}, "discountValue"),
        ({"discountType": "percentage", "discountValue": "-5"}, "discountValue"),
        ({"discountType": "percentage", "discountValue": 10}, "discountValue"),
        ({"discountType": "fixed_amount"}, "discountValue"),
        ({"discountType": "fixed_amount", "discountValue": "0.00"}, "discountValue"),
        ({"discountType": "fixed_amount", "discountValue": "0.001"}, "discountValue"),
        ({"discountType": "fixed_amount", "discountValue": "1234567890123.456"}, "discountValue"),
        ({"discountType": "fixed_amount", "discountValue": "1e3"}, "discountValue"),
        ({"discountType": "free_shipping", "discountValue": "1"}, "discountValue"),
        ({"expirationPreset": "TOMORROW"}, "expirationPreset"),
        ({"voucherPrefix": ""}, "voucherPrefix"),
        ({"voucherPrefix": "with blank"}, "voucherPrefix"),
        ({"voucherPrefix": "é"}, "voucherPrefix"),
        ({"voucherPrefix": "x" * 21}, "voucherPrefix"),
        ({"minimumPurchaseAmount": -1}, "minimumPurchaseAmount"),
        ({"minimumPurchaseAmount": 0.001}, "minimumPurchaseAmount"),
        ({"minimumPurchaseAmount": "abc"}, "minimumPurchaseAmount"),
        ({"stock": 5}, "stock"),
    ],
)
async def test_an_invalid_reward_is_refused_with_its_field(
    sandbox: httpx.AsyncClient, fields: dict[str, Any], field: str
) -> None:
    response = await post(sandbox, **fields)
    assert error_of(response) == (400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == field
    assert (await sandbox.get("/loyalty/reward-options")).json()["meta"]["total"] == 0


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"discountType": "percentage", "discountValue": "100"}, "100"),
        ({"discountType": "percentage", "discountValue": "100.00"}, "100"),
        ({"discountType": "percentage", "discountValue": "0.01"}, "0.01"),
        ({"discountType": "percentage", "discountValue": "12.50"}, "12.5"),
        ({"discountType": "fixed_amount", "discountValue": "0150000.00"}, "150000"),
        ({"discountType": "free_shipping", "discountValue": "0"}, None),
        ({"discountType": "free_shipping", "discountValue": "0.00"}, None),
        ({"discountType": "free_shipping", "discountValue": None}, None),
    ],
)
async def test_a_discount_is_stored_in_its_shortest_form(
    sandbox: httpx.AsyncClient, fields: dict[str, Any], value: str | None
) -> None:
    assert (await post(sandbox, **fields)).json()["data"]["discountValue"] == value


async def test_amounts_have_the_digits_of_the_companys_currency(installation: Installation, database: Database) -> None:
    tokyo = await make_company(database, region="JP", currency="JPY")
    async with connect(installation, (await make_key(database, tokyo.live)).raw) as api:
        assert (await post(api, discountType="fixed_amount", discountValue="500")).status_code == 201
        for wrong in (
            {"discountType": "fixed_amount", "discountValue": "500.5"},
            {"discountType": "free_shipping", "minimumPurchaseAmount": 1000.5},
        ):
            assert error_of(await post(api, **wrong)) == (400, "VALIDATION_ERROR")


async def test_a_change_keeps_what_is_absent_and_is_checked_as_a_whole(sandbox: httpx.AsyncClient) -> None:
    made = await make_reward(sandbox, **FIVE_OFF, voucherPrefix="A", minimumPurchaseAmount=10)
    changed = (await put(sandbox, made["id"], costToRedeem=70)).json()["data"]
    assert changed == {**made, "costToRedeem": "70", "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] >= made["updatedAt"]
    cleared = (await put(sandbox, made["id"], voucherPrefix=None, minimumPurchaseAmount=None)).json()["data"]
    assert (cleared["voucherPrefix"], cleared["minimumPurchaseAmount"]) == (None, None)
    assert error_of(await put(sandbox, made["id"], discountType="percentage"))[0] == 400, "5000 per cent"
    assert error_of(await put(sandbox, made["id"], discountValue=None))[0] == 400
    free = (await put(sandbox, made["id"], discountType="free_shipping")).json()["data"]
    assert (free["discountType"], free["discountValue"]) == ("free_shipping", None)
    assert error_of(await put(sandbox, made["id"], discountType="percentage"))[0] == 400, "it has no value any more"
    half = (await put(sandbox, made["id"], discountType="percentage", discountValue="50")).json()["data"]
    assert half["discountValue"] == "50"
    for null in ("rewardName", "costToRedeem", "discountType", "expirationPreset"):
        assert error_of(await put(sandbox, made["id"], **{null: None})) == (400, "VALIDATION_ERROR")


async def test_rewards_are_listed_newest_first_with_an_exact_total(sandbox: httpx.AsyncClient) -> None:
    made = [await make_reward(sandbox, rewardName=f"Reward {n}") for n in range(5)]
    await make_reward(sandbox, rewardName="Café Crème")
    gone = await make_reward(sandbox, rewardName="Gone")
    assert (await sandbox.delete(f"/loyalty/reward-options/{gone['id']}")).status_code == 204
    seen: list[Any] = []
    for page in (1, 2, 3):
        response = (await sandbox.get("/loyalty/reward-options", params={"page": page, "limit": 2})).json()
        assert response["meta"] == {"page": page, "limit": 2, "total": 6, "hasNextPage": page < 3}
        seen += response["data"]
    assert seen[1:] == made[::-1]

    async def names(search: str) -> list[str]:
        response = await sandbox.get("/loyalty/reward-options", params={"search": search})
        assert response.json()["meta"]["total"] == len(response.json()["data"])
        return [one["rewardName"] for one in response.json()["data"]]

    assert await names("CAFE crème") == ["Café Crème"]
    assert await names("ward 3") == ["Reward 3"]
    assert await names("%") == []
    assert error_of(await sandbox.get("/loyalty/reward-options?search=%20")) == (400, "VALIDATION_ERROR")


async def test_redemptions_keep_the_terms_of_a_deleted_or_changed_reward(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 1_000)
    reward = await make_reward(sandbox, 100, **FIVE_OFF, expirationPreset="SEVEN_DAYS", minimumPurchaseAmount=7.5)
    first = await make_redemption(sandbox, ayu, reward)
    change = {"rewardName": "New", "costToRedeem": 1, "discountValue": "1", "expirationPreset": "ONE_YEAR"}
    reward = (await put(sandbox, reward["id"], **change, minimumPurchaseAmount=None)).json()["data"]
    second = await make_redemption(sandbox, ayu, reward)
    assert (first["pointsCost"], second["pointsCost"]) == ("100", "1")
    assert (await sandbox.delete(f"/loyalty/reward-options/{reward['id']}")).status_code == 204
    assert await redemptions_of(sandbox, ayu) == [second, first]
    for response in (
        await sandbox.get(f"/loyalty/reward-options/{reward['id']}"),
        await put(sandbox, reward["id"], costToRedeem=2),
        await sandbox.delete(f"/loyalty/reward-options/{reward['id']}"),
        await sandbox.get(f"/loyalty/rewards/{reward['id']}/redeemers"),
    ):
        assert error_of(response) == (404, "NOT_FOUND")
    assert (await end(sandbox, first["id"], "commit")).json()["data"]["pointsCost"] == "100"
    assert (await end(sandbox, second["id"], "release")).json()["data"]["status"] == "released"
    refused = await redeem(sandbox, ayu, reward)
    assert error_of(refused) == (400, "VALIDATION_ERROR")
    assert refused.json()["error"]["details"][0]["field"] == "rewardOptionId"


async def test_redeemers_of_a_reward_are_listed_with_counts_and_points(sandbox: httpx.AsyncClient) -> None:
    reward, other = await make_reward(sandbox, 10), await make_reward(sandbox, 5)
    people = [
        await make_customer(sandbox, firstName=name, phoneNumber=None) for name in ("Ayu", "Budi", "Citra", "Dewi")
    ]
    for person in people:
        await add_points(sandbox, person["id"], 100)
    ayu, budi, citra, dewi = people
    committed = await make_redemption(sandbox, ayu["id"], reward)
    await end(sandbox, committed["id"], "commit")
    only = await make_redemption(sandbox, budi["id"], reward)
    last = await make_redemption(sandbox, ayu["id"], reward)
    given_up = await make_redemption(sandbox, citra["id"], reward)
    await end(sandbox, given_up["id"], "release")
    await make_redemption(sandbox, dewi["id"], other)

    async def redeemers(**query: int) -> dict[str, Any]:
        response = await sandbox.get(f"/loyalty/rewards/{reward['id']}/redeemers", params=query)
        found: dict[str, Any] = response.json()
        return found

    def redeemer(person: dict[str, Any], times: int, redemption: dict[str, Any]) -> dict[str, Any]:
        return {
            "customerId": person["id"],
            **{name: person[name] for name in ("firstName", "lastName", "email", "phoneNumber")},
            "redemptions": times,
            "points": str(10 * times),
            "lastRedeemedAt": redemption["createdAt"],
        }

    expected = [redeemer(ayu, 2, last), redeemer(budi, 1, only)]
    assert await redeemers() == {
        "data": expected,
        "meta": {"page": 1, "limit": 20, "total": 2, "hasNextPage": False},
    }
    assert [(await redeemers(page=page, limit=1))["data"] for page in (1, 2, 3)] == [[expected[0]], [expected[1]], []]
    await sandbox.delete(f"/customers/{budi['id']}")
    assert (await redeemers())["data"] == expected[:1], "a deleted customer is not shown any more"


async def test_a_reward_of_another_company_is_unknown(
    installation: Installation, database: Database, company: Environments, sandbox: httpx.AsyncClient, ayu: str
) -> None:
    await add_points(sandbox, ayu, 1_000)
    async with connect(installation, (await make_key(database, company.live)).raw) as theirs:
        foreign = await make_reward(theirs)
    unknown = {**foreign, "id": "rwd_01jc9y3q5me8w92v7x4t6r0n1k"}
    responses = [await redeem(sandbox, ayu, one) for one in (foreign, unknown, {**foreign, "id": "x"})]
    assert {error_of(response) for response in responses} == {(400, "VALIDATION_ERROR")}
    assert len({response.content for response in responses}) == 1
    assert responses[0].json()["error"]["details"][0]["field"] == "rewardOptionId"


async def test_a_price_that_changes_meanwhile_is_never_paid_unseen(sandbox: httpx.AsyncClient, ayu: str) -> None:
    """Redeems at one price while the reward changes between two: the customer pays the price they sent, or nothing."""
    await add_points(sandbox, ayu, 10_000)
    reward = await make_reward(sandbox, 10)
    calls = [put(sandbox, reward["id"], costToRedeem=10 if n % 2 else 20) for n in range(10)]
    calls += [redeem(sandbox, ayu, reward, pointsCost=10) for _ in range(20)]
    responses = await asyncio.gather(*calls)
    assert {response.status_code for response in responses} <= {200, 400}
    assert {one["pointsCost"] for one in await redemptions_of(sandbox, ayu)} <= {"10"}


@pytest.mark.parametrize("change", ["PUT", "DELETE"])
@pytest.mark.one_server("looks for waiting locks, which are on the machine that has the rows")
async def test_a_reward_cannot_change_while_it_is_redeemed(
    sandbox: httpx.AsyncClient, installation: Installation, rich: str, change: str
) -> None:
    """The redemption waits for a voucher code, and the change of the reward waits for the redemption."""
    reward = await make_reward(sandbox, 10)
    await make_redemption(sandbox, rich, reward)
    path = f"/loyalty/reward-options/{reward['id']}"
    async with (
        connect_owner(installation.server.owner_url) as owner,
        connect_owner(installation.server.owner_url) as onlooker,
        asyncio.TaskGroup() as group,
    ):
        blocking = owner.transaction()
        await blocking.start()
        await owner.execute(TAKE_CODE, rich, "SLOW")
        redeeming = group.create_task(redeem(sandbox, rich, reward, voucherCode="slow"))
        await until_waiting(onlooker, 1, redeeming)
        body = {"costToRedeem": 20} if change == "PUT" else None
        changing = group.create_task(sandbox.request(change, path, json=body))
        await until_waiting(onlooker, 2, changing)
        await blocking.rollback()
    assert redeeming.result().json()["data"]["redemption"]["pointsCost"] == "10"
    assert changing.result().is_success


TAKE_CODE = """
    INSERT INTO loyalty_redemptions (company_id, id, wallet_id, customer_id, reward_option_id, reward_name, points_cost,
           status, voucher_code, discount_type, expiration_preset, search_text, reserved_until, created_at, updated_at)
    SELECT company_id, id || 'x', wallet_id, customer_id, reward_option_id, reward_name, points_cost,
           status, $2, discount_type, expiration_preset, search_text, reserved_until, now() - interval '1 h', now()
      FROM loyalty_redemptions WHERE customer_id = $1"""


async def until_waiting(onlooker: Connection, number: int, last: asyncio.Task[httpx.Response]) -> None:
    """Until so many wait for a lock; the last of them must not have been let through."""
    query = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    deadline = time.monotonic() + 120
    while await onlooker.fetchval(query) < number:
        assert not last.done(), "it did not wait"
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
