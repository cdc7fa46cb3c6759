"""What a resumed endpoint missed: found and put into its queue, one batch after the other.

Each batch is one transaction that also notes how far it has come, so the work may be stopped after any of them.
Whether an event waits or was tried already is asked in the very statement that would queue it.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from sapa.db.pool import Database, Tx
from sapa.db.sql import sql
from sapa.events import DELIVERY_ID
from sapa.webhooks import lanes
from sapa.webhooks.types import Missed

BATCH = 1000

SKIPPED = "skipped when the endpoint was resumed"


class Progress(Struct):
    """How far catching up has come since the endpoint was resumed at that time."""

    resumed_at: str
    until: str
    """What happened later was never missed."""
    since: str
    """Where the look over events has come to, with the last one's id."""
    event_id: str = ""
    is_gathered: bool = False
    held_since: str = "-infinity"
    """Where the look over held deliveries has come to, with the last one's id."""
    held_id: str = ""
    is_sorted_out: bool = False


class Resumed(Struct):
    """An endpoint that is to catch up."""

    company_id: int
    endpoint_id: str
    kinds: list[str]
    catch_up: str
    since: str
    resumed_at: str
    stored: str | None
    """Progress, perhaps of an earlier time."""


class Overtaken(Exception):
    """The endpoint was paused, deleted or resumed otherwise meanwhile."""


Step = Callable[[Tx, Resumed, Progress], Awaitable[bool]]


class MissedEvent(Struct, frozen=True):
    id: str
    created_at: str
    number: int
    resource_id: str


# In the order of the index, so that a page costs the same however much follows. Within a millisecond that is not the
# order in which things happened, which the queue finds out by itself.
LIST_RECORDED = sql(
    """
    SELECT id, created_at, number, resource_id
      FROM events
     WHERE company_id = $1 AND (created_at, id) > ($2::text::timestamptz, $3) AND created_at >= $2::text::timestamptz
       AND created_at <= $4::text::timestamptz AND (kind = ANY($5::text[]) OR $5::text[] = '{}')
     ORDER BY created_at, id
     LIMIT $6""",
    row=MissedEvent,
)

# Due since they happened: before what happened later. Attempts bear the worker's time, events the database's.
# $6 and $7 are the first and the last event's time: most of what waits is due since its event.
QUEUE = sql(
    """
    WITH known AS MATERIALIZED (
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
    )
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, m.id, $2, m.event_at, m.event_id, m.event_at
      FROM unnest($3::text[], $4::text[], $5::text[]::timestamptz[]) AS m (id, event_id, event_at)
     WHERE m.event_at >= $8::text::timestamptz
       AND NOT EXISTS (SELECT FROM known k WHERE k.event_id = m.event_id)"""
)

NOTE = sql(
    """
    UPDATE webhook_endpoints
       SET progress = $5
     WHERE company_id = $1 AND id = $2 AND status = 'active' AND catch_up = $3 AND resumed_at = $4::text::timestamptz"""
)

# Something newer may have been delivered since the oldest that is held.
FIND_OLDEST_HELD = sql("SELECT min(event_at) FROM webhook_queue WHERE company_id = $1 AND endpoint_id = $2")

FORGET_NEWEST = sql("DELETE FROM webhook_newest WHERE company_id = $1 AND endpoint_id = $2")

GATHER = sql(
    """
    INSERT INTO webhook_newest (company_id, endpoint_id, resource_id, number, event_id, event_at)
    SELECT $1, $2, g.resource_id, g.number, g.event_id, g.event_at
      FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[]::timestamptz[])
           AS g (resource_id, number, event_id, event_at)
        ON CONFLICT (company_id, endpoint_id, resource_id) DO UPDATE
       SET number = EXCLUDED.number, event_id = EXCLUDED.event_id, event_at = EXCLUDED.event_at
     WHERE EXCLUDED.number > webhook_newest.number"""
)


class MissedDelivery(Struct, frozen=True):
    """A delivery that waited. One whose event is older than events are kept is never outdated."""

    id: str
    due_at: str
    is_outdated: bool


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

DROP_NEWEST = sql(
    "DELETE FROM webhook_newest WHERE company_id = $1 AND endpoint_id = $2 AND resource_id = ANY($3::text[])"
)

SKIP = sql(
    """
    WITH skipped AS (
        DELETE FROM webhook_queue
         WHERE company_id = $1 AND id = ANY($2)
        RETURNING id, endpoint_id, event_id, event_at, attempt
    )
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, message, outcome)
    SELECT $1, s.endpoint_id, now(), s.id, s.attempt, s.event_id, s.event_at, coalesce(v.kind, 'unknown'), 0, $3,
           'skipped'
      FROM skipped s
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = s.event_at AND v.id = s.event_id"""
)

