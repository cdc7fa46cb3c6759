"""Lanes: who serves an endpoint, and what it is to get.

A worker leases the lane of an endpoint, not its deliveries: taking one up writes nothing, because nobody else serves
its lane meanwhile. Whoever comes back too late is told by the lane's epoch.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from sapa.db.pool import Connection, Database, Tx
from sapa.db.sql import sql

# The queue is empty now and long a moment later. A plan that was made for the empty one would read all of it.
STEADY = sql("SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)")

# For settling, a crash may also lose the last instants: what is not settled is delivered again, under the same id.
STEADY_AND_RELAXED = sql(
    """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
           set_config('synchronous_commit', 'off', true)"""
)


class DueLane(Struct, frozen=True):
    """A lane with something in it that this worker may serve."""

    company_id: int
    endpoint_id: str
    is_orphaned: bool
    """The endpoint was deleted while something was put into its lane."""
    wait_seconds: float
    """Until its next delivery is due, by company time; not above 0 when one is."""


# Jumps from lane to lane over the index, however long the lanes are.
LIST_LANES = sql(
    """
    WITH RECURSIVE lane AS (
        (SELECT company_id, endpoint_id, due_at
           FROM webhook_queue
          ORDER BY company_id, endpoint_id, due_at, id
          LIMIT 1)
        UNION ALL
        SELECT next.company_id, next.endpoint_id, next.due_at
          FROM lane
         CROSS JOIN LATERAL (
               SELECT q.company_id, q.endpoint_id, q.due_at
                 FROM webhook_queue q
                WHERE (q.company_id, q.endpoint_id) > (lane.company_id, lane.endpoint_id)
                ORDER BY q.company_id, q.endpoint_id, q.due_at, q.id
                LIMIT 1) AS next
    )
    SELECT lane.company_id, lane.endpoint_id, e.id IS NULL AS is_orphaned,
           extract(epoch FROM lane.due_at - now() - c.clock_offset)::float8 AS wait_seconds
      FROM lane
      JOIN companies c ON c.company_id = lane.company_id
      LEFT JOIN webhook_endpoints e ON e.company_id = lane.company_id AND e.id = lane.endpoint_id
      LEFT JOIN webhook_lanes l ON l.company_id = lane.company_id AND l.endpoint_id = lane.endpoint_id
     WHERE e.id IS NULL
        OR e.status = 'active' AND e.catch_up IS NULL AND (l.owner = $1 OR l.owner_until < now())""",
    row=DueLane,
    crosses="the worker looks for due work over all companies, then serves company by company",
)


class Grant(Struct, frozen=True):
    """The right to serve a lane, until another worker gets a higher epoch."""

    endpoint_id: str
    epoch: int
    failures: int


ACQUIRE = sql(
    """
    UPDATE webhook_lanes AS l
       SET owner = $3, epoch = epoch + 1, owner_until = now() + make_interval(secs => $4)
     WHERE l.company_id = $1
       AND l.endpoint_id IN (
           SELECT endpoint_id FROM webhook_lanes
            WHERE company_id = $1 AND endpoint_id = ANY($2) AND owner_until < now()
            ORDER BY endpoint_id
              FOR UPDATE SKIP LOCKED)
    RETURNING l.endpoint_id, l.epoch, l.failures""",
    row=Grant,
)

RENEW = sql(
    """
    UPDATE webhook_lanes AS l
       SET owner_until = now() + make_interval(secs => $4)
     WHERE l.company_id = $1
       AND (l.endpoint_id, l.epoch) IN (
           SELECT w.endpoint_id, w.epoch
             FROM webhook_lanes w
             JOIN unnest($2::text[], $3::bigint[]) AS held (endpoint_id, epoch) USING (endpoint_id, epoch)
            WHERE w.company_id = $1 AND w.owner = $5 AND w.owner_until > now()
            ORDER BY w.endpoint_id
              FOR UPDATE OF w)
    RETURNING l.endpoint_id, l.epoch, l.failures""",
    row=Grant,
)

RELEASE = sql(
    """
    UPDATE webhook_lanes AS l
       SET owner = NULL, owner_until = '-infinity'
      FROM unnest($2::text[], $3::bigint[]) AS held (endpoint_id, epoch)
     WHERE l.company_id = $1 AND l.endpoint_id = held.endpoint_id AND l.epoch = held.epoch AND l.owner = $4"""
)


class DueDelivery(Struct, frozen=True):
    """One event that is due at one endpoint. Kind and body are gone when the event is older than events are kept."""

    endpoint_id: str
    id: str
    attempt: int
    event_id: str
    kind: str | None
    resource_id: str | None
    body: bytes | None


# Every fourth place is a retry's when one is due, however long the backlog; what one of them leaves is the others'.
# First tries of one resource go in the order in which it changed. Ties are read together, because within a millisecond
# only the event's number knows.
FILL = sql(
    """
    SELECT lane.endpoint_id, d.id, d.attempt, d.event_id, d.kind, d.resource_id, d.body
      FROM unnest($2::text[], $3::integer[]) AS lane (endpoint_id, room)
     CROSS JOIN LATERAL (
           (SELECT w.id, w.attempt, w.event_id, v.kind, v.resource_id, v.body,
                   row_number() OVER win + (row_number() OVER win + 2) / 3 AS place
              FROM (SELECT q.id, q.attempt, q.due_at, q.event_id, q.event_at
                      FROM webhook_queue q
                     WHERE q.company_id = $1 AND q.endpoint_id = lane.endpoint_id AND q.attempt = 1
                       AND q.due_at <= (SELECT now() + clock_offset FROM companies WHERE company_id = $1)
                       AND q.id <> ALL($4::text[])
                     ORDER BY q.due_at
                     FETCH FIRST lane.room ROWS WITH TIES) AS w
              LEFT JOIN events v ON v.company_id = $1 AND v.created_at = w.event_at AND v.id = w.event_id
            WINDOW win AS (ORDER BY w.due_at, v.number))
           UNION ALL
           (SELECT w.id, w.attempt, w.event_id, v.kind, v.resource_id, v.body,
                   row_number() OVER (ORDER BY w.due_at, w.id) * 4 - 3
              FROM (SELECT q.id, q.attempt, q.due_at, q.event_id, q.event_at
                      FROM webhook_queue q
                     WHERE q.company_id = $1 AND q.endpoint_id = lane.endpoint_id AND q.attempt > 1
                       AND q.due_at <= (SELECT now() + clock_offset FROM companies WHERE company_id = $1)
                       AND q.id <> ALL($4::text[])
                     ORDER BY q.due_at
                     LIMIT lane.room) AS w
              LEFT JOIN events v ON v.company_id = $1 AND v.created_at = w.event_at AND v.id = w.event_id)
            ORDER BY place
            LIMIT lane.room) AS d
     ORDER BY lane.endpoint_id, d.place""",
    row=DueDelivery,
)

DROP_ORPHANS = sql(
    """
    DELETE FROM webhook_queue q
     WHERE q.company_id = $1 AND q.endpoint_id = ANY($2)
       AND NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.company_id = $1 AND e.id = q.endpoint_id)"""
)


@asynccontextmanager
async def steady(database: Database, *, is_relaxed: bool = False) -> AsyncIterator[Tx]:
    """A transaction whose statements read the queue by its indexes, whatever the planner believes of its length."""
    async with database.transaction() as tx:
        await (STEADY_AND_RELAXED if is_relaxed else STEADY).value(tx)
        yield tx


async def list_lanes(tx: Tx, owner: str) -> list[DueLane]:
    """The lanes of all companies that this worker serves or could serve."""
    return await LIST_LANES.all(tx, owner)


async def acquire(
    db: Connection, company_id: int, endpoint_ids: Sequence[str], owner: str, seconds: float
) -> list[Grant]:
    """Those of the lanes that nobody serves."""
    return await ACQUIRE.all(db, company_id, endpoint_ids, owner, seconds)


async def renew(db: Connection, company_id: int, held: dict[str, int], owner: str, seconds: float) -> set[str]:
    """The endpoints whose lanes are still ours, out of those held by endpoint and epoch."""
    renewed = await RENEW.all(db, company_id, list(held), list(held.values()), seconds, owner)
    return {grant.endpoint_id for grant in renewed}


async def release(db: Connection, company_id: int, held: dict[str, int], owner: str) -> None:
    await RELEASE.run(db, company_id, list(held), list(held.values()), owner)


async def fill(tx: Tx, company_id: int, room: dict[str, int], known: Sequence[str]) -> list[DueDelivery]:
    """What is due in the lanes, as much as each has room for, without what is known already."""
    return await FILL.all(tx, company_id, list(room), list(room.values()), known)


async def drop_orphans(db: Connection, company_id: int, endpoint_ids: Sequence[str]) -> None:
    await DROP_ORPHANS.run(db, company_id, endpoint_ids)
