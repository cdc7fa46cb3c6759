"""Catching up: what a resumed endpoint gets of the events that it missed.

While an endpoint is paused or suspended its deliveries are held, and new events are recorded but not queued for it.
Once it is resumed this job puts into its queue what was chosen, and only then is it served again. It works in small
transactions and finds out anew what is left to do, so it may be stopped anywhere.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Iterable

from msgspec import Struct

from sapa.db.pool import Connection, Database, ring_after_commit
from sapa.db.sql import sql
from sapa.events import BELL, DELIVERY_ID
from sapa.webhooks import lanes
from sapa.webhooks.types import Missed

BATCH = 1000
# A run is cut short at 25 seconds; what it has not done by then waits for the next one.
RUN_SECONDS = 18.0
_LEASE_SECONDS = 60.0
_LOOK_SECONDS = 0.1
# In this time a statement that has its snapshot already gets its transaction's number, too.
_MOMENT_SECONDS = 0.25

SKIPPED = "skipped when the endpoint was resumed"


class Resumed(Struct, frozen=True):
    """An endpoint that is to catch up."""

    company_id: int
    endpoint_id: str
    kinds: list[str]
    catch_up: str
    since: str
    resumed_at: str


# A moment early, because times are kept in milliseconds; never from before there was an endpoint.
LIST_RESUMED = sql(
    """
    SELECT company_id, id AS endpoint_id, kinds, catch_up,
           GREATEST(missed_since - interval '1 second', created_at) AS since, resumed_at
      FROM webhook_endpoints
     WHERE catch_up IS NOT NULL AND status = 'active'
     ORDER BY resumed_at""",
    row=Resumed,
    crosses="the worker looks for resumed endpoints over all companies, then helps company by company",
)

NEXT_TO_BEGIN = sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")

ARE_OVER = sql("SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8")


class Held(Struct, frozen=True):
    """A delivery that waited; a resource of its own when its event is older than events are kept."""

    id: str
    event_id: str
    number: int
    resource_id: str


LIST_HELD = sql(
    """
    SELECT q.id, q.event_id, coalesce(v.number, 0) AS number, coalesce(v.resource_id, q.id) AS resource_id
      FROM webhook_queue q
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = q.event_at AND v.id = q.event_id
     WHERE q.company_id = $1 AND q.endpoint_id = $2""",
    row=Held,
)

# Attempts bear the worker's time, events the database's.
LIST_TRIED = sql(
    """
    SELECT DISTINCT event_id
      FROM webhook_attempts
     WHERE company_id = $1 AND endpoint_id = $2 AND started_at >= $3::text::timestamptz - interval '5 minutes'"""
)


class Recorded(Struct, frozen=True):
    id: str
    created_at: str
    number: int
    resource_id: str


LIST_RECORDED = sql(
    """
    SELECT id, created_at, number, resource_id
      FROM events
     WHERE company_id = $1 AND created_at >= $2::text::timestamptz
       AND (created_at, number) > ($2::text::timestamptz, $3) AND (kind = ANY($4::text[]) OR $4::text[] = '{}')
     ORDER BY created_at, number
     LIMIT $5""",
    row=Recorded,
)

# Due since they happened: before what happened later.
QUEUE = sql(
    """
    INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
    SELECT $1, m.id, $2, m.event_at, m.event_id, m.event_at
      FROM unnest($3::text[], $4::text[], $5::text[]::timestamptz[]) AS m (id, event_id, event_at)"""
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

END = sql(
    """
    UPDATE webhook_endpoints
       SET catch_up = NULL, missed_since = NULL, resumed_at = NULL
     WHERE company_id = $1 AND id = $2 AND catch_up = $3 AND resumed_at = $4::text::timestamptz"""
)


class OutOfTime(Exception):
    """The rest is for the next run."""


async def catch_up(database: Database) -> None:
    """The worker's job."""
    deadline = time.monotonic() + RUN_SECONDS
    async with database.connection() as db:
        resumed = await LIST_RESUMED.all(db)
    if not resumed or not await _are_others_over(database, deadline):
        return
    owner = f"catching up on {socket.gethostname()}:{os.getpid()}"
    for endpoint in resumed:
        try:
            await _help(database, endpoint, owner, deadline)
        except OutOfTime:
            return


async def _are_others_over(database: Database, deadline: float) -> bool:
    """Whether all transactions have ended that may have seen an endpoint as it was before it was resumed."""
    await asyncio.sleep(_MOMENT_SECONDS)
    async with database.connection() as db:
        next_to_begin = await NEXT_TO_BEGIN.value(db)
    while time.monotonic() < deadline:
        async with database.connection() as db:
            if await ARE_OVER.value(db, next_to_begin):
                return True
        await asyncio.sleep(_LOOK_SECONDS)
    return False


