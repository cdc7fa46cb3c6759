"""Queries for samples and their sums: by day and month in `analytics_sums`, by ticket in `analytics_tickets`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.support.samples.types import Sample

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SampledTicket(NamedTuple):
    """A ticket handled by one agent."""

    ticket_id: str
    agent_id: int


class SampleCell(Struct, frozen=True):
    """One agent's day on one channel."""

    day: date
    agent_id: int
    source: str


class StoredSample(Struct, frozen=True):
    """A sample that was added or removed."""

    agent_id: int
    ticket_id: str
    source: str
    metric: str
    micros: int
    at_micros: int
    """Microseconds since 1970."""

    @property
    def at(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.at_micros)

    @property
    def cell(self) -> SampleCell:
        return SampleCell(self.at.date(), self.agent_id, self.source)

    @property
    def ticket(self) -> SampledTicket:
        return SampledTicket(self.ticket_id, self.agent_id)


class SampleAddition(Struct):
    """The amounts to add to a cell."""

    first_response_count: int = 0
    first_response_micros: int = 0
    response_count: int = 0
    response_micros: int = 0
    resolution_count: int = 0
    resolution_micros: int = 0
    tickets_begun: int = 0
    last_handled_at: datetime | None = None


class HandledTicket(Struct, frozen=True):
    """A ticket handled by an agent, and its channel."""

    ticket_id: str
    agent_id: int
    source: str

    @property
    def ticket(self) -> SampledTicket:
        return SampledTicket(self.ticket_id, self.agent_id)


class HandledDays(HandledTicket, frozen=True):
    """The days, in order, on which an agent handled a ticket."""

    days: list[date]


_SAMPLE_COLUMNS = """agent_id, ticket_id, source, metric, micros,
           (extract(epoch FROM (at - timestamptz 'epoch')) * 1000000)::bigint AS at_micros"""
_NEW_SAMPLES = """unnest($2::bigint[], $3::text[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
                   $9::timestamptz[], $10::text[])
        AS input (agent_id, ticket_id, cycle, source, metric, micros, started_at, at, message_id)"""

INSERT = sql(
    f"""
    INSERT INTO support_samples (company_id, agent_id, ticket_id, cycle, source, metric, micros, started_at, at,
                                 message_id)
    SELECT $1, agent_id, ticket_id, cycle, source, metric, micros, started_at, at, message_id
      FROM {_NEW_SAMPLES}
     ORDER BY ticket_id, cycle, metric, agent_id, at, message_id
        ON CONFLICT DO NOTHING
    RETURNING {_SAMPLE_COLUMNS}""",
    row=StoredSample,
)

DELETE_OTHERS = sql(
    f"""
    DELETE FROM support_samples AS s
     WHERE company_id = $1 AND ticket_id = $11 AND ($12::int IS NULL OR cycle = $12)
       AND NOT EXISTS (
           SELECT FROM {_NEW_SAMPLES}
            WHERE (input.agent_id, input.ticket_id, input.cycle, input.source, input.metric, input.micros,
                   input.started_at, input.at)
                = (s.agent_id, s.ticket_id, s.cycle, s.source, s.metric, s.micros, s.started_at, s.at)
              AND input.message_id IS NOT DISTINCT FROM s.message_id)
    RETURNING {_SAMPLE_COLUMNS}""",
    row=StoredSample,
)

INSERT_TICKETS = sql(
    """
    INSERT INTO analytics_tickets (company_id, ticket_id, agent_id, source)
    SELECT $1, ticket_id, agent_id, source
      FROM unnest($2::text[], $3::bigint[], $4::text[]) AS input (ticket_id, agent_id, source)
     ORDER BY ticket_id, agent_id
        ON CONFLICT DO NOTHING"""
)

LOCK_TICKETS = sql(
    """
    SELECT t.ticket_id, t.agent_id, t.source, t.days
      FROM unnest($2::text[], $3::bigint[]) AS input (ticket_id, agent_id)
      JOIN analytics_tickets AS t
        ON t.company_id = $1 AND t.ticket_id = input.ticket_id AND t.agent_id = input.agent_id
     ORDER BY t.ticket_id, t.agent_id
       FOR UPDATE OF t""",
    row=HandledDays,
)

HANDLED_DAYS = sql(
    """
    SELECT s.ticket_id, s.agent_id, min(s.source) AS source,
           array_agg(DISTINCT (s.at AT TIME ZONE 'UTC')::date ORDER BY (s.at AT TIME ZONE 'UTC')::date) AS days
      FROM unnest($2::text[], $3::bigint[]) AS input (ticket_id, agent_id)
      JOIN support_samples AS s
        ON s.company_id = $1 AND s.ticket_id = input.ticket_id AND s.agent_id = input.agent_id
       AND s.metric = 'handled'
     GROUP BY s.ticket_id, s.agent_id""",
    row=HandledDays,
)

