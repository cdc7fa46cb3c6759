"""How scorecards are reached."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from msgspec import Meta, Struct

from sapa.access.actions import read_clock
from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, Unauthorized
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.shipping.scorecards import queries
from sapa.shipping.scorecards.types import (
    FIGURES,
    Figure,
    Grouping,
    ReportPeriod,
    ScorecardParcel,
    ScorecardReport,
)
from sapa.values.instants import format_instant, truncate_to_milliseconds

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
USUAL_DAYS = 90
MAX_DAYS = 366

From = Annotated[
    datetime, Meta(description=f"Shipments created at this instant or later; {USUAL_DAYS} days ago by default.")
]
To = Annotated[datetime, Meta(description="Shipments created before this instant; now by default.")]


class ScorecardsQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of which shipments, and by what."""

    group_by: Annotated[
        Grouping,
        Meta(description="By `carrier`, by carrier and `service`, by carrier and `area`, or by `all` three."),
    ] = "carrier"
    created_from: From | None = None
    created_to: To | None = None


class ScorecardParcelsQuery(PageQuery, frozen=True, kw_only=True):
    """The parcels of which figure."""

    figure: Annotated[
        Figure, Meta(description="; ".join(f"`{name}`: {meaning}" for name, meaning in FIGURES.items()) + ".")
    ] = "parcels"
    carrier: Annotated[str, Meta(max_length=100, description="As in the scorecard.")] | None = None
    service: Annotated[str, Meta(max_length=200, description="As in the scorecard.")] | None = None
    area: Annotated[str, Meta(max_length=200, description="As in the scorecard.")] | None = None
    created_from: From | None = None
    created_to: To | None = None


@routes.get("/scorecards", scope=Scope.ORDERS_READ, is_long_read=True)
async def list_carrier_scorecards(call: Call, query: ScorecardsQuery) -> ScorecardReport:
    """Compare carriers, services and areas.

    For parcels that were picked up: what was quoted against what they took, failed attempts to deliver them, and how
    many came back. Days are calendar days in the company's time zone, from pickup to delivery. The parcels of each
    figure are listed by `GET /shipping/scorecards/parcels`.
    """
    period = await _get_period(call, query.created_from, query.created_to)
    found = await queries.list_scorecards(call.db, call.company.id, period, query.group_by)
    most = queries.MAX_ROWS
    return ScorecardReport(
        format_instant(period.start), format_instant(period.end), found[:most], truncated=len(found) > most
    )


@routes.get("/scorecards/parcels", scope=Scope.ORDERS_READ, is_long_read=True)
async def list_scorecard_parcels(call: Call, query: ScorecardParcelsQuery) -> Page[ScorecardParcel]:
    """List the parcels of a figure of a scorecard.

    Newest first. With the carrier, service, area and period of a scorecard, `total` is the scorecard's figure.
    """
    period = await _get_period(call, query.created_from, query.created_to)
    filters: dict[str, Any] = {
        "created_from": period.start,
        "created_to": period.end,
        "carrier": query.carrier,
        "service": query.service,
        "area": query.area,
        f"is_{query.figure}": True,
    }
    wanted = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_parcels(call.db, call.company.id, wanted, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


async def _get_period(call: Call, start: datetime | None, end: datetime | None) -> ReportPeriod:
    """By the real time, like the creation of shipments."""
    for field, instant in (("createdFrom", start), ("createdTo", end)):
        if instant is not None and not EARLIEST <= instant <= LATEST:
            raise Invalid.field(field, f"must be from {EARLIEST.year} to {LATEST.year}")
    end = end or truncate_to_milliseconds((await read_clock(call.db, call.company.id)).real)
    start = start or end - timedelta(days=USUAL_DAYS)
    if not start < end <= start + timedelta(days=MAX_DAYS):
        raise Invalid.field("createdTo", f"must be after createdFrom, and at most {MAX_DAYS} days after it")
    return ReportPeriod(start, end)
