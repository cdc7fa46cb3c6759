"""How lanes and the queue are stored.

A worker leases the lane of an endpoint, not its deliveries: taking a delivery writes nothing, because nobody else
serves its lane meanwhile. The lane's epoch reveals a worker whose lease has ended.
"""

from collections.abc import Sequence

from sapa.db.due import WORKER, build_clock, build_is_waiting
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.webhooks.dispatch.types import (
    RETRY_SECONDS,
    AttemptResult,
    DueDelivery,
    DueLane,
    Grant,
    LockedLane,
    Suspension,
)
from sapa.webhooks.types import PROBE_SECONDS

# The queue may be empty now and long a second later. A plan made for the empty queue would read all of the long one.
USE_INDEXES = sql("SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)")

# For settling, a crash may lose the last commits: what is not settled is delivered again, under the same id.
USE_INDEXES_AND_COMMIT_LATE = sql(
    """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
           set_config('synchronous_commit', 'off', true)"""
)


_LANES = """
    SELECT lane.company_id, lane.endpoint_id, e.id IS NULL AS is_orphaned,
           extract(epoch FROM lane.due_at - now() - c.clock_offset)::float8 AS wait_seconds
      FROM lane
      JOIN companies c ON c.company_id = lane.company_id
      LEFT JOIN webhook_endpoints e ON e.company_id = lane.company_id AND e.id = lane.endpoint_id
      LEFT JOIN webhook_lanes l ON l.company_id = lane.company_id AND l.endpoint_id = lane.endpoint_id
     WHERE e.id IS NULL
        OR e.status = 'active' AND e.catch_up IS NULL AND (l.owner = $1 OR l.owner_until < now())"""
_EVERY_COMPANY = "the worker looks for due work over all companies, then serves company by company"

# Skips from lane to lane over the index, however long the lanes are.
LIST_LANES = sql(
    f"""
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
    ){_LANES}""",
    row=DueLane,
    crosses=_EVERY_COMPANY,
)

# The same where no query can go from shard to shard: each machine reads its own lanes.
LIST_LANES_OF_SHARDS = sql(
    f"""
    WITH lane AS (
        SELECT company_id, endpoint_id, min(due_at) AS due_at
          FROM webhook_queue
         GROUP BY company_id, endpoint_id
    ){_LANES}""",
    row=DueLane,
    crosses=_EVERY_COMPANY,
)


