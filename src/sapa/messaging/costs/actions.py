"""Imports rates, and fixes what messages cost."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec.structs import replace

from sapa.db.pool import Connection, Tx
from sapa.messaging.costs import queries
from sapa.messaging.costs.queries import RateLookup
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
    NewCost,
    RateImport,
    UnpricedCost,
)
from sapa.values.company import Company
from sapa.values.money import shorten


async def charge(
    tx: Tx, company: Company, charged: Sequence[tuple[ChargedMessage, MessagePricing]]
) -> list[MessagePricing]:
    """Fixes the costs of messages that arrived, by the rates of their days. Call it once for a message."""
    if not charged:
        return []
    lookups = [
        RateLookup(reported.country or ELSEWHERE, reported.category, message.at) for message, reported in charged
    ]
    rates = await queries.find_rates(tx, company.id, lookups)
    fixed = [add_cost(company, reported, rate) for (_, reported), rate in zip(charged, rates, strict=True)]
    costs = [
        NewCost(
            message_id=message.id,
            source=message.source,
            template_id=message.template_id,
            category=pricing.category,
            country=pricing.country or ELSEWHERE,
            is_billable=pricing.billable,
            amount=pricing.amount,
            currency=pricing.currency,
            charged_at=message.at,
        )
        for (message, _), pricing in zip(charged, fixed, strict=True)
    ]
    await queries.insert_costs(tx, company.id, costs)
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
    lookups = [RateLookup(cost.country, cost.category, cost.charged_at) for cost in found]
    rates = await queries.find_rates(tx, company.id, lookups)
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
