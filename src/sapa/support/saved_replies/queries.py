"""Queries for saved replies."""

from collections.abc import Mapping

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.support.saved_replies.types import PlaceholderValues, SavedReply

COLUMNS = ", ".join(SavedReply.__struct_fields__)

GET = sql(f"SELECT {COLUMNS} FROM saved_replies WHERE company_id = $1 AND id = $2", row=SavedReply)

INSERT = sql(
    f"""
    WITH inserted AS (
        INSERT INTO saved_replies (company_id, id, shortcut, text) VALUES ($1, $2, $3, $4)
        RETURNING company_id, {COLUMNS}
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) SELECT $1, 'saved_replies', '', 1 FROM inserted
    )
    SELECT {COLUMNS} FROM inserted WHERE company_id = $1""",
    row=SavedReply,
)

UPDATE = sql(
    f"""
    UPDATE saved_replies SET shortcut = $3, text = $4, updated_at = statement_timestamp()
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=SavedReply,
)

DELETE = sql(
    """
    WITH deleted AS (
        DELETE FROM saved_replies WHERE company_id = $1 AND id = $2 RETURNING id
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'saved_replies', '', -1 FROM deleted
    )
    SELECT id FROM deleted"""
)

# The newest order of the ticket's customer, and the newest waybill of their orders.
GET_PLACEHOLDER_VALUES = sql(
    """
    SELECT coalesce(nullif(c.first_name, ''), k.name) AS name, o.order_number AS "order",
           (SELECT s.awb
              FROM orders p
              JOIN shipments s ON s.company_id = $1 AND s.order_id = p.id AND s.awb IS NOT NULL
             WHERE p.company_id = $1 AND p.customer_id = t.customer_id
             ORDER BY s.created_at DESC
             LIMIT 1) AS tracking
      FROM tickets t
      LEFT JOIN contacts k ON k.company_id = $1 AND k.id = t.contact_id
      LEFT JOIN customers c ON c.company_id = $1 AND c.id = t.customer_id
      LEFT JOIN LATERAL (
           SELECT order_number
             FROM orders
            WHERE company_id = $1 AND customer_id = t.customer_id
            ORDER BY created_at DESC, id DESC
            LIMIT 1) AS o ON true
     WHERE t.company_id = $1 AND t.id = $2""",
    row=PlaceholderValues,
)

LISTING = Listing(
    "saved_replies",
    row=SavedReply,
    counter="saved_replies",
    filters={},
    sorts={"createdAt": "created_at"},
)


async def get_saved_reply(db: Connection, company_id: int, id: str) -> SavedReply:
    return _or_not_found(await GET.find(db, company_id, id))


async def insert_saved_reply(tx: Tx, company_id: int, id: str, *columns: object) -> SavedReply:
    return _or_not_found(await INSERT.find(tx, company_id, id, *columns))


async def update_saved_reply(tx: Tx, company_id: int, id: str, *columns: object) -> SavedReply:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *columns))


async def delete_saved_reply(tx: Tx, company_id: int, id: str) -> None:
    if await DELETE.value(tx, company_id, id) is None:
        raise NotFound


async def get_placeholder_values(db: Connection, company_id: int, ticket_id: str) -> PlaceholderValues:
    values = await GET_PLACEHOLDER_VALUES.find(db, company_id, ticket_id)
    if values is None:
        raise NotFound
    return values


async def list_saved_replies(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[SavedReply], int]:
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(saved_reply: SavedReply | None) -> SavedReply:
    if saved_reply is None:
        raise NotFound
    return saved_reply
