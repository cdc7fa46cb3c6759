"""A report equals a plain count over the rows, whatever the window."""

import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.access.actions import change_settings, get_company
from sapa.access.types import CompanySettingsPatch
from sapa.db.pool import Database
from sapa.reports import actions
from sapa.reports.types import DayRange, Overview, parse_window
from sapa.values.company import Company
from tests.factories import Environments

DAYS = st.dates(date(2024, 1, 1), date(2026, 12, 31))
LAST = date(2026, 7, 31)
ZONE = ZoneInfo("America/New_York")
"""Not the default, and with a summer time."""
STATUSES = ("active", "archived", "cancelled", "refunded")
CURRENCIES = ("IDR", "IDR", "IDR", "USD")
STATES = ("draft", "in_transit", "delivered", "cancelled_by_business")
FATES = ("sent", "delivered", "read", "replied", "failed")

Rows = list[dict[str, Any]]

INSERT_ORDER = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        currency, line_items, tags, created_at, customer_text, archived_from, subtotal, discount_total,
                        shipping_total, fee_total, tax_total, removed_goods, removed_shipping, removed_fees,
                        removed_tax, total_paid, total_refunded, outstanding)
    SELECT $1, $2, $2, $2, $3, 'unfulfilled', 'pending', n.total, $4, '[]', '{}', $5, '',
           CASE WHEN $3 = 'archived' THEN $6 END, n.gross, n.discounts, n.shipping, n.fees, n.tax, n.removed_goods,
           n.removed_shipping, n.removed_fees, n.removed_tax, n.total, n.removed, 0
      FROM (SELECT $7::numeric AS gross, $8::numeric AS discounts, $9::numeric AS shipping, $10::numeric AS fees,
                   $11::numeric AS tax, $12::numeric AS removed_goods, $13::numeric AS removed_shipping,
                   $14::numeric AS removed_fees, $15::numeric AS removed_tax,
                   trim_scale($7 - $8 + $9 + $10 + $11) AS total, trim_scale($12 + $13 + $14 + $15) AS removed) AS n"""

INSERT_TRANSACTION = """
    INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, occurred_at)
    VALUES ($1, $2, $2, $3, $4, $5, $6)"""

INSERT_MESSAGE = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, type, feature_source, status, created_at, sent_at, delivered_at, read_at,
                          replied_at, failed_at)
    VALUES ($1, $2, $3, 'MAIL', 'c', 'email', 'a@b.co', 'a@b.co', 'c@d.co', 'text', 'api',
            CASE WHEN $3 = 'in' THEN 'received' ELSE 'sent' END, $4, $5, $6, $7, $8, $9)"""


def make_instant(dice: random.Random) -> datetime:
    """Often at the very edge of a day of the company, where mistakes are likely."""
    day = datetime.combine(LAST, datetime.min.time(), ZONE) - timedelta(days=dice.randrange(150))
    moved = day + dice.choice(
        [timedelta(), timedelta(days=1, milliseconds=-1), timedelta(minutes=dice.randrange(1440))]
    )
    return moved.astimezone(UTC)


def make_amount(dice: random.Random, most: int) -> Decimal:
    return Decimal(f"{Decimal(dice.randrange(most + 1)).scaleb(-2).normalize():f}")


async def add_orders(database: Database, company_id: int, dice: random.Random) -> Rows:
    rows = [make_row(dice) for _ in range(400)]
    async with database.transaction() as tx:
        for row in rows:
            id = f"order_{uuid4().hex[:26]}"
            amounts = [Decimal(f"{row[name].normalize():f}") for name in AMOUNTS]
            await tx.execute(
                INSERT_ORDER, company_id, id, row["status"], row["currency"], row["at"], row["before"], *amounts
            )
    return rows


AMOUNTS = (
    "gross", "discounts", "shipping", "fees", "tax", "removed_goods", "removed_shipping", "removed_fees", "removed_tax",
)  # fmt: skip


