"""How due probes are found, counted and recorded."""

from sapa.db.due import WORKER, add_interval, build_clock, build_next_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.webhooks.dispatch.types import DueDelivery
from sapa.webhooks.probes.types import DueProbe, ProbeResult
from sapa.webhooks.types import PROBE_SECONDS

LIST_DUE = sql(
    """
    SELECT e.company_id, e.id AS endpoint_id
      FROM webhook_endpoints e
      JOIN companies c ON c.company_id = e.company_id
      JOIN webhook_lanes l ON l.company_id = e.company_id AND l.endpoint_id = e.id
     WHERE e.next_probe_at IS NOT NULL AND e.next_probe_at <= now() + c.clock_offset
       AND e.status = 'suspended' AND l.owner_until < now()
     ORDER BY e.next_probe_at
     LIMIT $1""",
    row=DueProbe,
    crosses="the worker looks for due probes over all companies, then probes company by company",
)

NEXT_PROBES = sql(build_next_due("webhook_endpoints", "next_probe_at", "status = 'suspended'"), crosses=WORKER)
PROBES = DueQueue("webhook probes", NEXT_PROBES.text)

# The first attempts by their due time, which is their event's; the retries, of which there are few, by their event's.
FIND_OLDEST = sql(
    """
    SELECT q.endpoint_id, q.id, q.attempt, q.event_id, v.kind, v.resource_id, v.body, v.traceparent
      FROM ((SELECT endpoint_id, id, attempt, event_id, event_at
               FROM webhook_queue
              WHERE company_id = $1 AND endpoint_id = $2 AND attempt = 1
              ORDER BY due_at
              FETCH FIRST 1 ROW WITH TIES)
            UNION ALL
            (SELECT endpoint_id, id, attempt, event_id, event_at
               FROM webhook_queue
              WHERE company_id = $1 AND endpoint_id = $2 AND attempt > 1
              ORDER BY event_at
              FETCH FIRST 1 ROW WITH TIES)) AS q
      LEFT JOIN events v ON v.company_id = $1 AND v.created_at = q.event_at AND v.id = q.event_id
     ORDER BY q.event_at, v.number
     LIMIT 1""",
    row=DueDelivery,
)

# The same events that a resumption finds: see LIST_EVENTS and QUEUE of replay.
QUEUE_OLDEST_MISSED = sql(
    """
    WITH queued AS (
        INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
        SELECT $1, $3, $2, missed.created_at, missed.id, missed.created_at
          FROM webhook_endpoints e
         CROSS JOIN LATERAL (
               SELECT v.id, v.created_at
                 FROM events v
                WHERE v.company_id = $1
                  AND v.created_at >= GREATEST(e.missed_since - interval '1 second', e.created_at + interval '1 ms')
                  AND (v.kind = ANY(e.kinds) OR e.kinds = '{}') AND v.resource_id <> $2
                  AND NOT EXISTS (SELECT FROM webhook_attempts a
                                   WHERE a.company_id = $1 AND a.endpoint_id = $2 AND a.event_id = v.id
                                     AND a.started_at >= e.missed_since - interval '5 minutes')
                ORDER BY v.created_at, v.number
                LIMIT 1) AS missed
         WHERE e.company_id = $1 AND e.id = $2
        RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'webhook_queue', '', 1 FROM queued"""
)

# Counted before it is sent: a process that dies meanwhile does not probe again at once. After the last comes none.
CLAIM = sql(
    f"""
    UPDATE webhook_endpoints AS e
       SET probes = e.probes + 1, next_probe_at = {add_interval("clock.now", "make_interval(secs => next.seconds)")}
      FROM {build_clock()}, unnest($3::integer[] || NULL::integer) WITH ORDINALITY AS next (seconds, place)
     WHERE e.company_id = $1 AND e.id = $2 AND e.status = 'suspended' AND e.next_probe_at <= clock.now
       AND next.place = LEAST(e.probes + 2, cardinality($3) + 1)"""
)

POSTPONE = sql(
    f"""
    UPDATE webhook_endpoints AS e
       SET next_probe_at = clock.later
      FROM {build_clock("make_interval(secs => $3)")}
     WHERE e.company_id = $1 AND e.id = $2 AND e.next_probe_at IS NOT NULL"""
)

_INSERT_ATTEMPT = """
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, status, error, message, address, response, outcome, is_probe)
    SELECT $1, p.endpoint_id, $5::timestamptz, p.id, p.attempt, p.event_id, p.event_at, $4, $6::integer, $7::smallint,
           $8, $9, $10, $11::bytea, $12, true
      FROM probed p"""

RECORD = sql(
    f"""
    WITH probed AS (
        SELECT id, endpoint_id, event_id, event_at, attempt
          FROM webhook_queue
         WHERE company_id = $1 AND id = $2 AND attempt = $3
    ){_INSERT_ATTEMPT}"""
)

FINISH = sql(
    f"""
    WITH probed AS (
        DELETE FROM webhook_queue
         WHERE company_id = $1 AND id = $2 AND attempt = $3
        RETURNING id, endpoint_id, event_id, event_at, attempt
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'webhook_queue', '', -1 FROM probed
    ){_INSERT_ATTEMPT}"""
)


async def list_due(db: Connection, limit: int) -> list[DueProbe]:
    """Suspended endpoints of all companies whose probe is due."""
    return await LIST_DUE.all(db, limit)


async def find_oldest(tx: Tx, company_id: int, endpoint_id: str) -> DueDelivery | None:
    """The oldest delivery that waits, with its event."""
    return await FIND_OLDEST.find(tx, company_id, endpoint_id)


async def queue_oldest_missed(tx: Tx, company_id: int, endpoint_id: str, delivery_id: str) -> bool:
    """Queues the oldest event that the endpoint missed; False when there is none."""
    return await QUEUE_OLDEST_MISSED.run(tx, company_id, endpoint_id, delivery_id) == 1


async def claim(tx: Tx, company_id: int, endpoint_id: str) -> bool:
    """Counts the probe and schedules the next; False when it is not due any more."""
    return await CLAIM.run(tx, company_id, endpoint_id, PROBE_SECONDS) == 1


async def postpone(tx: Tx, company_id: int, endpoint_id: str, seconds: int) -> None:
    await POSTPONE.run(tx, company_id, endpoint_id, seconds)


async def record(tx: Tx, company_id: int, delivery: DueDelivery, result: ProbeResult) -> bool:
    """Records the probe; one that settles the delivery takes it out of the queue. False when it is not queued."""
    statement = RECORD if result.outcome == "retrying" else FINISH
    return (
        await statement.run(
            tx, company_id, delivery.id, delivery.attempt, delivery.kind or "unknown", result.started_at,
            result.milliseconds, result.status, result.error, result.message, result.address, result.response,
            result.outcome,
        ) == 1
    )  # fmt: skip
