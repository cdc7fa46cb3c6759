import re
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.customers.test_api import INSTANT, refusal
from tests.factories import make_company, make_key, make_product

PRODUCT_ID = re.compile(r"prod_[0-7][0-9a-hjkmnp-tv-z]{25}").fullmatch
VARIANT_ID = re.compile(r"var_[0-7][0-9a-hjkmnp-tv-z]{25}").fullmatch
OPTION_ID = re.compile(r"opt_[0-7][0-9a-hjkmnp-tv-z]{25}").fullmatch

FIELDS = [
    "id", "productId", "name", "description", "media", "medias", "status", "variants", "options", "tags", "types",
    "createdAt", "updatedAt",
]  # fmt: skip
VARIANT_FIELDS = [
    "id", "key", "title", "price", "compareAtPrice", "inventorySku", "media", "inventoryQuantity",
]  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "productId": "shirt-7",
    "name": "Batik shirt",
    "description": "Hand-printed in Pekalongan.\nWash cold.",
    "media": "https://example.com/shirt.png",
    "medias": ["https://example.com/a.png", "https://example.com/b.png"],
    "status": "draft",
    "variants": [
        {
            "key": "medium",
            "title": "M",
            "price": 299000.5,
            "compareAtPrice": 350000,
            "sku": "SHIRT-7-M",
            "media": "https://example.com/m.png",
            "inventoryQuantity": 12,
        },
        {"title": "L", "price": 0},
    ],
    "options": [{"name": "Size", "values": ["M", "L"]}],
    "tags": ["new", "cotton"],
    "types": ["shirt"],
}
ONE = {"title": "M", "price": 1}


