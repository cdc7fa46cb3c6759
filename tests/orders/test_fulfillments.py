"""Fulfilment unit by unit."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_order
from tests.orders.test_payments import read
from tests.orders.test_refunds import make_paid, refund, units

LINES = [{"title": "Kopi", "price": 10, "quantity": 3}, {"title": "Teh", "price": 5, "quantity": 1}]


async def fulfil(api: httpx.AsyncClient, id: str, **body: Any) -> httpx.Response:
    return await api.post(f"/orders/{id}/fulfillments", json=body)


def line(item: dict[str, Any], quantity: int) -> dict[str, Any]:
    return {"id": item["id"], "quantity": quantity}


@pytest.mark.smoke
async def test_an_order_is_fulfilled_when_every_line_is(api: httpx.AsyncClient) -> None:
    order = await make_order(api, lineItems=LINES)
    first, second = order["lineItems"]
    response = await fulfil(api, order["id"], lineItems=[line(first, 2)])
    assert response.status_code == 201, response.text
    made = response.json()["data"]
    assert list(made) == ["id", "lineItems", "shipmentId", "createdAt", "cancelledAt"]
    assert made["id"].startswith("ful_")
    assert (made["lineItems"], made["shipmentId"], made["cancelledAt"]) == ([line(first, 2)], None, None)
    after = await read(api, order["id"])
    assert [item["fulfilledQuantity"] for item in after["lineItems"]] == [2, 0]
    assert (after["fulfillmentStatus"], after["fulfillments"]) == ("unfulfilled", [made])
    too_many = await fulfil(api, order["id"], lineItems=[line(first, 2)])
    assert "1 units" in refusal(too_many, 409, "INVALID_TRANSITION")["message"]
    cancelled = await api.put(f"/orders/{order['id']}", json={"status": "cancelled"})
    assert "partly fulfilled" in refusal(cancelled, 409, "INVALID_TRANSITION")["message"]
    rest = (await api.post(f"/orders/{order['id']}/fulfillments")).json()["data"]
    assert rest["lineItems"] == [line(first, 1), line(second, 1)]
    after = await read(api, order["id"])
    assert after["fulfillmentStatus"] == "fulfilled"
    refusal(await fulfil(api, order["id"]), 409, "INVALID_TRANSITION")
    assert [one["id"] for one in (await api.get("/orders?fulfillmentStatus=fulfilled")).json()["data"]] == [order["id"]]


async def test_setting_the_status_fulfils_all_or_none(api: httpx.AsyncClient) -> None:
    order = await make_order(api, lineItems=LINES)
    await fulfil(api, order["id"], lineItems=[line(order["lineItems"][0], 1)])
    none = (await api.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "unfulfilled"})).json()["data"]
    assert [item["fulfilledQuantity"] for item in none["lineItems"]] == [0, 0]
    assert none["fulfillments"][0]["cancelledAt"] is not None
    all_units = (await api.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "fulfilled"})).json()["data"]
    assert [item["fulfilledQuantity"] for item in all_units["lineItems"]] == [3, 1]
    again = (await api.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "fulfilled"})).json()["data"]
    assert again == all_units
    await api.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "unfulfilled"})
    assert (await api.put(f"/orders/{order['id']}", json={"status": "cancelled"})).status_code == 200


async def test_units_that_are_refunded_need_not_be_fulfilled(api: httpx.AsyncClient) -> None:
    order = await make_paid(api, lineItems=LINES)
    first, second = order["lineItems"]
    await fulfil(api, order["id"], lineItems=[line(first, 3)])
    await refund(api, order["id"], lineItems=[units(second, 1)])
    assert (await read(api, order["id"]))["fulfillmentStatus"] == "fulfilled"
    lines = [{"id": first["id"], "quantity": 4}, {"id": second["id"], "quantity": 1}]
    edited = (await api.put(f"/orders/{order['id']}", json={"lineItems": lines})).json()["data"]
    assert edited["fulfillmentStatus"] == "unfulfilled", "one more unit is open"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lineItems": []}, "lineItems"),
        ({"lineItems": [{"id": "li_01jc9y3q5me8w92v7x4t6r0n1k", "quantity": 1}]}, "lineItems[0].id"),
        ({"lineItems": [{"id": "x", "quantity": 0}]}, "lineItems[0].quantity"),
        ({"shipmentId": "shp_01jc9y3q5me8w92v7x4t6r0n1k"}, "shipmentId"),
        ({"trackingNumber": "x"}, "trackingNumber"),
    ],
)
async def test_a_wrong_fulfilment_is_refused_by_name(api: httpx.AsyncClient, body: Any, field: str) -> None:
    order = await make_order(api)
    response = await fulfil(api, order["id"], **body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert await read(api, order["id"]) == order


async def test_an_order_that_is_not_active_is_not_fulfilled(api: httpx.AsyncClient) -> None:
    order = await make_order(api)
    await api.put(f"/orders/{order['id']}", json={"status": "archived"})
    assert "archived" in refusal(await fulfil(api, order["id"]), 409, "INVALID_TRANSITION")["message"]


async def test_the_same_units_are_fulfilled_once(api: httpx.AsyncClient) -> None:
    order = await make_order(api, lineItems=LINES)
    responses = await asyncio.gather(*(fulfil(api, order["id"]) for _ in range(6)))
    assert sorted(response.status_code for response in responses) == [201] + [409] * 5
    assert len((await read(api, order["id"]))["fulfillments"]) == 1


async def make_shipment(api: httpx.AsyncClient, order_id: str) -> str:
    body = {
        "provider": "custom",
        "serviceName": "Kurir toko",
        "fee": 10000,
        "orderId": order_id,
        "sender": {"name": "Toko", "phone": "08123456789", "address": "Jl. Merdeka 1"},
        "delivery": {"name": "Ayu", "phone": "08123456788", "address": "Jl. Merdeka 2"},
        "package": {"weight": 1},
        "autoBook": True,
    }
    response = await api.post("/shipping/shipments", json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["data"]["id"])


async def deliver(api: httpx.AsyncClient, shipment_id: str) -> None:
    response = await api.patch(f"/shipping/shipments/{shipment_id}", json={"shippingStatus": "delivered"})
    assert response.status_code == 200, response.text


async def test_a_shipment_fulfils_its_own_lines_or_all_open_ones(api: httpx.AsyncClient) -> None:
    order = await make_order(api, lineItems=LINES)
    named, other = await make_shipment(api, order["id"]), await make_shipment(api, order["id"])
    foreign = await make_shipment(api, (await make_order(api))["id"])
    response = await fulfil(api, order["id"], shipmentId=foreign)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == "shipmentId"
    await fulfil(api, order["id"], lineItems=[line(order["lineItems"][0], 1)], shipmentId=named)
    await deliver(api, named)
    assert [item["fulfilledQuantity"] for item in (await read(api, order["id"]))["lineItems"]] == [1, 0]
    await deliver(api, other)
    after = await read(api, order["id"])
    assert [item["fulfilledQuantity"] for item in after["lineItems"]] == [3, 1]
    assert [one["shipmentId"] for one in after["fulfillments"]] == [named, other]
