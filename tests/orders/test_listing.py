import json
import random
from datetime import UTC, datetime
from itertools import product
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.listing import MAX_GATHERED
from sapa.db.pool import Database, open_database
from sapa.orders.api import LAST_TEXT, build_end
from sapa.orders.queries import LISTING
from sapa.values.text_folding import fold
from tests import depth
from tests.conftest import Installation, connect
from tests.customers.test_api import refusal
from tests.db.query_plans import get_range, scans
from tests.factories import Environments, make_company, make_customer, make_key, make_order

RESTORE = "SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', 'orders', 'reltuples', $1::real)"
STATUSES = ["active", "archived", "cancelled", "refunded"]
FULFILLED = ["unfulfilled", "fulfilled"]
PAID = ["pending", "paid", "refunded"]
NAMES = [
    "Ayu Lestari", "AYU lestari", "José Ñandú", "jose nandu", "Straße", "100%", "a_b", "aXb", "O'Neil", 'Say "hi"',
    "a\\b", "Дмитрий Ёлкин", "محمد علي", "日本 太郎", "Ayu 🌸", "Ǆemal", "ﬁnn",
    "  Siti   Nur  ", "web-1", "order_0", "10",
]  # fmt: skip
OWN_IDS = [
    "web-1",
    "web-10",
    "WEB-1",
    "web_1",
    "web%",
    "ü-1",
    "日本-1",
    "🌸1",
    "\U0010ffff1",
    "\ud7ff1",
    "a'b",
    "1001",
    "İ",
]
Order = dict[str, Any]


async def ask(api: httpx.AsyncClient, **query: Any) -> Order:
    response = await api.get("/orders", params=query)
    assert response.status_code == 200, response.text
    page: Order = response.json()
    return page


async def walk(api: httpx.AsyncClient, limit: int = 7, **query: Any) -> list[Order]:
    """Every order of a list, page by page."""
    found: list[Order] = []
    for number in range(1, 100):
        page = await ask(api, **query, limit=limit, page=number)
        found += page["data"]
        meta = page["meta"]
        assert (meta["page"], meta["limit"]) == (number, limit)
        assert meta["hasNextPage"] == (len(found) < meta["total"])
        if not meta["hasNextPage"]:
            assert meta["total"] == len(found)
            return found
    raise AssertionError("the list does not end")


def newest_first(orders: list[Order]) -> list[Order]:
    return sorted(orders, key=lambda order: (order["createdAt"], order["id"]), reverse=True)


