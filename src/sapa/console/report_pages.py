"""Reports: overview and agents for any date range, as charts, tables and CSV."""

import csv
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from io import StringIO
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from sapa.access import actions as access
from sapa.analytics import actions as analytics
from sapa.analytics.types import AgentRecord, KindRecord
from sapa.console import charts
from sapa.console.formats import MONTHS
from sapa.console.page_request import PageRequest
from sapa.console.rendering import HEADERS
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.console.translations import translate
from sapa.http.errors import Invalid, NotFound
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.messaging.costs import actions as costs
from sapa.messaging.costs.rate_files import list_cost_rows
from sapa.messaging.costs.types import CostReport, CostSelection, Grouping
from sapa.reports import actions as reports
from sapa.reports.types import PRESETS, DayRange, Overview, ReportWindow
from sapa.values.company import Company
from sapa.values.instants import format_instant
from sapa.values.money import DIGITS
from sapa.values.spreadsheet_cells import escape_formula

SALES_COLUMNS = ("orders", "cancelled_orders", "gross", "discounts", "cancelled", "refunded", "net", "shipping", "fees",
                 "tax", "total", "currency")  # fmt: skip
MONEY_COLUMNS = ("payments", "paid", "refunds", "refunded", "net", "currency")
TRANSACTIONS = 50
"""Payments and refunds on one page."""
FATES = ("sent", "delivered", "read", "replied")
KINDS = {"human": "human agents", "ai": "AI agents"}
GROUPINGS: dict[Grouping, str] = {"day": "day", "template": "template_id", "channel": "source"}
"""What costs are grouped by, and the field of a line that says of what it is."""


@console.get("/{environment}/reports", roles=DEVELOPERS)
async def show_overview(page: PageRequest) -> Response:
    company = await get_company(page)
    window = await read_window(page, company)
    currency = page.session.currency_of_sales(company)
    async with page.context.long_reads.snapshot(company.id) as db:
        overview = await reports.get_overview(db, company, window, currency)
        before = await reports.get_previous_window(db, company, window)
        previous = await reports.get_totals(db, company, before, currency)
    return page.show(
        "reports.html",
        overview=overview,
        present=reports.sum_overview(overview),
        previous=previous,
        before=before,
        drawn=_draw(page, overview),
        orders=partial(_link_orders, page, window),
        transactions=partial(_link_transactions, page, window),
        parcels=partial(_link_parcels, page, window),
        **get_frame(page, window),
    )


@console.get("/{environment}/reports/agents", roles=DEVELOPERS)
async def show_agents(page: PageRequest) -> Response:
    company = await get_company(page)
    window = await read_window(page, company)
    channel = _read_channel(page)
    records, kinds = await _compare(page, window, channel)
    async with page.context.database.connection() as db:
        before = await reports.get_previous_window(db, company, window)
    earlier, _ = await _compare(page, before, channel)
    return page.show(
        "report_agents.html",
        records=records,
        earlier={record.agent_id: record for record in earlier},
        before=before,
        max_samples=analytics.MAX_SAMPLES,
        kinds=kinds,
        names=KINDS,
        drawn=_draw_agents(page, kinds),
        channels=list(CHANNEL_NAMES),
        channel=channel or "",
        **get_frame(page, window),
    )


@console.get("/{environment}/reports/costs", roles=DEVELOPERS)
async def show_costs(page: PageRequest) -> Response:
    company = await get_company(page)
    window, selection, grouping = await _read_costs(page, company)
    async with page.context.long_reads.snapshot(company.id) as db:
        report = await costs.get_report(db, company, selection, grouping)
    return page.show(
        "report_costs.html",
        report=report,
        groupings=GROUPINGS,
        grouping=grouping,
        field=GROUPINGS[grouping],
        chosen=selection.template_id or "",
        drawn=_draw_costs(page, window, report),
        **get_frame(page, window),
    )


@console.get("/{environment}/reports/transactions", roles=DEVELOPERS)
async def show_transactions(page: PageRequest) -> Response:
    """The payments and refunds behind the figures of the money report."""
    company = await get_company(page)
    window = await read_window(page, company)
    params = page.request.query_params
    kind = params.get("kind") if params.get("kind") in {"payment", "refund"} else None
    currency = params.get("currency") if params.get("currency") in DIGITS else None
    number = read_page(page)
    async with page.context.database.connection() as db:
        found, total = await reports.list_transactions(
            db, company, window, kind, currency, TRANSACTIONS, (number - 1) * TRANSACTIONS
        )
    query = {"from": window.first, "to": window.last, "kind": kind or "", "currency": currency or "", "page": number}
    meta = {"page": number, "total": total, "hasNextPage": number * TRANSACTIONS < total}
    return page.show("report_transactions.html", transactions=found, query=query, meta=meta, **get_frame(page, window))


