"""Queries for views."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.views.types import View

COLUMNS = ", ".join(View.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM ticket_views WHERE company_id = $1 AND id = $2", row=View)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO ticket_views (company_id, id, name, agent_id, filters) VALUES ($1, $2, $3, $4, $5)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'ticket_views', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=View,
)

UPDATE = sql(
    f"""
    UPDATE ticket_views SET name = $3, agent_id = $4, filters = $5, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=View,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM ticket_views WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'ticket_views', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LISTING = Listing(
    "ticket_views",
    row=View,
    counter="ticket_views",
    filters={"agent_id": "(agent_id IS NULL OR agent_id = {})"},
    sorts={"createdAt": "created_at"},
)


async def get_view(db: Connection, company_id: int, id: str) -> View:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_view(tx: Tx, company_id: int, id: str, *columns: object) -> View:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_view(tx: Tx, company_id: int, id: str, *columns: object) -> View:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_view(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def list_views(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[View], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(view: View | None) -> View:
    if view is None:
        raise NotFound
    return view
