"""How orders are stored."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Raw, Struct, structs

from sapa.customers.types import CustomerRef
from sapa.db.due import WORKER, build_is_waiting
from sapa.db.listing import Listing
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.db.write_columns import WriteColumns
from sapa.http.errors import NotFound
from sapa.orders.columns import (
    ADJUSTMENTS,
    BALANCE,
    FIRST_NUMBER,
    PLAIN,
    PRICED,
    READ,
    REVISED,
    STATE,
    WRITTEN,
)
from sapa.orders.document import NewOrder, build_customer_text
from sapa.orders.history.types import HISTORY_ID, NewHistoryEntry
from sapa.orders.listed_order import BEGINNING, ListedOrder
from sapa.orders.pricing.arithmetic import PricedOrder
from sapa.orders.revision import Revision
from sapa.orders.settlement.transfers import Transfers
from sapa.orders.types import CustomerSales, InsertedOrder, Order, StoredOrder
from sapa.values.change_actor import ChangeActor
from sapa.values.json import encode

COUNTER = "orders"
_NOTHING = Decimal(0)
_EMPTY = b"[]"
COLUMNS = ", ".join(Order.__struct_fields__)

GET = sql(f"SELECT {READ} FROM orders AS r WHERE company_id = $1 AND id = $2", row=Order)

FIND_BY_ORDER_ID = sql(f"SELECT {READ} FROM orders AS r WHERE company_id = $1 AND order_id = $2", row=Order)

LOCK = sql(
    f"""
    SELECT {READ}, archived_from, restocked, taken, removed_goods, removed_shipping, removed_fees, removed_tax,
           earns, clock_timestamp() AS now, subtotal IS NOT NULL AS is_complete, recorded_cell = cell AS is_recorded
      FROM orders AS r
     WHERE company_id = $1 AND id = $2
       FOR UPDATE""",
    row=StoredOrder,
)


# Takes the company's next number as late as possible: other orders wait for it until the commit. The instant is taken
# after it, so that orders sort like their numbers.
def _build_insert(priced: WriteColumns[PricedOrder]) -> str:
    return f"""
    WITH numbered AS (
        INSERT INTO order_numbers AS n (company_id, last) VALUES ($1, {FIRST_NUMBER})
            ON CONFLICT (company_id) DO UPDATE SET last = n.last + 1 WHERE n.company_id = $1
        RETURNING last
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'orders', 'active/unfulfilled/pending', 1)
    )
    INSERT INTO orders (company_id, id, customer, customer_id, customer_text, taken, placed_by, {WRITTEN.listed},
                        {priced.listed}, order_number, created_at, updated_at, status, fulfillment_status,
                        financial_status, recorded_cell, total_paid, total_refunded, outstanding)
    SELECT $1, $2, $3, $4, $5, $6, $8, {WRITTEN.numbered(9)}, {priced.numbered(9 + len(WRITTEN.names))},
           last::text, coalesce($7, at), GREATEST($7, at), 'active', 'unfulfilled', 'pending',
           'active/unfulfilled/pending', 0, 0, ${9 + len(WRITTEN.names) + priced.names.index("total")}
      FROM (SELECT last, clock_timestamp() AS at FROM numbered) AS numbered
    RETURNING id, order_number, created_at, updated_at"""


INSERT = sql(_build_insert(PRICED), row=InsertedOrder)

INSERT_PLAIN = sql(_build_insert(PLAIN), row=InsertedOrder)

_AFTER = 15 + 1
"""The first parameter of UPDATE after those that it names."""

# statement_timestamp(), because the transaction may have waited for the row's lock; updated_at never goes back.
UPDATE = sql(
    f"""
    WITH changed AS (
        UPDATE orders
           SET {STATE.assigned(_AFTER)},
               {REVISED.assigned(_AFTER + len(STATE.names))},
               {PRICED.assigned(_AFTER + len(STATE.names) + len(REVISED.names))},
               {BALANCE.assigned(_AFTER + len(STATE.names) + len(REVISED.names) + len(PRICED.names))},
               taken = $4, updated_at = GREATEST(statement_timestamp(), updated_at)
         WHERE company_id = $1 AND id = $2
        RETURNING {COLUMNS}, cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'orders', moved.cell, moved.delta
          FROM changed
         CROSS JOIN LATERAL (VALUES ($3, -1), (changed.cell, 1)) AS moved (cell, delta)
         WHERE changed.cell <> $3
    ), recorded AS (
        INSERT INTO order_history (company_id, order_id, id, action, actor, reference, changes, created_at)
        SELECT $1, id, $5, $6, $7, $8, $9, updated_at FROM changed
    ), voided AS (
        DELETE FROM order_transactions WHERE company_id = $1 AND id = ANY($10::text[])
    ), transacted AS (
        INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, method, occurred_at)
        SELECT $1, t.id, changed.id, t.kind, t.amount, changed.currency, t.method, t.at::timestamptz
          FROM changed
         CROSS JOIN unnest($11::text[], $12::text[], $13::numeric[], $14::text[], $15::text[])
               AS t (id, kind, amount, method, at)
    )
    SELECT {COLUMNS} FROM changed""",
    row=Order,
)

MARK_RECORDED = sql("UPDATE orders SET recorded_cell = cell WHERE company_id = $1 AND id = $2")

# One array parameter: the pattern of the name, the first text with the prefix, and the first text after those, both in
# small letters.
_BY_ID = """(company_id = $1 AND id >= ({0}::text[])[2] AND id < ({0}::text[])[3])
              OR (company_id = $1 AND lower(order_id) >= ({0}::text[])[2] AND lower(order_id) < ({0}::text[])[3])
              OR (company_id = $1 AND lower(order_number) >= ({0}::text[])[2]
                  AND lower(order_number) < ({0}::text[])[3])"""

# One array parameter for a search by one or two letters: the range of words with that beginning, and the range of ids.
_SEARCHED_WORDS = 4


def _build_word(number: int) -> str:
    word = "customer_text" if number == 1 else f"split_part(customer_text, ' ', {number})"
    is_there = "" if number == 1 else f"{word} <> '' AND "
    return f"""({is_there}{word} COLLATE "C" >= ({{0}}::text[])[1] AND {word} COLLATE "C" < ({{0}}::text[])[2])"""


_WORDS = [_build_word(number) for number in range(1, _SEARCHED_WORDS + 1)]
# No index serves this form: for rows that are read in another order.
_ANY_WORD = f"""(strpos(' ' || customer_text, ' ' || ({{0}}::text[])[1]) > 0
              AND strpos(' ' || array_to_string((string_to_array(customer_text, ' '))[:{_SEARCHED_WORDS}], ' '),
                         ' ' || ({{0}}::text[])[1]) > 0)"""
_ORDER_ID = "(lower(order_id) >= ({0}::text[])[3] AND lower(order_id) < ({0}::text[])[4])"
_ORDER_NUMBER = "(lower(order_number) >= ({0}::text[])[3] AND lower(order_number) < ({0}::text[])[4])"

LIST_ALL = sql(f"SELECT {READ} FROM orders AS r WHERE company_id = $1 ORDER BY r.created_at, r.id", row=Order)

LISTING = Listing(
    "orders",
    row=ListedOrder,
    counter=COUNTER,
    cell="cell",
    texts=("search",),
    alternatives={
        "beginning": (
            *(" AND NOT ".join([word, *_WORDS[:place]]) for place, word in enumerate(_WORDS)),
            f"{_ORDER_ID} AND NOT {_ANY_WORD}",
            f"{_ORDER_NUMBER} AND NOT {_ORDER_ID} AND NOT {_ANY_WORD}",
        )
    },
    filters={
        "search": f"(customer_text LIKE ({{0}}::text[])[1] OR {_BY_ID})",
        "beginning": f"({_ANY_WORD} OR {_ORDER_ID} OR {_ORDER_NUMBER})",
        # Without three letters in a row the trigram index would be read whole, and then every row.
        "short_search": f"(strpos(customer_text, ({{0}}::text[])[1]) > 0 OR {_BY_ID})",
        "customer_id": "customer_id = {}",
        "currency": "currency = {}",
        "created_from": "created_at >= {}",
        "created_to": "created_at <= {}",
    },
    sorts={"createdAt": "created_at", "total": "total"},
    columns={"beginning": BEGINNING},
)


# Of a customer with very many orders, the newest.
SUM_SALES = sql(
    """
    SELECT currency, count(*) AS orders, sum(coalesce(total_paid, 0) - coalesce(total_refunded, 0)) AS spent,
           min(created_at) AS first_at, max(created_at) AS last_at
      FROM (SELECT currency, total_paid, total_refunded, created_at
              FROM orders
             WHERE company_id = $1 AND customer_id = $2 AND status <> 'cancelled'
             ORDER BY created_at DESC, id DESC
             LIMIT $3) AS bought
     GROUP BY currency
     ORDER BY orders DESC, currency""",
    row=CustomerSales,
)


UPDATE_COPIES = sql(
    """
    UPDATE orders
       SET customer = $3, customer_text = $4
     WHERE company_id = $1
       AND id = ANY(ARRAY(SELECT id FROM orders
                           WHERE company_id = $1 AND customer_id = $2
                           ORDER BY created_at DESC, id DESC
                           LIMIT $5))"""
)

# A customer who is renamed again starts over.
QUEUE_REMAINING_COPIES = sql(
    """
    INSERT INTO customer_copies AS c (company_id, customer_id, customer, customer_text, before_at, before_id)
    SELECT $1, $2, $3, $4, created_at, id
      FROM orders
     WHERE company_id = $1 AND customer_id = $2
     ORDER BY created_at DESC, id DESC
    OFFSET $5::integer - 1 LIMIT 1
        ON CONFLICT (company_id, customer_id) DO UPDATE
       SET customer = excluded.customer, customer_text = excluded.customer_text, before_at = excluded.before_at,
           before_id = excluded.before_id
     WHERE c.company_id = $1"""
)


class CopyUpdate(Struct, frozen=True):
    """A customer whose older orders still have the previous name."""

    company_id: int
    customer_id: str


LIST_WAITING_COPIES = sql(
    "SELECT company_id, customer_id FROM customer_copies ORDER BY touched_at LIMIT $1",
    row=CopyUpdate,
    crosses="the worker looks for waiting work over all companies, then processes one customer at a time",
)


NEXT_COPIES = sql(build_is_waiting("customer_copies"), crosses=WORKER)


class CopyState(Struct, frozen=True):
    """What to write to the orders before the position; newest first."""

    customer: Raw
    customer_text: str
    before_at: str
    before_id: str


LOCK_COPY_STATE = sql(
    """
    SELECT customer, customer_text, before_at, before_id
      FROM customer_copies
     WHERE company_id = $1 AND customer_id = $2
       FOR UPDATE""",
    row=CopyState,
)


class OrderPosition(Struct, frozen=True):
    created_at: str
    id: str


# Returns the last order of the batch, or no row when none was left.
UPDATE_COPY_BATCH = sql(
    """
    WITH batch AS MATERIALIZED (
        SELECT id, created_at
          FROM orders
         WHERE company_id = $1 AND customer_id = $2 AND (created_at, id) < ($5::text::timestamptz, $6)
         ORDER BY created_at DESC, id DESC
         LIMIT $7
    ), changed AS (
        UPDATE orders
           SET customer = $3, customer_text = $4
         WHERE company_id = $1 AND id = ANY(ARRAY(SELECT id FROM batch))
    )
    SELECT created_at, id FROM batch ORDER BY created_at, id LIMIT 1""",
    row=OrderPosition,
)

MOVE_COPY_POSITION = sql(
    """
    UPDATE customer_copies
       SET before_at = $3::text::timestamptz, before_id = $4, touched_at = statement_timestamp()
     WHERE company_id = $1 AND customer_id = $2"""
)

POSTPONE_COPIES = sql(
    "UPDATE customer_copies SET touched_at = statement_timestamp() WHERE company_id = $1 AND customer_id = $2"
)

FINISH_COPIES = sql("DELETE FROM customer_copies WHERE company_id = $1 AND customer_id = $2")


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
    order: NewOrder,
    customer: CustomerRef | None,
    taken: Mapping[str, int],
    placed_at: datetime | None,
    actor: ChangeActor,
) -> Order:
    """An order without an id of the caller's own has ours."""
    order = structs.replace(order, order_id=order.order_id or id)
    is_plain = not any(getattr(order.priced, name) for name in ADJUSTMENTS)
    statement, priced = (INSERT_PLAIN, PLAIN) if is_plain else (INSERT, PRICED)
    stored_customer = None if customer is None else encode(customer)
    prices = dict(zip(priced.names, priced.values(order.priced), strict=True))
    inserted = await statement.find(
        tx, company_id, id, stored_customer, customer and customer.id, build_customer_text(customer), encode(taken),
        placed_at, encode(actor), *WRITTEN.values(order), *prices.values(),
    )  # fmt: skip
    if inserted is None:
        raise NotFound
    return _build_placed(order, stored_customer, prices, inserted)


