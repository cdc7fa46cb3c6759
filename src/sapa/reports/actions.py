"""How reports are put together. They change nothing."""

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
    """The window that was asked for, by the company's own clock."""
    return parse_window(await queries.get_today(db, company.id), preset, first, last)


async def get_overview(db: Connection, company: Company, window: DayRange) -> Overview:
    orders = await queries.list_orders(db, company.id, window)
    return Overview(
        window=window,
        currency=company.currency,
        messages=_fill_messages(window, await queries.list_messages(db, company.id, window)),
        orders=_fill_orders(window, company.currency, orders),
        totals=_add_up(company.currency, orders),
        endpoints=await queries.list_endpoints(db, company.id, window),
        shipments=await queries.list_shipments(db, company.id, window),
    )


def _fill_messages(window: DayRange, found: Sequence[MessageStep]) -> list[MessageStep]:
    """A step without messages is one with none of them, not one that is missing."""
    known = {step.at: step for step in found}
    return [known.get(at) or MessageStep(at, 0, 0, 0, 0, 0) for at in window.steps]


def _fill_orders(window: DayRange, currency: str, found: Sequence[OrderStep]) -> list[OrderStep]:
    known = {step.at: step for step in found if step.currency == currency}
    return [known.get(at) or OrderStep(at, currency, 0, 0, 0, Decimal(0)) for at in window.steps]


def _add_up(currency: str, found: Sequence[OrderStep]) -> list[OrderStep]:
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
