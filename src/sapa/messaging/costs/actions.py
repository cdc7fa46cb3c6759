"""Imports rates, and fixes what messages cost."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec.structs import replace

from sapa.db.pool import Connection, Tx
from sapa.messaging.costs import queries
from sapa.messaging.costs.types import (
    ELSEWHERE,
    ChargedMessage,
    CostFigures,
    CostReport,
    CostSelection,
    FoundRate,
    Grouping,
    MessagePricing,
    MessageRate,
    RateImport,
    UnpricedCost,
)
from sapa.values.company import Company
from sapa.values.money import shorten


async def charge(tx: Tx, company: Company, message: ChargedMessage, reported: MessagePricing) -> MessagePricing:
    """Fixes the cost of a message that arrived, by the rate of its day. Call it once for a message."""
    country = reported.country or ELSEWHERE
    rate = await queries.find_rate(tx, company.id, country, reported.category, message.at)
    fixed = add_cost(company, reported, rate)
    await queries.insert_cost(tx, company.id, message, country, fixed)
    return fixed


def add_cost(company: Company, reported: MessagePricing, rate: FoundRate | None) -> MessagePricing:
    """A free message costs 0, whether there is a rate or not."""
    if not reported.billable:
        return replace(reported, amount=Decimal(0), currency=rate.currency if rate else company.currency)
    return replace(reported, amount=shorten(rate.price), currency=rate.currency) if rate else reported


async def price_missing(
    tx: Tx, company: Company, after: str, limit: int
) -> list[tuple[UnpricedCost, FoundRate | None]]:
    """The next costs without an amount, and the rates of their days, if there are any by now. Amounts do not change."""
    found = await queries.lock_unpriced(tx, company.id, after, limit)
    rates = [await queries.find_rate(tx, company.id, cost.country, cost.category, cost.charged_at) for cost in found]
    for cost, rate in zip(found, rates, strict=True):
        if rate is not None:
            await queries.set_amount(tx, company.id, cost.message_id, shorten(rate.price), rate.currency)
    return list(zip(found, rates, strict=True))


async def import_rates(
    tx: Tx, company_id: int | None, rates: Sequence[MessageRate], *, is_complete: bool = False
) -> RateImport:
    """Adds rates and replaces those of the same day; those that the file does not have stay, unless it is complete.
    Costs that are fixed do not change."""
    await queries.lock_rates(tx)
    created, changed = await queries.upsert_rates(tx, company_id, rates)
    removed = await queries.delete_others(tx, company_id, rates) if is_complete else 0
    return RateImport(len(rates), created, changed, removed)


async def list_rates(db: Connection, company_id: int | None) -> list[MessageRate]:
    return await queries.list_rates(db, company_id)


async def get_selection(
    db: Connection, company: Company, first: date | None, last: date | None, days: int
) -> CostSelection:
    """By default `days` days that end today."""
    last = last or await queries.get_today(db, company.id)
    return CostSelection(first or last - timedelta(days=days - 1), last)


async def sum_costs(db: Connection, company: Company, selection: CostSelection) -> list[CostFigures]:
    """By currency."""
    return await queries.list_totals(db, company.id, selection)


async def get_report(db: Connection, company: Company, selection: CostSelection, grouping: Grouping) -> CostReport:
    """Read it in a snapshot: its totals are those of its lines."""
    return CostReport(
        start_date=selection.first.isoformat(),
        end_date=selection.last.isoformat(),
        time_zone=company.time_zone,
        lines=await queries.list_lines(db, company.id, selection, grouping),
        totals=await queries.list_totals(db, company.id, selection),
    )
