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
from sapa.db.sql import ComposedStatement, build_instant_text, compose, sql
from sapa.db.write_columns import WriteColumns
from sapa.events import RECORDED, build_announced
from sapa.http.errors import NotFound
from sapa.orders.announcements import NewOrderAnnouncement, OrderAnnouncement
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
from sapa.orders.document import build_customer_text
from sapa.orders.history.types import HISTORY_ID, NewHistoryEntry
from sapa.orders.listed_order import BEGINNING, ListedOrder
from sapa.orders.pricing.arithmetic import PricedOrder
from sapa.orders.revision import Revision
from sapa.orders.settlement.transfers import Transfers
from sapa.orders.types import CustomerSales, InsertedOrder, Order, StoredOrder, UpdatedOrder
from sapa.timeline.statement_parts import build_recorded
from sapa.values.change_actor import ChangeActor
from sapa.values.json import encode

COUNTER = "orders"
_NOTHING = (Decimal(0), Raw(b"[]"))
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
def build_insert_parts(priced: WriteColumns[PricedOrder]) -> list[str]:
    """Inserts a new order, with its number and counter."""
    return [
        f"""numbered AS (
        INSERT INTO order_numbers AS n (company_id, last) VALUES ($1, {FIRST_NUMBER})
            ON CONFLICT (company_id) DO UPDATE SET last = n.last + 1 WHERE n.company_id = $1
        RETURNING last)""",
        """counted_order AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        VALUES ($1, 'orders', 'active/unfulfilled/pending', 1))""",
        f"""stored AS (
        INSERT INTO orders (company_id, id, customer, customer_id, customer_text, taken, placed_by, {WRITTEN.listed},
                            {priced.listed}, order_number, created_at, updated_at, status, fulfillment_status,
                            financial_status, recorded_cell, total_paid, total_refunded, outstanding)
        SELECT $1, :id::text, :customer::json, :customer_id::text, :customer_text::text, :taken::json,
               :placed_by::json, {WRITTEN.named("")}, {priced.named("")}, last::text,
               coalesce(:placed_at::timestamptz, at), GREATEST(:placed_at::timestamptz, at),
               'active', 'unfulfilled', 'pending', 'active/unfulfilled/pending', 0, 0, :total::numeric
          FROM (SELECT last, clock_timestamp() AS at FROM numbered) AS numbered
        RETURNING id, order_number, created_at, updated_at)""",
    ]


_CREATED, _UPDATED = build_instant_text("created_at"), build_instant_text("updated_at")
_NEW_BODY = f""":body_start::bytea || convert_to(order_number, 'UTF8') || :body_end::bytea
           || convert_to({_CREATED} || '","updatedAt":"' || {_UPDATED} || '"}}', 'UTF8')"""
_BODY = f""":body_start::bytea || convert_to({_UPDATED} || '"}}', 'UTF8')"""


_HAS_DELIVERIES = "EXISTS (SELECT FROM deliveries) AS has_deliveries"


def _compose_insert(priced: WriteColumns[PricedOrder]) -> ComposedStatement[InsertedOrder]:
    entries = "(SELECT :entries_start::text || order_number || :entries_end::text FROM stored)"
    return compose(
        [*build_insert_parts(priced), build_announced(_NEW_BODY), RECORDED, build_recorded(entries, are_known=True)],
        f"SELECT order_number, created_at, updated_at, {_HAS_DELIVERIES} FROM stored",
        row=InsertedOrder,
    )


INSERT = _compose_insert(PRICED)
INSERT_PLAIN = _compose_insert(PLAIN)


# statement_timestamp(), because the transaction may have waited for the row's lock; updated_at never goes back.
def build_update_parts(*columns: WriteColumns[Any]) -> list[str]:
    """Updates these columns of an order and its history and counter. `left_cell` is the counter cell that it leaves."""
    assigned = ", ".join(f"({one.listed}) = ROW({one.named('')})" for one in columns)
    return [
        f"""stored AS (
        UPDATE orders
           SET {assigned}, taken = :taken::json,
               updated_at = GREATEST(statement_timestamp(), updated_at)
         WHERE company_id = $1 AND id = :id::text
        RETURNING id, currency, cell, updated_at)""",
        """counted_order AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'orders', moved.cell, moved.delta
          FROM stored
         CROSS JOIN LATERAL (VALUES (:left_cell::text, -1), (stored.cell, 1)) AS moved (cell, delta)
         WHERE stored.cell <> :left_cell::text)""",
        """history AS (
        INSERT INTO order_history (company_id, order_id, id, action, actor, reference, changes, created_at)
        SELECT $1, id, :history_id::text, :action::text, :actor::json, :reference::text, :changes::json, updated_at
          FROM stored)""",
    ]


