"""What orders earn, and what is taken back."""

import asyncio
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.loyalty.program.actions import build_worth
from sapa.loyalty.program.queries import EarningTerms
from sapa.loyalty.types import MAX_POINTS, Rounding
from tests.factories import Environments, make_order, make_product
from tests.loyalty.ledger_steps import adjust, drift_of, history_of, points_of, types_of, wallet_of

TIERS = [{"currencyAmount": 10000, "points": 1}, {"currencyAmount": 100000, "points": 15}]


@pytest.fixture
async def shop(sandbox: httpx.AsyncClient) -> httpx.AsyncClient:
    """A test environment whose orders earn 1 point for 10,000, and 15 for each 100,000."""
    assert (await sandbox.post("/loyalty/point-conversion", json={"tiers": TIERS})).status_code == 200
    return sandbox


async def order_of(api: httpx.AsyncClient, customer_id: str, total: float, **fields: Any) -> str:
    line = {"title": "Kopi", "price": total, "quantity": 1}
    return str((await make_order(api, customerId=customer_id, lineItems=[line], **fields))["id"])


async def change(api: httpx.AsyncClient, order_id: str, **fields: Any) -> None:
    response = await api.put(f"/orders/{order_id}", json=fields)
    assert response.status_code == 200, response.text


async def earn_on(api: httpx.AsyncClient, trigger: str) -> None:
    assert (await api.put("/loyalty/settings", json={"earnOn": trigger})).status_code == 200


async def position_of(database: Database, order_id: str) -> tuple[int, int, int]:
    """Target, posted and shortfall."""
    async with database.connection() as db:
        row = await db.fetchrow(
            "SELECT target, posted, shortfall FROM loyalty_order_positions WHERE order_id = $1", order_id
        )
    assert row is not None
    return row[0], row[1], row[2]


@pytest.mark.parametrize(
    ("total", "points"),
    [(9999.99, 0), (10000, 1), (19999, 1), (99999, 9), (100000, 15), (250000, 30), (1999999.99, 285)],
)
async def test_an_order_earns_by_the_highest_tier_that_it_reaches(
    shop: httpx.AsyncClient, ayu: str, total: float, points: int
) -> None:
    order = await order_of(shop, ayu, total)
    assert await points_of(shop, ayu) == (0, 0)
    await change(shop, order, financialStatus="paid")
    assert await points_of(shop, ayu) == (points, 0)
    if points:
        (entry,) = await history_of(shop, ayu)
        assert (entry["entryType"], entry["referenceType"], entry["referenceId"]) == ("earn", "order", order)
        assert entry["idempotencyKey"] == f"order:{order}:1"


@pytest.mark.parametrize(
    ("trigger", "reached"),
    [("created", {}), ("paid", {"financialStatus": "paid"}), ("fulfilled", {"fulfillmentStatus": "fulfilled"})],
)
async def test_points_are_earned_at_the_trigger_and_taken_back_after_it(
    shop: httpx.AsyncClient, ayu: str, trigger: str, reached: dict[str, str]
) -> None:
    await earn_on(shop, trigger)
    order = await order_of(shop, ayu, 50000)
    await change(shop, order, **reached, notes="x")
    assert await points_of(shop, ayu) == (5, 0)
    if trigger != "created":
        back = {"financialStatus": "pending", "fulfillmentStatus": "unfulfilled"}
        await change(shop, order, **{name: back[name] for name in reached})
        assert await points_of(shop, ayu) == (0, 0)
        await change(shop, order, **reached)
        assert await points_of(shop, ayu) == (5, 0)
        assert await types_of(shop, ayu) == [("earn", 5), ("earn_reversal", -5), ("earn", 5)]
    keys = [entry["idempotencyKey"] for entry in reversed(await history_of(shop, ayu))]
    assert keys == [f"order:{order}:{n}" for n in range(1, len(keys) + 1)]
    wallet = await wallet_of(shop, ayu)
    assert (wallet["lifetimeEarnedPoints"], wallet["lifetimeBurnedPoints"]) == ("5", "0")
    assert await drift_of(shop) == []


@pytest.mark.parametrize(
    "undone", [{"status": "cancelled"}, {"status": "refunded"}, {"financialStatus": "refunded"}], ids=str
)
async def test_an_undone_order_returns_its_points_once(
    shop: httpx.AsyncClient, ayu: str, undone: dict[str, str]
) -> None:
    order = await order_of(shop, ayu, 50000)
    await change(shop, order, financialStatus="paid")
    await change(shop, order, **undone)
    assert await types_of(shop, ayu) == [("earn", 5), ("earn_reversal", -5)]
    await change(shop, order, status="archived")
    await change(shop, order, status=undone.get("status", "active"))
    await change(shop, order, tags=["a"])
    assert await types_of(shop, ayu) == [("earn", 5), ("earn_reversal", -5)]


