import re
from typing import Any

import httpx
import pytest

from sapa.access.types import Scope
from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.customers.test_api import refusal
from tests.factories import Environments, make_company, make_customer, make_key, make_order, make_product

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").fullmatch
TAIL = "[0-7][0-9a-hjkmnp-tv-z]{25}"
FIELDS = [
    "id", "orderId", "orderNumber", "status", "fulfillmentStatus", "financialStatus", "total", "currency", "notes",
    "customer", "lineItems", "shippingAddress", "tags", "subtotal", "discountTotal", "shippingTotal", "feeTotal",
    "taxTotal", "totalPaid", "totalRefunded", "outstanding", "discounts", "shippingLines", "fees", "taxLines",
    "payments", "refunds", "fulfillments", "createdAt", "updatedAt",
]  # fmt: skip
LINE_FIELDS = [
    "id", "quantity", "price", "title", "productVariant", "discount", "total", "discountAllocation", "tax", "charged",
    "fulfilledQuantity", "refundedQuantity",
]  # fmt: skip
UNTOUCHED = {"discount": None, "discountAllocation": 0, "tax": 0, "fulfilledQuantity": 0, "refundedQuantity": 0}
"""What an order of lines alone has in each of them."""
NOTHING = {
    "discountTotal": 0, "shippingTotal": 0, "feeTotal": 0, "taxTotal": 0, "totalPaid": 0, "totalRefunded": 0,
    "discounts": [], "shippingLines": [], "fees": [], "taxLines": [], "payments": [], "refunds": [], "fulfillments": [],
}  # fmt: skip
ADDRESS = {
    "firstName": "Ayu",
    "lastName": "Lestari",
    "phone": "0812",
    "address1": "Jl. Merdeka 17",
    "address2": "Lantai 2",
    "city": "Bandung",
    "province": "Jawa Barat",
    "country": "Indonesia",
    "zip": "40111",
}
LINE = {"title": "Kopi Gayo", "price": 75000, "quantity": 2}
VARIANT = {
    "title": "250 g",
    "key": "small",
    "price": 85000.5,
    "compareAtPrice": 99000,
    "sku": "GAYO-250",
    "media": "https://example.com/gayo.png",
    "inventoryQuantity": 10,
}


