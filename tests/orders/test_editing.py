"""Lines, discounts and shipping of an order that change after it was placed."""

from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_order, make_product
from tests.orders.test_payments import pay, read
from tests.orders.test_refunds import make_paid, refund, units

Order = dict[str, Any]


async def edit(api: httpx.AsyncClient, id: str, **fields: Any) -> Order:
    response = await api.put(f"/orders/{id}", json=fields)
    assert response.status_code == 200, response.text
    changed: Order = response.json()["data"]
    assert await read(api, id) == changed
    return changed


async def stock_of(api: httpx.AsyncClient, product: Order) -> int:
    found = (await api.get(f"/products/{product['id']}")).json()["data"]["variants"][0]
    return int(found["inventoryQuantity"])


@pytest.mark.smoke
async def test_lines_keep_their_identity_and_money_owed_shows(api: httpx.AsyncClient) -> None:
    order = await make_paid(api)
    [line] = order["lineItems"]
    more = await edit(
        api, order["id"], lineItems=[{"id": line["id"], "quantity": 3}, {"title": "Tas", "price": 20000, "quantity": 1}]
    )
    assert more["lineItems"][0]["id"] == line["id"]
    assert (more["total"], more["outstanding"], more["financialStatus"]) == (245000, 95000, "partially_paid")
    less = await edit(api, order["id"], lineItems=[{"id": line["id"], "quantity": 1}])
    assert (less["total"], less["outstanding"], less["financialStatus"]) == (75000, -75000, "paid")
    await refund(api, order["id"], amount=75000)
    after = await read(api, order["id"])
    assert (after["total"], after["outstanding"], after["financialStatus"]) == (75000, 0, "partially_refunded")
    refusal(await pay(api, order["id"], 1), 409, "PAYMENT_EXCEEDS_OUTSTANDING")


async def test_discounts_shipping_fees_and_taxes_change_alone(api: httpx.AsyncClient) -> None:
    order = await make_order(api, discounts=[{"percentage": 10}], shippingLines=[{"title": "JNE", "price": 10000}])
    assert order["total"] == 145000
    changed = await edit(api, order["id"], fees=[{"title": "Asuransi", "amount": 500}])
    assert (changed["total"], changed["discounts"], changed["shippingLines"]) == (
        145500, order["discounts"], order["shippingLines"],
    )  # fmt: skip
    changed = await edit(api, order["id"], discounts=None, shippingLines=[{"title": "J&T", "price": 12000}])
    assert (changed["total"], changed["discounts"]) == (162500, [])
    changed = await edit(api, order["id"], taxLines=[{"title": "PPN", "rate": 10, "included": False}])
    assert (changed["total"], changed["taxTotal"]) == (178700, 16200)
    line = changed["lineItems"][0]["id"]
    changed = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 1}])
    assert (changed["subtotal"], changed["taxTotal"], changed["total"]) == (75000, 8700, 96200)


async def test_a_discount_goes_down_with_its_line(api: httpx.AsyncClient) -> None:
    order = await make_order(
        api, lineItems=[{"title": "Kopi", "price": 100, "quantity": 3, "discount": {"amount": 10, "title": "Member"}}]
    )
    line = order["lineItems"][0]["id"]
    one = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 1}])
    assert one["lineItems"][0]["discount"] == {"amount": 3.33, "percentage": None, "title": "Member"}
    again = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 5}])
    assert again["discountTotal"] == 3.33
    without = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 5, "discount": None}])
    assert without["discountTotal"] == 0
    anew = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 5, "discount": {"percentage": 50}}])
    assert anew["total"] == 250