def _build_placed(order: NewOrder, customer: bytes | None, prices: Mapping[str, Any], inserted: InsertedOrder) -> Order:
    """The new order as it was stored; the database returns only what it adds, because its rows are wide."""
    total = order.priced.total
    return Order(
        id=inserted.id,
        order_id=order.order_id or inserted.id,
        order_number=inserted.order_number,
        status="active",
        fulfillment_status="unfulfilled",
        financial_status="pending",
        total=total,
        currency=order.currency,
        notes=order.notes,
        customer=None if customer is None else Raw(customer),
        line_items=Raw(prices["line_items"]),
        shipping_address=None if order.shipping_address is None else Raw(order.shipping_address),
        tags=order.tags,
        subtotal=order.priced.subtotal,
        discount_total=order.priced.discount_total,
        shipping_total=order.priced.shipping_total,
        fee_total=order.priced.fee_total,
        tax_total=order.priced.tax_total,
        total_paid=_NOTHING,
        total_refunded=_NOTHING,
        outstanding=total,
        discounts=Raw(prices.get("discounts", _EMPTY)),
        shipping_lines=Raw(prices.get("shipping_lines", _EMPTY)),
        fees=Raw(prices.get("fees", _EMPTY)),
        tax_lines=Raw(prices.get("tax_lines", _EMPTY)),
        payments=Raw(_EMPTY),
        refunds=Raw(_EMPTY),
        fulfillments=Raw(_EMPTY),
        created_at=inserted.created_at,
        updated_at=inserted.updated_at,
    )