async def make_crowd(api: httpx.AsyncClient, database: Database, company: Environments) -> list[Order]:
    """Orders with unusual names and ids in every state within three transitions, some of the same instant."""
    chance = random.Random(7)
    customers = [await make_customer(api, firstName=name) for name in NAMES]
    customers.append(await make_customer(api, firstName="Ayu", lastName="Wulandari"))
    customers.append(await make_customer(api, lastName="Lestari"))
    moves: list[Order] = [
        *({"status": status} for status in STATUSES), {"fulfillmentStatus": "fulfilled"}, {"financialStatus": "paid"},
        {"financialStatus": "refunded"},
    ]  # fmt: skip
    for number in range(60):
        own = {"orderId": OWN_IDS[number]} if number < len(OWN_IDS) else {}
        customer = None if number % 9 == 8 else customers[number % len(customers)]["id"]
        made = await make_order(api, customerId=customer, **own)
        for move in chance.sample(moves, 3):
            await api.put(f"/orders/{made['id']}", json=move)
        at = datetime(2026, 1, 1 + number // 4, tzinfo=UTC)
        async with database.connection() as db:
            await db.execute(
                "UPDATE orders SET created_at = $3 WHERE company_id = $1 AND id = $2", company.live, made["id"], at
            )
    return newest_first((await ask(api, limit=100))["data"])


def has_text(order: Order, term: str) -> bool:
    """A naive search: ids by their beginning, the name by any part, or by a word's beginning for one or two letters."""
    start = lower_ascii(term.strip())
    if any(lower_ascii(order[name]).startswith(start) for name in ("id", "orderId", "orderNumber")):
        return True
    customer = order["customer"] or {"firstName": None, "lastName": None}
    name = fold(f"{customer['firstName'] or ''} {customer['lastName'] or ''}")
    text = fold(term)
    if text.isascii() and text.isalnum() and len(text) <= 2:
        return any(word.startswith(text) for word in name.split(" ")[:4])
    return bool(text) and text in name


def lower_ascii(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)


def fits(order: Order, query: Order) -> bool:
    plain = all(
        order[name] == query[name] for name in ("status", "fulfillmentStatus", "financialStatus") if name in query
    )
    return (
        plain
        and ("search" not in query or has_text(order, query["search"]))
        and ("customerId" not in query or (order["customer"] or {}).get("id") == query["customerId"])
        and order["createdAt"] >= query.get("createdFrom", "")
        and order["createdAt"] <= query.get("createdTo", "Z")
    )


def random_term(chance: random.Random, crowd: list[Order]) -> str:
    order = chance.choice(crowd)
    text: str = chance.choice([order["id"], order["orderId"], order["orderNumber"], *NAMES, *NAMES])
    start = chance.randrange(len(text))
    part = text[start : start + chance.randint(1, 8)] if chance.random() < 0.6 else text[: chance.randint(1, len(text))]
    return chance.choice([part, part.lower(), part.upper()])


async def believe_the_table_to_hold(installation: Installation, rows: int) -> None:
    """The statistics decide whether PostgreSQL searches one company's orders or all."""
    async with open_database(installation.server.owner_url) as owner, owner.connection() as db:
        await db.execute(RESTORE, float(rows))


async def test_searches_and_filters_equal_a_naive_scan(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    crowd = await make_crowd(api, database, company)
    assert len(crowd) == 60
    assert await walk(api) == crowd
    chance = random.Random(11)
    found = 0
    count = depth.examples(200)
    small_from = count * 3 // 4
    for number in range(count):
        if number in (0, small_from):
            await believe_the_table_to_hold(installation, 100 if number else 1_000_000)
        choices: Order = {
            "search": random_term(chance, crowd),
            "status": chance.choice(STATUSES),
            "fulfillmentStatus": chance.choice(FULFILLED),
            "financialStatus": chance.choice(PAID),
            "customerId": (chance.choice(crowd)["customer"] or {"id": "cust_01jc9y3q5me8w92v7x4t6r0n1k"})["id"],
            "createdFrom": chance.choice(crowd)["createdAt"],
            "createdTo": chance.choice(crowd)["createdAt"],
        }
        query = {name: choices[name] for name in chance.sample(list(choices), chance.choice([1, 1, 1, 2, 3]))}
        if number >= small_from:
            query = {name: choices[name] for name in ("search", "status")[: chance.randint(1, 2)]}
        if not query.get("search", "x").strip():
            continue
        expected = [order for order in crowd if fits(order, query)]
        assert await walk(api, chance.choice([3, 20, 100]), **query) == expected, query
        found += bool(expected)
    assert found > count * 3 // 8


async def test_every_combination_of_statuses_has_its_exact_total(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    crowd = await make_crowd(api, database, company)
    for status, fulfilled, paid in product([None, *STATUSES], [None, *FULFILLED], [None, *PAID]):
        filters = {"status": status, "fulfillmentStatus": fulfilled, "financialStatus": paid}
        query = {name: value for name, value in filters.items() if value}
        assert await walk(api, 20, **query) == [order for order in crowd if fits(order, query)], query


@pytest.mark.parametrize(
    ("name", "term", "found"),
    [
        ("Ayu Lestari", "ayu", True), ("Ayu Lestari", "YU LES", True), ("Ayu Lestari", "ayu  lestari", True),
        ("Ayu Lestari", "lestari ayu", False), ("José", "jose", True), ("jose", "JOSÉ", True),
        ("Straße", "STRASSE", True),
        ("100%", "%", True), ("Ayu", "%", False), ("a_b", "_", True), ("aXb", "a_b", False), ("a\\b", "\\", True),
        ("Ayu", "\\", False), ("O'Neil", "o'n", True), ('a"b', '"', True), ("محمد علي", "علي", True),
        ("ДМИТРИЙ", "митр", True), ("Ayu 🌸", "🌸", True), ("日本太郎", "本太", True),
        ("{b}", "{b}", True), ("a,b", ",", True),
        ("Ayu Nur Sari Putri", "a", True), ("Ayu Nur Sari Putri", "NU", True), ("Ayu Nur Sari Putri", "sA", True),
        ("Ayu Nur Sari Putri", "pu", True), ("Ayu Nur Sari Putri", "ri", False), ("José", "jó", True),
        ("Ayu Nur Sari Putri Dewi", "de", False),
        ("Ayu", "\u0301", False), ("Ayu", "\U0010ffff", False), ("NULL", "null", True), ("Ayu", "null", False),
    ],
)  # fmt: skip
async def test_a_name_is_found_by_any_part_in_any_case_with_or_without_accents(
    api: httpx.AsyncClient, name: str, term: str, found: bool
) -> None:
    customer = await make_customer(api, firstName=name)
    made = await make_order(api, customerId=customer["id"], orderId="zz-1")
    await make_order(api)
    page = await ask(api, search=term)
    assert (page["data"], page["meta"]["total"]) == (([made], 1) if found else ([], 0))


async def test_ids_are_found_whole_or_by_their_beginning_in_any_case(api: httpx.AsyncClient) -> None:
    made = await make_order(api, orderId="Web-20431")
    other = await make_order(api, orderId="x")
    for term in (made["id"], made["id"][:-3], "Web-20431", "Web-2", "W", "1001", " Web-20431 ", "web-2", "WEB-20431"):
        assert (await ask(api, search=term))["data"] == [made], term
    for term in ("o", "OR", "order_", "100", "10", "1"):
        assert (await ask(api, search=term))["data"] == [other, made], term
    assert (await ask(api, search=made["id"].upper()))["data"] == [made]
    for term in ("eb", "eb-2", "Web-204311", "01", made["id"] + "0", "20431"):
        assert (await ask(api, search=term))["data"] == [], term


async def test_another_companys_orders_are_not_found(
    api: httpx.AsyncClient, installation: Installation, database: Database, company: Environments
) -> None:
    customer = await make_customer(api, firstName="Ayu")
    await make_order(api, orderId="web-1", customerId=customer["id"])
    for company_id in (company.test, (await make_company(database)).live):
        async with connect(installation, (await make_key(database, company_id)).raw) as other:
            for query in (
                {},
                {"search": "web"},
                {"search": "ayu"},
                {"customerId": customer["id"]},
                {"status": "active"},
            ):
                assert await ask(other, **query) == {
                    "data": [],
                    "meta": {"page": 1, "limit": 20, "total": 0, "hasNextPage": False},
                }


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"), ("limit=101", "limit"), ("page=0", "page"), ("page=1000001", "page"),
        ("status=open", "status"), ("status=active,archived", "status"),
        ("status=active&status=archived", "status"), ("fulfillmentStatus=partial", "fulfillmentStatus"),
        ("financialStatus=voided", "financialStatus"), ("page=", "page"), ("limit=", "limit"), ("search=%20", "search"),
        ("search=" + "x" * 201, "search"), ("customerId=x", "customerId"),
        ("customerId=order_01jc9y3q5me8w92v7x4t6r0n1k", "customerId"), ("createdFrom=2026-01-01", "createdFrom"),
        ("createdTo=x", "createdTo"),
        ("createdFrom=2026-01-02T00:00:00Z&createdTo=2026-01-01T00:00:00Z", "createdFrom"), ("sort=createdAt", "sort"),
        ("fulfilmentStatus=fulfilled", "fulfilmentStatus"),
    ],
)  # fmt: skip
async def test_an_invalid_parameter_is_refused_by_name(api: httpx.AsyncClient, query: str, field: str) -> None:
    response = await api.get(f"/orders?{query}")
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field


async def test_an_empty_filter_is_no_filter(api: httpx.AsyncClient) -> None:
    made = await make_order(api)
    filters = ("search", "status", "fulfillmentStatus", "financialStatus", "customerId", "createdFrom", "createdTo")
    for query in (*(f"{name}=" for name in filters), "search=&status=&page=1", "search"):
        assert (await api.get(f"/orders?{query}")).json()["data"] == [made], query
    repeated = await api.get("/orders?search=&search=")
    assert refusal(repeated, 400, "VALIDATION_ERROR")["details"][0]["field"] == "search"


@pytest.mark.parametrize(
    "query", [{}, {"status": "active"}, {"search": "1001"}, {"createdFrom": "2000-01-01T00:00:00Z"}]
)
async def test_a_page_beyond_the_end_is_empty_and_the_total_stays(api: httpx.AsyncClient, query: Order) -> None:
    await make_order(api)
    for page in (2, 1_000_000):
        beyond = await ask(api, **query, page=page, limit=100)
        assert (beyond["data"], beyond["meta"]["total"], beyond["meta"]["hasNextPage"]) == ([], 1, False)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
STARTS = TEXTS | st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), min_size=1, max_size=3).filter(bool)


