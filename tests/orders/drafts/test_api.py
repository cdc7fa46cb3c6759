"""Draft orders: prepared, changed, deleted, and turned into orders."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_customer, make_order, make_product
from tests.orders.test_api import ADDRESS

LINES = [{"title": "Kopi", "price": 75000, "quantity": 2}]


async def make_draft(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await api.post("/draft-orders", json={"lineItems": LINES, **fields})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()["data"]
    return made


@pytest.mark.smoke
async def test_a_draft_becomes_an_order_with_its_prices(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 100, "inventoryQuantity": 5}])
    lines = [{"productVariantId": product["variants"][0]["id"], "quantity": 2}, *LINES]
    draft = await make_draft(
        api,
        lineItems=lines,
        customer={"phoneNumber": "08123456789", "firstName": "Ayu"},
        shippingAddress=ADDRESS,
        discounts=[{"percentage": 10, "code": "TEMAN"}],
        shippingLines=[{"title": "JNE", "price": 9000}],
        notes="Telepon dulu",
        tags=["wa"],
        total=144180,
    )
    assert draft["id"].startswith("dord_")
    assert (draft["status"], draft["orderId"], draft["completedAt"], draft["customerId"]) == ("open", None, None, None)
    assert draft["customer"]["firstName"] == "Ayu"
    assert (await api.get("/customers")).json()["meta"]["total"] == 0
    stock = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"][0]["inventoryQuantity"]
    assert stock == 5, "a draft takes nothing"
    blank = await api.post(f"/draft-orders/{draft['id']}/complete", json={"orderId": " wa-1"})
    assert (blank.status_code, blank.json()["error"]["details"][0]["field"]) == (400, "orderId")
    response = await api.post(f"/draft-orders/{draft['id']}/complete", json={"orderId": "wa-1"})
    assert response.status_code == 201, response.text
    order = response.json()["data"]
    same = (
        "lineItems", "discounts", "shippingLines", "subtotal", "discountTotal", "shippingTotal", "total", "notes",
        "tags", "currency", "shippingAddress",
    )  # fmt: skip
    assert {name: order[name] for name in same} == {name: draft[name] for name in same}
    assert (order["orderId"], order["orderNumber"], order["customer"]["phoneNumber"]) == (
        "wa-1", "1001", "+628123456789",
    )  # fmt: skip
    done = (await api.get(f"/draft-orders/{draft['id']}")).json()["data"]
    assert (done["status"], done["orderId"]) == ("completed", order["id"])
    assert done["completedAt"] is not None
    stock = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"][0]["inventoryQuantity"]
    assert stock == 3
    for response in (
        await api.post(f"/draft-orders/{draft['id']}/complete"),
        await api.put(f"/draft-orders/{draft['id']}", json={"notes": "x"}),
        await api.delete(f"/draft-orders/{draft['id']}"),
    ):
        assert order["id"] in refusal(response, 409, "DRAFT_COMPLETED")["message"]


async def test_a_draft_keeps_the_price_that_a_variant_had(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 100}])
    variant = product["variants"][0]
    draft = await make_draft(api, lineItems=[{"productVariantId": variant["id"], "quantity": 1}])
    changed = {"variants": [{"id": variant["id"], "title": "M", "price": 150}]}
    assert (await api.put(f"/products/{product['id']}", json=changed)).status_code == 200
    lines = [{"id": draft["lineItems"][0]["id"], "quantity": 2}, {"productVariantId": variant["id"], "quantity": 1}]
    after = (await api.put(f"/draft-orders/{draft['id']}", json={"lineItems": lines})).json()["data"]
    assert [line["price"] for line in after["lineItems"]] == [100, 150]
    order = (await api.post(f"/draft-orders/{draft['id']}/complete")).json()["data"]
    assert order["total"] == 350


async def test_absent_fields_stay_and_null_clears(api: httpx.AsyncClient) -> None:
    ayu = (await make_customer(api))["id"]
    draft = await make_draft(api, customerId=ayu, fees=[{"title": "x", "amount": 5}], notes="a", tags=["b"])
    path = f"/draft-orders/{draft['id']}"
    after = (await api.put(path, json={"discounts": [{"amount": 1000}]})).json()["data"]
    assert (after["customerId"], after["notes"], after["tags"], after["total"]) == (ayu, "a", ["b"], 149005)
    after = (await api.put(path, json={"fees": None, "notes": None, "tags": None, "discounts": None})).json()["data"]
    assert (after["fees"], after["notes"], after["tags"], after["total"]) == ([], None, [], 150000)
    after = (await api.put(path, json={"customer": {"email": "budi@example.com"}})).json()["data"]
    assert (after["customerId"], after["customer"]["email"]) == (None, "budi@example.com")
    after = (await api.put(path, json={"customerId": ayu})).json()["data"]
    assert (after["customerId"], after["customer"]) == (ayu, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lineItems": []}, "lineItems"),
        ({"lineItems": LINES, "total": 1}, "total"),
        ({"lineItems": LINES, "customerId": "cust_01jc9y3q5me8w92v7x4t6r0n1k"}, "customerId"),
        ({"lineItems": LINES, "customerId": "x", "customer": {"email": "a@example.com"}}, "customer"),
        ({"lineItems": LINES, "currency": "XXX"}, "currency"),
        ({"lineItems": LINES, "orderId": "x"}, "orderId"),
        ({"lineItems": [{"productVariantId": "x", "quantity": 1}]}, "lineItems[0].productVariantId"),
    ],
)
async def test_a_wrong_draft_is_refused_by_name(api: httpx.AsyncClient, body: Any, field: str) -> None:
    response = await api.post("/draft-orders", json=body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get("/draft-orders")).json()["meta"]["total"] == 0


async def test_drafts_are_listed_by_status_and_deleted(api: httpx.AsyncClient) -> None:
    drafts = [await make_draft(api) for _ in range(3)]
    await api.post(f"/draft-orders/{drafts[0]['id']}/complete")
    assert (await api.delete(f"/draft-orders/{drafts[1]['id']}")).status_code == 204
    refusal(await api.get(f"/draft-orders/{drafts[1]['id']}"), 404, "NOT_FOUND")

    async def listed(**query: Any) -> tuple[list[str], int]:
        found = (await api.get("/draft-orders", params=query)).json()
        return [draft["id"] for draft in found["data"]], found["meta"]["total"]

    assert await listed() == ([drafts[2]["id"], drafts[0]["id"]], 2)
    assert await listed(status="open") == ([drafts[2]["id"]], 1)
    assert await listed(status="completed") == ([drafts[0]["id"]], 1)
    assert (await api.get("/orders")).json()["meta"]["total"] == 1


async def test_a_draft_is_completed_once_and_not_without_stock(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 1, "inventoryQuantity": 2}])
    line = {"productVariantId": product["variants"][0]["id"], "quantity": 2}
    first, second = await make_draft(api, lineItems=[line]), await make_draft(api, lineItems=[line])
    path = f"/draft-orders/{first['id']}/complete"
    responses = await asyncio.gather(*(api.post(path) for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [201] + [409] * 4
    refusal(await api.post(f"/draft-orders/{second['id']}/complete"), 409, "INSUFFICIENT_STOCK")
    assert (await api.get(f"/draft-orders/{second['id']}")).json()["data"] == second
    assert (await api.get("/orders")).json()["meta"]["total"] == 1


async def test_an_own_id_that_is_taken_leaves_the_draft_open(api: httpx.AsyncClient) -> None:
    await make_order(api, orderId="web-1")
    draft = await make_draft(api)
    response = await api.post(f"/draft-orders/{draft['id']}/complete", json={"orderId": "web-1"})
    refusal(response, 409, "ORDER_EXISTS")
    assert (await api.get(f"/draft-orders/{draft['id']}")).json()["data"]["status"] == "open"


@pytest.mark.parametrize(
    ("customer", "field"),
    [
        ({"firstName": "Ayu"}, "customer"),
        ({"email": "ayu"}, "customer.email"),
        ({"phoneNumber": "12"}, "customer.phoneNumber"),
    ],
)
async def test_a_contact_that_no_order_can_have_is_refused_at_once(
    api: httpx.AsyncClient, customer: dict[str, str], field: str
) -> None:
    error = refusal(
        await api.post("/draft-orders", json={"lineItems": LINES, "customer": customer}), 400, "VALIDATION_ERROR"
    )
    assert error["details"][0]["field"] == field
    draft = await make_draft(api, customer={"email": "ayu@example.com"})
    error = refusal(await api.put(f"/draft-orders/{draft['id']}", json={"customer": customer}), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == field
