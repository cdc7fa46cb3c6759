"""How many orders are stored at once."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from sapa.customers.types import CustomerRef
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.orders.columns import BALANCE, FIRST_NUMBER, PRICED, READ, STATE, WRITTEN
from sapa.orders.document import NewOrder, build_customer_text
from sapa.orders.history.types import HISTORY_ID, NewHistoryEntry
from sapa.orders.revision import Revision
from sapa.orders.settlement.transfers import Transfers
from sapa.orders.types import KnownOrder
from sapa.values.change_actor import ChangeActor
from sapa.values.json import encode

# Each by the index of its own id, whatever the statistics say: see LOCK_MANY of customers.
LIST_BY_ORDER_IDS = sql(
    f"""
    SELECT {", ".join(f"o.{name}" for name in KnownOrder.__struct_fields__)}
      FROM unnest($2::text[]) AS requested (own)
     CROSS JOIN LATERAL (
           SELECT {READ}, archived_from FROM orders AS r
            WHERE company_id = $1 AND r.order_id BETWEEN requested.own AND requested.own
            ORDER BY r.order_id LIMIT 1) AS o""",
    row=KnownOrder,
)


class OrderClock(Struct, frozen=True):
    """The present: as rows store it, and by the company's clock, which the test environment can move."""

    now: str
    company_now: str


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
    placed_at: str | None
    earns: bool
    transfers: Transfers


class EncodedOrder(Struct, frozen=True):
    """An order of a batch without its customer, and its payments and refunds, as `insert_orders` stores them."""

    document: bytes
    transfers: list[bytes]


class OrderNumbers(Struct, frozen=True):
    """The numbers of a batch, from the first on, and the instant at which its orders are stored."""

    first: int
    at: str


TAKE_NUMBERS = sql(
    f"""
    WITH taken AS (
        INSERT INTO order_numbers AS n (company_id, last) VALUES ($1, {FIRST_NUMBER - 1} + $2::bigint)
            ON CONFLICT (company_id) DO UPDATE SET last = n.last + $2::bigint WHERE n.company_id = $1
        RETURNING company_id, last
    )
    SELECT last - $2::bigint + 1 AS first, clock_timestamp() AS at FROM taken WHERE company_id = $1""",
    row=OrderNumbers,
)

# The numbers sort like the orders' positions in the batch.
INSERT_MANY = sql(
    f"""
    WITH inserted AS (
        INSERT INTO orders (company_id, id, customer, customer_id, customer_text, earns, {WRITTEN.listed},
                            {PRICED.listed}, {STATE.listed}, {BALANCE.listed}, placed_by, order_number, created_at,
                            updated_at)
        SELECT $1, id, customer, customer_id, customer_text, earns, {WRITTEN.listed}, {PRICED.listed}, {STATE.listed},
               {BALANCE.listed}, $2, ($3::bigint + place - 1)::text, coalesce(placed_at, $4::text::timestamptz),
               GREATEST(placed_at, $4::text::timestamptz)
          FROM ROWS FROM (
                   json_to_recordset($5::json) AS (id text, placed_at timestamptz, earns boolean, {WRITTEN.typed},
                                                   {PRICED.typed}, {STATE.typed}, {BALANCE.typed}),
                   json_to_recordset($6::json) AS (customer json, customer_id text, customer_text text))
               WITH ORDINALITY AS input (id, placed_at, earns, {WRITTEN.listed}, {PRICED.listed}, {STATE.listed},
                                         {BALANCE.listed}, customer, customer_id, customer_text, place)
        RETURNING company_id, cell
    ), counted AS (
        INSERT INTO counter_deltas (company_id, counter, cell, delta)
        SELECT $1, 'orders', cell, count(*) FROM inserted GROUP BY cell
    ), transacted AS (
        INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, method, occurred_at)
        SELECT $1, id, order_id, kind, amount, currency, method, at
          FROM json_to_recordset($7::json) AS t (id text, order_id text, kind text, amount numeric, currency text,
                                                 method text, at timestamptz)
    )
    SELECT count(*) FROM inserted WHERE company_id = $1"""
)

INSERT_HISTORY = sql(
    """
    INSERT INTO order_history (company_id, order_id, id, action, actor, reference, changes, created_at)
    SELECT $1, order_id, id, action, $2, reference, changes, at
      FROM json_to_recordset($3::json) AS h (order_id text, id text, action text, reference text, changes json,
                                             at timestamptz)"""
)


async def list_by_order_ids(db: Tx, company_id: int, order_ids: Sequence[str]) -> list[KnownOrder]:
    return await LIST_BY_ORDER_IDS.all(db, company_id, order_ids)


async def get_clock(db: Connection, company_id: int) -> OrderClock:
    clock = await READ_CLOCK.find(db, company_id)
    if clock is None:
        raise NotFound
    return clock


async def take_numbers(tx: Tx, company_id: int, count: int) -> OrderNumbers:
    """The company's numbers are locked from here to the end of the transaction."""
    numbers = await TAKE_NUMBERS.find(tx, company_id, count)
    if numbers is None:
        raise NotFound
    return numbers


def encode_order(order: OrderInsert) -> EncodedOrder:
    new_order = order.new_order
    document = {
        "id": order.id,
        "placed_at": order.placed_at,
        "earns": order.earns,
        **WRITTEN.document(new_order),
        **PRICED.document(order.revision.priced),
        **STATE.document(order.revision.state),
        **BALANCE.document(order.revision.balance),
    }
    document["order_id"] = new_order.order_id or order.id
    transfers = [
        {
            "id": transfer.id,
            "order_id": order.id,
            "kind": transfer.kind,
            "amount": transfer.amount,
            "currency": new_order.currency,
            "method": transfer.method,
            "at": transfer.at,
        }
        for transfer in order.transfers.new
    ]
    return EncodedOrder(encode(document), [encode(transfer) for transfer in transfers])


def build_documents(orders: Sequence[tuple[EncodedOrder, CustomerRef | None]]) -> tuple[bytes, bytes, bytes]:
    """The orders, their customers, and their payments and refunds, as `insert_orders` stores them."""
    return (
        _encode_list(order.document for order, _ in orders),
        encode([_build_customer_columns(customer) for _, customer in orders]),
        _encode_list(transfer for order, _ in orders for transfer in order.transfers),
    )


def _encode_list(documents: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(documents) + b"]"


def _build_customer_columns(customer: CustomerRef | None) -> dict[str, Any]:
    return {
        "customer": customer,
        "customer_id": None if customer is None else customer.id,
        "customer_text": build_customer_text(customer),
    }


async def insert_orders(
    tx: Tx, company_id: int, actor: ChangeActor, numbers: OrderNumbers, documents: tuple[bytes, bytes, bytes]
) -> None:
    await INSERT_MANY.run(tx, company_id, encode(actor), numbers.first, numbers.at, *documents)


def encode_history(entries: Sequence[tuple[str, NewHistoryEntry, str]]) -> bytes:
    """Each is an order's id, its entry, and when."""
    documents = [
        {
            "order_id": order_id,
            "id": HISTORY_ID.new(),
            "action": entry.action,
            "reference": entry.reference,
            "changes": entry.changes,
            "at": at,
        }
        for order_id, entry, at in entries
    ]
    return encode(documents)


async def insert_history(tx: Tx, company_id: int, actor: ChangeActor, entries: bytes) -> None:
    """The entries as `encode_history` returns them."""
    await INSERT_HISTORY.run(tx, company_id, encode(actor), entries)