@pytest.mark.smoke
async def test_an_order_is_created_with_every_field_and_read_back(api: httpx.AsyncClient) -> None:
    customer = await make_customer(api, firstName="Ayu", lastName="Lestari", phoneNumber="08123456789")
    product = await make_product(api, name="Kopi Gayo", variants=[VARIANT])
    variant = product["variants"][0]
    response = await api.post(
        "/orders",
        json={
            "lineItems": [{"productVariantId": variant["id"], "quantity": 2}, LINE],
            "orderId": "web-1",
            "customerId": customer["id"],
            "shippingAddress": ADDRESS,
            "currency": "IDR",
            "total": 320001,
            "notes": "Ring twice.",
            "tags": ["gift", " new ", "gift"],
        },
    )
    assert response.status_code == 201, response.text
    assert list(response.json()) == ["data"]
    made = response.json()["data"]
    assert list(made) == FIELDS
    assert re.fullmatch("order_" + TAIL, made["id"])
    assert all(re.fullmatch("li_" + TAIL, line["id"]) for line in made["lineItems"])
    assert re.fullmatch("addr_" + TAIL, made["shippingAddress"]["id"])
    assert INSTANT(made["createdAt"])
    assert made["updatedAt"] == made["createdAt"]
    first, second = made["lineItems"]
    assert made == {
        "id": made["id"],
        "orderId": "web-1",
        "orderNumber": "1001",
        "status": "active",
        "fulfillmentStatus": "unfulfilled",
        "financialStatus": "pending",
        "total": 320001,
        "currency": "IDR",
        "notes": "Ring twice.",
        "customer": {name: customer[name] for name in ("id", "firstName", "lastName", "email", "phoneNumber")},
        "lineItems": [
            {
                "id": first["id"],
                "quantity": 2,
                "price": 85000.5,
                "title": "Kopi Gayo",
                "productVariant": {
                    "id": variant["id"],
                    "key": "small",
                    "price": 85000.5,
                    "compareAtPrice": 99000,
                    "inventorySku": "GAYO-250",
                    "media": "https://example.com/gayo.png",
                },
                **UNTOUCHED,
                "total": 170001,
                "charged": 170001,
            },
            {
                "id": second["id"],
                "quantity": 2,
                "price": 75000,
                "title": "Kopi Gayo",
                "productVariant": None,
                **UNTOUCHED,
                "total": 150000,
                "charged": 150000,
            },
        ],
        "shippingAddress": {"id": made["shippingAddress"]["id"], **ADDRESS},
        "tags": ["gift", "new"],
        **NOTHING,
        "subtotal": 320001,
        "outstanding": 320001,
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert list(first) == LINE_FIELDS
    assert list(first["productVariant"]) == ["id", "key", "price", "compareAtPrice", "inventorySku", "media"]
    assert list(made["customer"]) == ["id", "firstName", "lastName", "email", "phoneNumber"]
    assert list(made["shippingAddress"]) == ["id", *ADDRESS]
    assert (await api.get(f"/orders/{made['id']}")).content == response.content


async def test_what_is_absent_is_null_or_empty_and_never_left_out(api: httpx.AsyncClient) -> None:
    made = await make_order(api)
    assert list(made) == FIELDS
    assert made["orderId"] == made["id"]
    assert (made["notes"], made["customer"], made["shippingAddress"], made["tags"]) == (None, None, None, [])
    bare = await make_order(api, shippingAddress={"address1": "Jl. Merdeka 17"})
    empty = {**dict.fromkeys(ADDRESS), "address1": "Jl. Merdeka 17"}
    assert bare["shippingAddress"] == {"id": bare["shippingAddress"]["id"], **empty}
    product = await make_product(api, variants=[{"title": "M", "price": 1}])
    plain = await make_order(api, lineItems=[{"productVariantId": product["variants"][0]["id"], "quantity": 1}])
    assert plain["lineItems"][0]["productVariant"] == {
        "id": product["variants"][0]["id"],
        "key": "M",
        "price": 1,
        "compareAtPrice": None,
        "inventorySku": None,
        "media": None,
    }


@pytest.mark.parametrize(
    ("currency", "lines", "printed"),
    [
        ("IDR", [("0.1", 3)], "0.3"),
        ("IDR", [("0.10", 1), ("0.2", 1)], "0.3"),
        ("IDR", [("1999999999999.99", 1)], "1999999999999.99"),
        ("IDR", [("299000.50", 2)], "598001"),
        ("IDR", [("853000.0", 1)], "853000"),
        ("IDR", [("8.53e5", 1)], "853000"),
        ("IDR", [("0", 1)], "0"),
        ("IDR", [("0.00", 7)], "0"),
        ("IDR", [("999999999999999", 1)], "999999999999999"),
        ("IDR", [("999999999.99", 1000000)], "999999999990000"),
        ("IDR", [("9999999999999.98", 1), ("0.01", 1)], "9999999999999.99"),
        ("JPY", [("150000", 2)], "300000"),
        ("KWD", [("1.234", 3)], "3.702"),
        ("CLF", [("1.2345", 1)], "1.2345"),
        ("USD", [("19.99", 3), ("0.03", 1)], "60"),
    ],
)
async def test_totals_are_exact_and_printed_in_their_shortest_form(
    api: httpx.AsyncClient, currency: str, lines: list[tuple[str, int]], printed: str
) -> None:
    items = ",".join(f'{{"title":"x","price":{price},"quantity":{quantity}}}' for price, quantity in lines)
    body = f'{{"currency":"{currency}","total":{printed},"lineItems":[{items}]}}'
    response = await api.post("/orders", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 201, response.text
    assert f'"total":{printed},"currency":"{currency}"' in response.text
    assert (await api.get(f"/orders/{response.json()['data']['id']}")).content == response.content


@pytest.mark.parametrize(
    ("currency", "price", "quantity", "field"),
    [
        ("IDR", "0.001", 1, "lineItems[0].price"),
        ("JPY", "0.5", 2, "lineItems[0].price"),
        ("USD", "1.999", 1, "lineItems[0].price"),
        ("IDR", "1000000000000000", 1, "lineItems[0].price"),
        ("IDR", "12345678901234.56", 1, "lineItems[0].price"),
        ("IDR", "1e999999", 1, "lineItems[0].price"),
        ("IDR", "-1", 1, "lineItems[0].price"),
        ("IDR", "-0.01", 1, "lineItems[0].price"),
        ("IDR", '"1000"', 1, "lineItems[0].price"),
        ("IDR", "true", 1, "lineItems[0].price"),
        ("IDR", "500000000000000", 2, "lineItems"),
        ("IDR", "9999999999999.99", 2, "lineItems"),
        ("XXX", "1", 1, "currency"),
        ("idr", "1", 1, "currency"),
    ],
)
async def test_an_amount_that_the_currency_lacks_is_refused_by_name(
    api: httpx.AsyncClient, currency: str, price: str, quantity: int, field: str
) -> None:
    body = f'{{"currency":"{currency}","lineItems":[{{"title":"x","price":{price},"quantity":{quantity}}}]}}'
    response = await api.post("/orders", content=body, headers={"content-type": "application/json"})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field


@pytest.mark.parametrize("total", ["150000.01", "149999", "0", "-150000"])
async def test_a_different_total_is_refused_with_the_expected_one(api: httpx.AsyncClient, total: str) -> None:
    body = f'{{"total":{total},"lineItems":[{{"title":"x","price":75000,"quantity":2}}]}}'
    response = await api.post("/orders", content=body, headers={"content-type": "application/json"})
    error = refusal(response, 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "total"
    assert "150000" in error["message"]


@pytest.mark.parametrize("total", ["150000", "150000.00", "1.5e5"])
async def test_a_total_that_is_equal_may_be_written_in_any_way(api: httpx.AsyncClient, total: str) -> None:
    body = f'{{"total":{total},"lineItems":[{{"title":"x","price":75000,"quantity":2}}]}}'
    response = await api.post("/orders", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 201
    assert '"total":150000,' in response.text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "lineItems"), ({"lineItems": []}, "lineItems"), ({"lineItems": None}, "lineItems"),
        ({"lineItems": [LINE] * 501}, "lineItems"), ({"lineItems": [{}]}, "lineItems[0].quantity"),
        ({"lineItems": [{**LINE, "quantity": 0}]}, "lineItems[0].quantity"),
        ({"lineItems": [{**LINE, "quantity": -1}]}, "lineItems[0].quantity"),
        ({"lineItems": [{**LINE, "quantity": 1.5}]}, "lineItems[0].quantity"),
        ({"lineItems": [{**LINE, "quantity": "2"}]}, "lineItems[0].quantity"),
        ({"lineItems": [{**LINE, "quantity": 1_000_001}]}, "lineItems[0].quantity"),
        ({"lineItems": [{"quantity": 1}]}, "lineItems[0].productVariantId"),
        ({"lineItems": [LINE, {"title": "x", "quantity": 1}]}, "lineItems[1].price"),
        ({"lineItems": [LINE, {"price": 1, "quantity": 1}]}, "lineItems[1].title"),
        ({"lineItems": [{**LINE, "title": ""}]}, "lineItems[0].title"),
        ({"lineItems": [{**LINE, "title": " \t"}]}, "lineItems[0].title"),
        ({"lineItems": [{**LINE, "title": "x" * 256}]}, "lineItems[0].title"),
        ({"lineItems": [{**LINE, "productVariantId": "var_01jc9y3q5me8w92v7x4t6r0n1k"}]}, "lineItems[0].title"),
        ({"lineItems": [{"productVariantId": "x", "price": 1, "quantity": 1}]}, "lineItems[0].price"),
        ({"lineItems": [LINE, {"productVariantId": "x", "quantity": 1}]}, "lineItems[1].productVariantId"),
        ({"lineItems": [{"productVariantId": "", "quantity": 1}]}, "lineItems[0].productVariantId"),
        ({"lineItems": [{"productVariantId": "var_01jc9y3q5me8w92v7x4t6r0n1k", "quantity": 1}]},
         "lineItems[0].productVariantId"),
        ({"lineItems": [{**LINE, "sku": "x"}]}, "lineItems[0].sku"),
        ({"customerId": "cust_01jc9y3q5me8w92v7x4t6r0n1k"}, "customerId"), ({"customerId": "x"}, "customerId"),
        ({"customerId": ""}, "customerId"), ({"customerId": 1}, "customerId"),
        ({"customer": {}}, "customer"), ({"customer": {"firstName": "Ayu"}}, "customer"),
        ({"customer": {"email": "no"}}, "customer.email"),
        ({"customer": {"phoneNumber": "no"}}, "customer.phoneNumber"),
        ({"customer": {"id": "cust_1"}}, "customer.id"),
        ({"customer": {"email": "a@example.com"}, "customerId": "x"}, "customer"),
        ({"shippingAddress": {}}, "shippingAddress.address1"),
        ({"shippingAddress": {"address1": ""}}, "shippingAddress.address1"),
        ({"shippingAddress": {"address1": "x", "zip": 40111}}, "shippingAddress.zip"),
        ({"shippingAddress": {"address1": "x", "mainAddress": True}}, "shippingAddress.mainAddress"),
        ({"shippingAddress": {"address1": "x", "id": "addr_01jc9y3q5me8w92v7x4t6r0n1k"}}, "shippingAddress.id"),
        ({"notes": 1}, "notes"), ({"notes": "x" * 5001}, "notes"), ({"tags": "gift"}, "tags"),
        ({"tags": ["gift", "a,b"]}, "tags[1]"), ({"tags": [" "]}, "tags[0]"), ({"tags": ["x" * 101]}, "tags[0]"),
        ({"orderId": ""}, "orderId"), ({"orderId": " x"}, "orderId"), ({"orderId": "x" * 256}, "orderId"),
        ({"orderId": 7}, "orderId"), ({"currency": "RP"}, "currency"), ({"currency": "BTC"}, "currency"),
        ({"total": "150000"}, "total"), ({"status": "active"}, "status"),
        ({"financialStatus": "paid"}, "financialStatus"),
        ({"id": "x"}, "id"), ({"orderNumber": "1"}, "orderNumber"),
        ({"createdAt": "2026-01-01T00:00:00Z"}, "createdAt"),
    ],
)  # fmt: skip
async def test_an_invalid_field_is_refused_by_name(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    response = await api.post(
        "/orders", json=body if "lineItems" in body or not body else {"lineItems": [LINE], **body}
    )
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get("/orders")).json()["meta"]["total"] == 0
    assert (await api.get("/customers")).json()["meta"]["total"] == 0


async def test_the_ends_of_the_allowed_ranges_are_allowed(api: httpx.AsyncClient) -> None:
    made = await make_order(
        api,
        lineItems=[{"title": "x" * 255, "price": 0.01, "quantity": 1_000_000}] * 500,
        orderId="x" * 255,
        notes="x" * 5000,
        tags=[f"tag {number}" for number in range(250)],
    )
    assert (len(made["lineItems"]), made["total"]) == (500, 5_000_000)
    assert len({line["id"] for line in made["lineItems"]}) == 500


async def test_nulls_are_as_good_as_absent_fields(api: httpx.AsyncClient) -> None:
    line = {"title": "x", "price": 1, "quantity": 1, "productVariantId": None}
    optional = ["orderId", "customerId", "customer", "shippingAddress", "currency", "total", "notes", "tags"]
    made = await make_order(api, lineItems=[line], **dict.fromkeys(optional))
    assert (made["currency"], made["customer"], made["tags"]) == ("IDR", None, [])


async def test_an_order_id_is_unique_within_its_company(
    api: httpx.AsyncClient, installation: Installation, database: Database
) -> None:
    first = await make_order(api, orderId="web-1")
    again = await api.post("/orders", json={"lineItems": [LINE], "orderId": "web-1"})
    error = refusal(again, 409, "ORDER_EXISTS")
    assert error["message"] == "An order with this orderId already exists."
    taken = await api.post("/orders", json={"lineItems": [LINE], "orderId": (await make_order(api))["id"]})
    refusal(taken, 409, "ORDER_EXISTS")
    await make_order(api, orderId="WEB-1")
    other = await make_key(database, (await make_company(database)).live)
    async with connect(installation, other.raw) as theirs:
        assert (await make_order(theirs, orderId="web-1"))["id"] != first["id"]


async def test_numbers_count_up_from_1001_in_each_company_and_a_refused_order_takes_none(
    api: httpx.AsyncClient, installation: Installation, database: Database
) -> None:
    numbers = [(await make_order(api, orderId=f"web-{number}"))["orderNumber"] for number in range(3)]
    assert numbers == ["1001", "1002", "1003"]
    refusal(await api.post("/orders", json={"lineItems": [LINE], "orderId": "web-1"}), 409, "ORDER_EXISTS")
    assert (await make_order(api))["orderNumber"] == "1004"
    other = await make_key(database, (await make_company(database)).live)
    async with connect(installation, other.raw) as theirs:
        assert (await make_order(theirs))["orderNumber"] == "1001"


async def test_the_company_s_currency_is_the_default(installation: Installation, database: Database) -> None:
    company = await make_company(database, currency="JPY")
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        assert (await make_order(api))["currency"] == "JPY"
        assert (await make_order(api, currency="USD"))["currency"] == "USD"


async def test_a_variant_is_sold_in_the_company_s_currency_only(api: httpx.AsyncClient) -> None:
    product = await make_product(api)
    lines = [{"productVariantId": product["variants"][0]["id"], "quantity": 1}]
    assert (await make_order(api, lineItems=lines, currency="IDR"))["total"] == 150000
    response = await api.post("/orders", json={"lineItems": lines, "currency": "USD"})
    error = refusal(response, 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "currency"
    assert "IDR" in error["message"]


@pytest.mark.parametrize("status", ["draft", "archived"])
async def test_a_variant_of_a_product_that_is_not_active_is_not_sold(api: httpx.AsyncClient, status: str) -> None:
    product = await make_product(api, status=status)
    lines = [LINE, {"productVariantId": product["variants"][0]["id"], "quantity": 1}]
    error = refusal(await api.post("/orders", json={"lineItems": lines}), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "lineItems[1].productVariantId"
    await api.put(f"/products/{product['id']}", json={"status": "active"})
    assert (await make_order(api, lineItems=lines))["total"] == 300000


async def test_another_companys_variant_and_customer_are_unknown(
    api: httpx.AsyncClient, installation: Installation, database: Database
) -> None:
    other = await make_key(database, (await make_company(database)).live)
    async with connect(installation, other.raw) as theirs:
        variant = (await make_product(theirs))["variants"][0]["id"]
        customer = (await make_customer(theirs))["id"]
    for body, unknown in (
        ({"lineItems": [{"productVariantId": variant, "quantity": 1}]}, variant),
        ({"lineItems": [LINE], "customerId": customer}, customer),
    ):
        foreign = await api.post("/orders", json=body)
        refusal(foreign, 400, "VALIDATION_ERROR")
        nobody = unknown[:-4] + "zzzz"
        text = str(body).replace(unknown, nobody)
        assert nobody in text
        alike = await api.post("/orders", content=foreign.request.content.replace(unknown.encode(), nobody.encode()),
                               headers={"content-type": "application/json"})  # fmt: skip
        assert alike.content == foreign.content


async def test_deleting_a_product_or_customer_does_not_change_orders(api: httpx.AsyncClient) -> None:
    product = await make_product(api, variants=[VARIANT])
    customer = await make_customer(api, firstName="Ayu")
    lines = [{"productVariantId": product["variants"][0]["id"], "quantity": 3}]
    made = await make_order(api, lineItems=lines, customerId=customer["id"])
    await api.put(f"/products/{product['id']}", json={"name": "Teh", "variants": [{**VARIANT, "price": 1}]})
    assert (await api.get(f"/orders/{made['id']}")).json()["data"] == made
    assert (await api.delete(f"/products/{product['id']}")).status_code == 204
    assert (await api.delete(f"/customers/{customer['id']}")).status_code == 204
    assert (await api.get(f"/orders/{made['id']}")).json()["data"] == made
    assert (await api.get("/orders", params={"customerId": customer["id"]})).json()["data"] == [made]
    assert (await api.get("/orders", params={"search": "ayu"})).json()["data"] == [made]
    cancelled = (await api.put(f"/orders/{made['id']}", json={"status": "cancelled"})).json()["data"]
    assert cancelled == {**made, "status": "cancelled", "updatedAt": cancelled["updatedAt"]}


async def test_orders_cannot_be_deleted(api: httpx.AsyncClient) -> None:
    made = await make_order(api)
    refusal(await api.delete(f"/orders/{made['id']}"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [("orders:READ", "GET", ""), ("orders:READ", "GET", "/{id}"), ("orders:WRITE", "POST", ""),
     ("orders:WRITE", "PUT", "/{id}")],
)  # fmt: skip
async def test_each_call_needs_its_scope_and_no_other(
    api: httpx.AsyncClient, installation: Installation, database: Database, company: Environments,
    scope: str, method: str, path: str,
) -> None:  # fmt: skip
    path = "/orders" + path.format(id=(await make_order(api))["id"])
    body = {"POST": {"lineItems": [LINE]}, "PUT": {"notes": "x"}}.get(method)
    others = [str(one) for one in Scope if one != scope]
    for scopes, allowed in (([scope], True), (others, False)):
        async with connect(installation, (await make_key(database, company.live, scopes=scopes)).raw) as caller:
            response = await caller.request(method, path, json=body)
            assert response.is_success is allowed, response.text
            assert allowed or response.json()["error"]["code"] == "INSUFFICIENT_SCOPE"


async def test_orders_are_listed_by_currency(api: httpx.AsyncClient) -> None:
    await make_order(api)
    dollars = await make_order(api, currency="USD", lineItems=[{"title": "Kopi", "price": 9.5, "quantity": 1}])
    found = (await api.get("/orders?currency=USD")).json()
    assert ([order["id"] for order in found["data"]], found["meta"]["total"]) == ([dollars["id"]], 1)
    refusal(await api.get("/orders?currency=usd"), 400, "VALIDATION_ERROR")
