"""The yardstick: one plain aggregate over the samples, as one would write it first."""

import time

from msgspec import Struct

from bench.loyalty.owner import Connection
from sapa.analytics.report import build_duration

AGGREGATE = """
    SELECT agent_id,
           count(DISTINCT ticket_id) FILTER (WHERE metric = 'handled') AS tickets,
           count(*) FILTER (WHERE metric = 'first_response') AS first_response_count,
           coalesce(sum(micros) FILTER (WHERE metric = 'first_response'), 0)::bigint AS first_response_micros,
           count(*) FILTER (WHERE metric = 'response') AS response_count,
           coalesce(sum(micros) FILTER (WHERE metric = 'response'), 0)::bigint AS response_micros,
           count(*) FILTER (WHERE metric = 'resolution') AS resolution_count,
           coalesce(sum(micros) FILTER (WHERE metric = 'resolution'), 0)::bigint AS resolution_micros
      FROM support_samples
     WHERE company_id = $1 AND at BETWEEN $2::text::timestamptz AND $3::text::timestamptz
       AND ($4::text[] IS NULL OR source = ANY($4))
     GROUP BY agent_id"""


class Told(Struct, frozen=True):
    """What an agent's record says."""

    tickets: int
    first_response: str
    response: str
    resolution: str


NOTHING = Told(0, *([build_duration(0, 0)] * 3))


async def aggregate(
    db: Connection, company_id: int, start: str, end: str, sources: list[str] | None
) -> tuple[dict[int, Told], float]:
    """The figures by agent, and the milliseconds that they took."""
    started = time.monotonic()
    rows = await db.fetch(AGGREGATE, company_id, start, end, sources)
    took = (time.monotonic() - started) * 1000
    return {row[0]: Told(row[1], *(build_duration(row[n + 1], row[n]) for n in (2, 4, 6))) for row in rows}, took
