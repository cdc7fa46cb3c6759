"""Settling: what came of attempts becomes history, the next try, or the end of an endpoint's patience.

Attempts are settled in batches, a transaction for each company. Only what a batch really changes is recorded and
counted, so settling the same attempt again after a lost connection does nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Database, Tx
from sapa.db.sql import sql
from sapa.values.ids import IdKind
from sapa.webhooks.lanes import steady

NOTICE_ID = IdKind("ntc_")

RETRY_SECONDS = (30, 5 * 60, 30 * 60, 2 * 3600)
"""From the end of a failed attempt to the next."""
MOST_ATTEMPTS = len(RETRY_SECONDS) + 1
MOST_FAILURES = 10
"""Failed attempts in a row, over all deliveries of an endpoint, after which it is suspended."""

SUSPENDED = "webhook.suspended"


class Result(Struct, frozen=True):
    """What came of one attempt, and under which right it was made."""

    company_id: int
    endpoint_id: str
    epoch: int
    delivery_id: str
    attempt: int
    kind: str
    started_at: datetime
    milliseconds: int
    status: int | None
    error: str | None
    message: str | None
    address: str | None
    response: bytes
    is_ours: bool = False
    """The receiver had no part in it: it neither uses up an attempt nor counts as a failure."""
    is_final: bool = False
    """Another attempt would be in vain."""

    @property
    def is_counted(self) -> bool:
        """Whether it adds to the run of failures, or ends it."""
        return not self.is_ours and not self.is_final

    @property
    def outcome(self) -> str:
        if self.error is None:
            return "delivered"
        return "failed" if self.is_final or self.attempt >= MOST_ATTEMPTS else "retrying"


class LockedLane(Struct, frozen=True):
    endpoint_id: str
    owner: str | None
    epoch: int
    failures: int


LOCK_LANES = sql(
    """
    SELECT endpoint_id, owner, epoch, failures
      FROM webhook_lanes
     WHERE company_id = $1 AND endpoint_id = ANY($2)
     ORDER BY endpoint_id
       FOR UPDATE""",
    row=LockedLane,
)

_GIVEN = """
    unnest($2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::integer[], $7::smallint[], $8::text[],
           $9::text[], $10::text[], $11::bytea[], $12::text[])
        AS g (id, attempt, kind, started_at, milliseconds, status, error, message, address, response, outcome)"""

_RECORDED = """
    INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id, event_at, kind,
                                  milliseconds, status, error, message, address, response, outcome)
    SELECT $1, s.endpoint_id, g.started_at, s.id, g.attempt, s.event_id, s.event_at, g.kind, g.milliseconds, g.status,
           g.error, g.message, g.address, g.response, g.outcome
      FROM settled s
      JOIN given g ON g.id = s.id
    RETURNING delivery_id"""

FINISH = sql(
    f"""
    WITH given AS (SELECT * FROM {_GIVEN}), settled AS (
        DELETE FROM webhook_queue q
         USING given g
         WHERE q.company_id = $1 AND q.id = g.id AND q.attempt = g.attempt
        RETURNING q.id, q.endpoint_id, q.event_id, q.event_at
    ){_RECORDED}"""
)

RETRY = sql(
    f"""
    WITH given AS (SELECT * FROM {_GIVEN}), settled AS (
        UPDATE webhook_queue q
           SET attempt = q.attempt + 1,
               due_at = now() + c.clock_offset + make_interval(secs => ($13::integer[])[g.attempt])
          FROM given g, companies c
         WHERE q.company_id = $1 AND q.id = g.id AND q.attempt = g.attempt AND c.company_id = $1
        RETURNING q.id, q.endpoint_id, q.event_id, q.event_at
    ){_RECORDED}"""
)

POSTPONE = sql(
    """
    UPDATE webhook_queue q
       SET due_at = now() + c.clock_offset + make_interval(secs => $3)
      FROM companies c
     WHERE q.company_id = $1 AND q.id = ANY($2) AND c.company_id = $1"""
)

COUNT_FAILURES = sql("UPDATE webhook_lanes SET failures = $3 WHERE company_id = $1 AND endpoint_id = $2")

# Whoever finds it active is the one who tells.
SUSPEND = sql(
    """
    WITH suspended AS (
        UPDATE webhook_endpoints
           SET status = 'suspended', reason = $3, missed_since = coalesce(missed_since, now()),
               updated_at = GREATEST(clock_timestamp(), updated_at)
         WHERE company_id = $1 AND id = $2 AND status = 'active'
        RETURNING id
    )
    INSERT INTO notices (company_id, id, kind, resource_id, message)
    SELECT $1, $4, $5, id, $3 FROM suspended"""
)


async def settle(database: Database, company_id: int, owner: str, results: Sequence[Result]) -> list[str]:
    """Records one company's results, in the order in which they came; the endpoints that are suspended by them."""
    async with steady(database, is_relaxed=True) as tx:
        lanes = await _lock_lanes(tx, company_id, results)
        is_held = [_is_held(lanes.get(result.endpoint_id), owner, result.epoch) for result in results]
        # A late comer's success is one all the same. What else it has to say is the present owner's to find out.
        valid = [result for result, held in zip(results, is_held, strict=True) if held or result.error is None]
        moved = await _move(tx, company_id, valid)
        counted = [
            result for result, held in zip(results, is_held, strict=True) if held and result.delivery_id in moved
        ]
        return await _count(tx, company_id, lanes, counted)