@pytest.mark.smoke
async def test_a_product_is_created_with_every_field_and_read_back(api: httpx.AsyncClient) -> None:
    response = await api.post("/products", json=EVERYTHING)
    assert response.status_code == 201
    assert list(response.json()) == ["data"]
    made = response.json()["data"]
    assert list(made) == FIELDS
    assert PRODUCT_ID(made["id"])
    assert INSTANT(made["createdAt"])
    medium, large = made["variants"]
    (option,) = made["options"]
    assert VARIANT_ID(medium["id"])
    assert VARIANT_ID(large["id"])
    assert OPTION_ID(option["id"])
    sent = {name: value for name, value in EVERYTHING["variants"][0].items() if name != "sku"}
    assert medium == {**sent, "id": medium["id"], "inventorySku": "SHIRT-7-M"}
    assert list(medium) == list(large) == VARIANT_FIELDS
    assert large == {**dict.fromkeys(VARIANT_FIELDS), "id": large["id"], "key": "L", "title": "L", "price": 0}
    assert list(option) == ["id", "name", "values"]
    assert made == {
        **EVERYTHING,
        "id": made["id"],
        "variants": [medium, large],
        "options": [{"id": option["id"], "name": "Size", "values": ["M", "L"]}],
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert (await api.get(f"/products/{made['id']}")).content == response.content


async def test_what_is_absent_is_null_or_empty_and_never_left_out(api: httpx.AsyncClient) -> None:
    made = (await api.post("/products", json={"name": "Cap", "variants": [ONE]})).json()["data"]
    assert list(made) == FIELDS
    (variant,) = made["variants"]
    assert made == {
        "id": made["id"],
        "productId": made["id"],
        "name": "Cap",
        "description": None,
        "media": None,
        "medias": [],
        "status": "active",
        "variants": [{**dict.fromkeys(VARIANT_FIELDS), **ONE, "id": variant["id"], "key": "M"}],
        "options": [],
        "tags": [],
        "types": [],
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }


async def test_null_is_the_same_as_absent_in_a_new_product(api: httpx.AsyncClient) -> None:
    optional = ["productId", "description", "media", "medias", "options", "tags", "types"]
    of_variant = ["key", "sku", "inventorySku", "compareAtPrice", "media", "inventoryQuantity"]
    variants = [{**ONE, **dict.fromkeys(of_variant)}]
    made = await make_product(api, name="Cap", variants=variants, **dict.fromkeys(optional))
    plain = await make_product(api, name="Cap", variants=[ONE])
    ignored = {"id", "productId", "variants", "createdAt", "updatedAt"}
    assert [made[name] for name in FIELDS if name not in ignored] == [
        plain[name] for name in FIELDS if name not in ignored
    ]
    assert {**made["variants"][0], "id": ""} == {**plain["variants"][0], "id": ""}


@pytest.mark.parametrize("names", [["sku"], ["inventorySku"], ["sku", "inventorySku"]])
async def test_a_sku_is_taken_under_either_of_its_names(api: httpx.AsyncClient, names: list[str]) -> None:
    made = await make_product(api, variants=[{**ONE, **dict.fromkeys(names, "A-1")}])
    assert made["variants"][0]["inventorySku"] == "A-1"
    assert "sku" not in made["variants"][0]


@pytest.mark.parametrize("status", ["active", "draft", "archived"])
async def test_each_status_is_stored(api: httpx.AsyncClient, status: str) -> None:
    assert (await make_product(api, status=status))["status"] == status


async def test_variants_stay_in_the_order_sent(api: httpx.AsyncClient) -> None:
    titles = [f"T{number * 37 % 100}" for number in range(100)]
    made = await make_product(api, variants=[{"title": title, "price": 1} for title in titles])
    assert [variant["title"] for variant in made["variants"]] == titles
    assert (await api.get(f"/products/{made['id']}")).json()["data"] == made


async def post_amounts(api: httpx.AsyncClient, **written: str) -> httpx.Response:
    """A product whose second variant has these amounts, each written as sent."""
    amounts = ", ".join(f'"{name}": {text}' for name, text in written.items())
    body = f'{{"name": "Cap", "variants": [{{"title": "M", "price": 1}}, {{"title": "L", {amounts}}}]}}'
    return await api.post("/products", content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    ("currency", "written", "printed"),
    [
        ("IDR", "150000", "150000"), ("IDR", "150000.00", "150000"), ("IDR", "299000.50", "299000.5"),
        ("IDR", "1.5e5", "150000"), ("IDR", "0.1", "0.1"), ("IDR", "0.30", "0.3"), ("IDR", "0", "0"),
        ("IDR", "0.00", "0"), ("IDR", "1999999999999.99", "1999999999999.99"),
        ("IDR", "999999999999999", "999999999999999"), ("USD", "19.99", "19.99"), ("JPY", "1200", "1200"),
        ("JPY", "1200.0", "1200"), ("KWD", "1.234", "1.234"),
    ],
)  # fmt: skip
async def test_prices_are_exact_and_printed_in_their_shortest_form(
    installation: Installation, database: Database, currency: str, written: str, printed: str
) -> None:
    company = await make_company(database, currency=currency)
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        response = await post_amounts(api, price=written, compareAtPrice=written)
        assert response.status_code == 201, response.text
        assert f'"price":{printed},"compareAtPrice":{printed},' in response.text
        assert (await api.get(f"/products/{response.json()['data']['id']}")).content == response.content


@pytest.mark.parametrize(
    ("currency", "price"),
    [
        ("IDR", "0.001"), ("IDR", "-1"), ("IDR", "-0.01"), ("IDR", "1000000000000000"), ("IDR", "99999999999999.99"),
        ("IDR", "1e15"), ("IDR", "1e400"), ("IDR", "1e-3"), ("IDR", "299000.5000000000000001"), ("JPY", "0.5"),
        ("IDR", "1e-999999999"),
        ("KWD", "0.0001"), ("IDR", '"150000"'), ("IDR", '"1.5"'), ("IDR", "true"), ("IDR", "[1]"), ("IDR", "{}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["price", "compareAtPrice"])
async def test_an_invalid_amount_is_refused_by_name(
    installation: Installation, database: Database, currency: str, price: str, field: str
) -> None:
    company = await make_company(database, currency=currency)
    async with connect(installation, (await make_key(database, company.live)).raw) as api:
        response = await post_amounts(api, **{"price": "1", field: price})
        assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == f"variants[1].{field}"


@pytest.mark.parametrize("field", ["name", "variants"])
async def test_a_name_and_variants_are_required(api: httpx.AsyncClient, field: str) -> None:
    body = {"name": "Cap", "variants": [ONE]}
    del body[field]
    assert refusal(await api.post("/products", json=body), 400, "VALIDATION_ERROR")["details"][0]["field"] == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None), ("name", ""), ("name", 1), ("description", 1), ("media", 1), ("media", ""), ("media", ["x"]),
        ("medias", "x"), ("medias", [1]), ("medias", [""]), ("status", None), ("status", ""), ("status", "Active"),
        ("status", "deleted"), ("variants", None), ("variants", []), ("variants", {}), ("variants", ["M"]),
        ("options", {}), ("options", ["Size"]), ("options", [{}]), ("options", [{"name": ""}]),
        ("options", [{"name": "Size", "values": "M"}]), ("options", [{"name": "Size", "values": [1]}]),
        ("options", [{"name": "Size", "values": [""]}]), ("options", [{"name": "Size", "colour": 1}]),
        ("options[0].id", [{"name": "Size", "id": "opt_01jc9y3q5me8w92v7x4t6r0n1k"}]),
        ("options[1].name", [{"name": "Size"}, {"name": "Size"}]),
        ("tags", "new"), ("tags", [1]), ("tags[0]", [""]), ("tags[1]", ["a", " "]), ("tags[1]", ["a", "b,c"]),
        ("types", "shirt"), ("types", [None]), ("types[0]", [""]), ("types[1]", ["a", "\t"]),
        ("productId", ""), ("productId", 7), ("productId", " a"), ("productId", "a "),
        ("id", "prod_1"), ("createdAt", "2026-01-01T00:00:00Z"), ("updatedAt", None), ("nmae", "x"),
    ],
)  # fmt: skip
async def test_an_invalid_field_is_refused_by_name(api: httpx.AsyncClient, field: str, value: Any) -> None:
    body = {"name": "Cap", "variants": [ONE], field.partition("[")[0]: value}
    error = refusal(await api.post("/products", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"].startswith(field)
    assert (await api.get("/products")).json()["meta"]["total"] == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", None), ("title", ""), ("title", 1), ("price", None), ("price", ""), ("key", ""), ("key", 1),
        ("sku", ""), ("sku", 5), ("inventorySku", ""), ("media", 1), ("media", ""), ("inventoryQuantity", -1),
        ("inventoryQuantity", 1.5), ("inventoryQuantity", "5"), ("inventoryQuantity", 1_000_000_001),
        ("inventoryQuantity", True), ("id", "var_01jc9y3q5me8w92v7x4t6r0n1k"), ("quantity", 1), ("currency", "IDR"),
    ],
)  # fmt: skip
async def test_an_invalid_field_of_a_variant_is_refused_by_name(api: httpx.AsyncClient, field: str, value: Any) -> None:
    body = {"name": "Cap", "variants": [ONE, {**ONE, field: value}]}
    error = refusal(await api.post("/products", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == f"variants[1].{field}"


@pytest.mark.parametrize("field", ["title", "price"])
async def test_a_variant_needs_a_title_and_a_price(api: httpx.AsyncClient, field: str) -> None:
    body = {"name": "Cap", "variants": [{name: value for name, value in ONE.items() if name != field}]}
    error = refusal(await api.post("/products", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == f"variants[0].{field}"


async def test_two_different_skus_of_one_variant_are_refused(api: httpx.AsyncClient) -> None:
    body = {"name": "Cap", "variants": [{**ONE, "sku": "A", "inventorySku": "B"}]}
    error = refusal(await api.post("/products", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "variants[0].sku"


async def test_tags_types_and_values_are_stored_once_each_in_their_order(api: httpx.AsyncClient) -> None:
    words = ["new", " cotton ", "new", "NEW", "日本"]
    made = await make_product(api, tags=words, types=words, options=[{"name": "Size", "values": ["M", "L", "M"]}])
    assert made["tags"] == made["types"] == ["new", "cotton", "NEW", "日本"]
    assert made["options"][0]["values"] == ["M", "L"]


async def test_a_taken_product_id_is_a_conflict(api: httpx.AsyncClient) -> None:
    first = await make_product(api, productId="shirt-7")
    body = {"name": "Other", "variants": [ONE], "productId": "shirt-7"}
    error = refusal(await api.post("/products", json=body), 409, "PRODUCT_EXISTS")
    assert error["message"] == "A product with this productId already exists."
    await make_product(api, productId="SHIRT-7")
    assert (await api.get("/products")).json()["meta"]["total"] == 2
    assert (await api.get(f"/products/{first['id']}")).json()["data"] == first


async def test_two_companies_and_two_environments_may_use_the_same_product_id(
    installation: Installation, database: Database
) -> None:
    one, two = await make_company(database), await make_company(database)
    for company_id in (one.live, one.test, two.live):
        async with connect(installation, (await make_key(database, company_id)).raw) as api:
            assert (await api.post("/products", json=EVERYTHING)).status_code == 201
            assert (await api.get("/products")).json()["meta"]["total"] == 1


async def test_a_deleted_product_is_gone_with_its_variants_and_its_product_id_is_free(
    api: httpx.AsyncClient, database: Database
) -> None:
    made = (await api.post("/products", json=EVERYTHING)).json()["data"]
    response = await api.delete(f"/products/{made['id']}")
    assert (response.status_code, response.content) == (204, b"")
    for method in ("GET", "DELETE", "PUT"):
        again = await api.request(method, f"/products/{made['id']}", json={} if method == "PUT" else None)
        assert refusal(again, 404, "NOT_FOUND")["message"] == "resource not found"
    assert (await api.get("/products")).json()["meta"]["total"] == 0
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM variants WHERE product_id = $1", made["id"]) == 0
    anew = await api.post("/products", json=EVERYTHING)
    assert anew.status_code == 201
    assert anew.json()["data"]["id"] != made["id"]


@pytest.mark.parametrize(
    ("method", "scope"),
    [("GET", "products:READ"), ("POST", "products:WRITE"), ("PUT", "products:WRITE"), ("DELETE", "products:DELETE")],
)
async def test_each_call_needs_its_own_scope(
    installation: Installation, database: Database, api: httpx.AsyncClient, method: str, scope: str
) -> None:
    company = await make_company(database)
    others = {"products:READ", "products:WRITE", "products:DELETE"} - {scope}
    path = "/products" if method == "POST" else "/products/prod_01jc9y3q5me8w92v7x4t6r0n1k"
    body = {"POST": {"name": "Cap", "variants": [ONE]}, "PUT": {}}.get(method)
    for scopes, status in ((sorted(others), 403), ([scope], 201 if method == "POST" else 404)):
        async with connect(installation, (await make_key(database, company.live, scopes=scopes)).raw) as caller:
            assert (await caller.request(method, path, json=body)).status_code == status
