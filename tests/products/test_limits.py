import json
from typing import Any

import httpx
import pytest

from tests.customers.test_api import refusal
from tests.factories import make_product


def variants(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"title": f"T{number}", "price": 1, **fields} for number in range(count)]


def texts(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def options(count: int, values: list[str] | None = None) -> list[dict[str, Any]]:
    return [{"name": f"Option {number}", "values": values or []} for number in range(count)]


def build_url(length: int) -> str:
    return "https://x/".ljust(length, "u")


LIMITS: list[tuple[str, Any, Any]] = [
    ("name", "😀" * 255, "x" * 256),
    ("name", " x ", " \t"),
    ("variants", variants(1, title=" x "), variants(1, title="  ")),
    ("description", "é" * 20_000, "x" * 20_001),
    ("media", build_url(2048), build_url(2049)),
    ("media", "HTTP://x", "javascript:alert(1)"),
    ("medias", [build_url(12)] * 100, [build_url(12)] * 101),
    ("medias", [build_url(2048)], [build_url(2049)]),
    ("medias", ["http://x"], ["http://x", "data:text/html,x"]),
    ("variants", variants(1, media=build_url(2048)), variants(1, media=build_url(2049))),
    ("variants", variants(1, media="http://x"), variants(1, media="ftp://x")),
    ("productId", "€" * 255, "€" * 256),
    ("variants", variants(100), variants(101)),
    *(
        ("variants", variants(1, **{field: "😀" * most}), variants(1, **{field: "x" * (most + 1)}))
        for field, most in {"title": 255, "key": 255, "sku": 255, "inventorySku": 255}.items()
    ),
    ("variants", variants(1, inventoryQuantity=1_000_000_000), variants(1, inventoryQuantity=1_000_000_001)),
    ("options", options(20), options(21)),
    ("options", options(1, texts(250)), options(1, texts(251))),
    ("options", options(1, ["x" * 255]), options(1, ["x" * 256])),
    ("options", [{"name": "x" * 255}], [{"name": "x" * 256}]),
    ("tags", texts(250), texts(251)),
    ("tags", ["😀" * 100], ["x" * 101]),
    ("types", texts(250), texts(251)),
    ("types", ["😀" * 100], ["x" * 101]),
]


@pytest.mark.parametrize(("field", "fits", "exceeds"), LIMITS, ids=[f"{n} {row[0]}" for n, row in enumerate(LIMITS)])
async def test_each_limit_is_where_the_document_says(
    api: httpx.AsyncClient, field: str, fits: Any, exceeds: Any
) -> None:
    body = {"name": "Cap", "variants": variants(1)}
    over = await api.post("/products", json={**body, field: exceeds})
    assert field in refusal(over, 400, "VALIDATION_ERROR")["details"][0]["field"]
    made = await api.post("/products", json={**body, field: fits})
    assert made.status_code == 201, made.text
    path = f"/products/{made.json()['data']['id']}"
    assert (await api.get(path)).json() == made.json()
    if field != "productId":
        response = await api.put(path, json={field: exceeds})
        assert field in refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"]
        assert (await api.put(path, json={field: fits})).json() == made.json()


async def test_a_product_of_the_largest_body_is_stored(api: httpx.AsyncClient) -> None:
    wide = variants(100, media=build_url(2048), sku="s" * 255, key="k" * 255)
    body = {"name": "x" * 255, "description": "é" * 20_000, "medias": [build_url(2048)] * 100, "variants": wide}
    assert 400_000 < len(json.dumps(body)) < 1_048_576
    made = await make_product(api, **body)
    assert made["variants"][99]["media"] == build_url(2048)
    assert (await api.get(f"/products/{made['id']}")).json()["data"] == made
