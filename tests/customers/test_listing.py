from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.customers.test_api import refusal
from tests.factories import Environments, make_customer

SORTS = ["createdAt", "updatedAt", "firstName", "lastName", "email"]
NAMES = ["Budi", "ayu", None, "Ayu", "budi", "Élan", None, "Zul", "ayu", "", "éclair", "AYU"]


async def ask(api: httpx.AsyncClient, query: str | dict[str, Any]) -> dict[str, Any]:
    response = await api.get("/customers", params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def walk(api: httpx.AsyncClient, limit: int = 5, **query: Any) -> list[dict[str, Any]]:
    """Every customer of a list, page by page."""
    found: list[dict[str, Any]] = []
    for number in range(1, 100):
        page = await ask(api, {**query, "limit": limit, "page": number})
        assert page["meta"]["page"] == number
        assert page["meta"]["limit"] == limit
        found += page["data"]
        assert page["meta"]["hasNextPage"] == (len(found) < page["meta"]["total"])
        if not page["meta"]["hasNextPage"]:
            assert page["meta"]["total"] == len(found)
            return found
    raise AssertionError("the list does not end")


async def set_time(database: Database, company: Environments, id: str, column: str, instant: str) -> None:
    at = datetime.fromisoformat(instant).astimezone(UTC)
    async with database.connection() as db:
        await db.execute(
            f"UPDATE customers SET {column} = $3 WHERE company_id = $1 AND id = $2",
            company.live, id, at,
        )  # fmt: skip


async def test_an_empty_list_has_all_of_its_shape(api: httpx.AsyncClient) -> None:
    assert await ask(api, {}) == {"data": [], "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False}}


async def test_pages_have_twenty_by_default_and_the_latest_change_comes_first(api: httpx.AsyncClient) -> None:
    made = [await make_customer(api) for _ in range(21)]
    changed = (await api.put(f"/customers/{made[0]['id']}", json={"firstName": "Ayu"})).json()["data"]
    first, second = await ask(api, {}), await ask(api, {"page": 2})
    assert first["meta"] == {"page": 1, "limit": 20, "total": 21, "hasNextPage": True}
    assert second["meta"] == {"page": 2, "limit": 20, "total": 21, "hasNextPage": False}
    assert first["data"] + second["data"] == [changed, *reversed(made[1:])]


@pytest.mark.parametrize("query", ["page=3", "page=1000000", "page=1000000&limit=100", "page=2&search=customer"])
async def test_a_page_beyond_the_end_is_empty(api: httpx.AsyncClient, query: str) -> None:
    await make_customer(api)
    page = await ask(api, query)
    assert (page["data"], page["meta"]["total"], page["meta"]["hasNextPage"]) == ([], 1, False)


@pytest.mark.parametrize("query", ["limit=1", "limit=100", "page=1", "page=1&limit=100&sort=email:asc"])
async def test_the_ends_of_the_allowed_ranges_are_allowed(api: httpx.AsyncClient, query: str) -> None:
    assert (await ask(api, query))["meta"]["total"] == 0


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *((f"limit={value}", "limit") for value in ("0", "101", "-1", "abc", "1.0", "1e1", "", "+5", "0x10", "٣")),
        *((f"page={value}", "page") for value in ("0", "-1", "abc", "1.5", "1000001", "9" * 30, "", "1%20", "true")),
        ("sort=name:asc", "sort"), ("sort=email", "sort"), ("sort=email:up", "sort"),
        ("sort=email:ASC", "sort"), ("sort=email:asc,firstName:asc", "sort"), ("sort=email:asc;id", "sort"),
        ("search=%20", "search"), (f"search={'x' * 201}", "search"), ("tags=,", "tags"),
        ("tags=%20,%20", "tags"), ("createdFrom=2026-01-01", "createdFrom"),
        ("createdTo=2026-01-01T00:00:00", "createdTo"), ("updatedFrom=yesterday", "updatedFrom"),
        ("updatedTo=2026-02-30T00:00:00Z", "updatedTo"), ("createdTo=1767225600", "createdTo"),
        ("createdTo=2026-01-01T25:00:00Z", "createdTo"), ("createdFrom=2026-01-01T00:00:00%2B0700", "createdFrom"),
        ("createdFrom=0001-01-01T00:00:00%2B14:00", "createdFrom"),
        ("createdTo=9999-12-31T23:59:59-14:00", "createdTo"),
        ("createdFrom=2026-01-02T00:00:00Z&createdTo=2026-01-01T00:00:00Z", "createdFrom"),
        ("updatedFrom=2026-01-02T00:00:00Z&updatedTo=2026-01-01T00:00:00Z", "updatedFrom"),
        ("q=ayu", "q"), ("Page=1", "Page"), ("page=1&page=1", "page"), ("tags=a&tags=b", "tags"), ("email=a", "email"),
    ],
)  # fmt: skip
async def test_an_invalid_parameter_is_refused_by_name(api: httpx.AsyncClient, query: str, field: str) -> None:
    response = await api.get(f"/customers?{query}")
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field


