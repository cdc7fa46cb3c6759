"""Who changed what of an order, and when."""

from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.customers.test_api import refusal
from tests.factories import Environments, make_key, make_order
from tests.orders.test_payments import pay
from tests.orders.test_refunds import refund


async def history_of(api: httpx.AsyncClient, id: str, **query: Any) -> list[dict[str, Any]]:
    response = await api.get(f"/orders/{id}/history", params=query)
    assert response.status_code == 200, response.text
    entries: list[dict[str, Any]] = response.json()["data"]
    return entries


def changes_of(entry: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {change["field"]: (change["before"], change["after"]) for change in entry["changes"]}


@pytest.mark.smoke
async def test_every_change_is_a_line_with_its_actor_and_its_fields(
    api: httpx.AsyncClient, installation: Installation, database: Database, company: Environments
) -> None:
    order = await make_order(api)
    id, line = order["id"], order["lineItems"][0]["id"]
    payment = (await pay(api, id, 150000)).json()["data"]
    returned = (await refund(api, id, lineItems=[{"id": line, "quantity": 1, "restock": True}])).json()["data"]
    parcel = (await api.post(f"/orders/{id}/fulfillments")).json()["data"]
    other = await make_key(database, company.live)
    async with connect(installation, other.raw) as second:
        await second.put(f"/orders/{id}", json={"lineItems": [{"id": line, "quantity": 3}], "notes": "more"})
    await api.put(f"/orders/{id}", json={"tags": ["a"], "status": "archived"})
    entries = await history_of(api, id)
    assert [entry["action"] for entry in entries] == [
        "updated", "edited", "fulfilled", "refund_recorded", "payment_recorded", "created",
    ]  # fmt: skip
    assert list(entries[0]) == ["id", "action", "actor", "reference", "changes", "createdAt"]
    references = [entry["reference"] for entry in entries]
    assert references == [None, None, parcel["id"], returned["id"], payment["id"], None]
    assert changes_of(entries[0]) == {"status": ("active", "archived"), "tags": ([], ["a"])}
    edited = changes_of(entries[1])
    assert (edited["notes"], edited["total"]) == ((None, "more"), (150000, 225000))
    assert edited[f"lineItems[{line}].quantity"] == (2, 3)
    assert edited["fulfillmentStatus"] == ("fulfilled", "unfulfilled")
    assert entries[1]["actor"] == {"type": "api_key", "id": other.id, "name": None}
    assert entries[0]["actor"]["id"] == entries[5]["actor"]["id"] != other.id
    assert changes_of(entries[4]) == {
        "financialStatus": ("pending", "paid"),
        "totalPaid": (0, 150000),
        "outstanding": (150000, 0),
    }
    assert changes_of(entries[3])[f"lineItems[{line}].refundedQuantity"] == (0, 1)
    assert (entries[5]["createdAt"], entries[5]["changes"]) == (order["createdAt"], [])
    assert len({entry["id"] for entry in entries}) == 6
    assert [entry["createdAt"] for entry in entries] == sorted((entry["createdAt"] for entry in entries), reverse=True)


async def test_what_changes_nothing_or_is_refused_leaves_no_line(api: httpx.AsyncClient) -> None:
    id = (await make_order(api))["id"]
    await api.put(f"/orders/{id}", json={"status": "active", "notes": None})
    refusal(await refund(api, id, amount=1), 409, "REFUND_EXCEEDS_PAID")
    refusal(await api.put(f"/orders/{id}", json={"financialStatus": "refunded"}), 409, "INVALID_TRANSITION")
    assert [entry["action"] for entry in await history_of(api, id)] == ["created"]


async def test_the_history_is_paged(api: httpx.AsyncClient) -> None:
    id = (await make_order(api))["id"]
    for number in range(4):
        await api.put(f"/orders/{id}", json={"notes": str(number)})
    every = await history_of(api, id)
    pages = [await history_of(api, id, page=number, limit=2) for number in (1, 2, 3)]
    assert [entry for page in pages for entry in page] == every
    meta = (await api.get(f"/orders/{id}/history", params={"page": 2, "limit": 2})).json()["meta"]
    assert meta == {"page": 2, "limit": 2, "total": 5, "hasNextPage": True}
    refusal(await api.get("/orders/order_01jc9y3q5me8w92v7x4t6r0n1k/history"), 404, "NOT_FOUND")