def make_row(dice: random.Random) -> dict[str, Any]:
    gross = make_amount(dice, 10**8)
    row = {"gross": gross, "discounts": make_amount(dice, int(gross * 100))}
    row |= {name: make_amount(dice, 10**6) for name in ("shipping", "fees", "tax")}
    parts = {"goods": gross - row["discounts"], **{name: row[name] for name in ("shipping", "fees", "tax")}}
    is_refunded = dice.random() < 0.3
    for name, amount in parts.items():
        row[f"removed_{name}"] = make_amount(dice, int(amount * 100)) if is_refunded else Decimal(0)
    status = dice.choice(STATUSES)
    before = dice.choice(("active", "cancelled", "refunded"))
    return {"at": make_instant(dice), "status": status, "before": before, "currency": dice.choice(CURRENCIES), **row}


async def add_transactions(database: Database, company_id: int, dice: random.Random) -> Rows:
    rows = [
        {
            "at": make_instant(dice),
            "kind": dice.choice(("payment", "payment", "refund")),
            "amount": make_amount(dice, 10**8) + 1,
            "currency": dice.choice(CURRENCIES),
        }
        for _ in range(300)
    ]
    async with database.transaction() as tx:
        for row in rows:
            id = f"pay_{uuid4().hex[:26]}"
            await tx.execute(INSERT_TRANSACTION, company_id, id, row["kind"], row["amount"], row["currency"], row["at"])
    return rows


async def add_messages(database: Database, company_id: int, dice: random.Random) -> Rows:
    rows = [
        {
            "at": make_instant(dice),
            "way": dice.choice(("out", "out", "in")),
            **{fate: dice.random() < 0.5 for fate in FATES},
        }
        for _ in range(300)
    ]
    async with database.transaction() as tx:
        for row in rows:
            fates = [row["at"] if row[fate] else None for fate in FATES]
            await tx.execute(INSERT_MESSAGE, company_id, str(uuid4()), row["way"], row["at"], *fates)
    return rows


@pytest.fixture
async def stocked(database: Database, company: Environments) -> tuple[Company, Rows, Rows, Rows]:
    dice = random.Random(company.live)
    async with database.transaction() as tx:
        await change_settings(tx, company.live, CompanySettingsPatch(time_zone=str(ZONE)))
    orders = await add_orders(database, company.live, dice)
    transactions = await add_transactions(database, company.live, dice)
    messages = await add_messages(database, company.live, dice)
    async with database.connection() as db:
        return await get_company(db, company.live), orders, transactions, messages


async def test_every_window_equals_a_plain_count(database: Database, stocked: tuple[Company, Rows, Rows, Rows]) -> None:
    company, orders, transactions, messages = stocked
    dice = random.Random(7)
    ranges = [DayRange(LAST - timedelta(days=149), LAST), DayRange(LAST, LAST)]
    for _ in range(20):
        first = LAST - timedelta(days=dice.randrange(160))
        ranges.append(DayRange(first, first + timedelta(days=dice.randrange(400))))
    async with database.connection() as db:
        for days in ranges:
            window = await actions.get_window_of(db, company, days)
            start = datetime.combine(days.first, datetime.min.time(), ZONE)
            end = datetime.combine(days.last + timedelta(days=1), datetime.min.time(), ZONE)
            assert (window.start, window.end) == (start, end)
            overview = await actions.get_overview(db, company, window, company.currency)
            check_sales(overview, [row for row in orders if start <= row["at"] < end])
            check_money(overview, [row for row in transactions if start <= row["at"] < end])
            outgoing = [row for row in messages if row["way"] == "out" and start <= row["at"] < end]
            for fate in FATES:
                counted = Counter(find_step(window, row["at"]) for row in outgoing if row[fate])
                found = {window.steps[one.step - 1]: n for one in overview.messages if (n := getattr(one, fate))}
                assert found == counted


def check_sales(overview: Overview, rows: Rows) -> None:
    assert overview.sales_totals[0].currency == "IDR"
    for total in overview.sales_totals:
        own = [row for row in rows if row["currency"] == total.currency]
        kept = [row for row in own if not is_off(row)]
        assert (total.orders, total.cancelled_orders) == (len(own), len(own) - len(kept))
        goods = sum(row["gross"] - row["discounts"] - row["removed_goods"] for row in kept)
        assert (total.gross, total.discounts) == (add(own, "gross"), add(own, "discounts"))
        assert total.refunded == add(own, "removed_goods")
        assert total.net == total.gross - total.discounts - total.cancelled - total.refunded == goods
        for name in ("shipping", "fees", "tax"):
            assert getattr(total, name) == add(kept, name) - add(kept, f"removed_{name}")
        assert total.total == total.net + total.shipping + total.fees + total.tax
    counted = Counter(find_step(overview.window, row["at"]) for row in rows if row["currency"] == "IDR")
    assert {overview.window.steps[one.step - 1]: one.orders for one in overview.sales if one.orders} == counted
    assert sum(one.net for one in overview.sales) == overview.sales_totals[0].net