async def make_crowd(api: httpx.AsyncClient, database: Database, company: Environments) -> list[dict[str, Any]]:
    """Customers with equal, missing and differently written values in every sort."""
    for number, name in enumerate(NAMES):
        reach = {"email": None, "phoneNumber": f"0812345678{number}"} if number % 5 == 4 else {}
        made = await make_customer(api, firstName=name, lastName=NAMES[-number], **reach)
        for column in ("created_at", "updated_at"):
            await set_time(database, company, made["id"], column, f"2026-01-0{1 + number % 3}T00:00:00Z")
    return (await ask(api, {"limit": 100}))["data"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("limit", [1, 5])
async def test_every_sort_is_a_total_order_over_all_pages(
    api: httpx.AsyncClient, database: Database, company: Environments, limit: int
) -> None:
    crowd = await make_crowd(api, database, company)
    for field in SORTS:

        def sort_key(customer: dict[str, Any], field: str = field) -> tuple[bool, str, str]:
            value = customer[field]
            return value is None, (value or "").lower() if field[-2:] != "At" else value, customer["id"]

        ascending = sorted(crowd, key=sort_key)
        for query in ({}, {"tags": "none"}, {"createdFrom": "2026-01-02T00:00:00.000Z"}):
            expected = [one for one in ascending if _fits(one, query)]
            assert await walk(api, limit, sort=f"{field}:asc", **query) == expected
            assert await walk(api, limit, sort=f"{field}:desc", **query) == expected[::-1]


def _fits(customer: dict[str, Any], query: dict[str, str]) -> bool:
    return "tags" not in query and customer["createdAt"] >= query.get("createdFrom", "")


async def test_tags_must_all_be_there(api: httpx.AsyncClient) -> None:
    both = await make_customer(api, tags=["vip", "jakarta", "new"])
    one = await make_customer(api, tags=["vip", "日本"])
    await make_customer(api)
    for tags, found in {
        "vip": [both, one],
        "vip,jakarta": [both],
        "jakarta , vip": [both],
        "vip,vip": [both, one],
        "日本": [one],
        "vip,unknown": [],
        "vi": [],
        "vip%": [],
    }.items():
        page = await ask(api, {"tags": tags, "sort": "createdAt:asc"})
        assert (page["data"], page["meta"]["total"]) == (found, len(found)), tags


@pytest.mark.parametrize("which", ["created", "updated"])
async def test_date_ranges_include_both_ends_in_any_offset(
    api: httpx.AsyncClient, database: Database, company: Environments, which: str
) -> None:
    made = [await make_customer(api) for _ in range(3)]
    instants = ["2026-01-31T09:30:00.122Z", "2026-01-31T09:30:00.123Z", "2026-01-31T09:30:00.124Z"]
    for customer, instant in zip(made, instants, strict=True):
        await set_time(database, company, customer["id"], f"{which}_at", instant)
    ranges = {
        f"{which}From=2026-01-31T09:30:00.123Z": [1, 2],
        f"{which}To=2026-01-31T09:30:00.123Z": [0, 1],
        f"{which}From=2026-01-31T09:30:00.123Z&{which}To=2026-01-31T09:30:00.123Z": [1],
        f"{which}From=2026-01-31T16:30:00.123%2B07:00": [1, 2],
        f"{which}From=2026-01-31T16:30:00.123+07:00": [1, 2],
        f"{which}From=2026-01-31t04:30:00.123-05:00": [1, 2],
        f"{which}To=2026-01-31T09:30:00.1239999z": [0, 1],
        f"{which}From=2026-01-31T09:30:00.123001Z": [2],
        f"{which}From=2026-01-31T09:30:00Z": [0, 1, 2],
        f"{which}To=2026-01-31T09:30:00Z": [],
        f"{which}From=0001-01-01T00:00:00Z&{which}To=9999-12-31T23:59:59Z": [0, 1, 2],
    }
    for query, indexes in ranges.items():
        page = await ask(api, f"{query}&sort={which}At:asc")
        assert [one["id"] for one in page["data"]] == [made[index]["id"] for index in indexes], query
        assert page["meta"]["total"] == len(indexes)


async def test_filters_are_combined_and_their_total_is_exact(api: httpx.AsyncClient) -> None:
    made = []
    for number in range(30):
        tags = [tag for tag, step in (("two", 2), ("three", 3)) if number % step == 0]
        made.append(await make_customer(api, firstName="Ayu" if number % 5 else "Budi", tags=tags))
    query = {
        "search": "AYU",
        "tags": "two,three",
        "createdFrom": made[3]["createdAt"],
        "createdTo": made[27]["createdAt"],
    }
    expected = [made[number] for number in (6, 12, 18, 24)]
    assert await walk(api, 3, sort="createdAt:asc", **query) == expected
    page = await ask(
        api, {**query, "updatedFrom": made[7]["updatedAt"], "updatedTo": made[23]["updatedAt"], "limit": 1}
    )
    assert page["meta"] == {"page": 1, "limit": 1, "total": 2, "hasNextPage": True}
    assert page["data"] == [made[18]]
