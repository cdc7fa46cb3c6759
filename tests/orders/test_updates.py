from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.customers.test_api import refusal
from tests.factories import Environments, make_order, make_product
from tests.orders.test_api import ADDRESS
from tests.test_events import events_of


async def change(api: httpx.AsyncClient, order: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = await api.put(f"/orders/{order['id']}", json=fields)
    assert response.status_code == 200, response.text
    changed: dict[str, Any] = response.json()["data"]
    assert (await api.get(f"/orders/{order['id']}")).json()["data"] == changed
    return changed


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        ({"notes": "new"}, {}),
        ({"notes": ""}, {}),
        ({"notes": None}, {}),
        ({"tags": ["b", " a ", "b"]}, {"tags": ["b", "a"]}),
        ({"tags": []}, {}),
        ({"tags": None}, {"tags": []}),
        ({"shippingAddress": None}, {}),
        ({"fulfillmentStatus": "fulfilled", "notes": "sent"}, {}),
    ],
)
async def test_sent_fields_change_and_absent_ones_stay(
    api: httpx.AsyncClient, fields: dict[str, Any], stored: dict[str, Any]
) -> None:
    order = await make_order(api, notes="old", tags=["x"], shippingAddress=ADDRESS)
    changed = await change(api, order, **fields)
    assert changed["updatedAt"] >= order["updatedAt"]
    followed = {name: changed[name] for name in ("updatedAt", "lineItems", "fulfillments")}
    assert changed == {**order, **fields, **stored, **followed}


async def test_an_address_is_replaced_whole_and_keeps_its_id_where_it_is_the_same(api: httpx.AsyncClient) -> None:
    order = await make_order(api, shippingAddress=ADDRESS)
    existing = order["shippingAddress"]
    moved = (await change(api, order, shippingAddress={"address1": "Jl. Sudirman 1"}))["shippingAddress"]
    assert moved == {**dict.fromkeys(ADDRESS), "address1": "Jl. Sudirman 1", "id": moved["id"]}
    assert moved["id"] != existing["id"]
    mended = (await change(api, order, shippingAddress={**moved, "city": "Jakarta"}))["shippingAddress"]
    assert mended == {**moved, "city": "Jakarta"}
    response = await api.put(f"/orders/{order['id']}", json={"shippingAddress": existing})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == "shippingAddress.id"


async def test_nothing_changed_is_nothing_written_and_nothing_announced(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    order = await make_order(api, notes="x", tags=["a", "b"], shippingAddress=ADDRESS)
    for same in (
        {}, {"notes": "x"}, {"tags": ["a", "b", "a"]}, {"shippingAddress": ADDRESS}, {"status": "active"},
        {"shippingAddress": order["shippingAddress"]},
        {"status": "active", "fulfillmentStatus": "unfulfilled", "financialStatus": "pending"},
    ):  # fmt: skip
        assert await change(api, order, **same) == order
    assert len(await events_of(database, company.live)) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": None}, "status"), ({"status": "open"}, "status"), ({"status": "Active"}, "status"),
        ({"fulfillmentStatus": None}, "fulfillmentStatus"), ({"fulfillmentStatus": "partial"}, "fulfillmentStatus"),
        ({"financialStatus": None}, "financialStatus"), ({"financialStatus": "voided"}, "financialStatus"),
        ({"notes": 1}, "notes"), ({"notes": "x" * 5001}, "notes"), ({"tags": "a"}, "tags"), ({"tags": [""]}, "tags[0]"),
        ({"tags": ["a,b"]}, "tags[0]"), ({"shippingAddress": {}}, "shippingAddress.address1"),
        ({"shippingAddress": {"address1": "x", "id": "addr_1"}}, "shippingAddress.id"),
        ({"shippingAddress": {"address1": "x", "street": "y"}}, "shippingAddress.street"),
        ({"lineItems": []}, "lineItems"), ({"total": 1}, "total"), ({"orderId": "x"}, "orderId"),
        ({"customerId": "x"}, "customerId"), ({"currency": "USD"}, "currency"), ({"createdAt": "x"}, "createdAt"),
    ],
)  # fmt: skip
async def test_an_invalid_field_is_refused_by_name(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    order = await make_order(api)
    response = await api.put(f"/orders/{order['id']}", json=body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get(f"/orders/{order['id']}")).json()["data"] == order


async def test_an_order_restocks_what_it_took(api: httpx.AsyncClient) -> None:
    """One variant becomes tracked after the order, the other stops being so."""
    product = await make_product(
        api,
        variants=[{"title": "M", "price": 1}, {"title": "L", "price": 1, "inventoryQuantity": 10}],
    )
    later, before = [variant["id"] for variant in product["variants"]]
    order = await make_order(
        api, lineItems=[{"productVariantId": later, "quantity": 3}, {"productVariantId": before, "quantity": 4}]
    )
    changes = [{"id": later, "inventoryQuantity": 5}, {"id": before, "inventoryQuantity": None}]
    await api.put(f"/products/{product['id']}", json={"variants": changes})
    await change(api, order, status="cancelled")
    variants = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"]
    assert [variant["inventoryQuantity"] for variant in variants] == [5, None]
