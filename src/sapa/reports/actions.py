"""Builds reports; read-only."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from sapa.db.pool import Connection
from sapa.reports import queries
from sapa.reports.types import (
    DayRange,
    MessageStep,
    OrderStep,
    Overview,
    parse_window,
)
from sapa.values.company import Company


async def get_window(db: Connection, company: Company, preset: str, first: str, last: str) -> DayRange:
    """The requested window, by the company's clock."""
    return parse_window(await queries.get_today(db, company.id), preset, first, last)


async def get_overview(db: Connection, company: Company, window: DayRange) -> Overview:
    orders = await queries.list_orders(db, company.id, window)
    return Overview(
        window=window,
        currency=company.currency,
        messages=_fill_messages(window, await queries.list_messages(db, company.id, window)),
        orders=_fill_orders(window, company.currency, orders),
        totals=_sum_by_currency(company.currency, orders),
        endpoints=await queries.list_endpoints(db, company.id, window),
        shipments=await queries.list_shipments(db, company.id, window),
    )


def _fill_messages(window: DayRange, found: Sequence[MessageStep]) -> list[MessageStep]:
    """Adds the steps without messages."""
    by_start = {step.at: step for step in found}
    return [by_start.get(at) or MessageStep(at, 0, 0, 0, 0, 0) for at in window.steps]


def _fill_orders(window: DayRange, currency: str, found: Sequence[OrderStep]) -> list[OrderStep]:
    by_start = {step.at: step for step in found if step.currency == currency}
    return [by_start.get(at) or OrderStep(at, currency, 0, 0, 0, Decimal(0)) for at in window.steps]


def _sum_by_currency(currency: str, found: Sequence[OrderStep]) -> list[OrderStep]:
    by_currency: dict[str, list[OrderStep]] = defaultdict(list)
    for step in found:
        by_currency[step.currency].append(step)
    by_currency.setdefault(currency, [])
    ordered = sorted(by_currency, key=lambda name: (name != currency, name))
    return [_total(name, by_currency[name]) for name in ordered]


def _total(currency: str, steps: Sequence[OrderStep]) -> OrderStep:
    return OrderStep(
        at="",
        currency=currency,
        orders=sum(step.orders for step in steps),
        cancelled=sum(step.cancelled for step in steps),
        paid=sum(step.paid for step in steps),
        revenue=sum((step.revenue for step in steps), Decimal(0)),
    )