async def update_order(
    tx: Tx, company_id: int, id: str, revision: Revision, cell: str, entry: NewHistoryEntry, transfers: Transfers
) -> Order:
    """`cell` is the counter cell that the order leaves."""
    columns = [
        *STATE.values(revision.state),
        *REVISED.values(revision),
        *PRICED.values(revision.priced),
        *BALANCE.values(revision.balance),
    ]
    new = transfers.new
    return _found(
        await UPDATE.find(
            tx, company_id, id, cell, encode(revision.taken), HISTORY_ID.new(), entry.action, encode(entry.actor),
            entry.reference, encode(entry.changes), transfers.voided, [one.id for one in new],
            [one.kind for one in new], [one.amount for one in new], [one.method for one in new],
            [one.at for one in new], *columns,
        )
    )  # fmt: skip


async def mark_recorded(tx: Tx, company_id: int, id: str) -> None:
    """The statuses need no payment, refund or fulfilment that the order does not have."""
    await MARK_RECORDED.run(tx, company_id, id)


async def sum_sales(db: Connection, company_id: int, customer_id: str, most: int) -> list[CustomerSales]:
    """The currency with the most orders first."""
    return await SUM_SALES.all(db, company_id, customer_id, most)


async def list_orders(
    db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
) -> tuple[list[ListedOrder], int]:
    """One page, and the total number of matches."""
    return await LISTING.page(db, company_id, filters, sort, limit, offset)


