"""Orders that code of earlier versions stored or changed, as in a rolling upgrade: read as if they were complete, and
completed by the worker or by their next change."""

import asyncio
from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx
import pytest

from sapa.db.planning import without_sorting
from sapa.db.pool import Database
from sapa.orders.backfill import queries
from sapa.orders.jobs import backfill_amounts
from tests.factories import Environments, make_order

LINE = (
    '{"id":"li_01jc9y3q5me8w92v7x4t6r0n1k","quantity":3,"price":0.1,"title":"Kopi \\u2028 \\"Gayo\\"",'
    '"productVariant":null}'
)
OLD = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        currency, line_items, tags, customer_text, created_at, updated_at)
    VALUES ($1, $2, $2, $3, 'active', $4, $5, $6, 'IDR', $7, '{}', '', '2026-01-31 09:30Z', '2026-02-01 10:00Z')"""


async def make_old(database: Database, company: Environments, paid: str, fulfilled: str = "unfulfilled") -> str:
    tail = uuid4().hex[:25].translate(str.maketrans("", "", "ilou"))
    id = f"order_0{tail:0<25}"
    async with database.transaction() as tx:
        await tx.execute(OLD, company.live, id, id, fulfilled, paid, Decimal("0.3"),
                         f"[{LINE}]".encode())  # fmt: skip
        await tx.execute(
            "INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'orders', $2, 1)",
            company.live,
            f"active/{fulfilled}/{paid}",
        )
    return id


async def read(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    response = await api.get(f"/orders/{id}")
    assert response.status_code == 200, response.text
    order: dict[str, Any] = response.json()["data"]
    assert (await api.get("/orders")).json()["data"] == [order]
    return order


@pytest.mark.parametrize(
    ("paid", "amounts"),
    [("pending", (0, 0, 0.3)), ("paid", (0.3, 0, 0)), ("refunded", (0.3, 0.3, 0))],
)
async def test_an_old_order_reads_like_a_new_one_before_and_after_it_is_completed(
    api: httpx.AsyncClient, database: Database, company: Environments, paid: str, amounts: tuple[float, ...]
) -> None:
    id = await make_old(database, company, paid, "fulfilled")
    before = await read(api, id)
    await complete_all(database)
    after = await read(api, id)
    for order in (before, after):
        assert (order["totalPaid"], order["totalRefunded"], order["outstanding"]) == amounts
        assert (order["subtotal"], order["total"], order["discountTotal"]) == (0.3, 0.3, 0)
        [line] = order["lineItems"]
        assert (line["title"], line["total"], line["charged"]) == ('Kopi \u2028 "Gayo"', 0.3, 0.3)
        assert (line["fulfilledQuantity"], line["refundedQuantity"], line["discount"]) == (3, 0, None)
    assert [payment["amount"] for payment in after["payments"]] == ([] if paid == "pending" else [0.3])
    assert [refund["amount"] for refund in after["refunds"]] == ([0.3] if paid == "refunded" else [])
    assert all(one["paidAt"] == "2026-02-01T10:00:00.000Z" for one in after["payments"])
    assert after["updatedAt"] == before["updatedAt"], "it did not change"
    async with database.connection() as db:
        kinds = await db.fetch("SELECT kind FROM order_transactions WHERE company_id = $1 ORDER BY kind", company.live)
    assert [row["kind"] for row in kinds] == {"pending": [], "paid": ["payment"], "refunded": ["payment", "refund"]}[
        paid
    ]


async def count_incomplete(database: Database) -> int:
    async with database.connection() as db:
        found: int = await db.fetchval("SELECT count(*) FROM orders WHERE recorded_cell IS DISTINCT FROM cell")
    return found


async def complete_all(database: Database) -> None:
    while await count_incomplete(database):
        await backfill_amounts(database)
        await asyncio.sleep(0)


async def set_as_before(database: Database, company: Environments, id: str, **statuses: str) -> None:
    """As the code of earlier versions did: the statuses alone."""
    names = ", ".join(f"{name} = ${place}" for place, name in enumerate(statuses, 3))
    async with database.transaction() as tx:
        before = await tx.fetchval("SELECT cell FROM orders WHERE company_id = $1 AND id = $2", company.live, id)
        after = await tx.fetchval(
            f"UPDATE orders SET {names} WHERE company_id = $1 AND id = $2 RETURNING cell",
            company.live, id, *statuses.values(),
        )  # fmt: skip
        for cell, delta in ((before, -1), (after, 1)):
            await tx.execute(
                "INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'orders', $2, $3)",
                company.live, cell, delta,
            )  # fmt: skip


async def test_an_old_order_changes_like_a_new_one(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = await make_old(database, company, "paid")
    pending = (await api.put(f"/orders/{id}", json={"financialStatus": "pending"})).json()["data"]
    assert (pending["totalPaid"], pending["outstanding"]) == (0, 0.3)
    assert pending["payments"][0]["voidedAt"] is not None
    line = {"id": pending["lineItems"][0]["id"], "quantity": 1}
    edited = (await api.put(f"/orders/{id}", json={"lineItems": [line]})).json()["data"]
    assert edited["total"] == 0.1
    history = (await api.get(f"/orders/{id}/history")).json()["data"]
    assert [entry["action"] for entry in history] == ["edited", "updated", "created"]
    assert history[2]["actor"] is None, "who placed it was not stored"


async def test_statuses_that_earlier_code_set_are_recorded_by_the_worker(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    await set_as_before(database, company, id, financial_status="paid", fulfillment_status="fulfilled")
    await complete_all(database)
    order = await read(api, id)
    assert (order["financialStatus"], order["fulfillmentStatus"]) == ("paid", "fulfilled")
    assert (order["totalPaid"], order["outstanding"]) == (order["total"], 0)
    assert [payment["method"] for payment in order["payments"]] == [None]
    assert [line["fulfilledQuantity"] for line in order["lineItems"]] == [
        line["quantity"] for line in order["lineItems"]
    ]
    [entry, _] = (await api.get(f"/orders/{id}/history")).json()["data"]
    assert entry["actor"]["type"] == "system"
    assert (await api.get("/orders?financialStatus=paid")).json()["meta"]["total"] == 1


async def test_statuses_that_earlier_code_set_are_recorded_before_the_next_change(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    total = (await api.put(f"/orders/{id}", json={"financialStatus": "paid"})).json()["data"]["total"]
    await set_as_before(database, company, id, financial_status="pending")
    payment = await api.post(f"/orders/{id}/payments", json={"amount": total, "method": "cash"})
    assert payment.status_code == 201, payment.text
    order = await read(api, id)
    assert [one["voidedAt"] is None for one in order["payments"]] == [False, True]
    await set_as_before(database, company, id, status="refunded", financial_status="refunded")
    refused = await api.post(f"/orders/{id}/payments", json={"amount": 1, "method": "cash"})
    assert refused.json()["error"]["code"] == "INVALID_TRANSITION"
    await complete_all(database)
    order = await read(api, id)
    assert (order["totalRefunded"], [one["amount"] for one in order["refunds"]]) == (total, [total])


async def test_an_order_that_earlier_code_archived_stays_as_it_is(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    await set_as_before(database, company, id, status="archived", archived_from="active")
    before = await read(api, id)
    await complete_all(database)
    assert await read(api, id) == before
    assert len((await api.get(f"/orders/{id}/history")).json()["data"]) == 1


async def test_with_nothing_to_complete_the_worker_looks_at_one_index(
    database: Database, company: Environments
) -> None:
    """Whatever the planner takes for the number of such orders."""
    statements: list[tuple[str, list[int]]] = [
        (queries.FIND_COMPANY.text, []),
        (queries.LIST_UNRECORDED.text, [company.live, 500]),
        (queries.COMPLETE_SOME.text, [company.live, 500]),
    ]
    async with database.transaction() as tx, without_sorting(tx):
        for statement, parameters in statements:
            plan = "\n".join(row[0] for row in await tx.fetch(f"EXPLAIN {statement}", *parameters))
            assert "orders_unrecorded_idx" in plan
