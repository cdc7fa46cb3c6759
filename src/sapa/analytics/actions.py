"""Figures for the console. Read-only."""

from collections.abc import Sequence
from datetime import datetime

from sapa.analytics import queries
from sapa.analytics.queries import AgentFigures
from sapa.analytics.report import build_duration, build_record
from sapa.analytics.types import AgentRecord, KindRecord
from sapa.analytics.window import INSTANT, SampleRange
from sapa.db.pool import Connection
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.support.types import AgentType
from sapa.values.enum_names import words_of


async def compare(
    db: Connection, company_id: int, start: datetime, end: datetime, channel: str | None
) -> tuple[list[AgentRecord], list[KindRecord]]:
    """The figures of each agent, and of human and AI agents in total; `end` is excluded."""
    sources = CHANNEL_NAMES[channel] if channel else None
    found = await queries.list_figures(db, company_id, SampleRange(start, end - INSTANT), sources, None)
    kinds = [_add_up(kind, [one for one in found if one.type == kind]) for kind in words_of(AgentType)]
    return [build_record(company_id, one) for one in found if one.is_active or one.has_data], kinds


def _add_up(kind: AgentType, found: Sequence[AgentFigures]) -> KindRecord:
    """The mean of all samples, not of the agents' means: an agent without samples does not count as zero."""
    return KindRecord(
        agent_type=kind,
        tickets_handled=sum(one.tickets for one in found),
        first_response_time=build_duration(
            sum(one.first_response_micros for one in found), sum(one.first_response_count for one in found)
        ),
        avg_response_time=build_duration(
            sum(one.response_micros for one in found), sum(one.response_count for one in found)
        ),
        resolution_time=build_duration(
            sum(one.resolution_micros for one in found), sum(one.resolution_count for one in found)
        ),
    )
