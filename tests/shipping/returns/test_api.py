"""Returns over HTTP: from whom to whom, under which number, and of what."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.factories import make_order
from tests.shipping.parcels import (
    DELIVERY,
    PACKAGE,
    SENDER,
    advance,
    cancel,
    change,
    create,
    error_of,
    field_of,
    get,
    until_status,
)

PLACE = ("name", "phone", "address", "zip", "kecamatanId", "kelurahanId", "coordinates")


async def deliver(api: httpx.AsyncClient, provider: str = "custom", **fields: Any) -> dict[str, Any]:
    created = await create(api, provider, **fields)
    if provider == "custom":
        for status in ("confirmed", "delivered"):
            assert (await change(api, created["id"], shippingStatus=status)).status_code == 200
        return await get(api, created["id"])
    assert (await change(api, created["id"], triggerBooking=True)).status_code == 200
    await until_status(api, created["id"], awb=...)
    await advance(api, created["id"], "delivered")
    return await until_status(api, created["id"], "delivered")


async def give_back(api: httpx.AsyncClient, id: str, **fields: Any) -> httpx.Response:
    return await api.post(f"/shipping/shipments/{id}/return", json=fields)


async def test_a_delivered_parcel_comes_back(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    sent = await deliver(sandbox, "aggregator_carrier", orderId=order["id"])
    response = await give_back(sandbox, sent["id"], autoBook=True)
    assert response.status_code == 201, response.text
    returned = response.json()["data"]
    assert returned["id"] != sent["id"]
    assert (returned["returnOf"], returned["returnNumber"]) == (sent["id"], "R1001")
    assert (returned["orderId"], returned["shippingStatus"]) == (order["id"], "confirmed")
    assert {name: returned["sender"][name] for name in PLACE} == {name: sent["delivery"][name] for name in PLACE}
    assert {name: returned["delivery"][name] for name in PLACE} == {name: sent["sender"][name] for name in PLACE}
    assert returned["package"] == sent["package"]
    assert (returned["serviceName"], returned["fee"]) == (sent["serviceName"], None)
    booked = await until_status(sandbox, returned["id"], awb=...)
    assert booked["awb"] != sent["awb"], "a number of its own"
    listed = await sandbox.get("/shipping/shipments", params={"returnOf": sent["id"]})
    assert [one["id"] for one in listed.json()["data"]] == [returned["id"]]


async def test_a_return_fulfils_nothing(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    sent = await deliver(sandbox, orderId=order["id"])
    response = await sandbox.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "unfulfilled"})
    assert response.status_code == 200, response.text
    returned = (await give_back(sandbox, sent["id"])).json()["data"]
    for status in ("confirmed", "picked_up", "delivered"):
        assert (await change(sandbox, returned["id"], shippingStatus=status)).status_code == 200
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["fulfillmentStatus"] == "unfulfilled"


async def test_only_a_delivered_shipment_and_one_at_a_time(sandbox: httpx.AsyncClient) -> None:
    draft = await create(sandbox, "custom")
    assert error_of(await give_back(sandbox, draft["id"])) == (409, "NOT_RETURNABLE")
    sent = await deliver(sandbox)
    responses = await asyncio.gather(*(give_back(sandbox, sent["id"]) for _ in range(6)))
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409, 409, 409]
    assert {error_of(one)[1] for one in responses if one.status_code == 409} == {"RETURN_EXISTS"}
    (made,) = [response.json()["data"] for response in responses if response.status_code == 201]
    assert error_of(await give_back(sandbox, made["id"])) == (409, "NOT_RETURNABLE")
    assert (await cancel(sandbox, made["id"])).status_code == 200
    second = await give_back(sandbox, sent["id"])
    assert (second.status_code, second.json()["data"]["returnNumber"]) == (201, "R1002")


async def test_numbers_are_given_once(sandbox: httpx.AsyncClient) -> None:
    parcels = [await deliver(sandbox) for _ in range(8)]
    responses = await asyncio.gather(*(give_back(sandbox, one["id"]) for one in parcels))
    numbers = [response.json()["data"]["returnNumber"] for response in responses]
    assert sorted(numbers) == [f"R{number}" for number in range(1001, 1009)]


async def test_a_return_can_go_another_way(sandbox: httpx.AsyncClient) -> None:
    sent = await deliver(sandbox, "aggregator_carrier")
    response = await give_back(
        sandbox, sent["id"], provider="custom", serviceName="Own rider", fee=5000, package={"weight": 0.5},
        sender={"notes": "Titip di satpam"}, delivery={"name": "Gudang Retur"},
    )  # fmt: skip
    assert response.status_code == 201, response.text
    returned = response.json()["data"]
    assert (returned["provider"], returned["serviceName"], returned["serviceCode"]) == ("custom", "Own rider", None)
    assert (returned["fee"], returned["shippingStatus"]) == (5000, "draft")
    assert returned["sender"]["notes"] == "Titip di satpam"
    assert returned["sender"]["name"] == DELIVERY["name"]
    assert (returned["delivery"]["name"], returned["delivery"]["address"]) == ("Gudang Retur", SENDER["address"])
    assert (returned["package"]["weight"], returned["package"]["itemName"]) == (0.5, PACKAGE["itemName"])


async def test_a_return_belongs_to_a_refund(sandbox: httpx.AsyncClient) -> None:
    """From the start, or later: also when a carrier has the parcel."""
    order, other = await make_order(sandbox), await make_order(sandbox)
    refunds = []
    for one in (order, other):
        await sandbox.put(f"/orders/{one['id']}", json={"financialStatus": "paid"})
        response = await sandbox.post(f"/orders/{one['id']}/refunds", json={"amount": 50_000})
        assert response.status_code == 201, response.text
        refunds.append(response.json()["data"]["id"])
    sent = await deliver(sandbox, "aggregator_carrier", orderId=order["id"])
    assert field_of(await give_back(sandbox, sent["id"], refundId=refunds[1])) == "refundId"
    returned = (await give_back(sandbox, sent["id"], refundId=refunds[0], autoBook=True)).json()["data"]
    assert (returned["refundId"], returned["shippingStatus"]) == (refunds[0], "confirmed")
    assert field_of(await change(sandbox, returned["id"], refundId=refunds[1])) == "refundId"
    cleared = await change(sandbox, returned["id"], refundId=None)
    assert (cleared.status_code, cleared.json()["data"]["refundId"]) == (200, None)
    linked = await change(sandbox, returned["id"], refundId=refunds[0])
    assert (linked.status_code, linked.json()["data"]["refundId"]) == (200, refunds[0])
    assert error_of(await change(sandbox, returned["id"], name="Other")) == (409, "NOT_EDITABLE")


async def test_what_a_return_cannot_have(sandbox: httpx.AsyncClient) -> None:
    sent = await deliver(sandbox)
    assert field_of(await give_back(sandbox, sent["id"], orderId="order_1")) == "orderId"
    returned = (await give_back(sandbox, sent["id"])).json()["data"]
    assert field_of(await change(sandbox, returned["id"], codAmount=1000)) == "codAmount"
    assert error_of(await give_back(sandbox, "shp_01jc9y3q5me8w92v7x4t6r0n1k")) == (404, "NOT_FOUND")


@pytest.mark.parametrize("provider", ["custom", "aggregator_carrier"])
async def test_an_empty_body_is_enough(sandbox: httpx.AsyncClient, provider: str) -> None:
    sent = await deliver(sandbox, provider)
    response = await sandbox.post(f"/shipping/shipments/{sent['id']}/return")
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (201, "draft")
