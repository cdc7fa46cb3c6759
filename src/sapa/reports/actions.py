"""Builds reports; read-only."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from msgspec.structs import fields

from sapa.db.pool import Connection
from sapa.http.errors import Invalid
from sapa.reports import queries
from sapa.reports.types import (
    AgentRating,
    ArticleOrder,
    CarrierShipments,
    ChannelMessages,
    DayRange,
    DaySales,
    EndpointHealth,
    EndpointHour,
    MessageStep,
    MoneyStep,
    OrderTransaction,
    Overview,
    PeriodTotals,
    ProductSales,
    ReportConversation,
    ReportWindow,
    SalesStep,
    parse_window,
)
from sapa.values.company import Company

Step = TypeVar("Step", SalesStep, MoneyStep)

HEALTH_PERIOD = timedelta(hours=24)
MAX_GROUPS = 100
MAX_ORDERS = 200_000
"""Whose lines are read at once: those of a million take longer than a statement may."""


async def get_window(db: Connection, company: Company, preset: str, first: str, last: str) -> ReportWindow:
    """The requested window, by the company's clock and time zone."""
    days = parse_window(await queries.get_today(db, company.id), preset, first, last)
    return await get_window_of(db, company, days)


async def get_window_of(db: Connection, company: Company, days: DayRange) -> ReportWindow:
    dateless = ReportWindow(days.first, days.last, company.time_zone, [])
    instants = await queries.list_midnights(db, company.id, dateless.dates)
    return ReportWindow(days.first, days.last, company.time_zone, instants)


async def get_overview(db: Connection, company: Company, window: ReportWindow, currency: str) -> Overview:
    """With the sales and the money of each step in this currency, and the sums of all currencies."""
    sales = await queries.list_sales(db, company.id, window)
    money = await queries.list_money(db, company.id, window)
    return Overview(
        window=window,
        currency=currency,
        messages=_fill_messages(window, await queries.list_messages(db, company.id, window)),
        sales=_fill(SalesStep, window, currency, sales),
        sales_totals=_sum_by_currency(SalesStep, currency, sales),
        money=_fill(MoneyStep, window, currency, money),
        money_totals=_sum_by_currency(MoneyStep, currency, money),
        endpoints=await queries.list_endpoints(db, company.id, window.start, window.end),
        shipments=await queries.list_shipments(db, company.id, window),
    )


async def get_previous_window(db: Connection, company: Company, window: ReportWindow) -> ReportWindow:
    """As many days, right before the window."""
    length = timedelta(days=window.days)
    return await get_window_of(db, company, DayRange(window.first - length, window.first - timedelta(days=1)))


async def get_totals(db: Connection, company: Company, window: ReportWindow, currency: str) -> PeriodTotals:
    sales = await queries.sum_sales(db, company.id, window, currency)
    money = _sum_by_currency(MoneyStep, currency, await queries.list_money(db, company.id, window))
    shipments = await queries.list_shipments(db, company.id, window)
    return PeriodTotals(
        await queries.count_sent(db, company.id, window),
        sales.orders,
        sales.net,
        money[0].net,
        sum(state.shipments for state in shipments),
    )


def sum_overview(overview: Overview) -> PeriodTotals:
    return PeriodTotals(
        sum(step.sent for step in overview.messages),
        overview.sales_totals[0].orders,
        overview.sales_totals[0].net,
        overview.money_totals[0].net,
        sum(state.shipments for state in overview.shipments),
    )


async def list_products(
    db: Connection, company: Company, window: ReportWindow, currency: str, max_orders: int = MAX_ORDERS
) -> list[ProductSales]:
    """What brought most, first. Raises Invalid when the window has too many orders to read their lines."""
    await _check_orders(db, company, window, max_orders)
    return await queries.list_products(db, company.id, window, currency, MAX_GROUPS)


async def list_article_orders(
    db: Connection, company: Company, window: ReportWindow, currency: str, article: str, limit: int, offset: int
) -> list[ArticleOrder]:
    """The orders behind an article's figures, newest first. Raises Invalid like `list_products`."""
    await _check_orders(db, company, window, MAX_ORDERS)
    return await queries.list_article_orders(db, company.id, window, currency, article, limit, offset)


async def _check_orders(db: Connection, company: Company, window: ReportWindow, most: int) -> None:
    if await queries.has_more_orders(db, company.id, window, most):
        raise Invalid.field("from", f"must be later: these days have more than {most:,} orders")


