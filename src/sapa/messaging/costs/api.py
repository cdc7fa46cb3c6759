"""Endpoints for what messages cost."""

from datetime import date
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import Invalid
from sapa.http.responses import CsvFile
from sapa.messaging.channels.interface import Source
from sapa.messaging.costs import actions
from sapa.messaging.costs.rate_files import write_costs
from sapa.messaging.costs.types import CostReport, CostSelection, Grouping

routes = Routes(
    "/costs",
    base=Base.MESSAGING,
    tag="Costs",
    about="What messages cost: by the pricing that channels report, and the rates that the operator imported.",
)

USUAL_DAYS = 30
MAX_DAYS = 366
EARLIEST, LATEST = date(2000, 1, 1), date(2100, 1, 1)

StartDate = Annotated[
    date, Meta(description=f"The first day, in your company's time zone; {USUAL_DAYS} days by default.")
]
EndDate = Annotated[date, Meta(description="The last day; today by default.")]
TemplateName = Annotated[str, Meta(min_length=1, max_length=512, description="Only of the template with this name.")]


class CostsQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which costs, and by what."""

    group_by: Annotated[Grouping, Meta(description="One line for each of them, and currency.")] = "day"
    start_date: StartDate | None = None
    end_date: EndDate | None = None
    template_id: TemplateName | None = None
    source: Annotated[Source, Meta(description="Only over this channel.")] | None = None


@routes.get("", scope=Scope.MESSAGES_READ, is_long_read=True)
async def get_message_costs(call: Call, query: CostsQuery) -> CostReport:
    """Get what messages cost.

    A message counts on the day on which it arrived, in your company's time zone. Its cost is fixed then, by the rate of
    that day: a rate that is imported later does not change it. Channels that report no pricing cost nothing here.
    """
    return await actions.get_report(call.db, call.company, await _get_selection(call, query), query.group_by)


@routes.get(
    ".csv",
    scope=Scope.MESSAGES_READ,
    is_long_read=True,
    tool=ToolTraits(hidden="It returns a CSV file; get_message_costs has the same figures."),
)
async def export_message_costs(call: Call, query: CostsQuery) -> CsvFile:
    """Get what messages cost as a CSV file.

    The lines of the report.
    """
    report = await actions.get_report(call.db, call.company, await _get_selection(call, query), query.group_by)
    name = f"costs-by-{query.group_by}-{report.start_date}-{report.end_date}.csv"
    return CsvFile(name, write_costs(report, query.group_by))


async def _get_selection(call: Call, query: CostsQuery) -> CostSelection:
    for field, day in (("startDate", query.start_date), ("endDate", query.end_date)):
        if day is not None and not EARLIEST <= day <= LATEST:
            raise Invalid.field(field, f"must be from {EARLIEST.year} to {LATEST.year}")
    chosen = await actions.get_selection(call.db, call.company, query.start_date, query.end_date, USUAL_DAYS)
    if not 0 <= (chosen.last - chosen.first).days < MAX_DAYS:
        raise Invalid.field("endDate", f"must not be before startDate, and at most {MAX_DAYS} days from it")
    return replace(chosen, template_id=query.template_id, source=query.source)
