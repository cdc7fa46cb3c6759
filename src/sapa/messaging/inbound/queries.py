"""Queries for callbacks of channels, before and after they are processed."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from sapa.access.statement_parts import CLOCK
from sapa.access.types import CompanyClock
from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue

RETENTION_DAYS = 30


class CallbackLane(Struct, frozen=True):
    """A connection with callbacks to process."""

    company_id: int
    connection_id: str


class StoredChannelCallback(Struct, frozen=True):
    id: int
    body: bytes
    position: int
    tries: int
    """Including the current one."""
    postponements: int
    error: str | None
    due: int
    """How many callbacks of the connection are due, up to one more than may be claimed."""


class FailedCallback(Struct, frozen=True):
    """A callback that was set aside."""

    id: int
    size: int
    tries: int
    error: str | None
    received_at: str


class ReceivedCallback(Struct, frozen=True):
    """The fields are the columns of INSERT."""

    connection_id: str
    source: str
    hash: bytes
    headers: str
    body: bytes


# Callbacks in the order of their arrival, and their lanes, which the first ones create. A lane that there is is not
# inserted in vain: that would wait for a worker's transaction that has the lane at the time.
INSERT = sql(
    """
    WITH lanes AS (
        INSERT INTO channel_lanes (company_id, connection_id, source)
        SELECT $1, connection_id, min(source)
          FROM unnest($2::text[], $3::text[]) AS r (connection_id, source)
         WHERE NOT EXISTS (SELECT FROM channel_lanes l WHERE l.company_id = $1 AND l.connection_id = r.connection_id)
         GROUP BY connection_id
         ORDER BY connection_id
            ON CONFLICT (company_id, connection_id) DO NOTHING
    )
    INSERT INTO channel_callbacks (company_id, connection_id, hash, headers, body)
    SELECT $1, connection_id, hash, headers::json, body
      FROM unnest($2::text[], $4::bytea[], $5::text[], $6::bytea[])
           WITH ORDINALITY AS r (connection_id, hash, headers, body, place)
     ORDER BY place
        ON CONFLICT (company_id, connection_id, hash) DO NOTHING"""
)

# Without those that another worker holds: they would be looked at again and again.
LIST_LANES = sql(
    """
    SELECT c.company_id, c.connection_id
      FROM channel_callbacks c
      JOIN channel_lanes l ON l.company_id = c.company_id AND l.connection_id = c.connection_id
     WHERE c.status = 'waiting' AND c.due_at <= now()
       AND (l.holder = $1 OR l.leased_until IS NULL OR l.leased_until < statement_timestamp())
     GROUP BY c.company_id, c.connection_id
     ORDER BY min(c.id)
     LIMIT $2""",
    row=CallbackLane,
    crosses="the worker finds callbacks of all companies, then processes them company by company",
)

NEXT_CALLBACKS = sql(build_next_real_due("channel_callbacks", "due_at", "status = 'waiting'"), crosses=WORKER)
CALLBACKS = DueQueue("inbound", NEXT_CALLBACKS.text)

LEASE_LANE = sql(
    """
    UPDATE channel_lanes
       SET holder = $3, leased_until = statement_timestamp() + make_interval(secs => $4)
     WHERE company_id = $1 AND connection_id = (
           SELECT connection_id
             FROM channel_lanes
            WHERE company_id = $1 AND connection_id = $2
              AND (holder = $3 OR leased_until IS NULL OR leased_until < statement_timestamp())
              FOR UPDATE SKIP LOCKED)
    RETURNING claimed"""
)

# Also a lock: nobody else takes the lane before the transaction ends.
EXTEND_LEASE = sql(
    f"""
    WITH {CLOCK}
    UPDATE channel_lanes
       SET leased_until = statement_timestamp() + make_interval(secs => $4)
      FROM clock
     WHERE company_id = $1 AND connection_id = $2 AND holder = $3
    RETURNING clock.now, clock.real""",
    row=CompanyClock,
)

RELEASE_LANE = sql(
    """
    UPDATE channel_lanes
       SET holder = NULL, leased_until = NULL, claimed = '{}'
     WHERE company_id = $1 AND connection_id = $2 AND holder = $3"""
)

FREE_LANES = sql(
    """
    UPDATE channel_lanes
       SET holder = NULL, leased_until = NULL
     WHERE holder IS NOT NULL AND split_part(holder, '/', 1) = ANY($1::text[])""",
    crosses="a worker that died had lanes of many companies",
)

# The oldest one, and those right behind it as long as all are tried for the first time: one that failed, or whose
# worker died with it, is tried alone. They are noted in the lane's row and not in their own, which are long and have
# five indexes.
CLAIM_NEXT = sql(
    """
    WITH due AS (
        SELECT id, body, position, tries, postponements, error
          FROM channel_callbacks
         WHERE company_id = $1 AND connection_id = $2 AND status = 'waiting' AND due_at <= now()
         ORDER BY id
         LIMIT $3 + 1),
    next AS (
        SELECT *
          FROM (SELECT due.*, row_number() OVER oldest AS place, bool_and(tries = 0) OVER oldest AS are_new,
                       sum(octet_length(body)) OVER oldest AS size
                  FROM due
                WINDOW oldest AS (ORDER BY id)) AS placed
         WHERE place = 1 OR (are_new AND place <= $3 AND size <= $4)),
    noted AS (
        UPDATE channel_lanes
           SET claimed = ARRAY(SELECT id FROM next)
         WHERE company_id = $1 AND connection_id = $2)
    SELECT id, body, position, tries + 1 AS tries, postponements, error, (SELECT count(*) FROM due) AS due
      FROM next
     ORDER BY id""",
    row=StoredChannelCallback,
)

COUNT_TRIES = sql(
    """
    UPDATE channel_callbacks
       SET tries = tries + 1
     WHERE company_id = $1 AND id = ANY($2::bigint[]) AND status = 'waiting'"""
)

RECORD_PROGRESS = sql("UPDATE channel_callbacks SET position = $3, error = $4 WHERE company_id = $1 AND id = $2")

FINISH = sql(
    """
    WITH released AS (
        UPDATE channel_lanes
           SET claimed = $6, holder = CASE WHEN $6::bigint[] <> '{}' THEN holder END,
               leased_until = CASE WHEN $6::bigint[] <> '{}' THEN leased_until END
         WHERE company_id = $1 AND connection_id = $4 AND holder = $5)
    UPDATE channel_callbacks AS c
       SET position = done.position, status = 'done', tries = tries + 1, error = NULL
      FROM unnest($2::bigint[], $3::int[]) AS done (id, position)
     WHERE c.company_id = $1 AND c.id = done.id"""
)

SET_ASIDE = sql(
    """
    UPDATE channel_callbacks
       SET status = 'failed', tries = tries + 1, error = $3
     WHERE company_id = $1 AND id = $2"""
)

RETRY_LATER = sql(
    """
    UPDATE channel_callbacks
       SET position = 0, tries = tries + 1, due_at = now() + make_interval(secs => $3), error = $4
     WHERE company_id = $1 AND id = $2"""
)

POSTPONE = sql(
    """
    UPDATE channel_callbacks
       SET position = 0, postponements = postponements + 1, due_at = now() + make_interval(secs => $3), error = NULL
     WHERE company_id = $1 AND id = $2"""
)

LIST_FAILED = sql(
    """
    SELECT id, octet_length(body) AS size, tries, error, received_at
      FROM channel_callbacks
     WHERE company_id = $1 AND connection_id = $2 AND status = 'failed'
     ORDER BY id DESC
     LIMIT $3""",
    row=FailedCallback,
)

COUNT_FAILED = sql(
    """
    SELECT connection_id, count(*)
      FROM channel_callbacks
     WHERE company_id = $1 AND status = 'failed'
     GROUP BY connection_id"""
)

RETRY_FAILED = sql(
    """
    UPDATE channel_callbacks
       SET status = 'waiting', position = 0, tries = 0, postponements = 0, due_at = now(), error = NULL
     WHERE company_id = $1 AND connection_id = $2 AND status = 'failed' AND ($3::bigint IS NULL OR id = $3)"""
)

REPLAY = sql(
    """
    UPDATE channel_callbacks
       SET status = 'waiting', position = 0, tries = 0, postponements = 0, due_at = now(), error = NULL
     WHERE company_id = $1 AND connection_id = $2 AND received_at >= $3 AND received_at < $4"""
)

LIST_TO_PURGE = sql(
    "SELECT DISTINCT company_id FROM channel_callbacks WHERE received_at < now() - make_interval(days => $1)",
    crosses="the worker purges old callbacks of all companies",
)

PURGE = sql(
    """
    DELETE FROM channel_callbacks
     WHERE company_id = $1 AND id IN (
           SELECT id FROM channel_callbacks
            WHERE company_id = $1 AND status <> 'waiting' AND received_at < now() - make_interval(days => $2)
            ORDER BY received_at LIMIT $3)"""
)


def build_received(connection_id: str, source: str, headers: Mapping[str, str], body: bytes) -> ReceivedCallback:
    text = msgspec.json.encode(headers).decode().replace("\\u0000", "")
    return ReceivedCallback(connection_id, source, sha256(body).digest(), text, body)


async def insert_callbacks(tx: Tx, company_id: int, received: Sequence[ReceivedCallback]) -> None:
    """Those that are new: channels repeat callbacks."""
    announce_due(tx, CALLBACKS)
    await INSERT.run(tx, company_id, *zip(*map(structs.astuple, received), strict=True))


async def list_lanes(db: Connection, holder: str, limit: int) -> list[CallbackLane]:
    """Those with callbacks that the holder could process now, longest waiting first."""
    return await LIST_LANES.all(db, holder, limit)


async def lease_lane(tx: Tx, lane: CallbackLane, holder: str, seconds: float) -> list[int] | None:
    """The callbacks that were begun and never finished; None while another worker holds the lane."""
    claimed: list[int] | None = await LEASE_LANE.value(tx, lane.company_id, lane.connection_id, holder, seconds)
    return claimed


async def extend_lease(tx: Tx, lane: CallbackLane, holder: str, seconds: float) -> CompanyClock | None:
    """The company's time; None if the lease ended and another worker took the lane."""
    return await EXTEND_LEASE.find(tx, lane.company_id, lane.connection_id, holder, seconds)


