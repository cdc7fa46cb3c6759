"""Home: today's numbers, what needs somebody now, and the first steps of a new shop."""

from asyncio import gather
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from sapa.access import actions as access
from sapa.backups.actions import get_state
from sapa.backups.types import BackupState
from sapa.console.charts import build_curve
from sapa.console.inbox_pages import read_clock
from sapa.console.inbox_queue import ask, read_people, read_team
from sapa.console.page_request import PageRequest
from sapa.console.report_pages import link_orders
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.console.routes import console, go_to, set_cookie
from sapa.console.shop_pages import LOW_STOCK
from sapa.http.endpoints import Base
from sapa.messaging.channel_status import actions as channel_status
from sapa.messaging.connections.environment import get_environment
from sapa.people import actions as people
from sapa.people.types import Role
from sapa.reports import actions as reports
from sapa.reports.types import DaySales

RECENT_DAYS = 2
"""Today and yesterday."""
CURVE_DAYS = 14
CURVE_SECONDS = 300.0
"""How long the days before yesterday are cached: they are many orders to read, and hardly change."""
NEW_DAYS = 7
"""How long a company sees the first steps."""
HIDDEN_COOKIE = "sapa_steps_hidden_"
WAITING = {"waiting": "true", "snoozed": "false", "sort": "waitingSince:asc", "limit": "2"}
MAX_NAMED = 2
TO_PAY = {"status": "active", "financialStatus": "pending"}
REJECTED = {"status": "REJECTED", "limit": str(MAX_NAMED)}


class SetupStep(Struct, frozen=True):
    """One of the first steps."""

    label: str
    path: str
    is_done: bool


class SalesFigure(Struct, frozen=True):
    """A number of today beside yesterday's, and a curve of the last days."""

    label: str
    today: str
    link: str
    yesterday: str
    """Until this time of the day, as are the orders behind the link."""
    earlier_link: str
    change: int | None
    """In percent of yesterday's."""
    points: str
    days: list[str]
    """The oldest first."""


class ChannelFault(Struct, frozen=True):
    """A channel that does not work, or warns."""

    words: str
    source: str
    reason: str


@console.get("/{environment}", roles=EVERYBODY)
async def show_home(page: PageRequest) -> Response:
    """Agents see conversations and orders, the others also money, and what is wrong with the connections."""
    few = {"sort": "stock:asc", "limit": str(MAX_NAMED)}
    (waiting, waiting_total), unpaid, low = await gather(
        _list_waiting(page), _count(page, "/orders", TO_PAY), page.call("GET", "/products", LOW_STOCK | few)
    )
    sales, faults, rejected, steps = (
        ([], [], None, [])
        if page.session.role == Role.AGENT
        else await gather(
            _list_sales(page),
            _list_faults(page),
            page.call("GET", "/templates", REJECTED, base=Base.MESSAGING),
            _list_steps(page),
        )
    )
    clock = await read_clock(page)
    return page.show(
        "home.html",
        clock=clock,
        now=clock.now,
        time=page.formats.clock(clock.now),
        waiting=waiting,
        waiting_total=waiting_total,
        names=await read_people(page, waiting),
        unpaid=unpaid,
        to_pay=TO_PAY,
        sales=sales,
        low=low,
        low_stock=LOW_STOCK,
        faults=faults,
        rejected=rejected,
        late_backup=await _find_late_backup(page),
        steps=steps,
    )


@console.post("/{environment}/first-steps/hide", roles=DEVELOPERS, says="The first steps are hidden")
async def hide_steps(page: PageRequest) -> Response:
    """In this browser, for all days on which they would be shown."""
    response = go_to(page.path())
    set_cookie(page, response, _name_cookie(page), "1", NEW_DAYS * 86_400)
    return response


def _name_cookie(page: PageRequest) -> str:
    return f"{HIDDEN_COOKIE}{page.session.organisation_id}"


async def _list_waiting(page: PageRequest) -> tuple[list[Any], int]:
    """Who waits longest, and how many wait: in the queue and with an agent; an agent sees their own."""
    queues = [{"status": "active"}]
    if page.session.role == Role.AGENT:
        me = (await read_team(page)).me
        queues = [{"status": "open"}, *([{"status": "assigned", "agentId": str(me["id"])}] if me else [])]
    lists = [await ask(page, "/tickets", WAITING | queue) for queue in queues]
    tickets = sorted((ticket for one in lists for ticket in one["data"]), key=lambda one: str(one["waitingSince"]))
    return tickets[:MAX_NAMED], sum(one["meta"]["total"] for one in lists)