@pytest.mark.parametrize("trigger", ["created", "paid", "fulfilled"])
async def test_refunding_what_an_edit_left_over_takes_no_points(
    shop: httpx.AsyncClient, ayu: str, trigger: str
) -> None:
    """The customer keeps goods for 60,000 and has paid for them: the refund of the rest must not count twice."""
    await earn_on(shop, trigger)
    lines = [{"title": "Kopi", "price": 60000, "quantity": 1}, {"title": "Tas", "price": 30000, "quantity": 1}]
    order = await make_order(shop, customerId=ayu, lineItems=lines)
    await change(shop, order["id"], financialStatus="paid")
    await change(shop, order["id"], lineItems=[{"id": order["lineItems"][0]["id"], "quantity": 1}])
    await change(shop, order["id"], fulfillmentStatus="fulfilled")
    refund = await shop.post(f"/orders/{order['id']}/refunds", json={"amount": 30000})
    assert refund.status_code == 201, refund.text
    assert await points_of(shop, ayu) == (6, 0)
    await shop.post(f"/orders/{order['id']}/refunds", json={"amount": 20000})
    assert await points_of(shop, ayu) == (4, 0), "this one is taken off the total"


async def test_archiving_an_order_changes_nothing(shop: httpx.AsyncClient, ayu: str) -> None:
    order = await order_of(shop, ayu, 50000)
    await change(shop, order, financialStatus="paid", status="archived")
    assert await points_of(shop, ayu) == (5, 0), "it was paid in the same call"
    await change(shop, order, status="active")
    await change(shop, order, status="archived")
    assert await types_of(shop, ayu) == [("earn", 5)]
    await change(shop, order, status="refunded")
    assert await points_of(shop, ayu) == (0, 0)


async def test_spent_points_are_stored_as_a_shortfall(shop: httpx.AsyncClient, database: Database, ayu: str) -> None:
    order = await order_of(shop, ayu, 100000)
    await change(shop, order, financialStatus="paid")
    await adjust(shop, ayu, "deduct", 10)
    await change(shop, order, financialStatus="pending")
    assert await points_of(shop, ayu) == (0, 0)
    assert await position_of(database, order) == (0, 10, 10)
    await change(shop, order, financialStatus="paid")
    assert await points_of(shop, ayu) == (5, 0), "ten of its fifteen points were never returned"
    assert await position_of(database, order) == (15, 15, 0)
    await adjust(shop, ayu, "deduct", 5)
    await change(shop, order, status="refunded")
    assert await position_of(database, order) == (0, 15, 15)
    await adjust(shop, ayu, "add", 4)
    await change(shop, order, status="archived")
    assert await position_of(database, order) == (0, 11, 11), "taken back as far as there is something to take"
    assert await drift_of(shop) == []


async def test_an_undone_order_returns_its_own_points_first(
    shop: httpx.AsyncClient, database: Database, ayu: str
) -> None:
    """Though others would be spent before them."""
    await shop.put("/loyalty/settings", json={"expiryMonths": 1})
    await adjust(shop, ayu, "add", 5)
    await shop.put("/loyalty/settings", json={"expiryMonths": 12})
    order = await order_of(shop, ayu, 50000)
    await change(shop, order, financialStatus="paid")
    await change(shop, order, status="refunded")
    async with database.connection() as db:
        left = await db.fetch(
            "SELECT remaining, order_id FROM loyalty_lots WHERE wallet_id = $1 ORDER BY earned_at",
            ayu.replace("cust_", "wal_"),
        )
    assert [tuple(row) for row in left] == [(5, None), (0, order)]


async def test_an_order_keeps_the_terms_under_which_it_earned(shop: httpx.AsyncClient, ayu: str) -> None:
    await earn_on(shop, "created")
    order = await order_of(shop, ayu, 50000)
    await shop.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 1, "points": 1}]})
    await earn_on(shop, "paid")
    await change(shop, order, tags=["edited"])
    assert await types_of(shop, ayu) == [("earn", 5)]
    await change(shop, order, status="cancelled")
    assert await points_of(shop, ayu) == (0, 0)