async def free_lanes(tx: Tx, processes: Sequence[str]) -> None:
    """Those of workers that died."""
    await FREE_LANES.run(tx, processes)


async def release_lane(tx: Tx, lane: CallbackLane, holder: str) -> None:
    """What is still claimed has not had its try."""
    await RELEASE_LANE.run(tx, lane.company_id, lane.connection_id, holder)


async def claim_next(tx: Tx, lane: CallbackLane, limit: int, max_bytes: int) -> list[StoredChannelCallback]:
    """The oldest callbacks that are due. Their try is counted when it ends."""
    return await CLAIM_NEXT.all(tx, lane.company_id, lane.connection_id, limit, max_bytes)


async def count_tries(tx: Tx, company_id: int, ids: Sequence[int]) -> None:
    """Of callbacks that were begun and not finished."""
    await COUNT_TRIES.run(tx, company_id, ids)


async def record_progress(tx: Tx, company_id: int, id: int, position: int, error: str | None) -> None:
    """`position` items are processed, and there are more."""
    await RECORD_PROGRESS.run(tx, company_id, id, position, error)


async def finish(tx: Tx, lane: CallbackLane, holder: str, positions: Mapping[int, int], left: Sequence[int]) -> None:
    """Callbacks by their ids, with the number of their items. The lane is released unless claimed ones are `left`."""
    ids, counts = list(positions), list(positions.values())
    await FINISH.run(tx, lane.company_id, ids, counts, lane.connection_id, holder, left)