def stream_all_orders(tx: Tx, company_id: int) -> AsyncIterator[list[Order]]:
    return LIST_ALL.stream(tx, company_id)


async def update_customer_copies(tx: Tx, company_id: int, customer: CustomerRef, most: int) -> None:
    """Updates the customer's newest orders and queues the rest for the worker."""
    columns = (customer.id, encode(customer), build_customer_text(customer), most)
    if await UPDATE_COPIES.run(tx, company_id, *columns) == most:
        await QUEUE_REMAINING_COPIES.run(tx, company_id, *columns)


async def list_waiting_copies(db: Connection, limit: int) -> list[CopyUpdate]:
    return await LIST_WAITING_COPIES.all(db, limit)


async def find_locked_copy_state(tx: Tx, update: CopyUpdate) -> CopyState | None:
    return await LOCK_COPY_STATE.find(tx, update.company_id, update.customer_id)


async def update_copy_batch(tx: Tx, update: CopyUpdate, state: CopyState, limit: int) -> OrderPosition | None:
    """The last order that was updated, or None when none was left."""
    return await UPDATE_COPY_BATCH.find(
        tx, update.company_id, update.customer_id, state.customer, state.customer_text, state.before_at,
        state.before_id, limit,
    )  # fmt: skip


async def move_copy_position(tx: Tx, update: CopyUpdate, last: OrderPosition) -> None:
    await MOVE_COPY_POSITION.run(tx, update.company_id, update.customer_id, last.created_at, last.id)


async def postpone_copies(db: Connection, update: CopyUpdate) -> None:
    await POSTPONE_COPIES.run(db, update.company_id, update.customer_id)


async def finish_copies(tx: Tx, update: CopyUpdate) -> None:
    await FINISH_COPIES.run(tx, update.company_id, update.customer_id)


def _found(order: Order | None) -> Order:
    if order is None:
        raise NotFound
    return order
