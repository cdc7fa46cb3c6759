"""How many orders are stored at once."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, structs

from sapa.customers.types import CustomerRef
from sapa.db.planning import without_sorting
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.orders.columns import BALANCE, FIRST_NUMBER, PRICED, READ, STATE, WRITTEN
from sapa.orders.document import NewOrder, build_customer_text
from sapa.orders.history.types import HISTORY_ID, NewHistoryEntry
from sapa.orders.revision import Revision
from sapa.orders.settlement.transfers import Transfers
from sapa.orders.types import InsertedOrder, Order
from sapa.values.change_actor import ChangeActor
from sapa.values.json import encode

# Each by the index of its own id, whatever the statistics say: see LOCK_MANY of customers.
LIST_BY_ORDER_IDS = sql(
    f"""
    SELECT {", ".join(f"o.{name}" for name in Order.__struct_fields__)}
      FROM unnest($2::text[]) AS requested (own)
     CROSS JOIN LATERAL (
           SELECT {READ} FROM orders AS r
            WHERE company_id = $1 AND r.order_id BETWEEN requested.own AND requested.own
            ORDER BY r.order_id LIMIT 1) AS o""",
    row=Order,
)


class OrderClock(Struct, frozen=True):
    """The present: as rows store it, and by the company's clock, which the test environment can move."""

    now: str
    company_now: datetime


READ_CLOCK = sql(
    """
    SELECT clock_timestamp() AS now, clock_timestamp() + clock_offset AS company_now
      FROM companies WHERE company_id = $1""",
    row=OrderClock,
)


class OrderInsert(Struct, frozen=True):
    """An order of a batch, in the state that it has from the start."""

    id: str
    new_order: NewOrder
    revision: Revision
    customer: CustomerRef | None
    placed_at: datetime | None
    earns: bool
    transfers: Transfers


_MANY = ("id", "customer", "customer_id", "customer_text", "placed_at", "earns", *WRITTEN.names, *PRICED.names,
         *STATE.names, *BALANCE.names)  # fmt: skip

# Takes as many numbers as there are orders; they sort like their positions in the batch.
INSERT_MANY = sql(
    f"""
    WITH numbered AS (
        INSERT INTO order_numbers AS n (company_id, last) VALUES ($1, {FIRST_NUMBER - 1} + $2::bigint)
            ON CONFLICT (company_id) DO UPDATE SET last = n.last + $2::bigint WHERE n.company_id = $1
        RETURNING last, clock_timestamp() AS at
    ), made AS (
        INSERT INTO orders (company_id, id, customer, customer_id, customer_text, earns, {WRITTEN.listed},
                            {PRICED.listed}, {STATE.listed}, {BALANCE.listed}, placed_by, order_number, created_at,
                            updated_at)
        SELECT $1, id, customer::json, customer_id, customer_text, earns::boolean, {WRITTEN.cast}, {PRICED.cast},
               {STATE.cast}, {BALANCE.cast}, $3, (last - $2::bigint + place)::text,
               coalesce(placed_at::timestamptz, at), GREATEST(placed_at::timestamptz, at)
          FROM numbered
         CROSS JOIN unnest({", ".join(f"${n}::text[]" for n, _ in enumerate(_MANY, 11))}) WITH ORDINALITY
               AS input ({", ".join(_MANY)}, place)
        RETURNING company_id, id, order_number, created_at, updated_at, cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'orders', cell, count(*) FROM made GROUP BY cell
    ), transacted AS (
        INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, method, occurred_at)
        SELECT $1, t.id, t.order_id, t.kind, t.amount, t.currency, t.method, t.at::timestamptz
          FROM unnest($4::text[], $5::text[], $6::text[], $7::numeric[], $8::text[], $9::text[], $10::text[])
               AS t (id, order_id, kind, amount, currency, method, at)
    )
    SELECT id, order_number, created_at, updated_at FROM made WHERE company_id = $1""",
    row=InsertedOrder,
)

INSERT_HISTORY = sql(
    """
    INSERT INTO order_history (company_id, order_id, id, action, actor, reference, changes, created_at)
    SELECT $1, h.order_id, h.id, h.action, $2, h.reference, h.changes::json, h.at::timestamptz
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
           AS h (order_id, id, action, reference, changes, at)"""
)


async def list_by_order_ids(db: Tx, company_id: int, order_ids: Sequence[str]) -> list[Order]:
    async with without_sorting(db):
        return await LIST_BY_ORDER_IDS.all(db, company_id, order_ids)


async def get_clock(db: Connection, company_id: int) -> OrderClock:
    clock = await READ_CLOCK.find(db, company_id)
    if clock is None:
        raise NotFound
    return clock


async def insert_orders(
    tx: Tx, company_id: int, orders: Sequence[OrderInsert], by: ChangeActor
) -> dict[str, InsertedOrder]:
    """By id. The company's numbers are locked from here to the end of the transaction."""
    moved = [(order, transfer) for order in orders for transfer in order.transfers.new]
    columns = zip(*map(_list_texts, orders), strict=True)
    inserted = await INSERT_MANY.all(
        tx,
        company_id,
        len(orders),
        encode(by),
        [transfer.id for _, transfer in moved],
        [order.id for order, _ in moved],
        [transfer.kind for _, transfer in moved],
        [transfer.amount for _, transfer in moved],
        [order.new_order.currency for order, _ in moved],
        [transfer.method for _, transfer in moved],
        [transfer.at for _, transfer in moved],
        *map(list, columns),
    )
    return {one.id: one for one in inserted}


def _list_texts(order: OrderInsert) -> list[str | None]:
    new_order = structs.replace(order.new_order, order_id=order.new_order.order_id or order.id)
    customer = order.customer
    return [
        order.id,
        None if customer is None else encode(customer).decode(),
        None if customer is None else customer.id,
        build_customer_text(customer),
        None if order.placed_at is None else order.placed_at.isoformat(),
        str(order.earns),
        *WRITTEN.texts(new_order),
        *PRICED.texts(order.revision.priced),
        *STATE.texts(order.revision.state),
        *BALANCE.texts(order.revision.balance),
    ]


async def insert_history(
    tx: Tx, company_id: int, by: ChangeActor, entries: Sequence[tuple[str, NewHistoryEntry, str]]
) -> None:
    """Each is an order's id, its entry, and when."""
    if not entries:
        return
    await INSERT_HISTORY.run(
        tx,
        company_id,
        encode(by),
        [order_id for order_id, _, _ in entries],
        [HISTORY_ID.new() for _ in entries],
        [entry.action for _, entry, _ in entries],
        [entry.reference for _, entry, _ in entries],
        [encode(entry.changes).decode() for _, entry, _ in entries],
        [at for _, _, at in entries],
    )