# A ticket is listed once for each of its days, and one that has none any more with NULL.
SET_DAYS = sql(
    """
    UPDATE analytics_tickets AS t
       SET days = input.days, first_day = input.first_day, last_day = input.last_day
      FROM (SELECT ticket_id, agent_id, array_remove(array_agg(day ORDER BY day), NULL) AS days,
                   min(day) AS first_day, max(day) AS last_day
              FROM unnest($2::text[], $3::bigint[], $4::date[]) AS listed (ticket_id, agent_id, day)
             GROUP BY ticket_id, agent_id) AS input
     WHERE t.company_id = $1 AND t.ticket_id = input.ticket_id AND t.agent_id = input.agent_id"""
)

_FIGURES = ", ".join(SampleAddition.__struct_fields__)
_SUMMED = SampleAddition.__struct_fields__[:-1]
_INCREMENTS = ", ".join(f"{name} = t.{name} + excluded.{name}" for name in _SUMMED)

# Each addition to a day is also added to its month.
ADD = sql(
    f"""
    INSERT INTO analytics_sums AS t (company_id, span, starts_on, agent_id, source, {_FIGURES})
    SELECT $1, span, date_trunc(span, day)::date AS starts_on, agent_id, source,
           {", ".join(f"sum({name})" for name in _SUMMED)}, max(last_handled_at)
      FROM unnest($2::date[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
                  $9::bigint[], $10::bigint[], $11::bigint[], $12::timestamptz[])
        AS input (day, agent_id, source, {_FIGURES})
     CROSS JOIN (VALUES ('day'), ('month')) AS spans (span)
     GROUP BY span, starts_on, agent_id, source
     ORDER BY span, starts_on, agent_id, source
        ON CONFLICT (company_id, span, starts_on, agent_id, source)
        DO UPDATE SET {_INCREMENTS}, last_handled_at = GREATEST(t.last_handled_at, excluded.last_handled_at)"""
)

RECOUNT_DAYS = sql(
    """
    UPDATE analytics_sums AS t
       SET (first_response_count, first_response_micros, response_count, response_micros, resolution_count,
            resolution_micros, last_handled_at)
         = (SELECT count(*) FILTER (WHERE metric = 'first_response'),
                   coalesce(sum(micros) FILTER (WHERE metric = 'first_response'), 0),
                   count(*) FILTER (WHERE metric = 'response'),
                   coalesce(sum(micros) FILTER (WHERE metric = 'response'), 0),
                   count(*) FILTER (WHERE metric = 'resolution'),
                   coalesce(sum(micros) FILTER (WHERE metric = 'resolution'), 0),
                   max(at) FILTER (WHERE metric = 'handled')
              FROM support_samples AS s
             WHERE s.company_id = $1 AND s.agent_id = t.agent_id AND s.source = t.source
               AND s.at >= t.starts_on::timestamp AT TIME ZONE 'UTC'
               AND s.at < (t.starts_on + 1)::timestamp AT TIME ZONE 'UTC'),
           tickets_begun = (
               SELECT count(*)
                 FROM analytics_tickets AS k
                WHERE k.company_id = $1 AND k.first_day = t.starts_on AND k.agent_id = t.agent_id
                  AND k.source = t.source)
      FROM unnest($2::date[], $3::bigint[], $4::text[]) AS input (day, agent_id, source)
     WHERE t.company_id = $1 AND t.span = 'day' AND t.starts_on = input.day AND t.agent_id = input.agent_id
       AND t.source = input.source"""
)

RECOUNT_MONTHS = sql(
    f"""
    UPDATE analytics_sums AS t
       SET ({_FIGURES})
         = (SELECT {", ".join(f"sum({name})" for name in _SUMMED)}, max(last_handled_at)
              FROM analytics_sums AS d
             WHERE d.company_id = $1 AND d.span = 'day' AND d.agent_id = t.agent_id AND d.source = t.source
               AND d.starts_on >= t.starts_on AND d.starts_on < t.starts_on + interval '1 month')
      FROM (SELECT DISTINCT date_trunc('month', day)::date AS month, agent_id, source
              FROM unnest($2::date[], $3::bigint[], $4::text[]) AS input (day, agent_id, source)) AS input
     WHERE t.company_id = $1 AND t.span = 'month' AND t.starts_on = input.month AND t.agent_id = input.agent_id
       AND t.source = input.source"""
)

TICKETS_AFTER = sql(
    """
    SELECT ticket_id, agent_id, min(source) AS source
      FROM ((SELECT DISTINCT ticket_id, agent_id, source
               FROM support_samples
              WHERE company_id = $1 AND metric = 'handled' AND (ticket_id, agent_id) > ($2, $3)
              ORDER BY ticket_id, agent_id
              LIMIT $4)
             UNION
            (SELECT ticket_id, agent_id, source
               FROM analytics_tickets
              WHERE company_id = $1 AND (ticket_id, agent_id) > ($2, $3)
              ORDER BY ticket_id, agent_id
              LIMIT $4)) AS days
     GROUP BY ticket_id, agent_id
     ORDER BY ticket_id, agent_id
     LIMIT $4""",
    row=HandledTicket,
)

