from typing import Any

import httpx

from sapa.db.pool import Database
from tests.factories import Environments, make_customer, make_product
from tests.javascript import print_again
from tests.orders.test_api import ADDRESS
from tests.test_events import data_of

LINE = {"title": 'Kopi \u2028 😀 "Gayo"', "price": 0.1, "quantity": 3}


async def new_events(database: Database, company: Environments, seen: list[str]) -> list[Any]:
    """The events since the last look, by kind, resource and body."""
    async with database.connection() as db:
        recorded = await db.fetch(
            "SELECT id, kind, resource_id, body FROM events WHERE company_id = $1 ORDER BY number", company.live
        )
    events = [event for event in recorded if event["id"] not in seen]
    seen += [event["id"] for event in events]
    for event in events:
        assert print_again(event["body"].decode()).encode() == event["body"]
    return [(event["kind"], event["resource_id"], event["body"]) for event in events]


async def test_each_change_is_announced_once_per_resource_with_the_bytes_of_the_answer(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    seen: list[str] = []
    variants = [{"title": title, "price": 150000, "inventoryQuantity": 10} for title in ("M", "L")]
    products = [await make_product(api, variants=variants) for _ in range(2)]
    untracked = await make_product(api)
    assert len(await new_events(database, company, seen)) == 3

    ids = [variant["id"] for product in [*products, untracked] for variant in product["variants"]]
    lines = [LINE, *({"productVariantId": id, "quantity": 1} for id in ids)]
    body = {"lineItems": lines, "customer": {"email": "new@example.com"}, "shippingAddress": ADDRESS, "tags": ["é"]}
    placed = await api.post("/orders", json=body)
    order = placed.json()["data"]["id"]
    customer = placed.json()["data"]["customer"]["id"]

    async def stocked() -> list[Any]:
        paths = [f"/products/{product['id']}" for product in products]
        return [("product.updated", path.rpartition("/")[2], data_of(await api.get(path))) for path in paths]

    assert await new_events(database, company, seen) == [
        ("customer.created", customer, data_of(await api.get(f"/customers/{customer}"))),
        *await stocked(),
        ("order.created", order, data_of(placed)),
    ]
    noted = await api.put(f"/orders/{order}", json={"notes": "x", "financialStatus": "paid"})
    assert await new_events(database, company, seen) == [("order.updated", order, data_of(noted))]
    cancelled = await api.put(f"/orders/{order}", json={"status": "cancelled"})
    assert await new_events(database, company, seen) == [*await stocked(), ("order.updated", order, data_of(cancelled))]
    refunded = await api.put(f"/orders/{order}", json={"status": "refunded"})
    assert await new_events(database, company, seen) == [("order.updated", order, data_of(refunded))]
    assert data_of(await api.get(f"/orders/{order}")) == data_of(refunded)


async def test_a_refused_change_is_not_announced(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 1, "inventoryQuantity": 1}])
    await make_customer(api, email="one@example.com")
    await make_customer(api, email="two@example.com", phoneNumber="08123456789")
    made = (await api.post("/orders", json={"lineItems": [LINE], "orderId": "web-1"})).json()["data"]
    seen: list[str] = []
    await new_events(database, company, seen)
    unit = {"productVariantId": product["variants"][0]["id"], "quantity": 1}
    stranger = {"email": "stranger@example.com"}
    for body, status in (
        ({"lineItems": [unit, unit], "customer": stranger}, 409),
        ({"lineItems": [unit], "orderId": "web-1", "customer": stranger}, 409),
        ({"lineItems": [unit], "customer": {"email": "one@example.com", "phoneNumber": "08123456789"}}, 409),
        ({"lineItems": [unit], "total": 2, "customer": stranger}, 400),
        ({"lineItems": [unit], "customerId": "cust_01jc9y3q5me8w92v7x4t6r0n1k"}, 400),
    ):
        assert (await api.post("/orders", json=body)).status_code == status
    for patch, status in (
        ({"status": "refunded", "financialStatus": "paid"}, 409),
        ({"notes": "x", "financialStatus": "refunded"}, 409),
        ({"notes": "x", "tags": ["a,b"]}, 400),
    ):
        assert (await api.put(f"/orders/{made['id']}", json=patch)).status_code == status
    assert await new_events(database, company, seen) == []
    assert (await api.get(f"/products/{product['id']}")).json()["data"] == product
    assert (await api.get("/orders")).json()["meta"]["total"] == 1
    assert (await api.get("/customers")).json()["meta"]["total"] == 2
