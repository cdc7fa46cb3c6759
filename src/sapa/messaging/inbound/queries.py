"""Queries for callbacks of channels, before and after they are processed."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

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


INSERT_LANE = sql(
    """
    INSERT INTO channel_lanes (company_id, connection_id, source) VALUES ($1, $2, $3)
        ON CONFLICT (company_id, connection_id) DO NOTHING"""
)

INSERT = sql(
    """
    INSERT INTO channel_callbacks (company_id, connection_id, hash, headers, body)
    VALUES ($1, $2, $3, $4::text::json, $5)
        ON CONFLICT (company_id, connection_id, hash) DO NOTHING"""
)

LIST_LANES = sql(
    """
    SELECT company_id, connection_id
      FROM channel_callbacks
     WHERE status = 'waiting' AND due_at <= now()
     GROUP BY company_id, connection_id
     ORDER BY min(id)
     LIMIT $1""",
    row=CallbackLane,
    crosses="the worker finds callbacks of all companies, then processes them company by company",
)

LOCK_LANE = sql("SELECT source FROM channel_lanes WHERE company_id = $1 AND connection_id = $2 FOR UPDATE SKIP LOCKED")

FIND_NEXT = sql(
    """
    SELECT id, body, position, tries
      FROM channel_callbacks
     WHERE company_id = $1 AND connection_id = $2 AND status = 'waiting' AND due_at <= now()
     ORDER BY id
     LIMIT 1""",
    row=StoredChannelCallback,
)

RECORD_PROGRESS = sql(
    """
    UPDATE channel_callbacks
       SET position = $3, status = CASE WHEN $4 THEN 'waiting' WHEN COALESCE($5, error) IS NULL THEN 'done'
                                        ELSE 'failed' END,
           error = COALESCE($5, error)
     WHERE company_id = $1 AND id = $2"""
)

POSTPONE = sql(
    """
    UPDATE channel_callbacks
       SET position = 0, tries = tries + 1, due_at = now() + make_interval(secs => $3), error = NULL
     WHERE company_id = $1 AND id = $2"""
)

REPLAY = sql(
    """
    UPDATE channel_callbacks
       SET status = 'waiting', position = 0, tries = 0, due_at = now(), error = NULL
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


async def insert_callback(
    tx: Tx, company_id: int, connection_id: str, source: str, hash: bytes, headers: Mapping[str, str], body: bytes
) -> bool:
    """True if it is new: channels repeat callbacks."""
    await INSERT_LANE.run(tx, company_id, connection_id, source)
    text = msgspec.json.encode(headers).decode().replace("\\u0000", "")
    return await INSERT.run(tx, company_id, connection_id, hash, text, body) > 0


async def list_lanes(db: Connection, limit: int) -> list[CallbackLane]:
    return await LIST_LANES.all(db, limit)


async def lock_lane(tx: Tx, lane: CallbackLane) -> bool:
    """False while another worker holds it."""
    return await LOCK_LANE.value(tx, lane.company_id, lane.connection_id) is not None


async def find_next(tx: Tx, lane: CallbackLane) -> StoredChannelCallback | None:
    return await FIND_NEXT.find(tx, lane.company_id, lane.connection_id)


async def record_progress(tx: Tx, company_id: int, id: int, position: int, is_left: bool, error: str | None) -> None:
    """`position` items are processed; `is_left` means that there are more."""
    await RECORD_PROGRESS.run(tx, company_id, id, position, is_left, error)


async def postpone(tx: Tx, company_id: int, id: int, by: timedelta) -> None:
    """Processes the whole callback again later; items that are stored already are recognised."""
    await POSTPONE.run(tx, company_id, id, by.total_seconds())


async def replay(tx: Tx, company_id: int, connection_id: str, since: datetime, until: datetime) -> int:
    return await REPLAY.run(tx, company_id, connection_id, since, until)


async def list_companies_to_purge(db: Connection) -> list[int]:
    return [record[0] for record in await db.fetch(LIST_TO_PURGE.text, RETENTION_DAYS)]


async def purge(tx: Tx, company_id: int, limit: int) -> int:
    return await PURGE.run(tx, company_id, RETENTION_DAYS, limit)