# Which lanes may be served, and when, is what LIST_LANES finds.
NEXT_DELIVERIES = sql(build_is_waiting("webhook_queue"), crosses=WORKER)
DELIVERIES = DueQueue("webhook deliveries", NEXT_DELIVERIES.text)

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
             JOIN unnest($2::text[], $3::bigint[]) AS leased (endpoint_id, epoch) USING (endpoint_id, epoch)
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
      FROM unnest($2::text[], $3::bigint[]) AS leased (endpoint_id, epoch)
     WHERE l.company_id = $1 AND l.endpoint_id = leased.endpoint_id AND l.epoch = leased.epoch AND l.owner = $4"""
)

FREE = sql(
    """
    UPDATE webhook_lanes
       SET owner = NULL, owner_until = '-infinity'
     WHERE owner IS NOT NULL AND split_part(owner, '/', 1) = ANY($1::text[])""",
    crosses="a worker that died had lanes of many companies",
)


# Every fourth place goes to a retry when one is due, however long the backlog; unused places go to the other kind.
# First attempts for one resource keep the order of its changes. Ties are read together, because within a millisecond
# only the event's number gives the order.
LIST_DUE = sql(
    """
    SELECT lane.endpoint_id, d.id, d.attempt, d.event_id, d.kind, d.resource_id, d.body,
           d.traceparent
      FROM unnest($2::text[], $3::integer[]) AS lane (endpoint_id, room)
     CROSS JOIN LATERAL (
           (SELECT w.id, w.attempt, w.event_id, v.kind, v.resource_id, v.body, v.traceparent,
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
           (SELECT w.id, w.attempt, w.event_id, v.kind, v.resource_id, v.body, v.traceparent,
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

DELETE_ORPHANS = sql(
    """
    WITH deleted AS (
        DELETE FROM webhook_queue q
         WHERE q.company_id = $1 AND q.endpoint_id = ANY($2)
           AND NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.company_id = $1 AND e.id = q.endpoint_id)
        RETURNING q.id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'webhook_queue', '', -count(*) FROM deleted HAVING count(*) > 0"""
)

# In one snapshot, so that changes and folding meanwhile are taken into account.
RECONCILE_COUNTER = sql(
    """
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT company_id, 'webhook_queue', '', sum(difference)
      FROM (SELECT company_id, count(*) AS difference FROM webhook_queue GROUP BY company_id
             UNION ALL
            SELECT company_id, -total FROM counter_cells WHERE counter = 'webhook_queue'
             UNION ALL
            SELECT company_id, -delta FROM counter_deltas WHERE counter = 'webhook_queue') AS differences
     GROUP BY company_id
    HAVING sum(difference) <> 0""",
    crosses="the worker corrects the counters of all companies",
)

LOCK_LANES = sql(
    """
    SELECT endpoint_id, owner, epoch, failures
      FROM webhook_lanes
     WHERE company_id = $1 AND endpoint_id = ANY($2)
     ORDER BY endpoint_id
       FOR UPDATE""",
    row=LockedLane,
)

_RESULTS = """
    unnest($2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::integer[], $7::smallint[], $8::text[],
           $9::text[], $10::text[], $11::bytea[], $12::text[])
        AS g (id, attempt, kind, started_at, milliseconds, status, error, message, address, response, outcome)"""

_INSERT_ATTEMPTS = """
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, status, error, message, address, response, outcome)
    SELECT $1, s.endpoint_id, g.started_at, s.id, g.attempt, s.event_id, s.event_at, g.kind, g.milliseconds, g.status,
           g.error, g.message, g.address, g.response, g.outcome
      FROM settled s
      JOIN results g ON g.id = s.id
    RETURNING delivery_id"""

FINISH = sql(
    f"""
    WITH results AS (SELECT * FROM {_RESULTS}), settled AS (
        DELETE FROM webhook_queue q
         USING results g
         WHERE q.company_id = $1 AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.id, q.endpoint_id, q.event_id, q.event_at
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'webhook_queue', '', -count(*) FROM settled HAVING count(*) > 0
    ){_INSERT_ATTEMPTS}"""
)

RETRY = sql(
    f"""
    WITH results AS (
        SELECT g.*, now() + c.clock_offset + make_interval(secs => ($13::integer[])[g.attempt]) AS due_at
          FROM companies c, {_RESULTS}
         WHERE c.company_id = $1
    ), settled AS (
        UPDATE webhook_queue q
           SET attempt = q.attempt + 1, due_at = g.due_at
          FROM results g
         WHERE q.company_id = $1 AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.id, q.endpoint_id, q.event_id, q.event_at
    ){_INSERT_ATTEMPTS}"""
)

POSTPONE = sql(
    f"""
    UPDATE webhook_queue q
       SET due_at = clock.later
      FROM {build_clock("make_interval(secs => $3)")}
     WHERE q.company_id = $1 AND q.id = ANY($2)"""
)

SET_FAILURES = sql("UPDATE webhook_lanes SET failures = $3 WHERE company_id = $1 AND endpoint_id = $2")

# Only the transaction that finds the endpoint active adds the notice. It goes by mail unless another one did since $6,
# the oldest id of that time.
SUSPEND = sql(
    f"""
    WITH suspended AS (
        UPDATE webhook_endpoints AS e
           SET status = 'suspended', reason = $3, missed_since = coalesce(e.missed_since, real.now),
               suspended_at = real.now, probes = 0,
               next_probe_at = CASE WHEN e.auto_resume THEN clock.later END,
               updated_at = GREATEST(real.now, e.updated_at)
          FROM (SELECT statement_timestamp() AS now) AS real, {build_clock(f"interval '{PROBE_SECONDS[0]} seconds'")}
         WHERE e.company_id = $1 AND e.id = $2 AND e.status = 'active'
        RETURNING e.id, e.url, e.description, e.auto_resume, e.suspended_at, e.next_probe_at
    ), noticed AS (
        INSERT INTO notices (company_id, id, kind, resource_id, message, mail_due_at)
        SELECT $1, $4, $5, s.id, $3,
               CASE WHEN NOT EXISTS (SELECT FROM notices n
                                      WHERE n.company_id = $1 AND n.id >= $6 AND n.kind = $5 AND n.resource_id = s.id
                                        AND (n.mail_due_at IS NOT NULL OR n.mail_tries > 0))
                    THEN now() END
          FROM suspended s
    )
    SELECT url, description, auto_resume, suspended_at, next_probe_at FROM suspended""",
    row=Suspension,
)


async def use_indexes(tx: Tx) -> None:
    await USE_INDEXES.value(tx)


async def use_indexes_and_commit_late(tx: Tx) -> None:
    await USE_INDEXES_AND_COMMIT_LATE.value(tx)


async def list_lanes(tx: Tx, owner: str, is_sharded: bool) -> list[DueLane]:
    """The lanes of all companies that this worker serves or could serve."""
    return await (LIST_LANES_OF_SHARDS if is_sharded else LIST_LANES).all(tx, owner)


async def acquire(
    db: Connection, company_id: int, endpoint_ids: Sequence[str], owner: str, seconds: float
) -> list[Grant]:
    """Leases those of the lanes that are free."""
    return await ACQUIRE.all(db, company_id, endpoint_ids, owner, seconds)


async def renew(db: Connection, company_id: int, epochs: dict[str, int], owner: str, seconds: float) -> set[str]:
    """The endpoints whose lanes this owner still leases, out of those given with their epochs."""
    renewed = await RENEW.all(db, company_id, list(epochs), list(epochs.values()), seconds, owner)
    return {grant.endpoint_id for grant in renewed}


async def release(db: Connection, company_id: int, epochs: dict[str, int], owner: str) -> None:
    await RELEASE.run(db, company_id, list(epochs), list(epochs.values()), owner)


async def free(tx: Tx, processes: Sequence[str]) -> None:
    await FREE.run(tx, processes)


async def list_due(tx: Tx, company_id: int, room: dict[str, int], excluded: Sequence[str]) -> list[DueDelivery]:
    """Due deliveries, as many for each endpoint as it has room for."""
    return await LIST_DUE.all(tx, company_id, list(room), list(room.values()), excluded)


async def delete_orphans(db: Connection, company_id: int, endpoint_ids: Sequence[str]) -> None:
    await DELETE_ORPHANS.run(db, company_id, endpoint_ids)


async def reconcile_counter(db: Connection) -> int:
    """How many companies' counters were wrong."""
    return await RECONCILE_COUNTER.run(db)


async def lock_lanes(tx: Tx, company_id: int, endpoint_ids: Sequence[str]) -> list[LockedLane]:
    return await LOCK_LANES.all(tx, company_id, endpoint_ids)


async def finish(tx: Tx, company_id: int, results: Sequence[AttemptResult]) -> list[str]:
    """Takes deliveries out of the queue and records their last attempts; the ids of those that were still queued."""
    rows = await tx.fetch(FINISH.text, company_id, *_build_columns(results)) if results else []
    return [row[0] for row in rows]


async def schedule_retry(tx: Tx, company_id: int, results: Sequence[AttemptResult]) -> list[str]:
    """Records failed attempts and sets when the next ones are due; the ids of deliveries that were still queued."""
    rows = await tx.fetch(RETRY.text, company_id, *_build_columns(results), RETRY_SECONDS) if results else []
    return [row[0] for row in rows]


def _build_columns(results: Sequence[AttemptResult]) -> list[list[object]]:
    rows = [
        (r.delivery_id, r.attempt, r.kind, r.started_at, r.milliseconds, r.status, r.error, r.message, r.address,
         r.response, r.outcome)
        for r in results
    ]  # fmt: skip
    return [list(column) for column in zip(*rows, strict=True)]


async def postpone(tx: Tx, company_id: int, ids: Sequence[str], seconds: int) -> None:
    await POSTPONE.run(tx, company_id, ids, seconds)


async def set_failures(tx: Tx, company_id: int, endpoint_id: str, failures: int) -> None:
    await SET_FAILURES.run(tx, company_id, endpoint_id, failures)


async def suspend(
    tx: Tx, company_id: int, endpoint_id: str, reason: str, notice_id: str, notice_kind: str, oldest_notice: str
) -> Suspension | None:
    """None when the endpoint was not active."""
    return await SUSPEND.find(tx, company_id, endpoint_id, reason, notice_id, notice_kind, oldest_notice)