async def set_aside(tx: Tx, company_id: int, id: int, error: str) -> None:
    await SET_ASIDE.run(tx, company_id, id, error)


async def retry_later(tx: Tx, company_id: int, id: int, by: timedelta, error: str) -> None:
    """Processes the whole callback again later; items that are stored already are recognised."""
    await RETRY_LATER.run(tx, company_id, id, by.total_seconds(), error)


async def postpone(tx: Tx, company_id: int, id: int, by: timedelta) -> None:
    """The same for a callback that came too early, which is not a failure."""
    await POSTPONE.run(tx, company_id, id, by.total_seconds())


async def list_failed(db: Connection, company_id: int, connection_id: str, limit: int) -> list[FailedCallback]:
    """The newest first."""
    return await LIST_FAILED.all(db, company_id, connection_id, limit)


async def count_failed(db: Connection, company_id: int) -> dict[str, int]:
    """By connection."""
    return {record[0]: record[1] for record in await db.fetch(COUNT_FAILED.text, company_id)}


async def retry_failed(tx: Tx, company_id: int, connection_id: str, id: int | None) -> int:
    """One of them, or all."""
    return await RETRY_FAILED.run(tx, company_id, connection_id, id)


async def replay(tx: Tx, company_id: int, connection_id: str, since: datetime, until: datetime) -> int:
    announce_due(tx, CALLBACKS)
    return await REPLAY.run(tx, company_id, connection_id, since, until)


async def list_companies_to_purge(db: Connection) -> list[int]:
    return [record[0] for record in await db.fetch(LIST_TO_PURGE.text, RETENTION_DAYS)]


async def purge(tx: Tx, company_id: int, limit: int) -> int:
    return await PURGE.run(tx, company_id, RETENTION_DAYS, limit)