async def test_the_stock_moves_by_the_difference(api: httpx.AsyncClient) -> None:
    variants = [{"title": "M", "price": 10, "inventoryQuantity": 10}]
    coffee, tea = await make_product(api, variants=variants), await make_product(api, variants=variants)
    kopi, teh = coffee["variants"][0]["id"], tea["variants"][0]["id"]
    order = await make_order(api, lineItems=[{"productVariantId": kopi, "quantity": 4}])
    line = order["lineItems"][0]["id"]
    await edit(api, order["id"], lineItems=[{"id": line, "quantity": 1}, {"productVariantId": teh, "quantity": 2}])
    assert (await stock_of(api, coffee), await stock_of(api, tea)) == (9, 8)
    too_many = [{"id": line, "quantity": 11}, {"productVariantId": teh, "quantity": 1}]
    refusal(await api.put(f"/orders/{order['id']}", json={"lineItems": too_many}), 409, "INSUFFICIENT_STOCK")
    assert (await stock_of(api, coffee), await stock_of(api, tea)) == (9, 8)
    await edit(api, order["id"], lineItems=[{"title": "Gula", "price": 1, "quantity": 1}])
    assert (await stock_of(api, coffee), await stock_of(api, tea)) == (10, 10)
    await edit(api, order["id"], status="cancelled")
    assert (await stock_of(api, coffee), await stock_of(api, tea)) == (10, 10)


async def test_a_quantity_stays_above_what_is_fulfilled_or_refunded(api: httpx.AsyncClient) -> None:
    lines = [{"title": "Kopi", "price": 10, "quantity": 5}, {"title": "Teh", "price": 1, "quantity": 1}]
    order = await make_paid(api, lineItems=lines)
    first, second = order["lineItems"]
    await api.post(f"/orders/{order['id']}/fulfillments", json={"lineItems": [{"id": first["id"], "quantity": 2}]})
    await refund(api, order["id"], lineItems=[units(first, 3)])
    for quantity in (1, 2, 3, 4):
        lines = [{"id": first["id"], "quantity": quantity}, {"id": second["id"], "quantity": 1}]
        refused = await api.put(f"/orders/{order['id']}", json={"lineItems": lines})
        assert "3 refunded" in refusal(refused, 409, "INVALID_TRANSITION")["message"]
    gone = await api.put(f"/orders/{order['id']}", json={"lineItems": [{"id": second["id"], "quantity": 1}]})
    refusal(gone, 409, "INVALID_TRANSITION")
    await refund(api, order["id"], amount=20)
    cheap = await api.put(f"/orders/{order['id']}", json={"discounts": [{"amount": 45}]})
    assert "of it was refunded" in refusal(cheap, 409, "INVALID_TRANSITION")["message"]
    assert (await edit(api, order["id"], lineItems=[{"id": first["id"], "quantity": 5}]))["total"] == 50


async def test_refunded_units_are_taken_off_once(api: httpx.AsyncClient) -> None:
    """Three of five units are handed over and the other two refunded: none is left that an edit could take off."""
    coffee = await make_product(api, variants=[{"title": "M", "price": 100, "inventoryQuantity": 10}])
    order = await make_paid(api, lineItems=[{"productVariantId": coffee["variants"][0]["id"], "quantity": 5}])
    line = order["lineItems"][0]["id"]
    await api.post(f"/orders/{order['id']}/fulfillments", json={"lineItems": [{"id": line, "quantity": 3}]})
    await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 2, restock=True)])
    for quantity in (3, 4):
        response = await api.put(f"/orders/{order['id']}", json={"lineItems": [{"id": line, "quantity": quantity}]})
        assert "at least 5" in refusal(response, 409, "INVALID_TRANSITION")["message"]
    more = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 6}])
    assert (more["total"], more["outstanding"], await stock_of(api, coffee)) == (600, 100, 6)
    back = await edit(api, order["id"], lineItems=[{"id": line, "quantity": 5}])
    assert (back["total"], back["outstanding"]) == (500, 0)
    assert await stock_of(api, coffee) == 7


