"""Queries for labels."""

from collections.abc import Mapping, Sequence

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.labels.types import Label

COLUMNS = ", ".join(Label.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM ticket_labels WHERE company_id = $1 AND id = $2", row=Label)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO ticket_labels (company_id, id, name, color) VALUES ($1, $2, $3, $4)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'ticket_labels', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=Label,
)

UPDATE = sql(
    f"""
    UPDATE ticket_labels SET name = $3, color = $4, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=Label,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM ticket_labels WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'ticket_labels', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

LOCK_MANY = sql("SELECT id FROM ticket_labels WHERE company_id = $1 AND id = ANY($2::text[]) ORDER BY id FOR SHARE")

# A batch is locked in the order in which all who change several tickets lock them.
REMOVE_FROM_TICKETS = sql(
    """
    UPDATE tickets SET label_ids = array_remove(label_ids, $2)
     WHERE company_id = $1 AND id = ANY(ARRAY(
           SELECT id FROM tickets
            WHERE company_id = $1 AND label_ids @> ARRAY[$2::text] AND id = ANY(ARRAY(
                  SELECT id FROM tickets
                   WHERE company_id = $1 AND label_ids <> '{}' AND label_ids @> ARRAY[$2::text]
                   LIMIT $3))
            ORDER BY id
              FOR UPDATE))"""
)

LISTING = Listing(
    "ticket_labels",
    row=Label,
    counter="ticket_labels",
    filters={},
    sorts={"createdAt": "created_at"},
)


async def get_label(db: Connection, company_id: int, id: str) -> Label:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_label(tx: Tx, company_id: int, id: str, *columns: object) -> Label:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_label(tx: Tx, company_id: int, id: str, *columns: object) -> Label:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_label(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def lock_labels(tx: Tx, company_id: int, ids: Sequence[str]) -> set[str]:
    return {row[0] for row in await tx.fetch(LOCK_MANY.text, company_id, list(ids))}


async def remove_from_tickets(tx: Tx, company_id: int, id: str, most: int) -> int:
    """Returns from how many, up to `most`."""
    return await REMOVE_FROM_TICKETS.run(tx, company_id, id, most)


async def list_labels(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Label], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(label: Label | None) -> Label:
    if label is None:
        raise NotFound
    return label
