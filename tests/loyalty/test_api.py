from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.factories import add_points, make_customer, make_reservation
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import adjust, close, drift_of, error_of, history_of, points_of, types_of, wallet_of

ZEROS = {
    "availablePoints": "0",
    "reservedPoints": "0",
    "lifetimeEarnedPoints": "0",
    "lifetimeBurnedPoints": "0",
    "version": "0",
    "lastLedgerAt": None,
}


async def test_a_new_customer_has_an_empty_wallet(sandbox: httpx.AsyncClient) -> None:
    customer = await make_customer(sandbox)
    wallet = await wallet_of(sandbox, customer["id"])
    assert wallet == {
        "id": customer["id"].replace("cust_", "wal_"),
        "companyId": wallet["companyId"],
        "customerId": customer["id"],
        **ZEROS,
        "createdAt": customer["createdAt"],
        "updatedAt": customer["createdAt"],
    }
    made = (await add_points(sandbox, customer["id"], 5))["wallet"]
    assert (made["id"], made["createdAt"], made["companyId"]) == (
        wallet["id"],
        wallet["createdAt"],
        wallet["companyId"],
    )
    assert await history_of(sandbox, (await make_customer(sandbox))["id"]) == []


@pytest.mark.smoke
async def test_an_adjustment_returns_the_wallet_and_its_entry(sandbox: httpx.AsyncClient, ayu: str) -> None:
    metadata = {"ticket": 7, "by": {"name": "Sari"}, "list": [1, None, True]}
    made = await add_points(sandbox, ayu, 100, reason="Goodwill", metadata=metadata, idempotencyKey="k-1")
    entry = made["ledger"]
    assert entry == {
        "id": entry["id"],
        "customerId": ayu,
        "walletId": made["wallet"]["id"],
        "companyId": made["wallet"]["companyId"],
        "createdById": None,
        "entryType": "adjust_add",
        "pointsDelta": "100",
        "availableAfter": "100",
        "reservedAfter": "0",
        "referenceType": "api",
        "referenceId": None,
        "idempotencyKey": "k-1",
        "note": "Goodwill",
        "metadata": metadata,
        "occurredAt": made["wallet"]["lastLedgerAt"],
        "createdAt": entry["createdAt"],
    }
    assert made["wallet"] == await wallet_of(sandbox, ayu)
    assert made["wallet"]["version"] == "1"
    deducted = (await adjust(sandbox, ayu, "deduct", 30)).json()["data"]
    assert (deducted["ledger"]["entryType"], deducted["ledger"]["pointsDelta"]) == ("adjust_deduct", "-30")
    assert deducted["ledger"]["metadata"] == {}
    assert await history_of(sandbox, ayu) == [deducted["ledger"], entry]
    wallet = deducted["wallet"]
    assert (wallet["availablePoints"], wallet["lifetimeEarnedPoints"], wallet["lifetimeBurnedPoints"]) == (
        "70",
        "100",
        "30",
    )