def check_money(overview: Overview, rows: Rows) -> None:
    for total in overview.money_totals:
        own = [row for row in rows if row["currency"] == total.currency]
        payments = [row["amount"] for row in own if row["kind"] == "payment"]
        refunds = [row["amount"] for row in own if row["kind"] == "refund"]
        assert (total.payments, total.paid) == (len(payments), sum(payments))
        assert (total.refunds, total.refunded) == (len(refunds), sum(refunds))
        assert total.net == sum(payments) - sum(refunds)
    steps: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        if row["currency"] == "IDR":
            sign = 1 if row["kind"] == "payment" else -1
            steps[find_step(overview.window, row["at"])] += sign * row["amount"]
    found = {overview.window.steps[one.step - 1]: one.net for one in overview.money if one.payments or one.refunds}
    assert found == steps


def is_off(row: dict[str, Any]) -> bool:
    status = row["before"] if row["status"] == "archived" else row["status"]
    return status in {"cancelled", "refunded"}


def add(rows: Rows, name: str) -> Decimal:
    return sum((row[name] for row in rows), Decimal(0))


def find_step(window: DayRange, at: datetime) -> str:
    return max(step for step in window.steps if step <= at.astimezone(ZONE).date().isoformat())


@given(DAYS, st.integers(0, 1800))
def test_the_steps_of_a_window_cover_it_and_are_few(first: date, days: int) -> None:
    window = DayRange(first, first + timedelta(days=days))
    steps = [date.fromisoformat(step) for step in window.steps]
    assert steps == sorted(set(steps))
    assert steps[0] <= first
    assert window.last - timedelta(days=31) < steps[-1] <= window.last
    assert len(steps) <= 63


@pytest.mark.parametrize(
    ("parameters", "first", "last"),
    [
        (("", "", ""), date(2026, 7, 2), date(2026, 7, 31)),
        (("7", "", ""), date(2026, 7, 25), date(2026, 7, 31)),
        (("7", "2026-01-01", "2026-01-01"), date(2026, 1, 1), date(2026, 1, 1)),
        (("", "2026-07-01", ""), date(2026, 7, 1), date(2026, 7, 31)),
        (("", "", "2026-02-28"), date(2026, 1, 30), date(2026, 2, 28)),
    ],
)
def test_a_window_is_parsed_from_the_request(parameters: tuple[str, str, str], first: date, last: date) -> None:
    assert parse_window(LAST, *parameters) == DayRange(first, last)


@pytest.mark.smoke
async def test_shipments_are_counted_by_state_in_the_window(database: Database, company: Environments) -> None:
    dice, counted = random.Random(3), Counter[str]()
    insert = """
        WITH counted AS (
            INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'shipments', $3 || '/' || $4, 1)
        )
        INSERT INTO shipments (company_id, id, provider, provider_label, currency, shipping_status, package_handover,
                               insurance, search_text, created_at)
        VALUES ($1, $2, $3, $3, 'IDR', $4, 'PICKUP', false, '', $5)"""
    async with database.transaction() as tx:
        for _ in range(60):
            at, state, provider = make_instant(dice), dice.choice(STATES), dice.choice(("custom", "ev_courier"))
            await tx.execute(insert, company.live, f"shp_{uuid4().hex[:26]}", provider, state, at)
            counted[state] += date(2026, 6, 1) <= at.astimezone(ZoneInfo("Asia/Jakarta")).date() <= LAST
    async with database.connection() as db:
        live = await get_company(db, company.live)
        window = await actions.get_window_of(db, live, DayRange(date(2026, 6, 1), LAST))
        overview = await actions.get_overview(db, live, window, live.currency)
    assert {state.state: state.shipments for state in overview.shipments} == +counted
    numbers = [state.shipments for state in overview.shipments]
    assert numbers == sorted(numbers, reverse=True)
