"""Concurrent calls: stock is never sold twice, returned twice, or counted wrongly."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from sapa.db.counters import get_total
from sapa.db.pool import Database
from tests.factories import Environments, make_order, make_product
from tests.test_events import events_of


async def make_stock(api: httpx.AsyncClient, *quantities: int) -> tuple[str, list[str]]:
    variants = [{"title": f"V{n}", "price": 10, "inventoryQuantity": quantity} for n, quantity in enumerate(quantities)]
    product = await make_product(api, variants=variants)
    return product["id"], [variant["id"] for variant in product["variants"]]


async def stock_of(api: httpx.AsyncClient, product: str) -> list[int]:
    variants = (await api.get(f"/products/{product}")).json()["data"]["variants"]
    return [variant["inventoryQuantity"] for variant in variants]


def units(*ids: str) -> dict[str, Any]:
    return {"lineItems": [{"productVariantId": id, "quantity": 1} for id in ids]}


async def test_forty_orders_for_the_last_ten_units(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    product, (variant,) = await make_stock(api, 10)
    responses = await asyncio.gather(*(api.post("/orders", json=units(variant)) for _ in range(40)))
    codes = Counter(response.json().get("error", {}).get("code", response.status_code) for response in responses)
    assert codes == {201: 10, "INSUFFICIENT_STOCK": 30}
    assert {response.status_code for response in responses} == {201, 409}
    assert await stock_of(api, product) == [0]
    numbers = sorted(response.json()["data"]["orderNumber"] for response in responses if response.status_code == 201)
    assert numbers == [str(1001 + number) for number in range(10)]
    kinds = Counter(event["kind"] for event in await events_of(database, company.live))
    assert kinds == {"product.created": 1, "product.updated": 10, "order.created": 10}
    assert (await api.get("/orders")).json()["meta"]["total"] == 10


async def test_orders_of_the_same_products_in_opposite_order_do_not_deadlock(api: httpx.AsyncClient) -> None:
    one, (a, b) = await make_stock(api, 100, 100)
    two, (c,) = await make_stock(api, 100)
    bodies = [units(a, b, c), units(c, b, a), units(b, c, a)] * 8
    responses = await asyncio.gather(*(api.post("/orders", json=body) for body in bodies))
    assert {response.status_code for response in responses} == {201}
    assert [*await stock_of(api, one), *await stock_of(api, two)] == [76, 76, 76]


@pytest.mark.parametrize("pay", [[], [{"financialStatus": "paid"}]])
async def test_an_order_cancelled_and_refunded_at_once_restocks_once(
    api: httpx.AsyncClient, pay: list[dict[str, str]]
) -> None:
    for _ in range(5):
        product, (variant,) = await make_stock(api, 10)
        order = (await api.post("/orders", json=units(variant, variant))).json()["data"]["id"]
        for step in pay:
            await api.put(f"/orders/{order}", json=step)
        statuses = ["cancelled", "refunded"] * 4
        responses = await asyncio.gather(*(api.put(f"/orders/{order}", json={"status": status}) for status in statuses))
        assert {response.status_code for response in responses} <= {200, 409}
        assert any(response.status_code == 200 for response in responses)
        assert await stock_of(api, product) == [10]


async def test_numbers_of_orders_made_at_once_are_consecutive_and_in_their_sequence(api: httpx.AsyncClient) -> None:
    made = await asyncio.gather(*(make_order(api) for _ in range(40)))
    assert sorted(int(order["orderNumber"]) for order in made) == list(range(1001, 1041))
    by_number = sorted(made, key=lambda order: int(order["orderNumber"]))
    instants = [order["createdAt"] for order in by_number]
    assert instants == sorted(instants)


async def test_concurrent_orders_with_one_order_id_make_one_order(api: httpx.AsyncClient) -> None:
    line = {"title": "x", "price": 1, "quantity": 1}
    body = {"orderId": "web-1", "lineItems": [line]}
    responses = await asyncio.gather(*(api.post("/orders", json=body) for _ in range(12)))
    assert sorted(response.status_code for response in responses) == [201, *[409] * 11]
    assert (await make_order(api))["orderNumber"] == "1002"


async def test_totals_are_exact_after_random_changes_at_once(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    orders = [(await make_order(api))["id"] for _ in range(6)]
    moves = [
        {"fulfillmentStatus": "fulfilled"}, {"financialStatus": "paid"}, {"status": "archived"}, {"status": "active"},
        {"fulfillmentStatus": "unfulfilled"}, {"status": "refunded"}, {"status": "cancelled"},
    ]  # fmt: skip
    puts = [api.put(f"/orders/{id}", json=move) for move in moves for id in orders]
    await asyncio.gather(*puts, *(make_order(api) for _ in range(10)))
    async with database.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
        cells = await db.fetch("SELECT cell, count(*) FROM orders WHERE company_id = $1 GROUP BY cell", company.live)
        for cell, counted in cells:
            assert await get_total(db, company.live, "orders", [cell]) == counted
        assert await get_total(db, company.live, "orders") == sum(counted for _, counted in cells) == 16