async def list_channel_conversations(
    db: Connection, company: Company, window: ReportWindow, source: str, limit: int, offset: int
) -> list[ReportConversation]:
    """The conversations with messages of the channel in the window, whatever their status; the latest first."""
    return await queries.list_channel_conversations(db, company.id, window, source, limit, offset)


async def list_agent_conversations(
    db: Connection,
    company: Company,
    window: ReportWindow,
    agent_id: int,
    sources: Sequence[str] | None,
    limit: int,
    offset: int,
) -> list[ReportConversation]:
    """The conversations that the agent handled in the window, whatever their status; the latest first."""
    return await queries.list_agent_conversations(db, company.id, window, agent_id, sources, limit, offset)


async def list_agent_ratings(
    db: Connection,
    company: Company,
    window: ReportWindow,
    agent_id: int,
    sources: Sequence[str] | None,
    limit: int,
    offset: int,
) -> list[AgentRating]:
    """What customers rated in the window of the agent's conversations; the latest first."""
    return await queries.list_agent_ratings(db, company.id, window, agent_id, sources, limit, offset)


async def compare_channels(
    db: Connection, company: Company, window: ReportWindow, before: ReportWindow
) -> tuple[list[ChannelMessages], list[ChannelMessages]]:
    """Of the window, and of the one right before it."""
    found = await queries.list_channels(db, company.id, before.start, window.start, window.end)
    return [one for one in found if not one.is_earlier], [one for one in found if one.is_earlier]


async def list_carriers(
    db: Connection, company: Company, window: ReportWindow, currency: str
) -> list[CarrierShipments]:
    """With the fees in this currency."""
    return await queries.list_carriers(db, company.id, window, currency, MAX_GROUPS)


async def list_endpoint_health(db: Connection, company_id: int) -> list[EndpointHealth]:
    """How the deliveries of each webhook endpoint went in the last 24 hours."""
    now = datetime.now(UTC)
    return await queries.list_endpoints(db, company_id, now - HEALTH_PERIOD, now + timedelta(seconds=1))


async def list_endpoint_hours(db: Connection, company_id: int, endpoint_id: str, start: datetime) -> list[EndpointHour]:
    """Each of the hours since `start`, also those without attempts; then all of them together."""
    hours = round(HEALTH_PERIOD / timedelta(hours=1))
    found = await queries.list_endpoint_hours(db, company_id, endpoint_id, start, start + HEALTH_PERIOD)
    by_hour = {one.hour: one for one in found}
    return [by_hour.get(hour) or EndpointHour(hour, 0, 0, None, None) for hour in (*range(hours), None)]


async def list_recent_sales(
    db: Connection, company_id: int, currency: str | None, days: int, newest: int = 0
) -> list[DaySales]:
    """What was sold on each of so many days until today, the latest first; without the `newest` so many. Without a
    currency in the company's."""
    return await queries.list_recent_sales(db, company_id, days, newest, currency)


async def list_transactions(
    db: Connection,
    company: Company,
    window: ReportWindow,
    kind: str | None,
    currency: str | None,
    limit: int,
    offset: int,
) -> tuple[list[OrderTransaction], int]:
    """The payments and refunds behind the figures: one page, newest first, and the total."""
    return await queries.list_transactions(db, company.id, window, kind, currency, limit, offset)


def _fill_messages(window: ReportWindow, found: Sequence[MessageStep]) -> list[MessageStep]:
    """Adds the steps without messages."""
    by_number = {step.step: step for step in found}
    return [by_number.get(n) or MessageStep(n, 0, 0, 0, 0, 0) for n, _ in enumerate(window.steps, start=1)]


def _fill(kind: type[Step], window: ReportWindow, currency: str, found: Sequence[Step]) -> list[Step]:
    by_number = {step.step: step for step in found if step.currency == currency}
    return [by_number.get(n) or _sum(kind, n, currency, []) for n, _ in enumerate(window.steps, start=1)]


def _sum_by_currency(kind: type[Step], currency: str, found: Sequence[Step]) -> list[Step]:
    by_currency: dict[str, list[Step]] = defaultdict(list)
    for step in found:
        by_currency[step.currency].append(step)
    by_currency.setdefault(currency, [])
    ordered = sorted(by_currency, key=lambda name: (name != currency, name))
    return [_sum(kind, 0, name, by_currency[name]) for name in ordered]


def _sum(kind: type[Step], number: int, currency: str, steps: Sequence[Step]) -> Step:
    """Every figure of the steps added up."""
    figures: list[Any] = [
        sum((getattr(step, field.name) for step in steps), Decimal(0) if field.type is Decimal else 0)
        for field in fields(kind)[2:]
    ]
    return kind(number, currency, *figures)
