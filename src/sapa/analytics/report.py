"""Formats figures for the report."""

from sapa.analytics.queries import AgentFigures
from sapa.analytics.types import AgentRecord
from sapa.support.samples.types import MICROSECONDS


def build_record(company_id: int, figures: AgentFigures) -> AgentRecord:
    return AgentRecord(
        company_id=company_id,
        agent_id=figures.agent_id,
        agent_name=figures.name,
        agent_type=figures.type,
        tickets_handled=figures.tickets,
        first_response_time=build_duration(figures.first_response_micros, figures.first_response_count),
        avg_response_time=build_duration(figures.response_micros, figures.response_count),
        resolution_time=build_duration(figures.resolution_micros, figures.resolution_count),
        last_chat_handled=figures.last_handled_at,
        average_rating=figures.average_rating,
        ratings=figures.ratings,
    )


def build_duration(micros: int, count: int) -> str:
    """The mean as HH:MM:SS, rounded half up; hours may exceed 24."""
    seconds = (2 * micros + count * MICROSECONDS) // (2 * count * MICROSECONDS) if count else 0
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