@pytest.mark.parametrize("status", ["archived", "cancelled", "refunded"])
async def test_an_order_that_is_not_active_is_not_edited(api: httpx.AsyncClient, status: str) -> None:
    order = await make_order(api)
    before = await edit(api, order["id"], status=status)
    bodies: list[dict[str, Any]] = [
        {"lineItems": [{"title": "x", "price": 1, "quantity": 1}]},
        {"discounts": []},
        {"fees": None},
        {"shippingLines": [], "notes": "x"},
    ]
    for body in bodies:
        refused = await api.put(f"/orders/{order['id']}", json=body)
        assert status in refusal(refused, 409, "INVALID_TRANSITION")["message"]
    assert await read(api, order["id"]) == before


async def test_one_call_edits_and_pays_or_unarchives_and_edits(api: httpx.AsyncClient) -> None:
    order = await make_order(api)
    line = {"id": order["lineItems"][0]["id"], "quantity": 1}
    paid = await edit(api, order["id"], lineItems=[line], financialStatus="paid", status="archived")
    assert (paid["total"], paid["totalPaid"], paid["status"]) == (75000, 75000, "archived")
    back = await edit(api, order["id"], status="active", lineItems=[{**line, "quantity": 2}])
    assert (back["total"], back["outstanding"], back["financialStatus"]) == (150000, 75000, "partially_paid")


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ([], "lineItems"),
        (None, "lineItems"),
        ([{"id": "li_01jc9y3q5me8w92v7x4t6r0n1k", "quantity": 1}], "lineItems[0].id"),
        ([{"id": "$id", "quantity": 1}, {"id": "$id", "quantity": 1}], "lineItems[1].id"),
        ([{"id": "$id", "quantity": 0}], "lineItems[0].quantity"),
        ([{"id": "$id"}], "lineItems[0].quantity"),
        ([{"id": "$id", "quantity": 1, "title": " "}], "lineItems[0].title"),
        ([{"id": "$id", "quantity": 1, "price": -1}], "lineItems[0].price"),
        ([{"id": "$id", "quantity": 1, "productVariantId": "x"}], "lineItems[0].productVariantId"),
        ([{"id": "$id", "quantity": 1, "discount": {"amount": 75001}}], "lineItems[0].discount"),
        ([{"quantity": 1}], "lineItems[0].productVariantId"),
    ],
)
async def test_a_wrong_line_is_refused_by_name(api: httpx.AsyncClient, lines: Any, field: str) -> None:
    order = await make_order(api)
    id = order["lineItems"][0]["id"]
    sent = lines and [{**line, "id": id} if line.get("id") == "$id" else line for line in lines]
    response = await api.put(f"/orders/{order['id']}", json={"lineItems": sent})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert await read(api, order["id"]) == order


async def test_the_price_of_a_custom_line_changes_and_that_of_a_variant_does_not(api: httpx.AsyncClient) -> None:
    product = await make_product(api)
    order = await make_order(
        api, lineItems=[{"title": "Kopi", "price": 10, "quantity": 1},
                        {"productVariantId": product["variants"][0]["id"], "quantity": 1}]
    )  # fmt: skip
    custom, variant = ({"id": line["id"], "quantity": 1} for line in order["lineItems"])
    changed = await edit(api, order["id"], lineItems=[{**custom, "price": 20, "title": "Teh"}, variant])
    assert (changed["lineItems"][0]["title"], changed["total"]) == ("Teh", 150020)
    response = await api.put(f"/orders/{order['id']}", json={"lineItems": [custom, {**variant, "price": 1}]})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == "lineItems[1].price"


@pytest.mark.parametrize(
    ("fields", "outstanding"),
    [
        pytest.param({"price": 200}, 100, id="dearer"),
        pytest.param({"price": 40}, -60, id="cheaper"),
        pytest.param({"discount": {"percentage": 10}}, -10, id="discount"),
    ],
)
async def test_only_units_that_were_not_refunded_are_priced_again(
    api: httpx.AsyncClient, fields: Any, outstanding: int
) -> None:
    order = await make_paid(api, lineItems=[{"title": "Kopi", "price": 100, "quantity": 2}])
    await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)])
    line = {"id": order["lineItems"][0]["id"], "quantity": 2, **fields}
    assert (await edit(api, order["id"], lineItems=[line]))["outstanding"] == outstanding


