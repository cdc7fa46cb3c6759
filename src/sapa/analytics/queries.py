"""Queries for figures and their samples."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from sapa.analytics.types import SampleRow
from sapa.analytics.window import SampleRange
from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.messaging.channels.interface import Source
from sapa.support.types import AgentType


class MedianTime(Struct, frozen=True):
    """Of one agent, or of all agents of a type; the other is null."""

    agent_id: int | None
    type: AgentType | None
    metric: str
    micros: int


class AgentFigures(Struct, frozen=True):
    """An agent, and in the window the sums of its samples and what customers rated it."""

    agent_id: int
    name: str
    type: AgentType
    is_active: bool
    tickets: int
    first_response_count: int
    first_response_micros: int
    response_count: int
    response_micros: int
    resolution_count: int
    resolution_micros: int
    last_handled_at: str | None
    ratings: int
    average_rating: Decimal | None

    @property
    def has_data(self) -> bool:
        counts = (self.tickets, self.first_response_count, self.response_count, self.resolution_count, self.ratings)
        return any(counts)


# One millisecond ahead, since timestamps may be rounded up to the next millisecond.
NOW = sql(
    """
    SELECT date_trunc('milliseconds', clock_timestamp() + clock_offset) + interval '1 millisecond' AS now
      FROM companies
     WHERE company_id = $1""",
    row=datetime,
)

_SUMS = (
    "first_response_count", "first_response_micros", "response_count", "response_micros", "resolution_count",
    "resolution_micros",
)  # fmt: skip
_ADDED = ", ".join(f"sum({name})::bigint AS {name}" for name in _SUMS)

_SPAN = f"""agent_id, tickets_begun, {", ".join(_SUMS)}, last_handled_at
          FROM analytics_sums
         WHERE company_id = $1 AND ($8::text[] IS NULL OR source = ANY($8))"""

# Whole months and days come from their sums, the rest from the samples. A ticket counts when the agent first handled
# it. Tickets that began before the whole days and continued in them are added, and so are tickets of the rest that the
# agent did not handle on a whole day. One statement, so that all parts are from one snapshot.
FIGURES = sql(
    f"""
    WITH rest AS MATERIALIZED (
        SELECT agent_id, ticket_id, metric, micros, at
          FROM support_samples
         WHERE company_id = $1 AND at BETWEEN $2 AND $3 AND at < $4::date::timestamp AT TIME ZONE 'UTC'
           AND ($8::text[] IS NULL OR source = ANY($8))
         UNION ALL
        SELECT agent_id, ticket_id, metric, micros, at
          FROM support_samples
         WHERE company_id = $1 AND at BETWEEN $2 AND $3 AND at >= $5::date::timestamp AT TIME ZONE 'UTC'
           AND ($8::text[] IS NULL OR source = ANY($8))
    ), whole AS (
        SELECT {_SPAN} AND span = 'month' AND starts_on >= $6 AND starts_on < $7
         UNION ALL
        SELECT {_SPAN} AND span = 'day' AND starts_on >= $4 AND starts_on < $6
         UNION ALL
        SELECT {_SPAN} AND span = 'day' AND starts_on >= $7 AND starts_on < $5
    ), parts AS (
        SELECT agent_id, sum(tickets_begun)::bigint AS tickets, {_ADDED}, max(last_handled_at) AS last_handled_at
          FROM whole
         GROUP BY agent_id
         UNION ALL
        SELECT agent_id, count(*), 0, 0, 0, 0, 0, 0, NULL
          FROM analytics_tickets
         WHERE company_id = $1 AND last_day > first_day AND first_day < $4 AND last_day >= $4
           AND ($8::text[] IS NULL OR source = ANY($8))
           AND EXISTS (SELECT FROM unnest(days) AS day WHERE day >= $4 AND day < $5)
         GROUP BY agent_id
         UNION ALL
        SELECT agent_id, 0,
               count(*) FILTER (WHERE metric = 'first_response'),
               coalesce(sum(micros) FILTER (WHERE metric = 'first_response'), 0)::bigint,
               count(*) FILTER (WHERE metric = 'response'),
               coalesce(sum(micros) FILTER (WHERE metric = 'response'), 0)::bigint,
               count(*) FILTER (WHERE metric = 'resolution'),
               coalesce(sum(micros) FILTER (WHERE metric = 'resolution'), 0)::bigint,
               max(at) FILTER (WHERE metric = 'handled')
          FROM rest
         GROUP BY agent_id
         UNION ALL
        SELECT agent_id, count(*), 0, 0, 0, 0, 0, 0, NULL
          FROM (SELECT DISTINCT agent_id, ticket_id FROM rest WHERE metric = 'handled') AS handled
         WHERE NOT EXISTS (
               SELECT FROM analytics_tickets AS t
                WHERE t.company_id = $1 AND t.ticket_id = handled.ticket_id AND t.agent_id = handled.agent_id
                  AND EXISTS (SELECT FROM unnest(t.days) AS day WHERE day >= $4 AND day < $5))
         GROUP BY agent_id
    )
    SELECT a.id AS agent_id, a.name, a.type, a.active AS is_active, coalesce(f.tickets, 0) AS tickets,
           {", ".join(f"coalesce(f.{name}, 0) AS {name}" for name in _SUMS)}, f.last_handled_at,
           coalesce(r.ratings, 0) AS ratings, r.average_rating
      FROM agents AS a
      LEFT JOIN (SELECT agent_id, sum(tickets)::bigint AS tickets, {_ADDED}, max(last_handled_at) AS last_handled_at
                   FROM parts
                  GROUP BY agent_id) AS f
        ON f.agent_id = a.id
      LEFT JOIN (SELECT agent_id, count(*) AS ratings, trim_scale(round(avg(score), 2)) AS average_rating
                   FROM ratings
                  WHERE company_id = $1 AND status = 'rated' AND rated_at BETWEEN $2 AND $3
                    AND ($8::text[] IS NULL OR source = ANY($8))
                  GROUP BY agent_id) AS r
        ON r.agent_id = a.id
     WHERE a.company_id = $1 AND ($9::text IS NULL OR a.name_text LIKE $9)
     ORDER BY a.name_text, a.id""",
    row=AgentFigures,
)

# Bounded, and read from the index alone.
LIST_MEDIANS = sql(
    """
    SELECT s.agent_id, a.type, s.metric, percentile_cont(0.5) WITHIN GROUP (ORDER BY s.micros)::bigint AS micros
      FROM (SELECT agent_id, metric, micros
              FROM support_samples
             WHERE company_id = $1 AND at BETWEEN $2 AND $3 AND ($4::text[] IS NULL OR source = ANY($4))
               AND metric <> 'handled'
             ORDER BY at DESC
             LIMIT $5) AS s
      JOIN agents a ON a.company_id = $1 AND a.id = s.agent_id
     GROUP BY GROUPING SETS ((s.agent_id, s.metric), (a.type, s.metric))""",
    row=MedianTime,
)

_CHOSEN = """
      FROM support_samples
     WHERE company_id = $1 AND agent_id = $2 AND at BETWEEN $3 AND $4
       AND ($5::text[] IS NULL OR source = ANY($5)) AND ($6::text IS NULL OR metric = $6)"""

COUNT = sql(f"SELECT count(*) {_CHOSEN}")

LIST = sql(
    f"""
    SELECT id, metric, trim_scale(micros / 1000000.0) AS seconds, ticket_id, cycle, source, started_at, at, message_id
    {_CHOSEN}
     ORDER BY at DESC, id DESC
     LIMIT $7 OFFSET $8""",
    row=SampleRow,
)

FIND_AGENT = sql("SELECT id FROM agents WHERE company_id = $1 AND id = $2")


async def get_now(db: Connection, company_id: int) -> datetime:
    """The company's time."""
    now = await NOW.find(db, company_id)
    if now is None:
        raise NotFound
    return now


async def list_figures(
    db: Connection, company_id: int, window: SampleRange, sources: Sequence[Source] | None, name: str | None
) -> list[AgentFigures]:
    """The agents whose name matches the pattern, by name."""
    days = window.first_day, window.past_day
    return await FIGURES.all(db, company_id, window.start, window.end, *days, *window.months, sources, name)


async def list_medians(
    db: Connection, company_id: int, window: SampleRange, sources: Sequence[Source] | None, most: int
) -> list[MedianTime]:
    """Of the newest samples, for each agent and for each type of agent."""
    return await LIST_MEDIANS.all(db, company_id, window.start, window.end, sources, most)


async def list_samples(
    db: Connection, company_id: int, agent_id: int, window: SampleRange, sources: Sequence[Source] | None,
    metric: str | None, limit: int, offset: int,
) -> tuple[list[SampleRow], int]:  # fmt: skip
    """One page, newest first, and the total."""
    if await FIND_AGENT.value(db, company_id, agent_id) is None:
        raise NotFound
    chosen = (company_id, agent_id, window.start, window.end, sources, metric)
    total: int = await COUNT.value(db, *chosen)
    return await LIST.all(db, *chosen, limit, offset) if offset < total else [], total