DAYS = sql(
    """
    SELECT array_agg(day ORDER BY day)
      FROM (SELECT (at AT TIME ZONE 'UTC')::date AS day FROM support_samples WHERE company_id = $1
             UNION
            SELECT starts_on FROM analytics_sums WHERE company_id = $1 AND span = 'day') AS days"""
)

CELLS_OF_DAY = sql(
    """
    SELECT $2::date AS day, agent_id, source
      FROM support_samples
     WHERE company_id = $1
       AND at >= $2::date::timestamp AT TIME ZONE 'UTC' AND at < ($2::date + 1)::timestamp AT TIME ZONE 'UTC'
     UNION
    SELECT starts_on, agent_id, source
      FROM analytics_sums
     WHERE company_id = $1 AND span = 'day' AND starts_on = $2""",
    row=SampleCell,
)


async def insert_samples(tx: Tx, company_id: int, samples: Sequence[Sample]) -> list[StoredSample]:
    """Returns the new ones."""
    return await INSERT.all(tx, company_id, *_columns(samples))


async def delete_others(
    tx: Tx, company_id: int, ticket_id: str, cycle: int | None, samples: Sequence[Sample]
) -> list[StoredSample]:
    """Deletes the ticket's, or the cycle's, other samples and returns them."""
    return await DELETE_OTHERS.all(tx, company_id, *_columns(samples), ticket_id, cycle)


async def lock_tickets(tx: Tx, company_id: int, sources: Mapping[SampledTicket, str]) -> list[HandledDays]:
    """Inserts the missing ones without days, then locks all."""
    ids, agents = _lists(list(sources), 2)
    found = await LOCK_TICKETS.all(tx, company_id, ids, agents)
    if len(found) == len(sources):
        return found
    await INSERT_TICKETS.run(tx, company_id, ids, agents, list(sources.values()))
    return await LOCK_TICKETS.all(tx, company_id, ids, agents)


async def list_handled_days(
    db: Connection, company_id: int, tickets: Sequence[SampledTicket]
) -> dict[SampledTicket, list[date]]:
    """Computed from the samples."""
    found = await HANDLED_DAYS.all(db, company_id, *_lists(tickets, 2))
    return {one.ticket: one.days for one in found}


async def set_days(tx: Tx, company_id: int, days: Mapping[SampledTicket, Sequence[date]]) -> None:
    none: list[date | None] = [None]
    listed = [(ticket, day) for ticket, found in days.items() for day in found or none]
    await SET_DAYS.run(tx, company_id, *_lists([ticket for ticket, _ in listed], 2), [day for _, day in listed])


async def add_to_cells(tx: Tx, company_id: int, additions: Mapping[SampleCell, SampleAddition]) -> None:
    figures = [[getattr(one, name) for one in additions.values()] for name in SampleAddition.__struct_fields__]
    await ADD.run(tx, company_id, *_cell_lists(additions), *figures)


async def recount_cells(tx: Tx, company_id: int, cells: Collection[SampleCell]) -> None:
    """Recounts from the samples. Adding zero first creates and locks the cells: a concurrent transaction adds its own
    samples after this one."""
    if not cells:
        return
    await add_to_cells(tx, company_id, {cell: SampleAddition() for cell in cells})
    lists = _cell_lists(cells)
    await RECOUNT_DAYS.run(tx, company_id, *lists)
    await RECOUNT_MONTHS.run(tx, company_id, *lists)


async def list_tickets_after(
    db: Connection, company_id: int, last: SampledTicket, limit: int
) -> dict[SampledTicket, str]:
    """Tickets with samples or with counts, and their channels."""
    found = await TICKETS_AFTER.all(db, company_id, *last, limit)
    return {one.ticket: one.source for one in found}


async def list_days(db: Connection, company_id: int) -> list[date]:
    """Days with samples or with counts."""
    return await DAYS.value(db, company_id) or []


async def list_cells(db: Connection, company_id: int, day: date) -> list[SampleCell]:
    return await CELLS_OF_DAY.all(db, company_id, day)


def _lists(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[row[place] for row in rows] for place in range(width)]


def _cell_lists(cells: Iterable[SampleCell]) -> list[list[object]]:
    return _lists([(cell.day, cell.agent_id, cell.source) for cell in cells], 3)


def _columns(samples: Sequence[Sample]) -> list[list[object]]:
    rows = [
        (one.agent_id, one.ticket_id, one.cycle, one.source, one.metric, one.micros, one.started_at, one.at)
        for one in samples
    ]
    return [*_lists(rows, 8), [one.message_id for one in samples]]