async def _help(database: Database, endpoint: Resumed, owner: str, deadline: float) -> None:
    """Under the lane's lease: nothing is under way to the endpoint, and nothing can be."""
    async with database.connection() as db:
        granted = await lanes.acquire(db, endpoint.company_id, [endpoint.endpoint_id], owner, _LEASE_SECONDS)
    if not granted:
        return
    try:
        if endpoint.catch_up == Missed.SKIP:
            await _skip_all(database, endpoint, deadline)
        else:
            await _queue_missed(database, endpoint, deadline)
        async with database.transaction() as tx:
            await END.run(tx, endpoint.company_id, endpoint.endpoint_id, endpoint.catch_up, endpoint.resumed_at)
            ring_after_commit(tx, BELL)
    finally:
        async with database.connection() as db:
            await lanes.release(db, endpoint.company_id, {endpoint.endpoint_id: granted[0].epoch}, owner)


async def _skip_all(database: Database, endpoint: Resumed, deadline: float) -> None:
    skipped = BATCH
    while skipped == BATCH:
        _check(deadline)
        async with lanes.steady(database) as tx:
            rows = await tx.fetch(
                LIST_SKIPPED.text, endpoint.company_id, endpoint.endpoint_id, endpoint.resumed_at, BATCH
            )
            skipped = await SKIP.run(tx, endpoint.company_id, [row[0] for row in rows], SKIPPED)


async def _queue_missed(database: Database, endpoint: Resumed, deadline: float) -> None:
    async with lanes.steady(database) as tx:
        held = await LIST_HELD.all(tx, endpoint.company_id, endpoint.endpoint_id)
        tried = await _list_tried(tx, endpoint)
    known = {delivery.event_id for delivery in held} | tried
    if endpoint.catch_up == Missed.LATEST:
        await _queue_latest(database, endpoint, held, known, deadline)
        return
    async for page in _missed(database, endpoint, known, deadline):
        await _queue(database, endpoint, page)


async def _queue_latest(
    database: Database, endpoint: Resumed, held: list[Held], known: set[str], deadline: float
) -> None:
    """Only the newest event of each resource, whether it was held or missed."""
    newest: dict[str, Recorded] = {}
    async for page in _missed(database, endpoint, known, deadline):
        newest |= {event.resource_id: event for event in page}
    outdated, latest = choose_latest(held, newest.values())
    for start in range(0, len(outdated), BATCH):
        _check(deadline)
        async with lanes.steady(database) as tx:
            await SKIP.run(tx, endpoint.company_id, outdated[start : start + BATCH], SKIPPED)
    for start in range(0, len(latest), BATCH):
        _check(deadline)
        await _queue(database, endpoint, latest[start : start + BATCH])


def choose_latest(held: Iterable[Held], missed: Iterable[Recorded]) -> tuple[list[str], list[Recorded]]:
    """The held deliveries that something newer makes needless, and the missed events that nothing does."""
    held, missed = list(held), list(missed)
    last: dict[str, int] = {}
    numbers = [(event.resource_id, event.number) for event in missed]
    for resource_id, number in numbers + [(delivery.resource_id, delivery.number) for delivery in held]:
        last[resource_id] = max(last.get(resource_id, 0), number)
    outdated = [delivery.id for delivery in held if delivery.number < last[delivery.resource_id]]
    return outdated, [event for event in missed if event.number == last[event.resource_id]]


async def _list_tried(db: Connection, endpoint: Resumed) -> set[str]:
    rows = await db.fetch(LIST_TRIED.text, endpoint.company_id, endpoint.endpoint_id, endpoint.since)
    return {row[0] for row in rows}


async def _missed(
    database: Database, endpoint: Resumed, known: set[str], deadline: float
) -> AsyncIterator[list[Recorded]]:
    """Events of the endpoint's kinds that it neither has nor had, in their order, a page at a time."""
    since, number = endpoint.since, 0
    while True:
        _check(deadline)
        async with database.connection() as db:
            page = await LIST_RECORDED.all(db, endpoint.company_id, since, number, endpoint.kinds, BATCH)
        yield [event for event in page if event.id not in known]
        if len(page) < BATCH:
            return
        since, number = page[-1].created_at, page[-1].number


async def _queue(database: Database, endpoint: Resumed, events: list[Recorded]) -> None:
    async with database.transaction() as tx:
        await QUEUE.run(
            tx,
            endpoint.company_id,
            endpoint.endpoint_id,
            [DELIVERY_ID.new() for _ in events],
            [event.id for event in events],
            [event.created_at for event in events],
        )


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise OutOfTime