_TRANSFERRED = [
    """voided AS (
        DELETE FROM order_transactions WHERE company_id = $1 AND id = ANY(:voided::text[]))""",
    """transacted AS (
        INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, method, occurred_at)
        SELECT $1, t.id, stored.id, t.kind, t.amount, stored.currency, t.method, t.at::timestamptz
          FROM stored
         CROSS JOIN unnest(:transfer_ids::text[], :transfer_kinds::text[], :transfer_amounts::numeric[],
                           :transfer_methods::text[], :transfer_instants::text[])
               AS t (id, kind, amount, method, at))""",
]


def _compose_update(parts: list[str], *, has_entries: bool) -> ComposedStatement[UpdatedOrder]:
    entries = [build_recorded(":timeline")] if has_entries else []
    return compose(
        [*parts, build_announced(_BODY), RECORDED, *entries],
        f"SELECT updated_at, {_HAS_DELIVERIES} FROM stored",
        row=UpdatedOrder,
    )


_DETAILS = build_update_parts(STATE, REVISED)
_EVERYTHING = [*build_update_parts(STATE, REVISED, PRICED, BALANCE), *_TRANSFERRED]
UPDATE_DETAILS = _compose_update(_DETAILS, has_entries=False)
"""For a change of neither prices nor money, as most are."""
UPDATE_DETAILS_WITH_ENTRIES = _compose_update(_DETAILS, has_entries=True)
UPDATE = _compose_update(_EVERYTHING, has_entries=False)
UPDATE_WITH_ENTRIES = _compose_update(_EVERYTHING, has_entries=True)

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
    walked_sorts=("total",),
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
    return _or_not_found(await GET.find(db, company_id, id))


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
    order: Order,
    customer: CustomerRef | None,
    taken: Mapping[str, int],
    placed_at: datetime | None,
    actor: ChangeActor,
    announcement: NewOrderAnnouncement,
) -> InsertedOrder:
    """An order without its number and instants, with what it announces."""
    statement = INSERT if any(getattr(order, name) not in _NOTHING for name in ADJUSTMENTS) else INSERT_PLAIN
    values = {
        **structs.asdict(order),
        **structs.asdict(announcement),
        "customer_id": customer and customer.id,
        "customer_text": build_customer_text(customer),
        "taken": encode(taken),
        "placed_at": placed_at,
        "placed_by": encode(actor),
    }
    inserted = await statement.find(tx, company_id, *statement.order(values))
    if inserted is None:
        raise NotFound
    return inserted


async def update_order(
    tx: Tx,
    company_id: int,
    id: str,
    before: Revision,
    after: Revision,
    entry: NewHistoryEntry,
    transfers: Transfers,
    announcement: OrderAnnouncement,
) -> UpdatedOrder:
    """Stores the revision with its history, the money that moved, and what it announces."""
    values = {
        **structs.asdict(announcement),
        **STATE.name_values("", after.state),
        **REVISED.name_values("", after),
        "id": id,
        "left_cell": before.state.cell,
        "taken": encode(after.taken),
        "history_id": HISTORY_ID.new(),
        "action": entry.action,
        "actor": encode(entry.actor),
        "reference": entry.reference,
        "changes": encode(entry.changes),
    }
    has_entries = announcement.timeline is not None
    if after.priced is before.priced and after.balance is before.balance:
        statement = UPDATE_DETAILS_WITH_ENTRIES if has_entries else UPDATE_DETAILS
    else:
        statement = UPDATE_WITH_ENTRIES if has_entries else UPDATE
        values |= PRICED.name_values("", after.priced) | BALANCE.name_values("", after.balance)
        values |= transfers.name_values()
    updated = await statement.find(tx, company_id, *statement.order(values))
    if updated is None:
        raise NotFound
    return updated


async def mark_recorded(tx: Tx, company_id: int, id: str) -> None:
    """Marks an order that has every payment, refund and fulfilment that its statuses imply."""
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


def _or_not_found(order: Order | None) -> Order:
    if order is None:
        raise NotFound
    return order
