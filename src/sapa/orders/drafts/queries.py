"""How draft orders are stored."""

from collections.abc import Mapping

from msgspec import Struct

from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.orders.drafts.types import DraftOrder
from sapa.orders.pricing.arithmetic import PricedOrder
from sapa.orders.types import OrderCustomerIn

COUNTER = "draft_orders"
COLUMNS = ", ".join(DraftOrder.__struct_fields__)


class DraftContent(Struct, frozen=True):
    """What a draft consists of besides what is priced."""

    customer_id: str | None
    customer: OrderCustomerIn | None
    shipping_address: bytes | None
    currency: str
    notes: str | None
    tags: list[str]


CONTENT = WriteColumns(DraftContent)
PRICED = WriteColumns(PricedOrder)

GET = sql(f"SELECT {COLUMNS} FROM draft_orders WHERE company_id = $1 AND id = $2", row=DraftOrder)

LOCK = sql(f"SELECT {COLUMNS} FROM draft_orders WHERE company_id = $1 AND id = $2 FOR UPDATE", row=DraftOrder)

INSERT = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'draft_orders', 'open', 1)
    )
    INSERT INTO draft_orders (company_id, id, {CONTENT.listed}, {PRICED.listed}, created_at, updated_at)
    SELECT $1, $2, {CONTENT.numbered(3)}, {PRICED.numbered(3 + len(CONTENT.names))}, at, at
      FROM (SELECT statement_timestamp() AS at) AS clock
    RETURNING {COLUMNS}""",
    row=DraftOrder,
)

UPDATE = sql(
    f"""
    UPDATE draft_orders
       SET {CONTENT.assigned(3)}, {PRICED.assigned(3 + len(CONTENT.names))},
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=DraftOrder,
)

COMPLETE = sql(
    f"""
    WITH counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'draft_orders', 'open', -1), ($1, 'draft_orders', 'completed', 1)
    )
    UPDATE draft_orders
       SET status = 'completed', order_id = $3, completed_at = statement_timestamp(),
           updated_at = GREATEST(statement_timestamp(), updated_at)
     WHERE company_id = $1 AND id = $2
    RETURNING {COLUMNS}""",
    row=DraftOrder,
)

DELETE = sql(
    """
    WITH removed AS (
        DELETE FROM draft_orders WHERE company_id = $1 AND id = $2 RETURNING status
    )
    INSERT INTO counter_deltas (company_id, counter, cell, delta)
    SELECT $1, 'draft_orders', status, -1 FROM removed"""
)

LISTING = Listing(
    "draft_orders",
    row=DraftOrder,
    counter=COUNTER,
    cell="status",
    filters={"customer_id": "customer_id = {}"},
    sorts={"createdAt": "created_at"},
)


async def get_draft(db: Connection, company_id: int, id: str) -> DraftOrder:
    return _or_not_found(await GET.find(db, company_id, id))


async def lock_draft(tx: Tx, company_id: int, id: str) -> DraftOrder:
    return _or_not_found(await LOCK.find(tx, company_id, id))


async def insert_draft(tx: Tx, company_id: int, id: str, content: DraftContent, priced: PricedOrder) -> DraftOrder:
    return _or_not_found(await INSERT.find(tx, company_id, id, *CONTENT.values(content), *PRICED.values(priced)))


async def update_draft(tx: Tx, company_id: int, id: str, content: DraftContent, priced: PricedOrder) -> DraftOrder:
    return _or_not_found(await UPDATE.find(tx, company_id, id, *CONTENT.values(content), *PRICED.values(priced)))


async def complete_draft(tx: Tx, company_id: int, id: str, order_id: str) -> DraftOrder:
    return _or_not_found(await COMPLETE.find(tx, company_id, id, order_id))


async def delete_draft(tx: Tx, company_id: int, id: str) -> None:
    await DELETE.run(tx, company_id, id)


async def list_drafts(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[DraftOrder], int]:
    """One page, newest first, and the total number of matches."""
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _or_not_found(draft: DraftOrder | None) -> DraftOrder:
    if draft is None:
        raise NotFound
    return draft
