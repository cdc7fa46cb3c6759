"""SQL of store locations."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.shipping.stores.types import StoreLocation

COUNTER = "store_locations"

WRITTEN = WriteColumns(StoreLocation, without={"id", "created_at", "updated_at"})
_COLUMNS = ", ".join(StoreLocation.__struct_fields__)

GET = sql(f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2", row=StoreLocation)

LOCK = sql(f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2 FOR UPDATE", row=StoreLocation)

# A shipment's store must not be deleted before the shipment is stored and can be cleared.
LOCK_SHARED = sql(
    f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND id = $2 FOR KEY SHARE", row=StoreLocation
)

LOCK_DEFAULT_SHARED = sql(
    f"SELECT {_COLUMNS} FROM store_locations WHERE company_id = $1 AND is_default FOR KEY SHARE", row=StoreLocation
)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'store_locations', '', 1)
    )
    INSERT INTO store_locations (company_id, id, {WRITTEN.listed})
    VALUES ($1, $2, {WRITTEN.numbered(3)})
    RETURNING {_COLUMNS}""",
    row=StoreLocation,
)

UPDATE = sql(
    f"""
    UPDATE store_locations SET {WRITTEN.assigned(3)}, updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {_COLUMNS}""",
    row=StoreLocation,
)

# One default per company: changes of it wait for each other.
CLEAR_DEFAULT = sql(
    """
    UPDATE store_locations SET is_default = false, updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND is_default AND id <> $2"""
)

LOCK_CHANGES = sql("SELECT pg_advisory_xact_lock(hashtextextended('store locations of ' || $1::bigint, 0))")

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM store_locations WHERE company_id = $1 AND id = $2 RETURNING id
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'store_locations', '', -1 FROM deleted"""
)

LISTING = Listing("store_locations", row=StoreLocation, counter=COUNTER, filters={}, sorts={"createdAt": "created_at"})


async def get_store(db: Connection, company_id: int, id: str) -> StoreLocation:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_store(tx: Tx, company_id: int, id: str) -> StoreLocation:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def find_locked_store(tx: Tx, company_id: int, id: str) -> StoreLocation | None:
    """The store cannot be deleted before this transaction ends."""
    return await LOCK_SHARED.find(tx, company_id, id)


async def find_locked_default(tx: Tx, company_id: int) -> StoreLocation | None:
    return await LOCK_DEFAULT_SHARED.find(tx, company_id)


async def list_stores(db: Connection, company_id: int, limit: int, offset: int) -> tuple[list[StoreLocation], int]:
    """One page, newest first, and the total."""
    return await LISTING.page(db, company_id, {}, "createdAt:desc", limit, offset)


async def lock_changes(tx: Tx, company_id: int) -> None:
    """One change at a time per company, because there is one default."""
    await LOCK_CHANGES.run(tx, company_id)


async def clear_default(tx: Tx, company_id: int, id: str) -> None:
    """Clears the default flag of every other store."""
    await CLEAR_DEFAULT.run(tx, company_id, id)


async def insert_store(tx: Tx, company_id: int, id: str, fields: Mapping[str, object]) -> StoreLocation:
    return _or_not_found(await INSERT.find(tx, company_id, id, *(fields[name] for name in WRITTEN.names)))


async def update_store(tx: Tx, company_id: int, store: StoreLocation) -> StoreLocation:
    return _or_not_found(await UPDATE.find(tx, company_id, store.id, *WRITTEN.values(store)))


async def delete_store(tx: Tx, company_id: int, id: str) -> bool:
    return await DELETE.run(tx, company_id, id) > 0


def _or_not_found(store: StoreLocation | None) -> StoreLocation:
    if store is None:
        raise NotFound
    return store
