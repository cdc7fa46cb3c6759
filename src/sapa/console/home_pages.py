"""Home: today's numbers, what needs somebody now, and the first steps of a new shop."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.inbox_pages import read_clock
from sapa.console.page_request import PageRequest
from sapa.console.report_pages import link_orders
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console
from sapa.http.endpoints import Base
from sapa.messaging.connections.environment import get_environment
from sapa.people import actions as people
from sapa.people.types import Role
from sapa.reports import actions as reports

RECENT_DAYS = 2
"""Today and yesterday."""
NEW_DAYS = 7
"""How long a company sees the first steps."""
WAITING = {"status": "open", "waiting": "true", "snoozed": "false", "sort": "waitingSince:asc", "limit": "1"}
TO_PAY = {"status": "active", "financialStatus": "pending"}


class SetupStep(Struct, frozen=True):
    """One of the first steps."""

    label: str
    path: str
    is_done: bool


@console.get("/{environment}", roles=EVERYBODY)
async def show_home(page: PageRequest) -> Response:
    """Agents see conversations and orders, the others also money, and what is wrong with the connections."""
    waiting = await page.call("GET", "/tickets", WAITING, base=Base.MESSAGING)
    unpaid = await _count(page, "/orders", TO_PAY)
    clock = await read_clock(page)
    is_agent = page.session.role == Role.AGENT
    return page.show(
        "home.html",
        clock=clock,
        now=clock.now,
        first=next(iter(waiting["data"]), None),
        unpaid=unpaid,
        to_pay=TO_PAY,
        sales=[] if is_agent else await _list_sales(page),
        steps=[] if is_agent else await _list_steps(page),
    )


async def _list_sales(page: PageRequest) -> list[tuple[Any, str]]:
    async with page.context.database.connection() as db:
        sales = await reports.list_recent_sales(db, page.company_id, RECENT_DAYS)
    return [(day, link_orders(page, day.currency, day.starts_at, day.ends_at)) for day in sales]


async def _list_steps(page: PageRequest) -> list[SetupStep]:
    """Empty after the first week, and when all is done."""
    async with page.context.database.connection() as db:
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
        SetupStep("Invite your team", "/people", len(members) > 1),
    ]
    return [] if all(step.is_done for step in steps) else steps


async def _count(page: PageRequest, path: str, query: dict[str, str] | None = None) -> int:
    found = await page.call("GET", path, (query or {}) | {"limit": "1"})
    return int(found["meta"]["total"])
