"""How missed events are found and queued, and how progress is stored."""

from collections.abc import Iterable, Sequence

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.events import DELIVERY_ID
from sapa.webhooks.replay.types import MissedDelivery, MissedEvent, Progress, Resumed

# A second early, because times are stored in milliseconds; never from before the endpoint existed.
LIST_RESUMED = sql(
    """
    SELECT company_id, id AS endpoint_id, kinds, catch_up,
           GREATEST(missed_since - interval '1 second', created_at + interval '1 ms') AS since, resumed_at,
           progress AS stored
      FROM webhook_endpoints
     WHERE catch_up IS NOT NULL AND status = 'active'
     ORDER BY resumed_at""",
    row=Resumed,
    crosses="the worker looks for resumed endpoints over all companies, then helps company by company",
)

# Transactions are numbered by the server that has the company's rows: read together with one of them. This takes a
# number of its own; the end of a snapshot is the last transaction that is over, and others may have begun after it.
FIND_NEXT_TRANSACTION = sql(
    "SELECT pg_current_xact_id()::text FROM webhook_endpoints WHERE company_id = $1 AND id = $2"
)

ARE_OVER = sql(
    """
    SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $3::text::xid8
      FROM webhook_endpoints
     WHERE company_id = $1 AND id = $2"""
)

# By the clock that events are recorded with. Rounded up, as their times may be.
GET_END = sql("SELECT clock_timestamp() + interval '2 milliseconds'")

FINISH = sql(
    """
    UPDATE webhook_endpoints
       SET catch_up = NULL, missed_since = NULL, resumed_at = NULL, progress = NULL
     WHERE company_id = $1 AND id = $2 AND catch_up = $3 AND resumed_at = $4::text::timestamptz"""
)


# In the order of the index, so that a page costs the same however many follow. Within a millisecond that is not the
# order of the events; the dispatcher sorts those by their number. An endpoint is not told of its own suspension.
LIST_EVENTS = sql(
    """
    SELECT id, created_at, number, resource_id
      FROM events
     WHERE company_id = $1 AND (created_at, id) > ($2::text::timestamptz, $3) AND created_at >= $2::text::timestamptz
       AND created_at <= $4::text::timestamptz AND (kind = ANY($5::text[]) OR $5::text[] = '{}')
       AND resource_id <> $7
     ORDER BY created_at, id
     LIMIT $6""",
    row=MissedEvent,
)

# Due at the time of the event, so before later ones. Attempts have the worker's time, events the database's.
# $6 and $7 are the times of the first and the last event: most queued deliveries are due at their event's time.
QUEUE = sql(
    """
    WITH stored AS MATERIALIZED (
        SELECT event_id
          FROM webhook_queue
         WHERE company_id = $1 AND endpoint_id = $2 AND event_id = ANY($4::text[])
           AND due_at BETWEEN $6::text::timestamptz AND $7::text::timestamptz
        UNION ALL
        SELECT event_id
          FROM webhook_queue
         WHERE company_id = $1 AND endpoint_id = $2 AND event_id = ANY($4::text[]) AND due_at <> event_at
        UNION ALL
        SELECT event_id
          FROM webhook_attempts
         WHERE company_id = $1 AND endpoint_id = $2 AND event_id = ANY($4::text[])
           AND started_at >= $8::text::timestamptz - interval '5 minutes'
    ), queued AS (
        INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
        SELECT $1, m.id, $2, m.event_at, m.event_id, m.event_at
          FROM unnest($3::text[], $4::text[], $5::text[]::timestamptz[]) AS m (id, event_id, event_at)
         WHERE m.event_at >= $8::text::timestamptz
           AND NOT EXISTS (SELECT FROM stored k WHERE k.event_id = m.event_id)
        RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'webhook_queue', '', count(*) FROM queued HAVING count(*) > 0"""
)

SAVE_PROGRESS = sql(
    """
    UPDATE webhook_endpoints
       SET progress = $5
     WHERE company_id = $1 AND id = $2 AND status = 'active' AND catch_up = $3 AND resumed_at = $4::text::timestamptz"""
)

# A newer event may have been delivered after the oldest that is held.
GET_FIRST_MISSED = sql(
    """
    SELECT LEAST($3::text::timestamptz, min(event_at))
      FROM webhook_queue
     WHERE company_id = $1 AND endpoint_id = $2"""
)

DELETE_ALL_NEWEST = sql("DELETE FROM webhook_newest WHERE company_id = $1 AND endpoint_id = $2")

UPSERT_NEWEST = sql(
    """
    INSERT INTO webhook_newest (company_id, endpoint_id, resource_id, number, event_id, event_at)
    SELECT $1, $2, g.resource_id, g.number, g.event_id, g.event_at
      FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[]::timestamptz[])
           AS g (resource_id, number, event_id, event_at)
        ON CONFLICT (company_id, endpoint_id, resource_id) DO UPDATE
       SET number = EXCLUDED.number, event_id = EXCLUDED.event_id, event_at = EXCLUDED.event_at
     WHERE EXCLUDED.number > webhook_newest.number"""
)

LIST_HELD = sql(
    """
    SELECT q.id, q.due_at::text, coalesce(v.number < n.number, false) AS is_outdated
      FROM (SELECT id, due_at, event_id, event_at
              FROM webhook_queue
             WHERE company_id = $1 AND endpoint_id = $2 AND (due_at, id) > ($3::text::timestamptz, $4)
             ORDER BY due_at, id
             LIMIT $5) AS q
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = q.event_at AND v.id = q.event_id
      LEFT JOIN webhook_newest n ON n.company_id = $1 AND n.endpoint_id = $2 AND n.resource_id = v.resource_id
     ORDER BY q.due_at, q.id""",
    row=MissedDelivery,
)