async def test_a_disabled_program_earns_nothing_and_takes_points_back(shop: httpx.AsyncClient, ayu: str) -> None:
    first, second = await order_of(shop, ayu, 50000), await order_of(shop, ayu, 100000)
    await change(shop, first, financialStatus="paid")
    await shop.put("/loyalty/settings", json={"enabled": False})
    await change(shop, second, financialStatus="paid")
    assert await points_of(shop, ayu) == (5, 0)
    await change(shop, first, status="refunded")
    assert await points_of(shop, ayu) == (0, 0)
    await shop.put("/loyalty/settings", json={"enabled": True})
    await change(shop, second, tags=["x"])
    assert await points_of(shop, ayu) == (15, 0)


async def test_orders_without_customer_tier_or_the_companys_currency_earn_nothing(
    shop: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    await earn_on(shop, "created")
    await make_order(shop)
    await order_of(shop, ayu, 50000, currency="USD")
    await shop.post("/loyalty/point-conversion", json={"tiers": []})
    await order_of(shop, ayu, 50000)
    assert await history_of(shop, ayu) == []
    async with database.connection() as db:
        count = "SELECT count(*) FROM loyalty_order_positions WHERE company_id = $1"
        assert await db.fetchval(count, company.test) == 0


async def test_refund_and_cancel_at_once_return_points_and_stock_once(shop: httpx.AsyncClient, ayu: str) -> None:
    product = await make_product(shop, variants=[{"title": "M", "price": 50000, "inventoryQuantity": 10}])
    variant = product["variants"][0]["id"]
    for number in range(5):
        body = {"customerId": ayu, "lineItems": [{"productVariantId": variant, "quantity": 2}]}
        order = (await shop.post("/orders", json=body)).json()["data"]["id"]
        await change(shop, order, financialStatus="paid")
        assert await points_of(shop, ayu) == (15, 0)
        responses = await asyncio.gather(
            *(shop.put(f"/orders/{order}", json={"status": status}) for status in ("refunded", "cancelled") * 3)
        )
        assert {response.status_code for response in responses} <= {200, 409}
        stock = (await shop.get(f"/products/{product['id']}")).json()["data"]["variants"][0]["inventoryQuantity"]
        assert stock == 10
        assert await points_of(shop, ayu) == (0, 0)
        assert len(await history_of(shop, ayu)) == 2 * (number + 1)
    assert await drift_of(shop) == []


async def test_many_orders_of_one_customer_are_paid_at_once(shop: httpx.AsyncClient, ayu: str) -> None:
    orders = [await order_of(shop, ayu, 10000 * number) for number in range(1, 21)]
    await asyncio.gather(*(change(shop, order, financialStatus="paid") for order in orders))
    expected = sum(number if number < 10 else 15 * (number // 10) for number in range(1, 21))
    assert await points_of(shop, ayu) == (expected, 0)
    await asyncio.gather(*(change(shop, order, status="refunded") for order in orders))
    assert await points_of(shop, ayu) == (0, 0)
    assert await drift_of(shop) == []


def terms(amount: str, points: int, rounding: Rounding) -> EarningTerms:
    return EarningTerms(True, "paid", rounding, 1, Decimal(amount), points, None)


@pytest.mark.parametrize(
    ("total", "amount", "rounding", "times"),
    [
        ("25", "10", "floor", 2),
        ("25", "10", "round", 3),
        ("24.99", "10", "round", 2),
        ("20.01", "10", "ceil", 3),
        ("20", "10", "ceil", 2),
        ("0.3", "0.1", "floor", 3),
        ("999999999999999", "0.01", "floor", 99_999_999_999_999_900),
        ("9999999999999.99", "3.01", "floor", 3_322_259_136_212),
    ],
)
def test_the_worth_of_an_order_is_exact(total: str, amount: str, rounding: Rounding, times: int) -> None:
    assert build_worth(Decimal(total), terms(amount, 1, rounding)) == min(times, MAX_POINTS)


@given(
    total=st.decimals(0, 10**13, places=2),
    amount=st.decimals("0.01", 10**13, places=2),
    points=st.integers(1, MAX_POINTS),
)
def test_the_worth_of_an_order_lies_between_its_roundings(total: Decimal, amount: Decimal, points: int) -> None:
    low, middle, high = (build_worth(total, terms(str(amount), points, how)) for how in ("floor", "round", "ceil"))
    cents, each = int(total * 100), int(amount * 100)
    assert low == min(cents // each * points, MAX_POINTS)
    assert high == min(-(-cents // each) * points, MAX_POINTS)
    assert low <= middle <= high
