"""Samples computed a second time: the calculator of analytics reads the entries of tickets as histories."""

from datetime import datetime

from asyncpg import Record

from sapa.db.pool import Connection
from sapa.messaging.messages.types import Source
from sapa.support.samples.types import Sample
from tests.analytics.calculator import Agent, HistoryEvent, Kind, measure

ENTRIES = """
    SELECT t.id, t.source, e.kind, e.at, e.agent_id, e.agent_type, e.actor_id, e.actor_type, e.message_id, m.status
      FROM tickets t
      JOIN ticket_events e ON e.company_id = t.company_id AND e.ticket_id = t.id
      LEFT JOIN messages m ON m.company_id = t.company_id AND m.id = e.message_id
     WHERE t.company_id = $1 AND e.kind <> 'opened'
     ORDER BY t.id, e.number"""
SAMPLES = "SELECT agent_id, ticket_id, cycle, metric, micros, at, message_id FROM support_samples WHERE company_id = $1"

Row = tuple[object, ...]


async def calculate(db: Connection, company_id: int) -> list[Sample]:
    """The expected samples of the company's tickets."""
    histories: dict[tuple[str, str], list[HistoryEvent]] = {}
    for entry in await db.fetch(ENTRIES, company_id):
        histories.setdefault((entry["id"], entry["source"]), []).append(read(entry))
    return [one for (id, source), history in histories.items() for one in measure(id, Source(source), history)]


def read(entry: Record) -> HistoryEvent:
    agent_id, agent_type = (entry[f"{'actor' if entry['kind'] == 'resolved' else 'agent'}_{n}"] for n in ("id", "type"))
    agent = None if agent_id is None else Agent(agent_id, agent_type)
    return HistoryEvent(name(entry), datetime.fromisoformat(entry["at"]), agent, entry["message_id"])


def name(entry: Record) -> Kind:
    if entry["kind"] in {"said", "announced"} and entry["status"] not in {"sent", "delivered", "read"}:
        return "lost"
    kind: Kind = "assigned" if entry["kind"] == "unassigned" else entry["kind"]
    return kind


def rows_of(samples: list[Sample]) -> list[Row]:
    rows = [(s.agent_id, s.ticket_id, s.cycle, s.metric, s.micros, s.at, s.message_id or "") for s in samples]
    return sorted(rows)


async def read_rows(db: Connection, company_id: int) -> list[Row]:
    """The stored samples."""
    found = await db.fetch(SAMPLES, company_id)
    return sorted((*row[:5], datetime.fromisoformat(row["at"]), row["message_id"] or "") for row in found)
