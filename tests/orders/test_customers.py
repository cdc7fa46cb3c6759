"""The customer of an order: named by id, found or created."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.customers.test_api import refusal
from tests.factories import Environments, make_customer, make_order
from tests.test_events import events_of

LINES = [{"title": "Kopi", "price": 1, "quantity": 1}]
SHOWN = ("id", "firstName", "lastName", "email", "phoneNumber")


def shown(customer: dict[str, Any]) -> dict[str, Any]:
    return {name: customer[name] for name in SHOWN}


async def list_customers(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    customers: list[dict[str, Any]] = (await api.get("/customers", params={"limit": 100})).json()["data"]
    return customers


@pytest.mark.parametrize(
    "body",
    [
        {"phoneNumber": "0812-3456-789"},
        {"phoneNumber": "+62 812 3456 789", "firstName": "Somebody", "lastName": "Else"},
        {"email": "AYU@Example.com"},
        {"email": "ayu@example.com", "phoneNumber": "08123456789"},
        {"email": "another@example.com", "phoneNumber": "08123456789"},
        {"email": "ayu@example.com", "phoneNumber": "08999999999"},
    ],
)
async def test_an_existing_customer_is_found_by_phone_or_email_and_not_changed(
    api: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    existing = await make_customer(api, email="ayu@example.com", phoneNumber="08123456789", firstName="Ayu")
    await make_customer(api)
    made = await make_order(api, customer=body)
    assert made["customer"] == shown(existing)
    assert (await api.get(f"/customers/{existing['id']}")).json()["data"] == existing
    assert len(await list_customers(api)) == 2


async def test_an_unknown_customer_is_created_with_the_order(api: httpx.AsyncClient) -> None:
    body = {"firstName": "Ayu", "lastName": "Lestari", "email": "Ayu@EXAMPLE.com", "phoneNumber": "0812 3456 789"}
    made = await make_order(api, customer=body)
    (customer,) = await list_customers(api)
    assert made["customer"] == shown(customer)
    assert shown(customer) == {
        **body, "id": customer["id"], "email": "Ayu@example.com", "phoneNumber": "+628123456789",
    }  # fmt: skip
    again = await make_order(api, customer={"email": "ayu@example.com"})
    assert again["customer"] == made["customer"]


async def test_an_order_that_is_refused_leaves_no_customer(api: httpx.AsyncClient) -> None:
    await make_order(api, orderId="web-1")
    body = {"lineItems": LINES, "orderId": "web-1", "customer": {"email": "new@example.com"}}
    refusal(await api.post("/orders", json=body), 409, "ORDER_EXISTS")
    assert await list_customers(api) == []
    assert (await api.get("/customers")).json()["meta"]["total"] == 0


async def test_phone_and_email_of_two_customers_are_a_conflict_that_the_id_resolves(api: httpx.AsyncClient) -> None:
    one = await make_customer(api, email="one@example.com")
    two = await make_customer(api, email="two@example.com", phoneNumber="08123456789")
    both = {"email": "one@example.com", "phoneNumber": "08123456789"}
    error = refusal(await api.post("/orders", json={"lineItems": LINES, "customer": both}), 409, "IDENTITY_CONFLICT")
    assert "customerId" in error["message"]
    for customer in (one, two):
        assert (await make_order(api, customerId=customer["id"]))["customer"] == shown(customer)
    assert (await api.get("/orders")).json()["meta"]["total"] == 2


@pytest.mark.parametrize(
    "twins",
    [
        [{"phoneNumber": "08123456789"}] * 8,
        [{"email": "ayu@example.com"}, {"email": "AYU@example.com"}] * 4,
        [{"phoneNumber": "08123456789", "email": "ayu@example.com"}, {"phoneNumber": "+628123456789"}] * 4,
    ],
)
async def test_first_orders_of_one_new_customer_at_once_make_one_customer(
    api: httpx.AsyncClient, database: Database, company: Environments, twins: list[dict[str, Any]]
) -> None:
    made = await asyncio.gather(*(make_order(api, customer=body) for body in twins))
    (customer,) = await list_customers(api)
    assert [order["customer"]["id"] for order in made] == [customer["id"]] * len(twins)
    assert sorted(order["orderNumber"] for order in made) == [str(1001 + number) for number in range(len(twins))]
    kinds = [event["kind"] for event in await events_of(database, company.live)]
    assert sorted(kinds) == ["customer.created", *["order.created"] * len(twins)]


async def test_orders_show_and_are_found_by_the_name_that_their_customer_has_now(api: httpx.AsyncClient) -> None:
    customer = await make_customer(api, firstName="Ayu", lastName="Lestari")
    order = await make_order(api, customerId=customer["id"])
    other = await make_order(api, customer={"email": "budi@example.com", "firstName": "Ayu"})
    renamed = (await api.put(f"/customers/{customer['id']}", json={"lastName": "Prameswari"})).json()["data"]
    now = (await api.get(f"/orders/{order['id']}")).json()["data"]
    assert now == {**order, "customer": shown(renamed)}
    assert (await api.get(f"/orders/{other['id']}")).json()["data"] == other
    for search, found in (("prameswari", [order["id"]]), ("lestari", [])):
        response = (await api.get("/orders", params={"search": search})).json()
        assert [one["id"] for one in response["data"]] == found


async def test_a_customer_renamed_while_ordering_has_the_new_name_on_every_order(api: httpx.AsyncClient) -> None:
    customer = await make_customer(api, firstName="Name 0")

    async def rename() -> None:
        for number in range(1, 11):
            await api.put(f"/customers/{customer['id']}", json={"firstName": f"Name {number}"})

    await asyncio.gather(rename(), *(make_order(api, customerId=customer["id"]) for _ in range(20)))
    orders = (await api.get("/orders", params={"customerId": customer["id"], "limit": 100})).json()["data"]
    assert {order["customer"]["firstName"] for order in orders} == {"Name 10"}


async def test_orders_keep_the_last_details_of_a_deleted_customer(api: httpx.AsyncClient) -> None:
    customer = await make_customer(api, firstName="Ayu")
    order = await make_order(api, customerId=customer["id"])
    await api.delete(f"/customers/{customer['id']}")
    assert (await api.get(f"/orders/{order['id']}")).json()["data"] == order
