"""Discounts, shipping, fees and taxes of an order over HTTP."""

from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_order, make_product

LINES = [{"title": "Kopi", "price": 50000, "quantity": 2}, {"title": "Tas", "price": 20000, "quantity": 1}]


@pytest.mark.smoke
async def test_an_order_with_a_delivery_fee_a_discount_and_a_tax(api: httpx.AsyncClient) -> None:
    made = await make_order(
        api,
        lineItems=[{**LINES[0], "discount": {"percentage": 5, "title": "Member"}}, LINES[1]],
        discounts=[{"code": "LEBARAN10", "title": "Lebaran", "percentage": 10}],
        shippingLines=[{"title": "JNE REG", "price": 10000, "code": "REG", "discount": {"amount": 1000}}],
        fees=[{"title": "Asuransi", "amount": 2500}],
        taxLines=[{"title": "PPN", "rate": 11, "included": True}],
        total=115000,
    )
    totals = ("subtotal", "discountTotal", "shippingTotal", "feeTotal", "taxTotal", "total", "totalPaid", "outstanding")
    assert [made[name] for name in totals] == [120000, 16500, 9000, 2500, 11148.64, 115000, 0, 115000]
    first, second = made["lineItems"]
    assert first["discount"] == {"amount": 5000, "percentage": 5, "title": "Member"}
    assert (first["total"], first["discountAllocation"], first["charged"]) == (95000, 9500, 85500)
    assert (second["total"], second["discountAllocation"], second["charged"]) == (20000, 2000, 18000)
    assert made["discounts"] == [{"code": "LEBARAN10", "title": "Lebaran", "amount": 11500, "percentage": 10}]
    assert made["shippingLines"] == [
        {
            "title": "JNE REG",
            "code": "REG",
            "price": 10000,
            "discount": {"amount": 1000, "percentage": None, "title": None},
            "total": 9000,
            "tax": 891.89,
            "charged": 9000,
        }
    ]
    assert made["fees"] == [{"title": "Asuransi", "amount": 2500}]
    assert made["taxLines"] == [{"title": "PPN", "rate": 11, "amount": 11148.64, "included": True}]
    assert (await api.get(f"/orders/{made['id']}")).json()["data"] == made
    assert (await api.get("/orders")).json()["data"] == [made]


async def test_a_different_total_is_refused_with_the_computed_parts(api: httpx.AsyncClient) -> None:
    body = {
        "lineItems": LINES,
        "discounts": [{"amount": 20000}],
        "shippingLines": [{"title": "JNE", "price": 9000}],
        "fees": [{"title": "x", "amount": 500}],
        "taxLines": [{"title": "PPN", "rate": 10, "included": False}],
        "total": 120000,
    }
    error = refusal(await api.post("/orders", json=body), 400, "VALIDATION_ERROR")
    parts = {detail["field"]: detail["message"] for detail in error["details"]}
    assert list(parts) == ["total", "subtotal", "discountTotal", "shippingTotal", "feeTotal", "taxTotal"]
    assert parts["total"].startswith("must be 120400: subtotal 120000 − discounts 20000 + shipping 9000 + fees 500")
    assert (parts["subtotal"], parts["taxTotal"]) == ("is 120000", "is 10900")
    assert (await api.post("/orders", json={**body, "total": 120400})).status_code == 201


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"discounts": [{}]}, "discounts[0].amount"),
        ({"discounts": [{"amount": 1, "percentage": 1}]}, "discounts[0].amount"),
        ({"discounts": [{"percentage": 100.1}]}, "discounts[0].percentage"),
        ({"discounts": [{"percentage": -1}]}, "discounts[0].percentage"),
        ({"discounts": [{"percentage": 1.00001}]}, "discounts[0].percentage"),
        ({"discounts": [{"amount": -1}]}, "discounts[0].amount"),
        ({"discounts": [{"amount": 0.001}]}, "discounts[0].amount"),
        ({"discounts": [{"amount": 120001}]}, "discounts"),
        ({"discounts": [{"amount": 1, "value": 1}]}, "discounts[0].value"),
        ({"discounts": [{"amount": 0}] * 51}, "discounts"),
        ({"discounts": [{"amount": 1, "code": " "}]}, "discounts[0].code"),
        ({"discounts": [{"amount": 1, "title": " "}]}, "discounts[0].title"),
        ({"shippingLines": [{"title": "JNE"}]}, "shippingLines[0].price"),
        ({"shippingLines": [{"title": " ", "price": 1}]}, "shippingLines[0].title"),
        ({"shippingLines": [{"title": "x", "price": 1, "code": " "}]}, "shippingLines[0].code"),
        ({"shippingLines": [{"title": "x", "price": 1, "discount": {"amount": 2}}]}, "shippingLines[0].discount"),
        ({"fees": [{"title": "x"}]}, "fees[0].amount"),
        ({"fees": [{"title": "x", "amount": -1}]}, "fees[0].amount"),
        ({"taxLines": [{"title": "PPN", "rate": 11}]}, "taxLines[0].included"),
        ({"taxLines": [{"title": "PPN", "included": True}]}, "taxLines[0].amount"),
        ({"taxLines": [{"title": "PPN", "rate": 11, "amount": 1, "included": True}]}, "taxLines[0].amount"),
        ({"taxLines": [{"title": "PPN", "rate": "11", "included": True}]}, "taxLines[0].rate"),
        ({"lineItems": [{**LINES[0], "discount": {"amount": 100001}}]}, "lineItems[0].discount"),
        ({"lineItems": [{**LINES[0], "discount": {"percentage": 101}}]}, "lineItems[0].discount.percentage"),
        ({"lineItems": [{**LINES[0], "discount": {"amount": 1, "title": " "}}]}, "lineItems[0].discount.title"),
        ({"lineItems": [{**LINES[0], "id": "li_01jc9y3q5me8w92v7x4t6r0n1k"}]}, "lineItems[0].id"),
        ({"subtotal": 1}, "subtotal"),
        ({"outstanding": 1}, "outstanding"),
    ],
)
async def test_a_wrong_part_is_refused_by_name(api: httpx.AsyncClient, fields: dict[str, Any], field: str) -> None:
    response = await api.post("/orders", json={"lineItems": LINES, **fields})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get("/orders")).json()["meta"]["total"] == 0


async def test_everything_off_makes_an_order_of_nothing(api: httpx.AsyncClient) -> None:
    made = await make_order(api, lineItems=LINES, discounts=[{"percentage": 100}])
    assert (made["total"], made["outstanding"], made["financialStatus"]) == (0, 0, "pending")
    for status in ("paid", "refunded"):
        changed = (await api.put(f"/orders/{made['id']}", json={"financialStatus": status})).json()["data"]
        assert (changed["financialStatus"], changed["payments"], changed["refunds"]) == (status, [], [])


async def test_a_variant_can_have_a_discount_and_keeps_its_price(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 23.9}])
    lines = [{"productVariantId": product["variants"][0]["id"], "quantity": 10, "discount": {"percentage": 25}}]
    made = await make_order(api, lineItems=lines)
    assert (made["subtotal"], made["discountTotal"], made["total"]) == (239, 59.75, 179.25)
    assert made["lineItems"][0]["price"] == 23.9
