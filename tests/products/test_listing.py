import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import httpx
import pytest

from sapa.db import counters
from sapa.db.pool import Database
from tests.customers.test_api import refusal
from tests.factories import Environments, make_product

STATUSES = ["active", "draft", "archived"]


async def ask(api: httpx.AsyncClient, query: str | dict[str, Any]) -> dict[str, Any]:
    response = await api.get("/products", params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def walk(api: httpx.AsyncClient, limit: int, **query: Any) -> list[dict[str, Any]]:
    """Every product of a list, page by page."""
    found: list[dict[str, Any]] = []
    for number in range(1, 100):
        page = await ask(api, {**query, "limit": limit, "page": number})
        found += page["data"]
        assert page["meta"]["hasNextPage"] == (len(found) < page["meta"]["total"])
        if not page["meta"]["hasNextPage"]:
            assert page["meta"]["total"] == len(found)
            return found
    raise AssertionError("the list does not end")


async def test_an_empty_list_has_all_of_its_shape(api: httpx.AsyncClient) -> None:
    for query in ({}, {"status": "draft"}, {"search": "x"}, {"tags": "x", "status": "active"}):
        page = await ask(api, query)
        assert page == {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}


async def test_the_newest_comes_first_and_a_change_moves_nothing(api: httpx.AsyncClient) -> None:
    made = [await make_product(api, variants=[{"title": t, "price": 1} for t in "ba"]) for _ in range(21)]
    changed = (await api.put(f"/products/{made[0]['id']}", json={"description": "x"})).json()["data"]
    first, second = await ask(api, {}), await ask(api, {"page": 2})
    assert first["meta"] == {"page": 1, "limit": 20, "total": 21, "hasNextPage": True}
    assert second["meta"] == {"page": 2, "limit": 20, "total": 21, "hasNextPage": False}
    assert first["data"] + second["data"] == [*reversed(made[1:]), changed]


async def test_products_of_the_same_instant_have_one_order_over_all_pages(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    instants = [datetime(2026, 1, 1 + number % 3, tzinfo=UTC) for number in range(12)]
    for number, instant in enumerate(instants):
        made = await make_product(api, tags=["even"] if number % 2 == 0 else [], status=STATUSES[number % 2])
        async with database.connection() as db:
            await db.execute(
                "UPDATE products SET created_at = $3 WHERE company_id = $1 AND id = $2",
                company.live,
                made["id"],
                instant,
            )
    products = (await ask(api, {"limit": 100}))["data"]
    expected = sorted(products, key=lambda one: (one["createdAt"], one["id"]), reverse=True)
    for limit in (1, 5):
        assert await walk(api, limit) == expected
        assert await walk(api, limit, tags="even") == [one for one in expected if one["tags"]]
        assert await walk(api, limit, status="draft") == [one for one in expected if one["status"] == "draft"]
        assert await walk(api, limit, search="product") == expected


async def test_filters_are_combined_and_their_totals_are_exact(api: httpx.AsyncClient) -> None:
    made = []
    for number in range(24):
        own = [tag for tag, step in (("two", 2), ("three", 3)) if number % step == 0]
        name = "Cap" if number % 5 else "Hat"
        fields: dict[str, Any] = {"productId": f"p-{number}", "name": name, "tags": own}
        made.append(await make_product(api, **fields, status=STATUSES[number % 4 % 3]))
    made.reverse()
    for status in (None, *STATUSES):
        for tags in (None, "two", "three,two", "two , two", "none"):
            for search in (None, "CAP", "at"):
                filters = {"status": status, "tags": tags, "search": search}
                query = {name: value for name, value in filters.items() if value}
                expected = [
                    one
                    for one in made
                    if (not status or one["status"] == status)
                    and (not tags or {tag.strip() for tag in tags.split(",")} <= set(one["tags"]))
                    and (not search or search.lower() in one["name"].lower())
                ]
                assert await walk(api, 7, **query) == expected, query


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"), ("limit=101", "limit"), ("page=0", "page"),
        ("status=Active", "status"), ("status=active,draft", "status"), ("search=%20", "search"),
        (f"search={'x' * 201}", "search"), ("search=%CC%81", "search"), ("tags=,", "tags"),
        ("sort=name", "sort"), ("stockAtMost=-1", "stockAtMost"), ("q=x", "q"), ("status=draft&status=draft", "status"),
    ],
)  # fmt: skip
async def test_an_invalid_parameter_is_refused_by_name(api: httpx.AsyncClient, query: str, field: str) -> None:
    response = await api.get(f"/products?{query}")
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field


