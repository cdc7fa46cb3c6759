"""Queries for connections with channels."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from sapa.access.statement_parts import COMPANY
from sapa.access.types import CompanyColumns
from sapa.db.due import WORKER, build_next_real_due
from sapa.db.pool import Connection, Tx
from sapa.db.sql import compose, sql
from sapa.db.wakeups import DueQueue
from sapa.values.sealing import SealedValue


class StoredChannelConnection(Struct, frozen=True):
    """A company's account with a channel, its credentials sealed. A disconnected one has no credentials and no hook."""

    id: str
    company_id: int
    source: str
    account_id: str
    account: msgspec.Raw
    credentials: bytes | None
    status: str
    verified_at: str | None
    last_error: str | None
    last_error_at: str | None
    renew_at: str | None
    connected_at: str
    disconnected_at: str | None


class HookedConnection(CompanyColumns, frozen=True):
    """What a callback needs to know: the company, and its account."""

    id: str
    source: str
    account: msgspec.Raw
    credentials: bytes
    last_error: str | None


class DueRenewal(Struct, frozen=True):
    """A connection whose token expires soon."""

    company_id: int
    id: str
    source: str


_COLUMNS = """id, company_id, source, account_id, account, credentials, status, verified_at, last_error,
           last_error_at, renew_at, connected_at, disconnected_at"""

FIND = sql(
    f"SELECT {_COLUMNS} FROM channel_connections WHERE company_id = $1 AND source = $2 AND status = 'connected'",
    row=StoredChannelConnection,
)

FIND_BY_ACCOUNT = sql(
    f"""
    SELECT {_COLUMNS}
      FROM channel_connections
     WHERE company_id = $1 AND source = $2 AND account_id = $3
       FOR NO KEY UPDATE""",
    row=StoredChannelConnection,
)

FIND_BY_HOOK = compose(
    [COMPANY],
    """
    SELECT company.company_id, company.environment, company.region, company.currency, company.time_zone,
           company.language, company.cart_orders, connection.id, connection.source, connection.account,
           connection.credentials, connection.last_error
      FROM channel_connections AS connection
     CROSS JOIN company
     WHERE connection.company_id = $1 AND connection.hook_hash = :hook_hash AND connection.status = 'connected'""",
    row=HookedConnection,
)

FIND_BY_ID = sql(
    f"SELECT {_COLUMNS} FROM channel_connections WHERE company_id = $1 AND id = $2", row=StoredChannelConnection
)

LIST = sql(
    f"""
    SELECT {_COLUMNS}
      FROM channel_connections
     WHERE company_id = $1
     ORDER BY connected_at, id""",
    row=StoredChannelConnection,
)

INSERT = sql(
    """
    INSERT INTO channel_connections (company_id, id, source, account_id, account, credentials, hook_hash,
                                     renew_at)
    VALUES ($1, $2, $3, $4, $5::text::json, $6, $7, CASE WHEN $8 THEN now() + interval '10 minutes' END)"""
)

# A renewed account keeps its callback address; a reconnected one gets a new address, and its old errors are cleared.
REPLACE = sql(
    """
    UPDATE channel_connections
       SET account = $3::text::json, credentials = $4, hook_hash = coalesce($5, hook_hash), status = 'connected',
           verified_at = NULL, last_error = NULL, last_error_at = NULL, disconnected_at = NULL,
           renew_at = CASE WHEN $6 THEN clock.renew_at END, templates_due_at = clock.now,
           connected_at = CASE WHEN status = 'connected' THEN connected_at ELSE clock.now END
      FROM (SELECT now() AS now, now() + interval '10 minutes' AS renew_at) AS clock
     WHERE company_id = $1 AND id = $2"""
)

DISCONNECT = sql(
    """
    UPDATE channel_connections
       SET status = 'disconnected', credentials = NULL, hook_hash = NULL, renew_at = NULL, disconnected_at = now()
     WHERE company_id = $1 AND id = $2 AND status = 'connected'"""
)

RECORD_VERIFIED = sql(
    """
    UPDATE channel_connections
       SET verified_at = now(), last_error = NULL, last_error_at = NULL
     WHERE company_id = $1 AND id = $2 AND status = 'connected'"""
)

# The usual case changes nothing and takes no lock.
RECORD_HEALTH = sql(
    """
    UPDATE channel_connections
       SET last_error = $3, last_error_at = CASE WHEN $3::text IS NOT NULL THEN clock.now END
      FROM (SELECT now() AS now) AS clock
     WHERE company_id = $1 AND id = $2 AND status = 'connected' AND last_error IS DISTINCT FROM $3"""
)

