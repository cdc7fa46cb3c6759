"""Endpoints for analytics."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.analytics import queries
from sapa.analytics.report import build_record
from sapa.analytics.types import AgentsData, AgentsReport, Range, SampleRow
from sapa.analytics.window import SampleRange, build_window
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Invalid, NotFound
from sapa.http.query_string import PageLimit, PageNumber, SearchText
from sapa.http.responses import Page, build_page
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNEL_NAMES, ChannelName
from sapa.support.samples.types import Metric
from sapa.support.types import AgentPathId
from sapa.values.text_folding import fold

routes = Routes(
    "/analytics",
    base=Base.MESSAGING,
    tag="Analytics",
    about="How many tickets agents handled, how fast they responded, and how customers rated them.",
)

ChannelFilter = Annotated[
    ChannelName, Meta(description="Only tickets of this channel; msgapp means both of its kinds.")
]


class WindowQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """The window, and the channel of the tickets."""

    start_at: Annotated[datetime, Meta(description="Included. Defaults to 30 days before endAt.")] | None = None
    end_at: Annotated[datetime, Meta(description="Included. Defaults to now.")] | None = None
    channel: ChannelFilter | None = None


class AgentReportQuery(WindowQuery, frozen=True, kw_only=True):
    """The agents and the window."""

    agent_name: Annotated[SearchText, Meta(description="Part of the agent's name; case is ignored.")] | None = None


class SamplesQuery(WindowQuery, frozen=True, kw_only=True):
    """Which samples of an agent to list."""

    metric: Annotated[Metric, Meta(description="Only samples of this metric.")] | None = None
    page: PageNumber = 1
    limit: PageLimit = 20


@routes.get("/agents", scope=Scope.ANALYTICS_READ, is_long_read=True)
async def get_agent_report(call: Call, query: AgentReportQuery) -> AgentsReport:
    """Get the figures of each agent.

    Every active agent is listed, with zeros if there is nothing in the window. An inactive agent is listed only if it
    has figures. Both ends of the window are included; by default it is the last 30 days. To combine channels, call
    once per channel.
    """
    window = await _window(call, query)
    found = await queries.list_figures(call.db, call.company.id, window, _sources(query), _pattern(query.agent_name))
    records = [build_record(call.company.id, one) for one in found if one.is_active or one.has_data]
    return AgentsReport("success", AgentsData(Range(*window.timestamps), records))


@routes.get("/agents/{id}/samples", scope=Scope.ANALYTICS_READ, raises=[NotFound], is_long_read=True)
async def list_agent_samples(call: Call, id: AgentPathId, query: SamplesQuery) -> Page[SampleRow]:
    """List the samples behind an agent's figures.

    Newest first. The mean of the seconds of a metric's samples is that metric's figure. The number of different tickets
    in the handled samples is tickets_handled, and the newest of those samples is last_chat_handled.
    """
    window = await _window(call, query)
    samples, total = await queries.list_samples(
        call.db, call.company.id, int(id), window, _sources(query), query.metric, query.limit,
        (query.page - 1) * query.limit,
    )  # fmt: skip
    return build_page(samples, query.page, query.limit, total)


async def _window(call: Call, query: WindowQuery) -> SampleRange:
    return build_window(query.start_at, query.end_at, await queries.get_now(call.db, call.company.id))


def _sources(query: WindowQuery) -> list[Source] | None:
    return CHANNEL_NAMES[query.channel] if query.channel else None


def _pattern(name: str | None) -> str | None:
    if name is None:
        return None
    text = fold(name)
    if not text:
        raise Invalid.field("agentName", "must not be blank")
    return contains(text)