async def test_a_page_beyond_the_end_is_empty(api: httpx.AsyncClient) -> None:
    await make_product(api)
    for query in ("page=2", "page=1000000&limit=100", "page=2&status=active", "page=3&search=product"):
        page = await ask(api, query)
        assert (page["data"], page["meta"]["total"], page["meta"]["hasNextPage"]) == ([], 1, False), query


async def change_at_random(api: httpx.AsyncClient, random: Random) -> None:
    """Creates a product in some status, changes it, and perhaps deletes it; some calls are refused."""
    made = await make_product(api, status=random.choice(STATUSES))
    path = f"/products/{made['id']}"
    for _ in range(random.randrange(5)):
        assert (await api.put(path, json={"status": random.choice(STATUSES), "name": "N"})).status_code == 200
    if random.random() < 0.4:
        assert {(await api.delete(path)).status_code for _ in range(2)} == {204, 404}
    body = {"name": "Twin", "productId": made["productId"], "variants": [{"title": "M", "price": 1}]}
    await api.post("/products", json=body)


async def test_totals_are_exact_after_many_changes_at_once_while_they_are_folded(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    random = Random(7)
    lives = asyncio.gather(*(change_at_random(api, random) for _ in range(40)))
    while not lives.done():
        await counters.fold(database)
    await lives
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT status, count(*) FROM products WHERE company_id = $1 GROUP BY status", company.live
        )
    counted: dict[str, int] = {row[0]: row[1] for row in rows}
    assert len(counted) == 3
    for status in STATUSES:
        assert len(await walk(api, 100, status=status)) == counted[status]
    assert len(await walk(api, 100)) == sum(counted.values())


async def test_products_are_sorted_by_name_whatever_its_case(api: httpx.AsyncClient) -> None:
    for name, status in (("toraja", "active"), ("Gayo", "draft"), ("Aceh", "active"), ("gayo", "active")):
        await make_product(api, name=name, status=status)
    names = [product["name"].lower() for product in await walk(api, 2, sort="name:asc")]
    assert names == ["aceh", "gayo", "gayo", "toraja"]
    active = [product["name"] for product in await walk(api, 2, sort="name:desc", status="active")]
    assert active == ["toraja", "gayo", "Aceh"]


async def test_products_are_sorted_by_their_lowest_price_and_by_all_of_their_stock(api: httpx.AsyncClient) -> None:
    """A product whose stock is not tracked counts as unlimited."""
    for name, status, variants in (
        ("dear", "active", [(90, 1), (80, None)]),
        ("cheap", "draft", [(100, 4), (5.5, 4)]),
        ("fair", "active", [(20, None)]),
        ("sold out", "active", [(30, 0), (30, 0)]),
    ):
        made = [{"title": f"T{n}", "price": p, "inventoryQuantity": q} for n, (p, q) in enumerate(variants)]
        await make_product(api, name=name, status=status, variants=made)

    async def names(**query: Any) -> list[str]:
        return [product["name"] for product in await walk(api, 3, **query)]

    assert await names(sort="price:asc") == ["cheap", "fair", "sold out", "dear"]
    assert await names(sort="price:desc", status="active") == ["dear", "sold out", "fair"]
    assert await names(sort="stock:asc") == ["sold out", "dear", "cheap", "fair"]
    assert await names(sort="stock:desc") == ["fair", "cheap", "dear", "sold out"]
    assert await names(sort="stock:asc", stockAtMost=1) == ["sold out", "dear"]
    assert await names(stockAtMost=4, status="draft") == ["cheap"]
    assert await names(stockAtMost=3, status="draft") == []


async def test_a_change_of_the_variants_moves_a_product(api: httpx.AsyncClient) -> None:
    still = await make_product(api, variants=[{"title": "A", "price": 10, "inventoryQuantity": 10}])
    moved = await make_product(api, variants=[{"title": "A", "price": 20, "inventoryQuantity": 20}])
    for sort in ("price:asc", "stock:asc"):
        assert [one["id"] for one in await walk(api, 5, sort=sort)] == [still["id"], moved["id"]]
    added = [{"title": "A"}, {"title": "B", "price": 5, "inventoryQuantity": 0}]
    await api.put(f"/products/{moved['id']}", json={"variants": added})
    assert [one["id"] for one in await walk(api, 5, sort="price:asc")] == [moved["id"], still["id"]]
    assert [one["id"] for one in await walk(api, 5, stockAtMost=0)] == [moved["id"]]