LIST_NEWEST = sql(
    """
    SELECT event_id AS id, event_at AS created_at, number, resource_id
      FROM webhook_newest
     WHERE company_id = $1 AND endpoint_id = $2
     ORDER BY event_at, event_id
     LIMIT $3""",
    row=MissedEvent,
)

DELETE_NEWEST = sql(
    "DELETE FROM webhook_newest WHERE company_id = $1 AND endpoint_id = $2 AND resource_id = ANY($3::text[])"
)

SKIP = sql(
    """
    WITH skipped AS (
        DELETE FROM webhook_queue
         WHERE company_id = $1 AND id = ANY($2)
        RETURNING id, endpoint_id, event_id, event_at, attempt
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'webhook_queue', '', -count(*) FROM skipped HAVING count(*) > 0
    )
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, message, outcome)
    SELECT $1, s.endpoint_id, now(), s.id, s.attempt, s.event_id, s.event_at, coalesce(v.kind, 'unknown'), 0, $3,
           'skipped'
      FROM skipped s
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = s.event_at AND v.id = s.event_id"""
)

# Later events were queued as usual.
LIST_TO_SKIP = sql(
    """
    SELECT id
      FROM webhook_queue
     WHERE company_id = $1 AND endpoint_id = $2 AND event_at < $3::text::timestamptz
     LIMIT $4"""
)


async def list_resumed(db: Connection) -> list[Resumed]:
    return await LIST_RESUMED.all(db)


async def find_next_transaction(db: Connection, endpoint: Resumed) -> str | None:
    """A number above those of all transactions that have one; None when the endpoint was deleted."""
    number: str | None = await FIND_NEXT_TRANSACTION.value(db, endpoint.company_id, endpoint.endpoint_id)
    return number


async def find_end(db: Connection, endpoint: Resumed, next_transaction: str) -> str | None:
    """The present time once all transactions before this one are over."""
    if not await ARE_OVER.value(db, endpoint.company_id, endpoint.endpoint_id, next_transaction):
        return None
    ended_at: str = await GET_END.value(db)
    return ended_at


async def save_progress(tx: Tx, endpoint: Resumed, stored: str) -> bool:
    """False when the endpoint was paused, deleted or resumed in another way meanwhile."""
    return bool(
        await SAVE_PROGRESS.run(
            tx, endpoint.company_id, endpoint.endpoint_id, endpoint.catch_up, endpoint.resumed_at, stored
        )
    )


async def finish(tx: Tx, endpoint: Resumed) -> None:
    await FINISH.run(tx, endpoint.company_id, endpoint.endpoint_id, endpoint.catch_up, endpoint.resumed_at)


async def list_events(tx: Tx, endpoint: Resumed, progress: Progress, limit: int) -> list[MissedEvent]:
    return await LIST_EVENTS.all(
        tx, endpoint.company_id, progress.since, progress.event_id, progress.until, endpoint.kinds, limit,
        endpoint.endpoint_id,
    )  # fmt: skip


async def queue(tx: Tx, endpoint: Resumed, events: Sequence[MissedEvent]) -> None:
    """Queues those of the events, given in order of time, that are neither queued nor attempted."""
    if not events:
        return
    await QUEUE.run(
        tx,
        endpoint.company_id,
        endpoint.endpoint_id,
        [DELIVERY_ID.new() for _ in events],
        [event.id for event in events],
        [event.created_at for event in events],
        events[0].created_at,
        events[-1].created_at,
        endpoint.since,
    )


async def get_first_missed(tx: Tx, endpoint: Resumed) -> str:
    """The time since which the endpoint misses events, or of its oldest held delivery if that is earlier."""
    at: str = await GET_FIRST_MISSED.value(tx, endpoint.company_id, endpoint.endpoint_id, endpoint.since)
    return at


async def list_held(tx: Tx, endpoint: Resumed, progress: Progress, limit: int) -> list[MissedDelivery]:
    return await LIST_HELD.all(
        tx, endpoint.company_id, endpoint.endpoint_id, progress.held_since, progress.held_id, limit
    )


async def list_to_skip(tx: Tx, endpoint: Resumed, limit: int) -> list[str]:
    rows = await tx.fetch(LIST_TO_SKIP.text, endpoint.company_id, endpoint.endpoint_id, endpoint.resumed_at, limit)
    return [row[0] for row in rows]


async def skip(tx: Tx, endpoint: Resumed, delivery_ids: Sequence[str], message: str) -> int:
    return await SKIP.run(tx, endpoint.company_id, delivery_ids, message)


async def delete_all_newest(tx: Tx, endpoint: Resumed) -> None:
    await DELETE_ALL_NEWEST.run(tx, endpoint.company_id, endpoint.endpoint_id)


async def upsert_newest(tx: Tx, endpoint: Resumed, events: Iterable[MissedEvent]) -> None:
    """The events become the newest of their resources, unless a newer one is stored."""
    newest = list(events)
    await UPSERT_NEWEST.run(
        tx,
        endpoint.company_id,
        endpoint.endpoint_id,
        [event.resource_id for event in newest],
        [event.number for event in newest],
        [event.id for event in newest],
        [event.created_at for event in newest],
    )


async def list_newest(tx: Tx, endpoint: Resumed, limit: int) -> list[MissedEvent]:
    return await LIST_NEWEST.all(tx, endpoint.company_id, endpoint.endpoint_id, limit)


async def delete_newest(tx: Tx, endpoint: Resumed, events: Iterable[MissedEvent]) -> None:
    resource_ids = [event.resource_id for event in events]
    await DELETE_NEWEST.run(tx, endpoint.company_id, endpoint.endpoint_id, resource_ids)