async def _list_sales(page: PageRequest) -> list[SalesFigure]:
    """Net sales and orders of today, and of the days before."""

    currency = page.session.currency

    async def read_earlier() -> list[DaySales]:
        async with page.context.database.connection() as db:
            return await reports.list_recent_sales(db, page.company_id, currency, CURVE_DAYS, RECENT_DAYS)

    async with page.calls, page.context.database.connection() as db:
        recent = await reports.list_recent_sales(db, page.company_id, currency, RECENT_DAYS)
    earlier = await page.api.cache(f"earlier sales {currency}", page.company_id, CURVE_SECONDS, read_earlier)
    days = [*recent, *(day for day in earlier if day.day < recent[-1].day)]  # another day may have begun meanwhile
    today, yesterday = recent
    ends = (today.ends_at, yesterday.this_hour)
    links = [link_orders(page, day.currency, day.starts_at, end) for day, end in zip(recent, ends, strict=True)]
    show = partial(page.formats.short_money, currency=today.currency)
    return [
        _build_figure("Net sales today", links, show, [day.net for day in days], yesterday.net_so_far),
        _build_figure(
            "Orders today", links, page.formats.number, [day.orders for day in days], yesterday.orders_so_far
        ),
    ]


def _build_figure(
    label: str, links: list[str], show: Callable[[Any], str], values: Sequence[Decimal | int], so_far: Decimal | int
) -> SalesFigure:
    """From the values of the days, the latest first, and what yesterday had at this time of the day."""
    change = round(100 * float(values[0] - so_far) / float(so_far)) if so_far > 0 else None
    oldest_first = [max(value, 0) for value in reversed(values)]
    return SalesFigure(
        label,
        show(values[0]),
        links[0],
        show(so_far),
        links[1],
        change,
        build_curve(oldest_first),
        [show(value) for value in reversed(values)],
    )


async def _list_faults(page: PageRequest) -> list[ChannelFault]:
    async with page.calls, page.context.database.connection() as db:
        company = await access.get_company(db, page.company_id)
        channels = await get_environment(company).accounts.list_infos(page.context, db, company)
        statuses = await channel_status.list_statuses(db, company)
    broken = [one for one in channels if one.health == "failing"]
    warned = [(one, warning) for one in statuses for warning in one.warnings if warning.severity != "info"]
    return [
        *(ChannelFault("{channel} does not work", one.source, one.last_error or "") for one in broken),
        *(ChannelFault("{channel} warns you", one.source, warning.message) for one, warning in warned),
    ]


async def _find_late_backup(page: PageRequest) -> BackupState | None:
    """For owners: a backup has the data of all companies."""
    settings = page.context.settings.backups
    if settings.url is None or page.session.role != Role.OWNER:
        return None
    async with page.context.database.connection() as db:
        state = await get_state(db)
    return state if state.is_late(settings.every_hours) else None


async def _list_steps(page: PageRequest) -> list[SetupStep]:
    """Empty after the first week, when all is done, and when they are hidden."""
    if _name_cookie(page) in page.request.cookies:
        return []
    async with page.calls, page.context.database.connection() as db:
        environment = await access.get_environment(db, page.company_id)
        if datetime.fromisoformat(str(environment.created_at)) < datetime.now(UTC) - timedelta(days=NEW_DAYS):
            return []
        company = environment.company
        channels = await get_environment(company).accounts.list_infos(page.context, db, company)
        members = await people.list_members(db, page.session.organisation_id)
    steps = [
        SetupStep("Import your products", "/imports", bool(await _count(page, "/products"))),
        SetupStep("Connect a channel", "/channels", any(one.status == "connected" for one in channels)),
        SetupStep("Add a store location", "/stores/new", bool(await _count(page, "/shipping/store-locations"))),
    ]
    if page.session.role == Role.OWNER:
        steps.append(SetupStep("Invite your team", "/people", len(members) > 1))
    return [] if all(step.is_done for step in steps) else steps


async def _count(page: PageRequest, path: str, query: dict[str, str] | None = None) -> int:
    found = await page.call("GET", path, (query or {}) | {"limit": "1"})
    return int(found["meta"]["total"])