async def test_all_units_give_back_all_that_was_paid_also_when_discounts_were_spread_again(
    api: httpx.AsyncClient,
) -> None:
    order = await make_paid(api, lineItems=[{"title": "Kopi", "price": 100, "quantity": 2}], discounts=[{"amount": 30}])
    await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)])
    line = {"id": order["lineItems"][0]["id"], "quantity": 2}
    more = await edit(api, order["id"], lineItems=[line, {"title": "Teh", "price": 100, "quantity": 1}])
    assert more["outstanding"] == 95
    assert (await pay(api, order["id"], 95)).status_code == 201
    await refund(api, order["id"], lineItems=[{"id": one["id"], "quantity": 1} for one in more["lineItems"]])
    after = await read(api, order["id"])
    assert (after["totalPaid"], after["totalRefunded"], after["outstanding"]) == (265, 265, 0)
    assert after["financialStatus"] == "refunded"


async def test_a_line_with_returned_units_takes_no_more(api: httpx.AsyncClient) -> None:
    order = await make_paid(api)
    assert (await api.put(f"/orders/{order['id']}", json={"fulfillmentStatus": "fulfilled"})).status_code == 200
    await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)])
    line = {"id": order["lineItems"][0]["id"], "quantity": 3}
    refused = await api.put(f"/orders/{order['id']}", json={"lineItems": [line]})
    assert "without an id" in refusal(refused, 409, "INVALID_TRANSITION")["message"]
    more = await edit(
        api, order["id"], lineItems=[{**line, "quantity": 2}, {"title": "Kopi", "price": 75000, "quantity": 1}]
    )
    assert more["fulfillmentStatus"] == "unfulfilled"
    assert (await api.post(f"/orders/{order['id']}/fulfillments", json={})).status_code == 201


async def give_up_a_gift(api: httpx.AsyncClient) -> Order:
    """An order that costs nothing, of which the only unit is given up: nothing is refunded."""
    gift = {"title": "Stiker", "price": 10, "quantity": 1}
    order = await make_order(api, lineItems=[gift], discounts=[{"percentage": 100}])
    assert (await refund(api, order["id"], lineItems=[units(order["lineItems"][0], 1)])).json()["data"]["amount"] == 0
    return await read(api, order["id"])


async def test_an_order_of_which_nothing_is_outstanding_is_paid(api: httpx.AsyncClient) -> None:
    order = await give_up_a_gift(api)
    kept = {"id": order["lineItems"][0]["id"], "quantity": 1}
    bag = {"title": "Tas", "price": 5, "quantity": 1}
    owed = await edit(api, order["id"], lineItems=[kept, bag], discounts=[])
    assert (owed["total"], owed["outstanding"], owed["financialStatus"]) == (15, 5, "pending")
    await pay(api, order["id"], 5)
    assert (await read(api, order["id"]))["financialStatus"] == "paid"
    fees = [{"title": "Asuransi", "amount": 1}]
    assert (await edit(api, order["id"], fees=fees))["financialStatus"] == "partially_paid"
    assert (await edit(api, order["id"], fees=[]))["financialStatus"] == "paid"


async def test_an_order_that_owes_nothing_keeps_the_status_that_it_is_given(api: httpx.AsyncClient) -> None:
    order = await give_up_a_gift(api)
    assert (await edit(api, order["id"], discounts=[]))["outstanding"] == 0
    assert (await edit(api, order["id"], financialStatus="paid"))["financialStatus"] == "paid"
    same = await edit(api, order["id"], lineItems=[{"id": order["lineItems"][0]["id"], "quantity": 1, "title": "Pin"}])
    assert same["financialStatus"] == "paid"
    fees = [{"title": "Asuransi", "amount": 1}]
    assert (await edit(api, order["id"], fees=fees))["financialStatus"] == "pending"