@given(STARTS, TEXTS | st.just(""), TEXTS)
def test_a_range_of_texts_holds_exactly_those_with_the_prefix(start: str, rest: str, other: str) -> None:
    def is_within(text: str) -> bool:
        return start.encode() <= text.encode() < build_end(start).encode()

    assert is_within(start + rest)
    assert is_within(other) == other.startswith(start) or build_end(start) == LAST_TEXT


async def test_a_list_has_each_order_byte_for_byte_as_it_is_read_alone(api: httpx.AsyncClient) -> None:
    """The database writes the orders of a list: escaping, numbers and nulls are those of the API."""
    control = "".join(map(chr, range(1, 32)))
    texts = [control, '"\\/<>&\x7f\u2028', "ü日本🌸\U0010ffff", "%s %1$s {} $1", None]
    for number, text in enumerate(texts):
        made = await make_order(
            api,
            customerId=(await make_customer(api, firstName=text))["id"] if text and number else None,
            orderId=f"{number}{text}{number}",
            notes=text,
            tags=[] if text is None else ["a b", '"\\', "ü🌸"],
            shippingAddress=None if text is None else {"address1": text, "city": "Bandung"},
            discounts=[{"code": "L10", "percentage": 33.3333}] if number % 2 else [],
            shippingLines=[{"title": "JNE", "price": 18000.5}],
            taxLines=[{"title": "PPN", "rate": 11, "included": True}],
        )
        await api.post(f"/orders/{made['id']}/payments", json={"amount": 0.05 + number, "method": "cash"})
    await api.post(f"/orders/{made['id']}/refunds", json={"amount": 0.05, "reason": '"\n'})
    await make_order(api)
    listed = (await api.get("/orders")).content
    alone = [(await api.get(f"/orders/{order['id']}")).content for order in (await ask(api))["data"]]
    assert len(alone) == len(texts) + 1
    assert listed.startswith(b'{"data":[' + b",".join(one[len(b'{"data":') : -1] for one in alone) + b"],")


