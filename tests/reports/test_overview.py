"""A report equals a plain count over the rows, whatever the window."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.access.actions import get_company
from sapa.db.pool import Database
from sapa.reports import actions
from sapa.reports.types import DayRange, Overview, parse_window
from sapa.values.company import Company
from tests.factories import Environments

DAYS = st.dates(date(2024, 1, 1), date(2026, 12, 31))
LAST = date(2026, 7, 31)
STATUSES = ("active", "archived", "cancelled", "refunded")
PAYMENTS = ("pending", "paid", "refunded")
CURRENCIES = ("IDR", "IDR", "IDR", "USD")
STATES = ("draft", "in_transit", "delivered", "cancelled_by_business")
FATES = ("sent", "delivered", "read", "replied", "failed")

Rows = list[dict[str, Any]]

INSERT_ORDER = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        currency, line_items, tags, created_at, customer_text, archived_from)
    VALUES ($1, $2, $2, $2, $3, 'unfulfilled', $4, $5, $6, '[]', '{}', $7, '',
            CASE WHEN $3 = 'archived' THEN 'active' END)"""

INSERT_MESSAGE = """
    INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                          connected_number, type, feature_source, status, created_at, sent_at, delivered_at, read_at,
                          replied_at, failed_at)
    VALUES ($1, $2, $3, 'MAIL', 'c', 'email', 'a@b.co', 'a@b.co', 'c@d.co', 'text', 'api',
            CASE WHEN $3 = 'in' THEN 'received' ELSE 'sent' END, $4, $5, $6, $7, $8, $9)"""


def make_instant(dice: random.Random) -> datetime:
    """Often at the very edge of a day, where mistakes are likely."""
    day = datetime.combine(LAST, datetime.min.time(), UTC) - timedelta(days=dice.randrange(150))
    return day + dice.choice([timedelta(), timedelta(days=1, milliseconds=-1), timedelta(minutes=dice.randrange(1440))])


async def add_orders(database: Database, company_id: int, dice: random.Random) -> Rows:
    rows = [
        {
            "at": make_instant(dice),
            "status": dice.choice(STATUSES),
            "paid": dice.choice(PAYMENTS),
            "total": Decimal(dice.randrange(1, 10**9)).scaleb(-2).normalize(),
            "currency": dice.choice(CURRENCIES),
        }
        for _ in range(400)
    ]
    async with database.transaction() as tx:
        for row in rows:
            total = Decimal(f"{row['total']:f}")
            await tx.execute(
                INSERT_ORDER, company_id, f"order_{uuid4().hex[:26]}", row["status"], row["paid"], total,
                row["currency"], row["at"],
            )  # fmt: skip
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
async def stocked(database: Database, company: Environments) -> tuple[Company, Rows, Rows]:
    dice = random.Random(company.live)
    orders = await add_orders(database, company.live, dice)
    messages = await add_messages(database, company.live, dice)
    async with database.connection() as db:
        return await get_company(db, company.live), orders, messages


async def test_every_window_equals_a_plain_count(database: Database, stocked: tuple[Company, Rows, Rows]) -> None:
    company, orders, messages = stocked
    dice = random.Random(7)
    windows = [DayRange(LAST - timedelta(days=149), LAST), DayRange(LAST, LAST)]
    for _ in range(20):
        first = LAST - timedelta(days=dice.randrange(160))
        windows.append(DayRange(first, first + timedelta(days=dice.randrange(400))))
    async with database.connection() as db:
        for window in windows:
            overview = await actions.get_overview(db, company, window)
            check_orders(overview, [row for row in orders if window.start <= row["at"] < window.end])
            outgoing = [row for row in messages if row["way"] == "out" and window.start <= row["at"] < window.end]
            for fate in FATES:
                counted = Counter(find_step(window, row["at"]) for row in outgoing if row[fate])
                assert {step.at: n for step in overview.messages if (n := getattr(step, fate))} == counted


def check_orders(overview: Overview, rows: Rows) -> None:
    for total in overview.totals:
        own = [row for row in rows if row["currency"] == total.currency]
        paid = [row["total"] for row in own if row["paid"] == "paid"]
        assert (total.orders, total.paid, total.revenue) == (len(own), len(paid), sum(paid))
        assert total.cancelled == sum(row["status"] in {"cancelled", "refunded"} for row in own)
    assert overview.totals[0].currency == "IDR"
    counted = Counter(find_step(overview.window, row["at"]) for row in rows if row["currency"] == "IDR")
    assert {step.at: step.orders for step in overview.orders if step.orders} == counted


def find_step(window: DayRange, at: datetime) -> str:
    return max(step for step in window.steps if step <= at.date().isoformat())


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
            counted[state] += at.date() >= date(2026, 6, 1)
    async with database.connection() as db:
        live = await get_company(db, company.live)
        overview = await actions.get_overview(db, live, DayRange(date(2026, 6, 1), LAST))
    assert {state.state: state.shipments for state in overview.shipments} == +counted
    numbers = [state.shipments for state in overview.shipments]
    assert numbers == sorted(numbers, reverse=True)