@console.get("/{environment}/reports/files/{id}", roles=DEVELOPERS)
async def download(page: PageRequest) -> Response:
    """One table of a report as a file."""
    part, _, ending = page.request.path_params["id"].partition(".")
    if ending != "csv" or part not in {*PARTS, "agents", "costs"}:
        raise NotFound
    company = await get_company(page)
    window, channel = await read_window(page, company), _read_channel(page)
    _, selection, grouping = await _read_costs(page, company)
    if page.error is not None:
        raise page.error
    if part == "agents":
        records, _ = await _compare(page, window, channel)
        rows = _list_agent_rows(records)
    elif part == "costs":
        async with page.context.long_reads.snapshot(company.id) as db:
            rows = list_cost_rows(await costs.get_report(db, company, selection, grouping), grouping)
    else:
        async with page.context.long_reads.snapshot(company.id) as db:
            overview = await reports.get_overview(db, company, window, page.session.currency_of_sales(company))
        rows = PARTS[part](overview)
    name = f"{part}-{window.first}-{window.last}.csv"
    headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(build_csv(rows), 200, headers, "text/csv; charset=utf-8")


def build_csv(rows: Iterable[Sequence[object]]) -> str:
    """Escapes text that a spreadsheet would run as a formula."""
    written = StringIO()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in row])
    return written.getvalue()


async def get_company(page: PageRequest) -> Company:
    async with page.context.database.connection() as db:
        return await access.get_company(db, page.company_id)


async def read_window(page: PageRequest, company: Company) -> ReportWindow:
    """The date range of the address; the default one, and an error, if it is unusable."""
    params = page.request.query_params
    async with page.context.database.connection() as db:
        try:
            return await reports.get_window(db, company, *(params.get(name, "") for name in ("days", "from", "to")))
        except Invalid as error:
            page.error = error
            return await reports.get_window(db, company, "", "", "")


def read_page(page: PageRequest) -> int:
    """The number of the page of a list."""
    text = page.request.query_params.get("page", "")
    return max(1, int(text)) if text.isdecimal() and len(text) < 7 else 1


def get_frame(page: PageRequest, window: ReportWindow) -> dict[str, Any]:
    """What every report shows above its figures."""
    params = page.request.query_params
    is_preset = not params.get("from") and not params.get("to") and page.error is None
    return {"window": window, "presets": PRESETS, "preset": (params.get("days") or "30") if is_preset else ""}


def _link_orders(page: PageRequest, window: ReportWindow, currency: str, step: int) -> str:
    """The orders behind the figures of a step, or of the whole window for 0."""
    return link_orders(page, currency, *_bounds(window, step))


def link_orders(page: PageRequest, currency: str, start: datetime, end: datetime) -> str:
    """The list of the orders that were placed in this time."""
    return page.path(f"/orders?{urlencode(build_period(start, end) | {'currency': currency})}")


def _link_parcels(page: PageRequest, window: ReportWindow, status: str = "") -> str:
    """The parcels of the window, or those of a state."""
    chosen = {"status": status} if status else {}
    return page.path(f"/shipments?{urlencode(build_period(window.start, window.end) | chosen)}")


def build_period(start: datetime, end: datetime) -> dict[str, str]:
    """The filters of a list for this time; instants have milliseconds."""
    return {"createdFrom": format_instant(start), "createdTo": format_instant(end - timedelta(milliseconds=1))}


def _link_transactions(page: PageRequest, window: ReportWindow, currency: str, step: int, kind: str = "") -> str:
    dates = window.dates
    first, last = (window.first, window.last) if not step else (dates[step - 1], dates[step] - timedelta(days=1))
    query = {"from": first, "to": last, "currency": currency} | ({"kind": kind} if kind else {})
    return page.path(f"/reports/transactions?{urlencode(query)}")


def _bounds(window: ReportWindow, step: int) -> tuple[datetime, datetime]:
    return (window.instants[step - 1], window.instants[step]) if step else (window.start, window.end)


def _draw(page: PageRequest, overview: Overview) -> dict[str, charts.Chart]:
    say = partial(translate, page.language)
    labels = [_shorten_day(page, at, overview.window) for at in overview.window.steps]
    fates = {say(fate): [getattr(step, fate) for step in overview.messages] for fate in FATES}
    states = [(say(state.state).replace("_", " "), [state.shipments]) for state in overview.shipments]
    return {
        "messages": charts.build_lines(labels, fates, page.language),
        "orders": charts.build_columns(labels, say("orders"), [step.orders for step in overview.sales], page.language),
        "sales": charts.build_columns(labels, say("net sales"), [step.net for step in overview.sales], page.language),
        "shipments": charts.build_bars(states, [say("shipments")], page.language),
    }