# What came after the resumption was never missed.
LIST_SKIPPED = sql(
    """
    SELECT id
      FROM webhook_queue
     WHERE company_id = $1 AND endpoint_id = $2 AND event_at < $3::text::timestamptz
     LIMIT $4"""
)


def find_progress(endpoint: Resumed) -> Progress | None:
    """None when nothing was done since it was resumed."""
    progress = endpoint.stored and msgspec.json.decode(endpoint.stored, type=Progress)
    return progress if progress and progress.resumed_at == endpoint.resumed_at else None


async def begin(database: Database, endpoint: Resumed, until: str) -> None:
    """All transactions that may have seen it paused were over at that time."""
    progress = Progress(endpoint.resumed_at, until, endpoint.since)
    async with lanes.steady(database) as tx:
        await FORGET_NEWEST.run(tx, endpoint.company_id, endpoint.endpoint_id)
        if endpoint.catch_up == Missed.LATEST:
            oldest = await FIND_OLDEST_HELD.value(tx, endpoint.company_id, endpoint.endpoint_id)
            progress.since = min(endpoint.since, oldest or endpoint.since)
        await _note(tx, endpoint, progress)


async def queue_batch(database: Database, endpoint: Resumed, progress: Progress) -> bool:
    """One step on; whether it was the last."""
    async with lanes.steady(database) as tx:
        step = _choose_step(endpoint, progress)
        is_last = await step(tx, endpoint, progress)
        await _note(tx, endpoint, progress)
    return is_last


def _choose_step(endpoint: Resumed, progress: Progress) -> Step:
    if endpoint.catch_up == Missed.SKIP:
        return _skip
    if endpoint.catch_up == Missed.ALL:
        return _queue_recorded
    if not progress.is_gathered:
        return _gather
    return _queue_newest if progress.is_sorted_out else _sort_out


async def _note(tx: Tx, endpoint: Resumed, progress: Progress) -> None:
    stored = msgspec.json.encode(progress).decode()
    noted = await NOTE.run(
        tx, endpoint.company_id, endpoint.endpoint_id, endpoint.catch_up, endpoint.resumed_at, stored
    )
    if not noted:
        raise Overtaken
    endpoint.stored = stored


async def _skip(tx: Tx, endpoint: Resumed, _: Progress) -> bool:
    rows = await tx.fetch(LIST_SKIPPED.text, endpoint.company_id, endpoint.endpoint_id, endpoint.resumed_at, BATCH)
    return await SKIP.run(tx, endpoint.company_id, [row[0] for row in rows], SKIPPED) < BATCH


async def _queue_recorded(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    page = await _list_recorded(tx, endpoint, progress)
    await _queue(tx, endpoint, page)
    return len(page) < BATCH


async def _list_recorded(tx: Tx, endpoint: Resumed, progress: Progress) -> list[MissedEvent]:
    page = await LIST_RECORDED.all(
        tx, endpoint.company_id, progress.since, progress.event_id, progress.until, endpoint.kinds, BATCH
    )
    if page:
        progress.since, progress.event_id = page[-1].created_at, page[-1].id
    return page


async def _gather(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    page = await _list_recorded(tx, endpoint, progress)
    newest = {event.resource_id: event for event in sorted(page, key=lambda event: event.number)}
    await GATHER.run(
        tx,
        endpoint.company_id,
        endpoint.endpoint_id,
        list(newest),
        [event.number for event in newest.values()],
        [event.id for event in newest.values()],
        [event.created_at for event in newest.values()],
    )
    progress.is_gathered = len(page) < BATCH
    return False


async def _sort_out(tx: Tx, endpoint: Resumed, progress: Progress) -> bool:
    """Held deliveries that something newer makes needless, delivered or not."""
    held = await LIST_HELD.all(
        tx, endpoint.company_id, endpoint.endpoint_id, progress.held_since, progress.held_id, BATCH
    )
    await SKIP.run(tx, endpoint.company_id, [delivery.id for delivery in held if delivery.is_outdated], SKIPPED)
    if held:
        progress.held_since, progress.held_id = held[-1].due_at, held[-1].id
    progress.is_sorted_out = len(held) < BATCH
    return False


async def _queue_newest(tx: Tx, endpoint: Resumed, _: Progress) -> bool:
    page = await LIST_NEWEST.all(tx, endpoint.company_id, endpoint.endpoint_id, BATCH)
    await _queue(tx, endpoint, page)
    await DROP_NEWEST.run(tx, endpoint.company_id, endpoint.endpoint_id, [event.resource_id for event in page])
    return len(page) < BATCH


async def _queue(tx: Tx, endpoint: Resumed, events: Sequence[MissedEvent]) -> None:
    """Those that neither wait nor were tried; the events come in the order of their time."""
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
