"""SQL of accounts with carriers."""

from collections.abc import Mapping
from datetime import datetime

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.connections.types import StoredCarrierConnection, TokenOwner
from sapa.values.sealing import SealedValue

_COLUMNS = "id, provider, adapter, sealed, public_fields, status, verified_at, last_error, created_at"


FIND = sql(
    f"SELECT {_COLUMNS} FROM carrier_connections WHERE company_id = $1 AND provider = $2", row=StoredCarrierConnection
)

LIST = sql(
    f"SELECT {_COLUMNS} FROM carrier_connections WHERE company_id = $1 ORDER BY provider", row=StoredCarrierConnection
)

FIND_BY_ID = sql(
    f"SELECT {_COLUMNS} FROM carrier_connections WHERE company_id = $1 AND id = $2", row=StoredCarrierConnection
)

FIND_BY_TOKEN = sql(
    """
    SELECT c.company_id, c.environment, c.region, c.currency, k.id
      FROM carrier_connections k
      JOIN companies c ON c.company_id = k.company_id
     WHERE k.hook_hash = $1 OR k.earlier_hooks @> ARRAY[$1]""",
    row=TokenOwner,
    crosses="a carrier's callback brings nothing but the token of its address: it tells the company",
)

# The carrier keeps calling the address it was given, also after its credentials were replaced.
REPLACE = sql(
    f"""
    INSERT INTO carrier_connections AS stored
           (company_id, id, provider, adapter, sealed, public_fields, hook_hash, verified_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT ON CONSTRAINT carrier_connections_provider_key DO UPDATE
       SET id = excluded.id, adapter = excluded.adapter, sealed = excluded.sealed,
           public_fields = excluded.public_fields, hook_hash = excluded.hook_hash,
           earlier_hooks = CASE WHEN stored.adapter <> excluded.adapter THEN '{{}}'
                                WHEN stored.hook_hash = excluded.hook_hash THEN stored.earlier_hooks
                                ELSE stored.earlier_hooks || stored.hook_hash END,
           verified_at = excluded.verified_at, status = 'connected', last_error = NULL,
           created_at = excluded.created_at
    RETURNING {_COLUMNS}""",
    row=StoredCarrierConnection,
)

# A shipment with a poll or cancellation due is with its carrier.
LOCK_SEALED = sql(
    """
    SELECT id AS position, id AS bound_to, sealed
      FROM carrier_connections
     WHERE company_id = $1 AND id > $2
     ORDER BY id
     LIMIT $3
       FOR NO KEY UPDATE""",
    row=SealedValue,
)

REPLACE_SEALED = sql(
    """
    UPDATE carrier_connections AS c
       SET sealed = new.sealed
      FROM unnest($2::text[], $3::bytea[]) AS new (id, sealed)
     WHERE c.company_id = $1 AND c.id = new.id"""
)

COUNT_OPEN = sql(
    """
    SELECT count(*) FROM shipments
     WHERE company_id = $1 AND provider = $2 AND adapter <> $3 AND (poll_at IS NOT NULL OR cancel_due_at IS NOT NULL)"""
)

DELETE = sql("DELETE FROM carrier_connections WHERE company_id = $1 AND provider = $2")

# Written on change only, so that a healthy carrier costs no write per response.
RECORD_HEALTH = sql(
    """
    UPDATE carrier_connections SET last_error = $3
     WHERE company_id = $1 AND id = $2 AND last_error IS DISTINCT FROM $3"""
)

RECORD_TEST = sql(
    """
    UPDATE carrier_connections
       SET status = $3, last_error = $4, verified_at = CASE WHEN $5 THEN clock.now ELSE verified_at END
      FROM (SELECT now() AS now) AS clock
     WHERE company_id = $1 AND id = $2"""
)


async def find(db: Connection, company_id: int, provider: str) -> StoredCarrierConnection | None:
    return await FIND.find(db, company_id, provider)


async def list_all(db: Connection, company_id: int) -> list[StoredCarrierConnection]:
    return await LIST.all(db, company_id)


async def find_by_id(db: Connection, company_id: int, id: str) -> StoredCarrierConnection | None:
    return await FIND_BY_ID.find(db, company_id, id)


async def find_by_token(db: Connection, hash: bytes) -> TokenOwner | None:
    return await FIND_BY_TOKEN.find(db, hash)


async def replace(
    tx: Tx, company_id: int, id: str, provider: str, adapter: str, sealed: bytes, public_fields: bytes,
    hook_hash: bytes, verified_at: datetime | None,
) -> StoredCarrierConnection:  # fmt: skip
    stored = await REPLACE.find(tx, company_id, id, provider, adapter, sealed, public_fields, hook_hash, verified_at)
    if stored is None:
        raise AssertionError("an upsert always gives its row")
    return stored


async def count_open(tx: Tx, company_id: int, provider: str, adapter: str) -> int:
    """Shipments under way with another carrier than this one."""
    count: int = await COUNT_OPEN.value(tx, company_id, provider, adapter)
    return count


async def delete(tx: Tx, company_id: int, provider: str) -> bool:
    return await DELETE.run(tx, company_id, provider) > 0


async def lock_sealed(tx: Tx, company_id: int, after: str, limit: int) -> list[SealedValue]:
    return await LOCK_SEALED.all(tx, company_id, after, limit)


async def replace_sealed(tx: Tx, company_id: int, sealed: Mapping[str, bytes]) -> None:
    await REPLACE_SEALED.run(tx, company_id, list(sealed), list(sealed.values()))


async def record_health(db: Connection, company_id: int, id: str, error: str | None) -> None:
    await RECORD_HEALTH.run(db, company_id, id, error)


async def record_test(tx: Tx, company_id: int, id: str, status: str, error: str | None) -> None:
    await RECORD_TEST.run(tx, company_id, id, status, error, error is None)