def _shorten_day(page: PageRequest, at: str, window: DayRange) -> str:
    day = date.fromisoformat(at)
    month = MONTHS[page.language][day.month - 1]
    return f"{month} {day.year}" if window.step == "month" else f"{day.day} {month}"


def _draw_agents(page: PageRequest, kinds: list[KindRecord]) -> dict[str, charts.Chart]:
    say = partial(translate, page.language)
    rows = [
        (say(words), [_read_minutes(getattr(kind, name)) if kind.tickets_handled else None for kind in kinds])
        for name, words in TIMES.items()
    ]
    names = [say(KINDS[kind.agent_type]) for kind in kinds]
    return {
        "tickets": charts.build_bars(
            [(say("conversations"), [kind.tickets_handled for kind in kinds])], names, page.language
        ),
        "times": charts.build_bars(rows, names, page.language),
    }


TIMES = {"first_response_time": "first answer", "avg_response_time": "answer", "resolution_time": "resolution"}
RATINGS = ("average_rating", "ratings")


def _read_channel(page: PageRequest) -> str | None:
    """The channel of the address; all channels, and an error, if it is unknown."""
    name = page.request.query_params.get("channel", "")
    channel = name if name in CHANNEL_NAMES else None
    if name and channel is None:
        page.error = Invalid.field("channel", f"must be one of {', '.join(CHANNEL_NAMES)}")
    return channel


async def _compare(
    page: PageRequest, window: ReportWindow, channel: str | None
) -> tuple[list[AgentRecord], list[KindRecord]]:
    async with page.context.long_reads.snapshot(page.company_id) as db:
        return await analytics.compare(db, page.company_id, window.start, window.end, channel)


async def _read_costs(page: PageRequest, company: Company) -> tuple[ReportWindow, CostSelection, Grouping]:
    """The window, what to sum in it, and by what."""
    window, params = await read_window(page, company), page.request.query_params
    template = params.get("template", "").replace("\0", "") or None
    grouping: Grouping = next((name for name in GROUPINGS if name == params.get("by")), "day")
    return window, CostSelection(window.first, window.last, template), grouping


def _draw_costs(page: PageRequest, window: ReportWindow, report: CostReport) -> tuple[str, charts.Chart] | None:
    """By time, in the currency of which there is most; None for other groups."""
    amounts = {total.currency: total.amount for total in report.totals if total.currency and total.amount}
    currency = max(amounts, key=lambda name: amounts[name] or 0, default=None)
    dated = [line for line in report.lines if line.day and line.currency == currency]
    if currency is None or not dated:
        return None
    starts = window.dates[:-1]
    sums = [Decimal(0)] * len(starts)
    for line in dated:
        sums[bisect_right(starts, date.fromisoformat(line.day or "")) - 1] += line.amount or 0
    labels = [_shorten_day(page, at, window) for at in window.steps]
    return currency, charts.build_columns(labels, translate(page.language, "cost"), sums, page.language)


def _read_minutes(text: str) -> float:
    hours, minutes, seconds = text.split(":")
    return round(int(hours) * 60 + int(minutes) + int(seconds) / 60, 1)


def _list_messages(overview: Overview) -> list[Sequence[object]]:
    return _list_steps(overview, overview.messages, (*FATES, "failed"))


def _list_sales(overview: Overview) -> list[Sequence[object]]:
    return _list_steps(overview, overview.sales, SALES_COLUMNS)


def _list_money(overview: Overview) -> list[Sequence[object]]:
    return _list_steps(overview, overview.money, MONEY_COLUMNS)


def _list_steps(overview: Overview, steps: Sequence[object], names: Sequence[str]) -> list[Sequence[object]]:
    window = overview.window
    rows = [(at, *(getattr(step, name) for name in names)) for at, step in zip(window.steps, steps, strict=True)]
    return [(window.step, *names), *rows]


def _list_webhooks(overview: Overview) -> list[Sequence[object]]:
    names = ("id", "url", "status", "attempts", "delivered", "failed", "milliseconds", "last_at", "waiting")
    return [names, *([getattr(endpoint, name) for name in names] for endpoint in overview.endpoints)]


def _list_shipments(overview: Overview) -> list[Sequence[object]]:
    return [("state", "shipments"), *((state.state, state.shipments) for state in overview.shipments)]


def _list_agent_rows(records: list[AgentRecord]) -> list[Sequence[object]]:
    names = ("agent_id", "agent_name", "agent_type", "tickets_handled", *TIMES, "last_chat_handled", *RATINGS)
    header = [name.removeprefix("avg_") for name in names]
    return [header, *([getattr(record, name) for name in names] for record in records)]


PARTS = {
    "messages": _list_messages,
    "sales": _list_sales,
    "money": _list_money,
    "webhooks": _list_webhooks,
    "shipments": _list_shipments,
}