async def test_missing_points_cannot_be_taken_or_held(sandbox: httpx.AsyncClient, ayu: str) -> None:
    for have in (0, 20):
        for response in (
            await adjust(sandbox, ayu, "deduct", 21),
            await sandbox.post(f"/loyalty/customers/{ayu}/reservations", json={"points": 21}),
        ):
            assert error_of(response) == (409, "INSUFFICIENT_POINTS")
            assert response.json()["error"]["message"] == f"The customer has {have} points available; 21 are needed."
        if not have:
            await add_points(sandbox, ayu, 20)
    assert await types_of(sandbox, ayu) == [("adjust_add", 20)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"direction": "add", "points": 0}, "points"),
        ({"direction": "add", "points": -5}, "points"),
        ({"direction": "add", "points": 1_000_000_000_001}, "points"),
        ({"direction": "add", "points": 1.5}, "points"),
        ({"direction": "add", "points": "5"}, "points"),
        ({"direction": "add"}, "points"),
        ({"direction": "up", "points": 5}, "direction"),
        ({"points": 5}, "direction"),
        ({"direction": "add", "points": 5, "idempotencyKey": ""}, "idempotencyKey"),
        ({"direction": "add", "points": 5, "idempotencyKey": "order:x:1"}, "idempotencyKey"),
        ({"direction": "add", "points": 5, "metadata": {"a": "x" * 10_000}}, "metadata"),
        ({"direction": "add", "points": 5, "metadata": []}, "metadata"),
        ({"direction": "add", "points": 5, "note": "x"}, "note"),
    ],
)
async def test_an_invalid_adjustment_is_refused_with_its_field(
    sandbox: httpx.AsyncClient, ayu: str, body: dict[str, Any], field: str
) -> None:
    response = await sandbox.post(f"/loyalty/customers/{ayu}/points/adjust", json=body)
    assert error_of(response) == (400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == field
    assert (await wallet_of(sandbox, ayu))["version"] == "0"


async def test_the_largest_adjustments_stay_exact(sandbox: httpx.AsyncClient, ayu: str) -> None:
    most = 1_000_000_000_000
    for _ in range(3):
        await add_points(sandbox, ayu, most)
    await adjust(sandbox, ayu, "deduct", most - 1)
    assert await points_of(sandbox, ayu) == (2 * most + 1, 0)


async def test_a_reservation_holds_points_and_its_commit_spends_them(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    reservation = await make_reservation(sandbox, ayu, 40, ttlSeconds=60, referenceType="cart", referenceId="77")
    assert {name: reservation[name] for name in ("customerId", "points", "status", "referenceType", "referenceId")} == {
        "customerId": ayu,
        "points": "40",
        "status": "reserved",
        "referenceType": "cart",
        "referenceId": "77",
    }
    assert await points_of(sandbox, ayu) == (60, 40)
    committed = (await close(sandbox, reservation["id"], "commit")).json()["data"]
    assert committed == {**reservation, "status": "committed", "updatedAt": committed["updatedAt"]}
    assert await points_of(sandbox, ayu) == (60, 0)
    assert await types_of(sandbox, ayu) == [("adjust_add", 100), ("redeem_reserve", 0), ("redeem_commit", -40)]
    entries = await history_of(sandbox, ayu)
    assert {(entry["referenceType"], entry["referenceId"]) for entry in entries[:2]} == {("cart", "77")}


async def test_a_release_returns_the_points(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    reservation = await make_reservation(sandbox, ayu, 40)
    released = (await close(sandbox, reservation["id"], "release")).json()["data"]
    assert released["status"] == "released"
    assert await points_of(sandbox, ayu) == (100, 0)
    entries = await history_of(sandbox, ayu)
    assert [entry["entryType"] for entry in entries] == ["redeem_release", "redeem_reserve", "adjust_add"]
    assert {(entry["referenceType"], entry["referenceId"]) for entry in entries[:2]} == {
        ("reservation", reservation["id"])
    }


@pytest.mark.parametrize("first", ["commit", "release"])
@pytest.mark.parametrize("second", ["commit", "release"])
async def test_a_reservation_is_closed_once(sandbox: httpx.AsyncClient, ayu: str, first: str, second: str) -> None:
    await add_points(sandbox, ayu, 100)
    reservation = await make_reservation(sandbox, ayu, 40)
    assert (await close(sandbox, reservation["id"], first)).status_code == 200
    before = await wallet_of(sandbox, ayu)
    refused = await close(sandbox, reservation["id"], second)
    assert error_of(refused) == (409, "RESERVATION_CLOSED")
    assert {"commit": "committed", "release": "released"}[first] in refused.json()["error"]["message"]
    assert await wallet_of(sandbox, ayu) == before


async def test_a_reservation_expires_at_its_instant(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await add_points(sandbox, ayu, 100)
    reservation = await make_reservation(sandbox, ayu, 40)
    await move_clock(timedelta(seconds=890))
    assert await points_of(sandbox, ayu) == (60, 40)
    await move_clock(timedelta(seconds=10))
    assert await points_of(sandbox, ayu) == (100, 0), "the usual 900 seconds are over"
    assert error_of(await close(sandbox, reservation["id"], "commit")) == (409, "RESERVATION_CLOSED")
    await make_reservation(sandbox, ayu, 100)
    assert await points_of(sandbox, ayu) == (0, 100)
    assert await drift_of(sandbox) == []


@pytest.mark.parametrize("ttl", [0, -1, 30 * 86_400 + 1, 1.5, "60"])
async def test_an_invalid_time_is_refused(sandbox: httpx.AsyncClient, ayu: str, ttl: object) -> None:
    response = await sandbox.post(f"/loyalty/customers/{ayu}/reservations", json={"points": 1, "ttlSeconds": ttl})
    assert response.json()["error"]["details"][0]["field"] == "ttlSeconds"


async def test_a_disabled_program_can_be_read_and_not_written(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100, idempotencyKey="before")
    reservation = await make_reservation(sandbox, ayu, 10)
    assert (await sandbox.put("/loyalty/settings", json={"enabled": False})).json()["data"]["enabled"] is False
    for response in (
        await adjust(sandbox, ayu, "add", 1),
        await adjust(sandbox, ayu, "deduct", 1),
        await sandbox.post(f"/loyalty/customers/{ayu}/reservations", json={"points": 1}),
        await close(sandbox, reservation["id"], "commit"),
        await close(sandbox, reservation["id"], "release"),
    ):
        assert error_of(response) == (409, "LOYALTY_DISABLED")
    assert await points_of(sandbox, ayu) == (90, 10)
    assert len(await history_of(sandbox, ayu)) == 2
    again = await adjust(sandbox, ayu, "add", 100, idempotencyKey="before")
    assert again.status_code == 200, "it has happened already"
    await sandbox.put("/loyalty/settings", json={"enabled": True})
    assert (await close(sandbox, reservation["id"], "commit")).status_code == 200


async def test_settings_are_stored_field_by_field(sandbox: httpx.AsyncClient) -> None:
    usual = {
        "enabled": True,
        "earnOn": "paid",
        "rounding": "floor",
        "expiryMonths": None,
        "reservationTtlSeconds": 900,
    }
    assert (await sandbox.get("/loyalty/settings")).json()["data"] == usual
    for change in ({"earnOn": "created"}, {"expiryMonths": 12}, {"rounding": "ceil"}, {"reservationTtlSeconds": 60}):
        usual |= change
        assert (await sandbox.put("/loyalty/settings", json=change)).json()["data"] == usual
    assert (await sandbox.put("/loyalty/settings", json={"expiryMonths": None})).json()["data"]["expiryMonths"] is None
    for wrong in ({"earnOn": "shipped"}, {"expiryMonths": 0}, {"reservationTtlSeconds": 0}, {"enabled": None}):
        assert error_of(await sandbox.put("/loyalty/settings", json=wrong)) == (400, "VALIDATION_ERROR")


async def test_tiers_are_replaced_whole_and_sorted_by_amount(sandbox: httpx.AsyncClient) -> None:
    async def put(tiers: list[dict[str, Any]]) -> httpx.Response:
        return await sandbox.post("/loyalty/point-conversion", json={"tiers": tiers})

    assert (await sandbox.get("/loyalty/point-conversion")).json()["data"] == {"tiers": []}
    two: list[dict[str, Any]] = [{"currencyAmount": 100000, "points": 15}, {"currencyAmount": 10000.5, "points": 1}]
    assert (await put(two)).json()["data"] == {"tiers": two[::-1]}
    assert (await put(two[:1])).json()["data"] == {"tiers": two[:1]}
    assert (await sandbox.get("/loyalty/point-conversion")).json()["data"] == {"tiers": two[:1]}
    wrongs: list[list[dict[str, Any]]] = [
        [{"currencyAmount": 0, "points": 1}],
        [{"currencyAmount": -1, "points": 1}],
        [{"currencyAmount": 0.001, "points": 1}],
        [{"currencyAmount": 10, "points": 0}],
        [{"currencyAmount": 10, "points": 1}, {"currencyAmount": 10.00, "points": 2}],
        [{"currencyAmount": "10", "points": 1}],
    ]
    for wrong in wrongs:
        assert error_of(await put(wrong)) == (400, "VALIDATION_ERROR")
    assert (await put([])).json()["data"] == {"tiers": []}


async def test_the_history_is_filtered_by_direction_and_paged_by_instants(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    reservation = await make_reservation(sandbox, ayu, 40)
    await close(sandbox, reservation["id"], "commit")
    await add_points(sandbox, ayu, 7)
    await adjust(sandbox, ayu, "deduct", 3)
    found = {
        which: [int(entry["pointsDelta"]) for entry in await history_of(sandbox, ayu, limit=2, filter=which)]
        for which in ("all", "points_added", "points_deducted")
    }
    assert found == {"all": [-3, 7, -40, 0, 100], "points_added": [7, 100], "points_deducted": [-3, -40]}
    entries = await history_of(sandbox, ayu)
    instants = [entry["occurredAt"] for entry in entries]
    assert instants == sorted(set(instants), reverse=True)
    assert await history_of(sandbox, ayu, limit=1) == entries
    assert await history_of(sandbox, ayu, before=instants[2]) == entries[3:]
    assert await history_of(sandbox, ayu, before=instants[2].replace("Z", "+00:00")) == entries[3:]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "before=yesterday", "before=", "limit=", "filter=added", "after=x"]
)
async def test_an_invalid_query_is_refused(sandbox: httpx.AsyncClient, ayu: str, query: str) -> None:
    response = await sandbox.get(f"/loyalty/customers/{ayu}/history?{query}")
    assert error_of(response) == (400, "VALIDATION_ERROR")


async def test_an_idempotency_key_is_one_request_for_ever(sandbox: httpx.AsyncClient, ayu: str) -> None:
    other = (await make_customer(sandbox))["id"]
    body = {"direction": "add", "points": 100, "reason": "x", "metadata": {"a": 1, "b": 2}, "idempotencyKey": "one"}
    path = f"/loyalty/customers/{ayu}/points/adjust"
    first = (await sandbox.post(path, json=body)).json()["data"]
    again = (await sandbox.post(path, json={**body, "metadata": {"b": 2, "a": 1}})).json()["data"]
    assert again == first
    await adjust(sandbox, ayu, "deduct", 100)
    later = (await sandbox.post(path, json=body)).json()["data"]
    assert later["ledger"] == first["ledger"], "the same entry"
    assert later["wallet"]["availablePoints"] == "0", "and the wallet as it is by now"
    for changed in (
        {"points": 101}, {"direction": "deduct"}, {"reason": "y"}, {"reason": None}, {"metadata": {"a": 1}},
    ):  # fmt: skip
        assert error_of(await sandbox.post(path, json={**body, **changed})) == (409, "IDEMPOTENCY_KEY_REUSED")
    elsewhere = await sandbox.post(f"/loyalty/customers/{other}/points/adjust", json=body)
    assert error_of(elsewhere) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert await types_of(sandbox, ayu) == [("adjust_add", 100), ("adjust_deduct", -100)]