LIST_DUE = sql(
    """
    SELECT company_id, id, source
      FROM channel_connections
     WHERE status = 'connected' AND renew_at <= now()
     ORDER BY renew_at
     LIMIT $1""",
    row=DueRenewal,
    crosses="the worker finds tokens of all companies that expire soon, then renews them one by one",
)

NEXT_RENEWALS = sql(build_next_real_due("channel_connections", "renew_at", "status = 'connected'"), crosses=WORKER)
RENEWALS = DueQueue("channel tokens", NEXT_RENEWALS.text)

# The worker that postpones the renewal performs it; no other worker does until then.
CLAIM_RENEWAL = sql(
    """
    UPDATE channel_connections
       SET renew_at = now() + make_interval(secs => $3)
     WHERE company_id = $1 AND id = $2 AND status = 'connected' AND renew_at <= now()"""
)

RENEW = sql(
    """
    UPDATE channel_connections
       SET credentials = $3, renew_at = now() + make_interval(secs => $4), last_error = NULL, last_error_at = NULL
     WHERE company_id = $1 AND id = $2 AND status = 'connected'"""
)

LOCK_SEALED = sql(
    """
    SELECT id AS position, id AS bound_to, credentials AS sealed
      FROM channel_connections
     WHERE company_id = $1 AND id > $2 AND credentials IS NOT NULL
     ORDER BY id
     LIMIT $3
       FOR NO KEY UPDATE""",
    row=SealedValue,
)

REPLACE_SEALED = sql(
    """
    UPDATE channel_connections AS c
       SET credentials = new.sealed
      FROM unnest($2::text[], $3::bytea[]) AS new (id, sealed)
     WHERE c.company_id = $1 AND c.id = new.id"""
)

LOCK_COMPANY = sql("SELECT company_id FROM companies WHERE company_id = $1 FOR NO KEY UPDATE")


async def find_connection(db: Connection, company_id: int, source: str) -> StoredChannelConnection | None:
    return await FIND.find(db, company_id, source)


async def find_by_account(tx: Tx, company_id: int, source: str, account_id: str) -> StoredChannelConnection | None:
    return await FIND_BY_ACCOUNT.find(tx, company_id, source, account_id)


async def find_by_hook(db: Connection, company_id: int, hook_hash: bytes) -> HookedConnection | None:
    return await FIND_BY_HOOK.find(db, company_id, hook_hash)


async def find_by_id(db: Connection, company_id: int, id: str) -> StoredChannelConnection | None:
    return await FIND_BY_ID.find(db, company_id, id)


async def list_connections(db: Connection, company_id: int) -> list[StoredChannelConnection]:
    """All current and former ones, oldest first."""
    return await LIST.all(db, company_id)


async def lock_company(tx: Tx, company_id: int) -> None:
    """Serialises the connecting of a company's channels."""
    await LOCK_COMPANY.value(tx, company_id)


async def insert_connection(
    tx: Tx, company_id: int, id: str, source: str, account_id: str, account: str, credentials: bytes,
    hook_hash: bytes, is_renewable: bool,
) -> None:  # fmt: skip
    await INSERT.run(tx, company_id, id, source, account_id, account, credentials, hook_hash, is_renewable)


async def replace_connection(
    tx: Tx, company_id: int, id: str, account: str, credentials: bytes, hook_hash: bytes | None, is_renewable: bool
) -> None:
    await REPLACE.run(tx, company_id, id, account, credentials, hook_hash, is_renewable)


async def disconnect(tx: Tx, company_id: int, id: str) -> bool:
    return await DISCONNECT.run(tx, company_id, id) == 1


async def record_verified(db: Connection, company_id: int, id: str) -> None:
    await RECORD_VERIFIED.run(db, company_id, id)


async def record_health(db: Connection, company_id: int, id: str, error: str | None) -> None:
    await RECORD_HEALTH.run(db, company_id, id, error)


async def lock_sealed(tx: Tx, company_id: int, after: str, limit: int) -> list[SealedValue]:
    return await LOCK_SEALED.all(tx, company_id, after, limit)


async def replace_sealed(tx: Tx, company_id: int, sealed: Mapping[str, bytes]) -> None:
    await REPLACE_SEALED.run(tx, company_id, list(sealed), list(sealed.values()))


async def list_due(db: Connection, limit: int) -> list[DueRenewal]:
    return await LIST_DUE.all(db, limit)


async def claim_renewal(db: Connection, company_id: int, id: str, seconds: float) -> bool:
    return await CLAIM_RENEWAL.run(db, company_id, id, seconds) == 1


async def store_renewal(db: Connection, company_id: int, id: str, credentials: bytes, seconds: float) -> None:
    await RENEW.run(db, company_id, id, credentials, seconds)
