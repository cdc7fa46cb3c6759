"""Orders that are stored together are the same as orders that are placed one by one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from sapa.db.counters import get_total
from sapa.db.pool import Database
from sapa.imports.resources import KINDS
from sapa.imports.work import SMALLEST_BATCH, BatchSize
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_customer, make_key, make_product
from tests.imports.files import list_all, run_import, without_ids, write_ndjson

LINE = {"title": "Kopi", "price": 50000, "quantity": 2}
STEPS: list[dict[str, str]] = [
    {},
    {"financialStatus": "paid"},
    {"financialStatus": "paid", "fulfillmentStatus": "fulfilled"},
    {"status": "cancelled"},
    {"status": "archived", "financialStatus": "paid"},
]
CREATED = "customer.created"
EVENTS = "SELECT kind, body FROM events WHERE company_id = $1 ORDER BY created_at, id"


def build_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(60):
        order: dict[str, Any] = {
            "orderId": f"web-{number}",
            "customer": {"email": f"buyer{number % 9}@example.com", "firstName": "Ayu", "lastName": f"L{number % 9}"},
            "lineItems": [LINE, {"title": "Teh", "price": 7500.5, "quantity": number % 3 + 1}],
            "shippingAddress": {"address1": f"Jl. Merdeka {number}", "city": "Bandung"},
            "tags": ["web"],
            "notes": f"note {number}",
        }
        if number % 4 == 0:
            order |= {
                "discounts": [{"code": "HEMAT", "amount": 1000}],
                "shippingLines": [{"title": "JNE", "price": 9000}],
                "fees": [{"title": "Layanan", "amount": 500}],
                "taxLines": [{"title": "PPN", "rate": 11, "included": number % 8 == 0}],
            }
        rows.append(order)
    return rows


async def test_a_batch_is_the_same_as_single_calls(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    rows = build_rows()
    patches = [STEPS[number % len(STEPS)] for number in range(len(rows))]
    other = await make_company(database)
    async with connect(installation, (await make_key(database, other.live)).raw) as posted:
        for row, patch in zip(rows, patches, strict=True):
            made = await posted.post("/orders", json=row)
            assert made.status_code == 201, made.text
            if patch:
                changed = await posted.put(f"/orders/{made.json()['data']['id']}", json=patch)
                assert changed.status_code == 200, changed.text
        expected = await list_all(posted, "orders")
        people = await list_all(posted, "customers")
    merged = [row | patch for row, patch in zip(rows, patches, strict=True)]
    done = run_import(installation, company.live, write_ndjson(tmp_path / "o.ndjson", merged), "orders")
    assert (done.counts, done.errors) == ((60, 0, 0, 0), [])
    stored = await list_all(api, "orders")
    assert clean(stored) == clean(expected)
    assert [one["orderNumber"] for one in sorted(stored, key=lambda one: int(one["orderId"][4:]))] == [
        str(1001 + number) for number in range(60)
    ]
    customers = await list_all(api, "customers")
    assert sorted(map(repr, without_ids(customers))) == sorted(map(repr, without_ids(people)))
    async with database.connection() as db:
        announced = [json.loads(body) for kind, body in await db.fetch(EVENTS, company.live) if kind == CREATED]
        assert {one["id"]: one for one in announced} == {one["id"]: one for one in customers}
        mine = [row[0] for row in await db.fetch(EVENTS, company.live) if row[0].startswith("order")]
        theirs = [row[0] for row in await db.fetch(EVENTS, other.live) if row[0].startswith("order")]
        assert sorted(mine) == sorted(theirs)
        for cell in ("active/unfulfilled/pending", "cancelled/unfulfilled/pending", "archived/unfulfilled/paid"):
            assert await get_total(db, company.live, "orders", [cell]) == await get_total(
                db, other.live, "orders", [cell]
            )
    history = [(await api.get(f"/orders/{one['id']}/history")).json()["meta"]["total"] for one in stored[:5]]
    assert history == [2 if STEPS[int(one["orderId"][4:]) % 5] else 1 for one in stored[:5]]


TIMES = {"createdAt", "updatedAt", "paidAt"}


def clean(orders: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["orderId"]: _without(without_ids(one)) for one in orders}


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(item) for item in value]
    if isinstance(value, dict):
        return {name: _without(item) for name, item in value.items() if name not in TIMES}
    return value


async def test_rows_that_cannot_be_stored_together_are_stored_alone(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 5, "inventoryQuantity": 3}])
    variant = {"productVariantId": product["variants"][0]["id"], "quantity": 2}
    ayu = await make_customer(api, email="ayu@example.com", phoneNumber="+628123456789")
    await make_customer(api, email="budi@example.com")
    conflicting = {"email": "budi@example.com", "phoneNumber": "+628123456789"}
    rows: list[dict[str, Any]] = [
        {"orderId": "a", "lineItems": [LINE], "customerId": ayu["id"]},
        {"orderId": "b", "lineItems": [variant]},
        {"orderId": "c", "lineItems": [variant]},
        {"orderId": "a", "status": "cancelled"},
        {"orderId": "d", "lineItems": [LINE], "customer": conflicting},
        {"orderId": "e", "lineItems": [LINE], "total": 1},
        {"orderId": "f", "lineItems": [LINE], "customer": {"email": "nobody"}},
        {"orderId": "g", "lineItems": [LINE], "customerId": "cust_0"},
        {"orderId": "h", "lineItems": [LINE], "createdAt": "2999-01-01T00:00:00Z"},
        {"orderId": "i", "lineItems": [LINE], "financialStatus": "partially_paid"},
        {"orderId": "j"},
        {"orderId": "k", "lineItems": [LINE]},
    ]
    done = run_import(installation, company.live, write_ndjson(tmp_path / "o.ndjson", rows), "orders")
    assert done.counts == (3, 1, 0, 8)
    assert [(line, field) for line, field, _ in done.errors] == [
        (3, ""), (5, ""), (6, "total"), (7, "customer.email"), (8, "customerId"), (9, "createdAt"),
        (10, "financialStatus"), (11, "lineItems"),
    ]  # fmt: skip
    stored = {one["orderId"]: one for one in await list_all(api, "orders")}
    assert {name: one["status"] for name, one in stored.items()} == {"a": "cancelled", "b": "active", "k": "active"}
    assert [stored[name]["orderNumber"] for name in "abk"] == ["1001", "1002", "1003"]


async def test_an_import_beside_the_api_loses_no_order_and_no_number(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    rows = [
        {"orderId": f"f{n}", "lineItems": [LINE], "customer": {"email": f"b{n % 5}@example.com"}} for n in range(300)
    ]
    path = write_ndjson(tmp_path / "o.ndjson", rows)
    task = asyncio.create_task(asyncio.to_thread(run_import, installation, company.live, path, "orders"))
    count = 0
    while not task.done():
        body = {"lineItems": [LINE], "customer": {"email": f"b{count % 5}@example.com"}}
        response = await api.post("/orders", json=body)
        assert response.status_code == 201, response.text
        count += 1
    assert (await task).counts == (300, 0, 0, 0)
    async with database.connection() as db:
        numbers = await db.fetch("SELECT order_number::int FROM orders WHERE company_id = $1 ORDER BY 1", company.live)
        assert [row[0] for row in numbers] == list(range(1001, 1301 + count))
        assert await get_total(db, company.live, "orders") == 300 + count
        assert await db.fetchval("SELECT count(*) FROM customers WHERE company_id = $1", company.live) == 5


async def test_a_batch_whose_numbers_are_locked_is_stored_once_they_are_free(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    await api.post("/orders", json={"lineItems": [LINE]})
    path = write_ndjson(tmp_path / "o.ndjson", [{"orderId": f"f{n}", "lineItems": [LINE]} for n in range(30)])
    other = await asyncpg.connect(installation.server.owner_url)
    try:
        async with other.transaction():
            await other.fetchval("SELECT last FROM order_numbers WHERE company_id = $1 FOR UPDATE", company.live)
            task = asyncio.create_task(asyncio.to_thread(run_import, installation, company.live, path, "orders"))
            await asyncio.sleep(1)
            assert not task.done()
        assert (await task).counts == (30, 0, 0, 0)
    finally:
        await other.close()


@pytest.mark.parametrize("count", [1, 2, 40])
async def test_the_same_file_again_changes_nothing(
    installation: Installation, company: Environments, api: httpx.AsyncClient, tmp_path: Path, count: int
) -> None:
    rows = [row | {"financialStatus": "paid"} for row in build_rows()[:count]]
    path = write_ndjson(tmp_path / "o.ndjson", rows)
    run_import(installation, company.live, path, "orders")
    before = await list_all(api, "orders")
    assert run_import(installation, company.live, path, "orders").counts == (0, 0, count, 0)
    assert await list_all(api, "orders") == before


def test_a_transaction_that_waited_does_not_leave_single_rows() -> None:
    size = BatchSize(KINDS["orders"])
    for _ in range(10):
        size.adapt(0.01, size.rows)
    largest = size.rows
    size.adapt(30.0, largest)
    assert SMALLEST_BATCH == size.rows < largest
    for _ in range(10):
        size.adapt(0.01, size.rows)
    assert size.rows == largest
