"""Expected figures, computed from a list of all samples."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from sapa.support.samples.types import Metric, Sample

Json = dict[str, Any]

NOTHING: Json = {
    "tickets_handled": 0,
    "first_response_time": "00:00:00",
    "avg_response_time": "00:00:00",
    "resolution_time": "00:00:00",
    "last_chat_handled": None,
}


def figures_of(
    samples: Iterable[Sample], start: datetime, end: datetime, sources: Sequence[str] | None = None
) -> dict[int, Json]:
    """By agent, without agents whose figures are all zero."""
    chosen = [one for one in samples if start <= one.at <= end and (sources is None or one.source in sources)]
    figures = {
        agent: _figures([one for one in chosen if one.agent_id == agent]) for agent in {s.agent_id for s in chosen}
    }
    return {agent: one for agent, one in figures.items() if one != NOTHING}


def _figures(samples: list[Sample]) -> Json:
    handled = [one for one in samples if one.metric == Metric.HANDLED]
    return {
        "tickets_handled": len({one.ticket_id for one in handled}),
        "first_response_time": mean(one.seconds for one in samples if one.metric == Metric.FIRST_RESPONSE),
        "avg_response_time": mean(one.seconds for one in samples if one.metric == Metric.RESPONSE),
        "resolution_time": mean(one.seconds for one in samples if one.metric == Metric.RESOLUTION),
        "last_chat_handled": show(max(one.at for one in handled)) if handled else None,
    }


def mean(seconds: Iterable[float]) -> str:
    exact = [Decimal(repr(one)) for one in seconds]
    whole = int((sum(exact, Decimal()) / len(exact)).quantize(Decimal(1), ROUND_HALF_UP)) if exact else 0
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def show(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def list_nonzero(records: Iterable[Json]) -> dict[int, Json]:
    """The report's figures by agent, without agents whose figures are all zero."""
    figures = {one["agent_id"]: {name: one[name] for name in NOTHING} for one in records}
    return {agent: one for agent, one in figures.items() if one != NOTHING}
