"""Queries for macros."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.macros.types import Macro

COLUMNS = ", ".join(Macro.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM macros WHERE company_id = $1 AND id = $2", row=Macro)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO macros (company_id, id, name, actions, note, reply) VALUES ($1, $2, $3, $4, $5, $6)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'macros', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=Macro,
)

UPDATE = sql(
    f"""
    UPDATE macros SET name = $3, actions = $4, note = $5, reply = $6, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Macro,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM macros WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'macros', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LISTING = Listing(
    "macros",
    row=Macro,
    counter="macros",
    filters={},
    sorts={"createdAt": "created_at"},
)


async def get_macro(db: Connection, company_id: int, id: str) -> Macro:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_macro(tx: Tx, company_id: int, id: str, *columns: object) -> Macro:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_macro(tx: Tx, company_id: int, id: str, *columns: object) -> Macro:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_macro(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def list_macros(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Macro], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(macro: Macro | None) -> Macro:
    if macro is None:
        raise NotFound
    return macro
