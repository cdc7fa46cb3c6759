"""Reports: overview and agents for any date range, as charts, tables and CSV."""

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from io import StringIO
from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.analytics import actions as analytics
from sapa.analytics.types import AgentRecord, KindRecord
from sapa.console import charts
from sapa.console.rendering import HEADERS
from sapa.console.routes import DEVELOPERS, PageRequest, console
from sapa.console.translations import translate
from sapa.http.errors import Invalid, NotFound
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.reports import actions as reports
from sapa.reports.types import PRESETS, DayRange, Overview
from sapa.values.company import Company

FATES = ("sent", "delivered", "read", "replied")
KINDS = {"human": "human agents", "ai": "AI agents"}


@console.get("/{environment}/reports", roles=DEVELOPERS)
async def show_overview(page: PageRequest) -> Response:
    company = await _get_company(page)
    window = await _read_window(page, company)
    async with page.context.long_reads.snapshot(company.id) as db:
        overview = await reports.get_overview(db, company, window)
    return page.show("reports.html", overview=overview, drawn=_draw(page, overview), **_frame(page, window))


@console.get("/{environment}/reports/agents", roles=DEVELOPERS)
async def show_agents(page: PageRequest) -> Response:
    window = await _read_window(page, await _get_company(page))
    channel = _read_channel(page)
    records, kinds = await _compare(page, window, channel)
    return page.show(
        "report_agents.html",
        records=records,
        kinds=kinds,
        names=KINDS,
        drawn=_draw_agents(page, kinds),
        channels=list(CHANNEL_NAMES),
        channel=channel or "",
        **_frame(page, window),
    )


@console.get("/{environment}/reports/files/{id}", roles=DEVELOPERS)
async def download(page: PageRequest) -> Response:
    """One table of a report as a file."""
    part, _, ending = page.request.path_params["id"].partition(".")
    if ending != "csv" or part not in {*PARTS, "agents"}:
        raise NotFound
    company = await _get_company(page)
    window, channel = await _read_window(page, company), _read_channel(page)
    if page.error is not None:
        raise page.error
    if part == "agents":
        records, _ = await _compare(page, window, channel)
        rows = _list_agent_rows(records)
    else:
        async with page.context.long_reads.snapshot(company.id) as db:
            rows = PARTS[part](await reports.get_overview(db, company, window))
    name = f"{part}-{window.first}-{window.last}.csv"
    headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(build_csv(rows), 200, headers, "text/csv; charset=utf-8")


def build_csv(rows: Iterable[Sequence[object]]) -> str:
    """Marks text that a spreadsheet would run as a formula."""
    written = StringIO()
    writer = csv.writer(written)
    for row in rows:
        writer.writerow([f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" else cell for cell in row])
    return written.getvalue()


async def _get_company(page: PageRequest) -> Company:
    async with page.context.database.connection() as db:
        return await access.get_company(db, page.company_id)


async def _read_window(page: PageRequest, company: Company) -> DayRange:
    """The date range of the address; the default one, and an error, if it is unusable."""
    params = page.request.query_params
    async with page.context.database.connection() as db:
        try:
            return await reports.get_window(db, company, *(params.get(name, "") for name in ("days", "from", "to")))
        except Invalid as error:
            page.error = error
            return await reports.get_window(db, company, "", "", "")


def _frame(page: PageRequest, window: DayRange) -> dict[str, Any]:
    """What both reports show above the charts."""
    params = page.request.query_params
    is_preset = not params.get("from") and not params.get("to") and page.error is None
    return {"window": window, "presets": PRESETS, "preset": (params.get("days") or "30") if is_preset else ""}


def _draw(page: PageRequest, overview: Overview) -> dict[str, charts.Chart]:
    say = partial(translate, page.language)
    labels = [_shorten_day(step.at, overview.window) for step in overview.messages]
    fates = {say(fate): [getattr(step, fate) for step in overview.messages] for fate in FATES}
    states = [(say(state.state).replace("_", " "), [state.shipments]) for state in overview.shipments]
    return {
        "messages": charts.build_lines(labels, fates),
        "orders": charts.build_columns(labels, say("orders"), [step.orders for step in overview.orders]),
        "revenue": charts.build_columns(labels, say("revenue"), [step.revenue for step in overview.orders]),
        "shipments": charts.build_bars(states, [say("shipments")]),
    }


def _shorten_day(at: str, window: DayRange) -> str:
    return at[:7] if window.step == "month" else at[5:]


def _draw_agents(page: PageRequest, kinds: list[KindRecord]) -> dict[str, charts.Chart]:
    say = partial(translate, page.language)
    rows = [
        (say(words), [round(_read_duration(getattr(kind, name)) / 60, 1) for kind in kinds])
        for name, words in TIMES.items()
    ]
    names = [say(KINDS[kind.agent_type]) for kind in kinds]
    return {
        "tickets": charts.build_bars([(say("tickets"), [kind.tickets_handled for kind in kinds])], names),
        "times": charts.build_bars(rows, names),
    }


TIMES = {"first_response_time": "first answer", "avg_response_time": "answer", "resolution_time": "resolution"}


def _read_channel(page: PageRequest) -> str | None:
    """The channel of the address; all channels, and an error, if it is unknown."""
    name = page.request.query_params.get("channel", "")
    channel = name if name in CHANNEL_NAMES else None
    if name and channel is None:
        page.error = Invalid.field("channel", f"must be one of {', '.join(CHANNEL_NAMES)}")
    return channel


async def _compare(
    page: PageRequest, window: DayRange, channel: str | None
) -> tuple[list[AgentRecord], list[KindRecord]]:
    async with page.context.long_reads.snapshot(page.company_id) as db:
        return await analytics.compare(db, page.company_id, window.start, window.end, channel)


def _read_duration(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def _list_messages(overview: Overview) -> list[Sequence[object]]:
    rows = [(step.at, step.sent, step.delivered, step.read, step.replied, step.failed) for step in overview.messages]
    return [(overview.window.step, *FATES, "failed"), *rows]


def _list_orders(overview: Overview) -> list[Sequence[object]]:
    rows = [(step.at, step.orders, step.cancelled, step.paid, step.revenue, step.currency) for step in overview.orders]
    return [(overview.window.step, "orders", "cancelled_or_refunded", "paid", "revenue", "currency"), *rows]


def _list_webhooks(overview: Overview) -> list[Sequence[object]]:
    names = ("id", "url", "status", "attempts", "delivered", "failed", "milliseconds", "last_at", "waiting")
    return [names, *([getattr(endpoint, name) for name in names] for endpoint in overview.endpoints)]


def _list_shipments(overview: Overview) -> list[Sequence[object]]:
    return [("state", "shipments"), *((state.state, state.shipments) for state in overview.shipments)]


def _list_agent_rows(records: list[AgentRecord]) -> list[Sequence[object]]:
    names = ("agent_id", "agent_name", "agent_type", "tickets_handled", *TIMES, "last_chat_handled")
    return [names, *([getattr(record, name) for name in names] for record in records)]


PARTS = {
    "messages": _list_messages,
    "orders": _list_orders,
    "webhooks": _list_webhooks,
    "shipments": _list_shipments,
}
