"""Payments in parts, and the financialStatus that follows from them."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.orders import actions
from sapa.orders.settlement.types import PaymentIn
from sapa.values.company import Company
from sapa.values.instants import format_instant
from tests.conftest import Installation, connect
from tests.customers.test_api import refusal
from tests.factories import Environments, make_key, make_order

Order = dict[str, Any]


async def pay(api: httpx.AsyncClient, id: str, amount: float, **fields: Any) -> httpx.Response:
    return await api.post(f"/orders/{id}/payments", json={"amount": amount, "method": "bank_transfer", **fields})


async def read(api: httpx.AsyncClient, id: str) -> Order:
    order: Order = (await api.get(f"/orders/{id}")).json()["data"]
    return order


async def list_transactions(database: Database, company: Environments) -> list[tuple[str, float]]:
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT kind, amount FROM order_transactions WHERE company_id = $1 ORDER BY occurred_at, id", company.live
        )
    return [(row["kind"], float(row["amount"])) for row in rows]


@pytest.mark.smoke
async def test_an_order_is_paid_in_parts(api: httpx.AsyncClient, database: Database, company: Environments) -> None:
    id = (await make_order(api))["id"]
    first = await pay(api, id, 50000, reference="BCA-1", paidAt="2026-01-31T16:30:00+07:00")
    assert first.status_code == 201, first.text
    payment = first.json()["data"]
    assert list(payment) == ["id", "amount", "method", "reference", "paidAt", "createdAt", "voidedAt"]
    assert payment["id"].startswith("pay_")
    assert (payment["amount"], payment["method"], payment["reference"]) == (50000, "bank_transfer", "BCA-1")
    assert (payment["paidAt"], payment["voidedAt"]) == ("2026-01-31T09:30:00.000Z", None)
    order = await read(api, id)
    assert (order["financialStatus"], order["totalPaid"], order["outstanding"]) == ("partially_paid", 50000, 100000)
    assert order["payments"] == [payment]
    error = refusal(await pay(api, id, 100000.01), 409, "PAYMENT_EXCEEDS_OUTSTANDING")
    assert "100000" in error["message"]
    assert (await pay(api, id, 100000)).status_code == 201
    order = await read(api, id)
    assert (order["financialStatus"], order["totalPaid"], order["outstanding"]) == ("paid", 150000, 0)
    refusal(await pay(api, id, 0.01), 409, "PAYMENT_EXCEEDS_OUTSTANDING")
    assert await list_transactions(database, company) == [("payment", 50000), ("payment", 100000)]
    assert [one["id"] for one in (await api.get("/orders?financialStatus=paid")).json()["data"]] == [id]


async def test_a_payment_with_the_same_reference_is_recorded_once(api: httpx.AsyncClient) -> None:
    id = (await make_order(api))["id"]
    first = await pay(api, id, 150000, reference="r1")
    again = await pay(api, id, 150000.00, reference="r1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    for other in ({"amount": 1}, {"amount": 150000, "method": "cash"}):
        body = {"amount": 1, "method": "bank_transfer", "reference": "r1", **other}
        error = refusal(await api.post(f"/orders/{id}/payments", json=body), 409, "PAYMENT_REFERENCE_USED")
        assert first.json()["data"]["id"] in error["message"]
    other_order = (await make_order(api))["id"]
    assert (await pay(api, other_order, 1, reference="r1")).status_code == 201


async def test_payments_at_once_never_exceed_the_total(api: httpx.AsyncClient) -> None:
    id = (await make_order(api))["id"]
    responses = await asyncio.gather(*(pay(api, id, 40000) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [201] * 3 + [409] * 5
    twins = await asyncio.gather(*(pay(api, id, 30000, reference="same") for _ in range(6)))
    assert sorted(response.status_code for response in twins) == [200] * 5 + [201]
    order = await read(api, id)
    assert (order["totalPaid"], len(order["payments"])) == (150000, 4)


async def test_setting_paid_records_the_outstanding_amount_and_pending_voids_it(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    paid = (await api.put(f"/orders/{id}", json={"financialStatus": "paid"})).json()["data"]
    [payment] = paid["payments"]
    assert (payment["amount"], payment["method"], paid["outstanding"]) == (150000, None, 0)
    assert await list_transactions(database, company) == [("payment", 150000)]
    pending = (await api.put(f"/orders/{id}", json={"financialStatus": "pending"})).json()["data"]
    assert (pending["totalPaid"], pending["outstanding"], pending["financialStatus"]) == (0, 150000, "pending")
    assert pending["payments"][0]["voidedAt"] is not None
    assert await list_transactions(database, company) == []
    await pay(api, id, 50000)
    paid = (await api.put(f"/orders/{id}", json={"financialStatus": "paid"})).json()["data"]
    assert [one["amount"] for one in paid["payments"]] == [150000, 50000, 100000]
    refused = await api.put(f"/orders/{id}", json={"financialStatus": "pending"})
    assert "refunded" in refusal(refused, 409, "INVALID_TRANSITION")["message"]


@pytest.mark.parametrize(
    ("status", "route"),
    [("partially_paid", "POST /orders/{id}/payments"), ("partially_refunded", "POST /orders/{id}/refunds")],
)
async def test_a_part_cannot_be_set(api: httpx.AsyncClient, status: str, route: str) -> None:
    id = (await make_order(api))["id"]
    response = await api.put(f"/orders/{id}", json={"financialStatus": status})
    error = refusal(response, 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "financialStatus"
    assert route in error["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"method": "cash"}, "amount"),
        ({"amount": 0, "method": "cash"}, "amount"),
        ({"amount": -1, "method": "cash"}, "amount"),
        ({"amount": 0.001, "method": "cash"}, "amount"),
        ({"amount": "1", "method": "cash"}, "amount"),
        ({"amount": 1}, "method"),
        ({"amount": 1, "method": ""}, "method"),
        ({"amount": 1, "method": " "}, "method"),
        ({"amount": 1, "method": "cash", "reference": ""}, "reference"),
        ({"amount": 1, "method": "cash", "reference": " "}, "reference"),
        ({"amount": 1, "method": "cash", "paidAt": "yesterday"}, "paidAt"),
        ({"amount": 1, "method": "cash", "paidAt": "2999-01-01T00:00:00Z"}, "paidAt"),
        ({"amount": 1, "method": "cash", "paidAt": "1899-12-31T00:00:00Z"}, "paidAt"),
        ({"amount": 1, "method": "cash", "note": "x"}, "note"),
    ],
)
async def test_a_wrong_payment_is_refused_by_name(api: httpx.AsyncClient, body: Order, field: str) -> None:
    order = await make_order(api)
    response = await api.post(f"/orders/{order['id']}/payments", json=body)
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert await read(api, order["id"]) == order


async def test_cancelled_orders_can_be_paid_and_refunded_ones_cannot(api: httpx.AsyncClient) -> None:
    cancelled, refunded = (await make_order(api))["id"], (await make_order(api))["id"]
    await api.put(f"/orders/{cancelled}", json={"status": "cancelled"})
    assert (await pay(api, cancelled, 1)).status_code == 201
    await api.put(f"/orders/{refunded}", json={"status": "refunded"})
    refusal(await pay(api, refunded, 1), 409, "INVALID_TRANSITION")


async def test_what_a_carrier_collected_is_recorded_once_and_up_to_the_outstanding_amount(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    id = (await make_order(api))["id"]
    await pay(api, id, 50000)
    shop = Company(company.live, "live", "ID", "IDR")
    for _ in range(2):
        collected = PaymentIn(amount=Decimal(120000), method="cod", reference="shp_1")
        async with database.transaction() as tx:
            payment = await actions.record_collected(tx, shop, id, collected)
        assert payment is not None
        assert (payment.amount, payment.method) == (Decimal(100000), "cod")
    order = await read(api, id)
    assert (order["financialStatus"], len(order["payments"])) == ("paid", 2)
    async with database.transaction() as tx:
        more = PaymentIn(amount=Decimal(1), method="cod", reference="shp_2")
        assert await actions.record_collected(tx, shop, id, more) is None


async def test_an_unknown_order_has_no_payments(api: httpx.AsyncClient) -> None:
    refusal(await pay(api, "order_01jc9y3q5me8w92v7x4t6r0n1k", 1), 404, "NOT_FOUND")


async def test_an_order_holds_five_hundred_payments(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    order = await make_order(api)
    await pay(api, order["id"], 1)
    async with database.transaction() as tx:
        await tx.execute(
            """
            UPDATE orders
               SET payments = (SELECT json_agg(p) FROM json_array_elements(payments) p, generate_series(1, 500)),
                   total_paid = 500, outstanding = total - 500
             WHERE company_id = $1 AND id = $2""",
            company.live,
            order["id"],
        )
    refusal(await pay(api, order["id"], 1), 409, "ORDER_FULL")


async def test_a_payment_is_not_in_the_future_by_the_companys_clock(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with connect(installation, (await make_key(database, company.test)).raw) as sandbox:
        id = (await make_order(sandbox))["id"]
        later = format_instant(datetime.now(UTC) + timedelta(days=2))
        error = refusal(await pay(sandbox, id, 1, paidAt=later), 400, "VALIDATION_ERROR")
        assert error["details"] == [{"field": "paidAt", "message": "must not be in the future"}]
        async with database.transaction() as tx:
            await access.move_clock(tx, company.test, timedelta(days=3))
        paid = await pay(sandbox, id, 1, paidAt=later)
    assert (paid.status_code, paid.json()["data"]["paidAt"]) == (201, later)
