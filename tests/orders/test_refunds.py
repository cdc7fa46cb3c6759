"""Refunds of units, shipping and amounts: money, stock and points."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_customer, make_order, make_product
from tests.loyalty.ledger_steps import points_of, types_of
from tests.orders.test_payments import pay, read

Order = dict[str, Any]


async def refund(api: httpx.AsyncClient, id: str, **body: Any) -> httpx.Response:
    return await api.post(f"/orders/{id}/refunds", json=body)


async def make_paid(api: httpx.AsyncClient, **fields: Any) -> Order:
    order = await make_order(api, **fields)
    response = await api.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})
    assert response.status_code == 200, response.text
    paid: Order = response.json()["data"]
    return paid


def units(line: Order, quantity: int, restock: bool = False) -> Order:
    return {"id": line["id"], "quantity": quantity, "restock": restock}


@pytest.mark.smoke
async def test_units_are_refunded_at_what_they_were_charged(api: httpx.AsyncClient) -> None:
    line = {"title": "Kopi", "price": 23.9, "quantity": 10, "discount": {"percentage": 25}}
    order = await make_paid(api, lineItems=[line], shippingLines=[{"title": "JNE", "price": 9}])
    [line] = order["lineItems"]
    first = await refund(api, order["id"], lineItems=[units(line, 1)], reason="Damaged")
    assert first.status_code == 201, first.text
    made = first.json()["data"]
    assert list(made) == ["id", "amount", "shipping", "adjustment", "lineItems", "reason", "createdAt"]
    assert made["id"].startswith("rfd_")
    assert made["lineItems"] == [{"id": line["id"], "quantity": 1, "amount": 17.92, "restocked": 0}]
    assert (made["amount"], made["shipping"], made["adjustment"], made["reason"]) == (17.92, 0, 0, "Damaged")
    after = await read(api, order["id"])
    assert (after["financialStatus"], after["status"]) == ("partially_refunded", "active")
    assert (after["total"], after["totalRefunded"], after["outstanding"]) == (188.25, 17.92, 0)
    assert after["lineItems"][0]["refundedQuantity"] == 1
    assert after["refunds"] == [made]
    amounts = [(await refund(api, order["id"], lineItems=[units(line, 1)])).json()["data"]["amount"] for _ in range(9)]
    assert sum(round(amount * 100) for amount in [17.92, *amounts]) == 17925, "all units together cost the line"
    left = await refund(api, order["id"], lineItems=[units(line, 1)])
    assert "0 units" in refusal(left, 409, "INVALID_TRANSITION")["message"]
    shipping = await refund(api, order["id"], shipping=9)
    assert shipping.json()["data"]["shipping"] == 9
    done = await read(api, order["id"])
    assert (done["financialStatus"], done["totalRefunded"], done["outstanding"]) == ("refunded", 188.25, 0)
    assert done["status"] == "active", "a refund does not change the status"
    refusal(await refund(api, order["id"], amount=0.01), 409, "REFUND_EXCEEDS_PAID")


async def test_added_taxes_are_refunded_with_their_units_and_fees_by_an_amount(api: httpx.AsyncClient) -> None:
    order = await make_paid(
        api,
        lineItems=[{"title": "Kopi", "price": 100, "quantity": 3}],
        shippingLines=[{"title": "JNE", "price": 10}],
        fees=[{"title": "Asuransi", "amount": 5}],
        taxLines=[{"title": "PPN", "rate": 11, "included": False}],
    )
    assert order["total"] == 349.1
    made = (await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 3)], shipping=11.1)).json()["data"]
    assert made["amount"] == 344.1
    refusal(await refund(api, order["id"], shipping=0.01), 409, "INVALID_TRANSITION")
    assert (await refund(api, order["id"], amount=5)).json()["data"]["adjustment"] == 5
    assert (await read(api, order["id"]))["financialStatus"] == "refunded"


async def test_a_refund_without_shipping_stands_after_an_edit_lowered_the_shipping(api: httpx.AsyncClient) -> None:
    line = {"title": "Kopi", "price": 100, "quantity": 2}
    order = await make_paid(api, lineItems=[line], shippingLines=[{"title": "JNE", "price": 10}])
    await refund(api, order["id"], shipping=10)
    response = await api.put(f"/orders/{order['id']}", json={"shippingLines": [{"title": "JNE", "price": 4}]})
    assert response.status_code == 200, response.text
    refusal(await refund(api, order["id"], shipping=0.01), 409, "INVALID_TRANSITION")
    again = await refund(api, order["id"], shipping=0, lineItems=[units(order["lineItems"][0], 1)])
    assert (again.status_code, again.json()["data"]["amount"]) == (201, 100)


async def test_another_amount_than_the_units_cost(api: httpx.AsyncClient) -> None:
    order = await make_paid(api)
    [line] = order["lineItems"]
    made = (await refund(api, order["id"], lineItems=[units(line, 1)], amount=50000)).json()["data"]
    assert (made["amount"], made["adjustment"], made["lineItems"][0]["amount"]) == (50000, -25000, 75000)
    refusal(await refund(api, order["id"], amount=100000.01), 409, "REFUND_EXCEEDS_PAID")
    nothing = (await refund(api, order["id"], lineItems=[units(line, 1)], amount=0)).json()["data"]
    assert nothing["amount"] == 0
    assert (await read(api, order["id"]))["lineItems"][0]["refundedQuantity"] == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "amount"),
        ({"amount": 0}, "amount"),
        ({"lineItems": []}, "amount"),
        ({"amount": -1}, "amount"),
        ({"amount": 0.001}, "amount"),
        ({"shipping": -1}, "shipping"),
        ({"lineItems": [{"id": "li_01jc9y3q5me8w92v7x4t6r0n1k", "quantity": 1}]}, "lineItems[0].id"),
        ({"lineItems": [{"id": "x", "quantity": 0}]}, "lineItems[0].quantity"),
        ({"lineItems": [{"quantity": 1}]}, "lineItems[0].id"),
        ({"reason": "x" * 1001, "amount": 1}, "reason"),
        ({"note": "x"}, "note"),
    ],
)
async def test_a_wrong_refund_is_refused_by_name(api: httpx.AsyncClient, body: Order, field: str) -> None:
    order = await make_paid(api)
    response = await api.post(f"/orders/{order['id']}/refunds", json=body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert await read(api, order["id"]) == order


async def test_a_line_is_named_once(api: httpx.AsyncClient) -> None:
    order = await make_paid(api)
    line = units(order["lineItems"][0], 1)
    response = await refund(api, order["id"], lineItems=[line, line])
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == "lineItems[1].id"


async def test_an_unpaid_order_has_nothing_to_refund(api: httpx.AsyncClient) -> None:
    order = await make_order(api)
    refusal(await refund(api, order["id"], amount=1), 409, "REFUND_EXCEEDS_PAID")
    refusal(await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)]), 409, "REFUND_EXCEEDS_PAID")
    await pay(api, order["id"], 50000)
    assert (await refund(api, order["id"], amount=50000)).status_code == 201
    after = await read(api, order["id"])
    assert (after["financialStatus"], after["outstanding"]) == ("refunded", 100000)


async def test_restocked_units_never_exceed_those_taken(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 10, "inventoryQuantity": 10}])
    variant = product["variants"][0]["id"]
    line = {"productVariantId": variant, "quantity": 4}
    order = await make_paid(api, lineItems=[line, {"title": "Tas", "price": 1, "quantity": 1}])

    async def stock() -> int:
        found = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"][0]
        return int(found["inventoryQuantity"])

    first, second = order["lineItems"]
    assert await stock() == 6
    made = (await refund(api, order["id"], lineItems=[units(first, 1, True), units(second, 1, True)])).json()["data"]
    assert [one["restocked"] for one in made["lineItems"]] == [1, 0], "a line of its own has no stock"
    assert await stock() == 7
    await refund(api, order["id"], lineItems=[units(first, 1, False)])
    assert await stock() == 7
    await api.put(f"/orders/{order['id']}", json={"status": "refunded"})
    assert await stock() == 9, "the unit that was not put back is gone"
    await api.put(f"/products/{product['id']}", json={"variants": [{"id": variant, "title": "M", "price": 10}]})


async def test_refunds_at_once_never_exceed_what_was_paid(api: httpx.AsyncClient) -> None:
    order = await make_paid(api)
    responses = await asyncio.gather(*(refund(api, order["id"], amount=40000) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [201] * 3 + [409] * 5
    both = await asyncio.gather(
        refund(api, order["id"], amount=30000), api.put(f"/orders/{order['id']}", json={"status": "refunded"})
    )
    assert both[1].status_code == 200
    after = await read(api, order["id"])
    assert (after["totalRefunded"], after["totalPaid"], after["financialStatus"]) == (150000, 150000, "refunded")


async def test_setting_refunded_refunds_the_rest(api: httpx.AsyncClient) -> None:
    for patch in ({"financialStatus": "refunded"}, {"status": "refunded"}):
        order = await make_paid(api)
        await refund(api, order["id"], amount=1)
        after = (await api.put(f"/orders/{order['id']}", json=patch)).json()["data"]
        assert [one["amount"] for one in after["refunds"]] == [1, 149999]
        assert (after["financialStatus"], after["outstanding"]) == ("refunded", 0)
    unpaid = (await make_order(api))["id"]
    after = (await api.put(f"/orders/{unpaid}", json={"status": "refunded"})).json()["data"]
    assert (after["financialStatus"], after["refunds"], after["totalRefunded"]) == ("refunded", [], 0)


TIERS = [{"currencyAmount": 10000, "points": 1}, {"currencyAmount": 100000, "points": 15}]


async def test_points_follow_what_is_paid_and_not_refunded_in_any_order(api: httpx.AsyncClient) -> None:
    await api.post("/loyalty/point-conversion", json={"tiers": TIERS})
    customer = (await make_customer(api))["id"]
    id = (await make_order(api, customerId=customer))["id"]
    for amount, points in ((50000, 5), (50000, 15), (50000, 15)):
        await pay(api, id, amount)
        assert await points_of(api, customer) == (points, 0)
    for amount, points in ((50000, 15), (40000, 6), (60000, 0)):
        await refund(api, id, amount=amount)
        assert await points_of(api, customer) == (points, 0)
    assert await types_of(api, customer) == [("earn", 5), ("earn", 10), ("earn_reversal", -9), ("earn_reversal", -6)]


@pytest.mark.parametrize("trigger", ["created", "fulfilled"])
async def test_points_of_other_triggers_follow_the_total_less_refunds(api: httpx.AsyncClient, trigger: str) -> None:
    await api.post("/loyalty/point-conversion", json={"tiers": TIERS})
    await api.put("/loyalty/settings", json={"earnOn": trigger})
    customer = (await make_customer(api))["id"]
    order = await make_paid(api, customerId=customer)
    await api.post(f"/orders/{order['id']}/fulfillments")
    assert await points_of(api, customer) == (15, 0)
    await refund(api, order["id"], amount=60000)
    assert await points_of(api, customer) == (9, 0)
    lines = [{"id": order["lineItems"][0]["id"], "quantity": 3}]
    assert (await api.put(f"/orders/{order['id']}", json={"lineItems": lines})).status_code == 200
    reached = {"created": 15, "fulfilled": 0}  # one more unit is open
    assert await points_of(api, customer) == (reached[trigger], 0)


async def test_an_order_keeps_the_tiers_under_which_it_first_earned(api: httpx.AsyncClient) -> None:
    await api.post("/loyalty/point-conversion", json={"tiers": TIERS})
    customer = (await make_customer(api))["id"]
    id = (await make_order(api, customerId=customer))["id"]
    await pay(api, id, 50000)
    await api.post("/loyalty/point-conversion", json={"tiers": [{"currencyAmount": 1, "points": 1}]})
    await pay(api, id, 100000)
    assert await points_of(api, customer) == (15, 0)
    await refund(api, id, amount=70000)
    assert await points_of(api, customer) == (8, 0)


async def test_units_of_an_order_that_was_never_paid_are_taken_back_without_money(api: httpx.AsyncClient) -> None:
    order = await make_order(api)
    done = (await api.put(f"/orders/{order['id']}", json={"status": "refunded"})).json()["data"]
    assert (done["financialStatus"], done["refunds"]) == ("refunded", [])
    made = await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)], amount=0)
    assert made.status_code == 201, made.text
    after = await read(api, order["id"])
    assert (after["status"], after["financialStatus"], after["totalRefunded"]) == ("refunded", "refunded", 0)


async def test_the_rest_is_refunded_in_its_shortest_form(api: httpx.AsyncClient) -> None:
    order = await make_paid(api, lineItems=[{"title": "Kopi", "price": 12.34, "quantity": 6}])
    assert (await refund(api, order["id"], amount=12.34)).status_code == 201
    done = await api.put(f"/orders/{order['id']}", json={"financialStatus": "refunded"})
    assert done.status_code == 200, done.text
    assert [one["amount"] for one in done.json()["data"]["refunds"]] == [12.34, 61.7]
    assert "61.70" not in done.text
