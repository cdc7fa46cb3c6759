"""Queries for the statuses of accounts with channels."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx, announce_due
from sapa.db.sql import sql
from sapa.db.wakeups import DueQueue
from sapa.messaging.channel_status.types import DueCheck, StoredStatus, StoredWarning
from sapa.messaging.channels.account_reports import Quality, WarningSeverity
from sapa.messaging.channels.interface import Source
from sapa.messaging.connections.accounts import ConnectedChannel

_COLUMNS = ", ".join(StoredStatus.__struct_fields__)
_WARNING_COLUMNS = ", ".join(StoredWarning.__struct_fields__)


class ShownStatus(Struct, frozen=True):
    """A status for people."""

    connection_id: str
    source: Source
    connected_number: str
    quality: Quality | None
    messaging_limit: int | None
    throughput: str | None
    updated_at: str
    checked_at: str | None


class ShownWarning(Struct, frozen=True):
    connection_id: str
    code: str
    severity: WarningSeverity
    message: str
    reported_at: str
    expires_at: str | None


ENSURE = sql(
    """
    INSERT INTO channel_statuses AS s (company_id, connection_id, source, connected_number) VALUES ($1, $2, $3, $4)
        ON CONFLICT (company_id, connection_id) DO UPDATE
       SET connected_number = excluded.connected_number
     WHERE s.connected_number <> excluded.connected_number"""
)

LOCK = sql(
    f"SELECT {_COLUMNS} FROM channel_statuses WHERE company_id = $1 AND connection_id = $2 FOR NO KEY UPDATE",
    row=StoredStatus,
)

UPDATE = sql(
    """
    UPDATE channel_statuses
       SET quality = $3, quality_at = $4, messaging_limit = $5, messaging_limit_at = $6, throughput = $7,
           throughput_at = $8
     WHERE company_id = $1 AND connection_id = $2"""
)

RECORD_CHANGE = sql("UPDATE channel_statuses SET updated_at = $3 WHERE company_id = $1 AND connection_id = $2")

REQUEST_CHECK = sql("UPDATE channel_statuses SET check_at = now() WHERE company_id = $1 AND connection_id = $2")

RECORD_CHECK = sql("UPDATE channel_statuses SET checked_at = $3 WHERE company_id = $1 AND connection_id = $2")

LIST_WARNINGS = sql(
    f"SELECT {_WARNING_COLUMNS} FROM channel_warnings WHERE company_id = $1 AND connection_id = $2", row=StoredWarning
)

PUT_WARNING = sql(
    """
    INSERT INTO channel_warnings (company_id, connection_id, code, severity, message, reported_at, expires_at, is_over)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (company_id, connection_id, code) DO UPDATE
       SET severity = excluded.severity, message = excluded.message, reported_at = excluded.reported_at,
           expires_at = excluded.expires_at, is_over = excluded.is_over"""
)

# Accounts of test companies are not stored, and always connected.
LIST = sql(
    """
    SELECT connection_id, source, connected_number, quality, messaging_limit, throughput, updated_at, checked_at
      FROM channel_statuses s
     WHERE company_id = $1 AND NOT EXISTS (
           SELECT FROM channel_connections
            WHERE company_id = $1 AND id = s.connection_id AND status <> 'connected')
     ORDER BY connection_id""",
    row=ShownStatus,
)

LIST_IN_FORCE = sql(
    """
    SELECT connection_id, code, severity, message, reported_at, expires_at
      FROM channel_warnings
     WHERE company_id = $1 AND NOT is_over AND (expires_at IS NULL OR expires_at > $2)
     ORDER BY reported_at DESC, code""",
    row=ShownWarning,
)

# A new account is asked by its first test, or after some minutes. Accounts of test companies are not stored: they have
# a status after the first callback.
LIST_DUE = sql(
    """
    SELECT c.company_id, c.id AS connection_id
      FROM channel_connections c
      LEFT JOIN channel_statuses s ON s.company_id = c.company_id AND s.connection_id = c.id
     WHERE c.status = 'connected' AND c.source = ANY($1::text[]) AND s.check_at IS NULL
       AND c.connected_at <= now() - interval '5 minutes'
     UNION
    SELECT company_id, connection_id
      FROM channel_statuses
     WHERE check_at <= now()
     LIMIT $2""",
    row=DueCheck,
    crosses="the worker finds accounts of all companies whose status is to be asked for, then asks one by one",
)

NEXT_CHECKS = sql(build_next_real_due("channel_statuses", "check_at"), crosses=WORKER)
CHECKS = DueQueue("channel statuses", NEXT_CHECKS.text)

# The worker that postpones the check performs it.
CLAIM = sql(
    """
    UPDATE channel_statuses
       SET check_at = now() + make_interval(secs => $3)
     WHERE company_id = $1 AND connection_id = $2 AND (check_at IS NULL OR check_at <= now())"""
)

END_CHECKS = sql("UPDATE channel_statuses SET check_at = NULL WHERE company_id = $1 AND connection_id = $2")


async def lock_status(tx: Tx, company_id: int, connected: ConnectedChannel) -> StoredStatus:
    """The status, which is stored first if there is none."""
    await _ensure(tx, company_id, connected)
    stored = await LOCK.find(tx, company_id, connected.connection.id)
    if stored is None:
        raise RuntimeError("a status that was stored cannot be read")
    return stored


async def update_status(tx: Tx, company_id: int, status: StoredStatus) -> None:
    await UPDATE.run(
        tx, company_id, status.connection_id, status.quality, status.quality_at, status.messaging_limit,
        status.messaging_limit_at, status.throughput, status.throughput_at,
    )  # fmt: skip


async def record_change(tx: Tx, company_id: int, connection_id: str, now: datetime) -> None:
    await RECORD_CHANGE.run(tx, company_id, connection_id, now)


async def request_check(tx: Tx, company_id: int, connection_id: str) -> None:
    await REQUEST_CHECK.run(tx, company_id, connection_id)
    announce_due(tx, CHECKS)


async def record_check(tx: Tx, company_id: int, connection_id: str, now: datetime) -> None:
    await RECORD_CHECK.run(tx, company_id, connection_id, now)


async def list_warnings(tx: Tx, company_id: int, connection_id: str) -> dict[str, StoredWarning]:
    """By code, those that are over included."""
    return {warning.code: warning for warning in await LIST_WARNINGS.all(tx, company_id, connection_id)}


async def put_warning(tx: Tx, company_id: int, connection_id: str, warning: StoredWarning) -> None:
    await PUT_WARNING.run(
        tx, company_id, connection_id, warning.code, warning.severity, warning.message, warning.reported_at,
        warning.expires_at, warning.is_over,
    )  # fmt: skip


async def list_statuses(db: Connection, company_id: int) -> list[ShownStatus]:
    return await LIST.all(db, company_id)


async def list_in_force(db: Connection, company_id: int, now: datetime) -> list[ShownWarning]:
    """Of all accounts, the newest first."""
    return await LIST_IN_FORCE.all(db, company_id, now)


async def list_due(db: Connection, sources: Sequence[str], limit: int) -> list[DueCheck]:
    return await LIST_DUE.all(db, list(sources), limit)


async def claim_check(tx: Tx, company_id: int, connected: ConnectedChannel, seconds: float) -> bool:
    """True for one worker. The next check is after `seconds`."""
    await _ensure(tx, company_id, connected)
    return await CLAIM.run(tx, company_id, connected.connection.id, seconds) == 1


async def end_checks(tx: Tx, company_id: int, connection_id: str) -> None:
    """The account is not connected any more."""
    await END_CHECKS.run(tx, company_id, connection_id)


async def _ensure(tx: Tx, company_id: int, connected: ConnectedChannel) -> None:
    connection = connected.connection
    await ENSURE.run(tx, company_id, connection.id, connection.source, connected.own_name)