async def test_orders_are_sorted_by_their_total_with_and_without_a_filter(api: httpx.AsyncClient) -> None:
    prices = [30_000, 5_000, 120_000, 5_000, 9_999]
    made = [await make_order(api, lineItems=[{"title": "Kopi", "price": price, "quantity": 1}]) for price in prices]
    await api.put(f"/orders/{made[2]['id']}", json={"status": "cancelled"})

    def place(order: Order) -> tuple[float, str]:
        return order["total"], order["id"]

    totals = [order["total"] for order in await walk(api, limit=2, sort="total:asc")]
    assert totals == sorted(prices)
    falling = await walk(api, limit=2, sort="total:desc")
    assert [order["id"] for order in falling] == [order["id"] for order in sorted(made, key=place, reverse=True)]
    active = await walk(api, limit=2, sort="total:desc", status="active")
    assert [order["total"] for order in active] == [30_000, 9_999, 5_000, 5_000]
    refusal(await api.get("/orders", params={"sort": "total"}), 400, "VALIDATION_ERROR")


MANY = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        subtotal, total_paid, total_refunded, outstanding, currency, line_items, tags, customer_text,
                        recorded_cell)
    SELECT $1, 'order_' || n, n::text, n::text, status, 'fulfilled', 'pending', n, n, 0, 0, n, 'IDR', '[]', '{}', '',
           status || '/fulfilled/pending'
      FROM (SELECT n, CASE WHEN n % 7 = 0 THEN 'cancelled' ELSE 'active' END AS status
              FROM generate_series(1, $2::int) AS n) AS numbered"""
CELLS = """
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT company_id, 'orders', cell, count(*) FROM orders WHERE company_id = $1 GROUP BY company_id, cell"""


class ReadingConnection:
    """Passes everything on, and keeps the statements."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self.statements: list[tuple[str, tuple[object, ...]]] = []

    async def fetch(self, text: str, *parameters: object, **options: Any) -> Any:
        self.statements.append((text, parameters))
        return await self._db.fetch(text, *parameters, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


@pytest.mark.parametrize("count", [70, MAX_GATHERED + 1_000], ids=["few", "many"])
async def test_orders_of_a_status_are_found_by_total_in_one_walk(
    database: Database, company: Environments, count: int
) -> None:
    """Not in one walk for each pair of a fulfillment and a payment status, most of which no order has."""
    async with database.transaction() as tx:
        await tx.execute(MANY, company.live, count)
        await tx.execute(CELLS, company.live)
    cells = [f"active/{fulfilled}/{paid}" for fulfilled, paid in product(FULFILLED, PAID)]
    active = [n for n in range(1, count + 1) if n % 7]
    async with database.connection() as connection:
        db: Any = ReadingConnection(connection)
        for offset in (0, 20):
            found, total = await LISTING.page(db, company.live, {"cells": cells}, "total:asc", 20, offset)
            assert ([json.loads(bytes(order.to_json()))["orderNumber"] for order in found], total) == (
                [str(n) for n in active[offset : offset + 20]], len(active)
            )  # fmt: skip
        for text, parameters in db.statements:
            plan = msgspec.json.decode(await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", *parameters))
            walks = [scan for scan in scans(plan[0]["Plan"], "orders") if "cell" in scan.get("Filter", get_range(scan))]
            assert [scan["Actual Loops"] for scan in walks] == [1]
