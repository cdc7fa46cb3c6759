"""How orders are stored."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import structs

from sapa.customers.types import CustomerRef
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.orders.customer_copies import build_customer_text
from sapa.orders.document import OrderDraft, Revision
from sapa.orders.types import Order, StoredOrder
from sapa.values.json import encode

COUNTER = "orders"
COLUMNS = ", ".join(Order.__struct_fields__)
FIRST_NUMBER = 1001

GET = sql(f"SELECT {COLUMNS} FROM orders WHERE company_id = $1 AND id = $2", row=Order)

FIND_BY_ORDER_ID = sql(f"SELECT {COLUMNS} FROM orders WHERE company_id = $1 AND order_id = $2", row=Order)

LOCK = sql(
    f"""
    SELECT {COLUMNS}, archived_from, restocked, taken
      FROM orders
     WHERE company_id = $1 AND id = $2
       FOR UPDATE""",
    row=StoredOrder,
)

# The company's next number is taken here and not before: whoever takes it makes all others wait until the commit. The
# instant is taken after it, so that orders are in the sequence of their numbers.
INSERT = sql(
    f"""
    WITH numbered AS (
        INSERT INTO order_numbers AS n (company_id, last) VALUES ($1, {FIRST_NUMBER})
            ON CONFLICT (company_id) DO UPDATE SET last = n.last + 1 WHERE n.company_id = $1
        RETURNING last, clock_timestamp() AS at
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'orders', 'active/unfulfilled/pending', 1)
    )
    INSERT INTO orders (company_id, id, order_id, total, currency, notes, line_items, shipping_address, tags, customer,
                        customer_id, customer_text, taken, order_number, created_at, updated_at,
                        status, fulfillment_status, financial_status)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, last::text, coalesce($14, at), GREATEST($14, at),
           'active', 'unfulfilled', 'pending'
      FROM numbered
    RETURNING {COLUMNS}""",
    row=Order,
)

# The row's lock may have been waited for, so the time is that of the change and never falls behind an earlier one.
UPDATE = sql(
    f"""
    WITH changed AS (
        UPDATE orders
           SET status = $3, fulfillment_status = $4, financial_status = $5, archived_from = $6, restocked = $7,
               notes = $8, shipping_address = $9, tags = $10, updated_at = GREATEST(clock_timestamp(), updated_at)
         WHERE company_id = $1 AND id = $2
        RETURNING {COLUMNS}, cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'orders', moved.cell, moved.delta
          FROM changed
         CROSS JOIN LATERAL (VALUES ($11, -1), (changed.cell, 1)) AS moved (cell, delta)
         WHERE changed.cell <> $11
    )
    SELECT {COLUMNS} FROM changed""",
    row=Order,
)

# One value for all: what the name holds, the first text that begins as the ids looked for do, and the first behind.
_BY_ID = """(company_id = $1 AND id >= ({0}::text[])[2] AND id < ({0}::text[])[3])
              OR (company_id = $1 AND order_id >= ({0}::text[])[2] AND order_id < ({0}::text[])[3])
              OR (company_id = $1 AND order_number >= ({0}::text[])[2] AND order_number < ({0}::text[])[3])"""

LISTING = Listing(
    "orders",
    row=Order,
    counter=COUNTER,
    cell="cell",
    texts=("search",),
    filters={
        "search": f"(customer_text LIKE ({{0}}::text[])[1] OR {_BY_ID})",
        # Without three letters in a row the trigrams' index would be read whole, and every row after it.
        "short_search": f"(strpos(customer_text, ({{0}}::text[])[1]) > 0 OR {_BY_ID})",
        "customer_id": "customer_id = {}",
        "created_from": "created_at >= {}",
        "created_to": "created_at <= {}",
    },
    sorts={"createdAt": "created_at"},
)


async def get_order(db: Connection, company_id: int, id: str) -> Order:
    return _found(await GET.find(db, company_id, id))


async def find_by_order_id(db: Connection, company_id: int, order_id: str) -> Order | None:
    return await FIND_BY_ORDER_ID.find(db, company_id, order_id)


async def lock_order(tx: Tx, company_id: int, id: str) -> StoredOrder:
    order = await LOCK.find(tx, company_id, id)
    if order is None:
        raise NotFound
    return order


async def insert_order(
    tx: Tx,
    company_id: int,
    id: str,
    draft: OrderDraft,
    customer: CustomerRef | None,
    taken: Mapping[str, int],
    placed_at: datetime | None,
) -> Order:
    return _found(
        await INSERT.find(
            tx,
            company_id,
            id,
            draft.order_id or id,
            draft.total,
            draft.currency,
            draft.notes,
            encode(draft.line_items),
            draft.shipping_address,
            draft.tags,
            customer and encode(customer),
            customer and customer.id,
            build_customer_text(customer),
            encode(taken),
            placed_at,
        )
    )


async def update_order(tx: Tx, company_id: int, id: str, revision: Revision, cell: str) -> Order:
    """The order's new state; `cell` is the one it leaves."""
    columns = [*structs.astuple(revision.standing), revision.notes, revision.shipping_address, revision.tags]
    return _found(await UPDATE.find(tx, company_id, id, *columns, cell))


async def list_orders(
    db: Connection, company_id: int, filters: Mapping[str, object], limit: int, offset: int
) -> tuple[list[Order], int]:
    """One page, newest first, and how many orders there are in all."""
    return await LISTING.page(db, company_id, filters, "createdAt:desc", limit, offset)


def _found(order: Order | None) -> Order:
    if order is None:
        raise NotFound
    return order
