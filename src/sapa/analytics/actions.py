"""Figures for the console. Read-only."""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from sapa.analytics import queries
from sapa.analytics.report import build_duration, build_record
from sapa.analytics.types import AgentRecord, KindRecord
from sapa.analytics.window import INSTANT, SampleRange
from sapa.db.pool import Connection
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.support.types import AgentType
from sapa.values.enum_names import words_of

MAX_SAMPLES = 200_000
"""Medians are of the newest samples of a window."""
METRICS = {"first_response_time": "first_response", "avg_response_time": "response", "resolution_time": "resolution"}
"""The metric of each time."""


async def compare(
    db: Connection, company_id: int, start: datetime, end: datetime, channel: str | None
) -> tuple[list[AgentRecord], list[KindRecord]]:
    """The figures of each agent, and of human and AI agents in total, with median times; `end` is excluded."""
    sources, window = CHANNEL_NAMES[channel] if channel else None, SampleRange(start, end - INSTANT)
    found = await queries.list_figures(db, company_id, window, sources, None)
    medians: dict[tuple[int | str | None, str], int] = {
        (one.agent_id or one.type, one.metric): one.micros
        for one in await queries.list_medians(db, company_id, window, sources, MAX_SAMPLES)
    }
    kinds = [
        KindRecord(kind, sum(one.tickets for one in found if one.type == kind), **_list_times(medians, kind))
        for kind in words_of(AgentType)
    ]
    return [
        replace(build_record(company_id, one), **_list_times(medians, one.agent_id))
        for one in found
        if one.is_active or one.has_data
    ], kinds


def _list_times(medians: Mapping[tuple[int | str | None, str], int], whose: int | str) -> dict[str, str]:
    return {time: build_duration(medians.get((whose, metric), 0), 1) for time, metric in METRICS.items()}