async def _lock_lanes(tx: Tx, company_id: int, results: Sequence[Result]) -> dict[str, LockedLane]:
    wanted = {result.endpoint_id for result in results}
    return {lane.endpoint_id: lane for lane in await LOCK_LANES.all(tx, company_id, list(wanted))}


def _is_held(lane: LockedLane | None, owner: str, epoch: int) -> bool:
    return lane is not None and (lane.owner, lane.epoch) == (owner, epoch)


async def _move(tx: Tx, company_id: int, results: Sequence[Result]) -> set[str]:
    """Out of the queue, or to their next try; the deliveries that really moved."""
    ours = [result.delivery_id for result in results if result.is_ours]
    if ours:
        await POSTPONE.run(tx, company_id, ours, RETRY_SECONDS[0])
    theirs = [result for result in results if not result.is_ours]
    again = [result for result in theirs if result.outcome == "retrying"]
    done = [result for result in theirs if result.outcome != "retrying"]
    moved = await tx.fetch(FINISH.text, company_id, *_columns(done)) if done else []
    moved += await tx.fetch(RETRY.text, company_id, *_columns(again), RETRY_SECONDS) if again else []
    return {row[0] for row in moved}


def _columns(results: Sequence[Result]) -> list[list[object]]:
    rows = [
        (r.delivery_id, r.attempt, r.kind, r.started_at, r.milliseconds, r.status, r.error, r.message, r.address,
         r.response, r.outcome)
        for r in results
    ]  # fmt: skip
    return [list(column) for column in zip(*rows, strict=True)]


async def _count(tx: Tx, company_id: int, lanes: dict[str, LockedLane], results: Iterable[Result]) -> list[str]:
    by_endpoint: dict[str, list[Result]] = {}
    for result in results:
        if result.is_counted:
            by_endpoint.setdefault(result.endpoint_id, []).append(result)
    suspended = []
    for endpoint_id, mine in by_endpoint.items():
        failures, is_over = fold_failures(lanes[endpoint_id].failures, [result.error is not None for result in mine])
        if failures != lanes[endpoint_id].failures:
            await COUNT_FAILURES.run(tx, company_id, endpoint_id, failures)
        if is_over and await _suspend(tx, company_id, endpoint_id, mine):
            suspended.append(endpoint_id)
    return suspended


def fold_failures(failures: int, outcomes: Iterable[bool]) -> tuple[int, bool]:
    """The run of failures after more attempts, True for each that failed, and whether it ever was too long."""
    is_over = False
    for failed in outcomes:
        failures = failures + 1 if failed else 0
        is_over = is_over or failures >= MOST_FAILURES
    return failures, is_over


async def _suspend(tx: Tx, company_id: int, endpoint_id: str, results: Sequence[Result]) -> bool:
    last = next(result.message for result in reversed(results) if result.error is not None)
    reason = f"{MOST_FAILURES} attempts in a row failed, so deliveries are held. The last failure: {last}"
    return await SUSPEND.run(tx, company_id, endpoint_id, reason, NOTICE_ID.new(), SUSPENDED) == 1
