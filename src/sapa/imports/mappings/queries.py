"""How saved mappings are stored."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.imports.mappings.types import SavedMapping

COLUMNS = ", ".join(SavedMapping.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM import_mappings WHERE company_id = $1 AND id = $2", row=SavedMapping)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO import_mappings (company_id, id, resource, name, mapping) VALUES ($1, $2, $3, $4, $5)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'import_mappings', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=SavedMapping,
)

UPDATE = sql(
    f"""
    UPDATE import_mappings SET resource = $3, name = $4, mapping = $5, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=SavedMapping,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM import_mappings WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'import_mappings', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LISTING = Listing(
    "import_mappings",
    row=SavedMapping,
    counter="import_mappings",
    filters={"resources": "resource = ANY({}::text[])"},
    sorts={"createdAt": "created_at"},
)


async def get_mapping(db: Connection, company_id: int, id: str) -> SavedMapping:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_mapping(tx: Tx, company_id: int, id: str, resource: str, name: str, mapping: bytes) -> SavedMapping:
    return _or_not_found(await INSERT.find(tx, company_id, id, resource, name, mapping))


async def update_mapping(tx: Tx, company_id: int, id: str, resource: str, name: str, mapping: bytes) -> SavedMapping:
    return _or_not_found(await UPDATE.find(tx, company_id, id, resource, name, mapping))


async def delete_mapping(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def list_mappings(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[SavedMapping], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(mapping: SavedMapping | None) -> SavedMapping:
    if mapping is None:
        raise NotFound
    return mapping
