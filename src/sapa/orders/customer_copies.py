"""What orders show of their customer, kept current: a customer who is renamed is found by the new name."""

import time
from functools import partial

import structlog
from msgspec import Raw, Struct

from sapa.customers.types import CustomerRef, CustomerRenamed
from sapa.db.pool import BUSY, Database, Tx
from sapa.db.sql import sql
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.text_folding import fold

MOST_ORDERS = 2_000
"""Of one customer, the newest, are changed together with the customer; the worker changes the rest."""

BATCH = 500
MOST_CUSTOMERS = 100
RUN_SECONDS = 12.0

log = structlog.get_logger()

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

# A customer who is renamed again is begun again.
QUEUE_REST = sql(
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
    """A customer whose older orders show an earlier name."""

    company_id: int
    customer_id: str


LIST_WAITING = sql(
    "SELECT company_id, customer_id FROM customer_copies ORDER BY touched_at LIMIT $1",
    row=CopyUpdate,
    crosses="the worker looks for waiting work over all companies, then goes on customer by customer",
)


class CopyState(Struct, frozen=True):
    """What is written to the orders before the position, newest first."""

    customer: Raw
    customer_text: str
    before_at: str
    before_id: str


LOCK_STATE = sql(
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


# The last order of the batch; none when there was none left.
UPDATE_BATCH = sql(
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

MOVE = sql(
    """
    UPDATE customer_copies
       SET before_at = $3::text::timestamptz, before_id = $4, touched_at = clock_timestamp()
     WHERE company_id = $1 AND customer_id = $2"""
)

POSTPONE = sql("UPDATE customer_copies SET touched_at = clock_timestamp() WHERE company_id = $1 AND customer_id = $2")

FINISH = sql("DELETE FROM customer_copies WHERE company_id = $1 AND customer_id = $2")


async def rename_customer(tx: Tx, company: Company, renamed: CustomerRenamed) -> None:
    """Under the customer's lock, in the transaction of its change. The orders themselves do not count as changed."""
    customer = renamed.customer
    columns = (customer.id, encode(customer), build_customer_text(customer), MOST_ORDERS)
    if await UPDATE_COPIES.run(tx, company.id, *columns) == MOST_ORDERS:
        await QUEUE_REST.run(tx, company.id, *columns)


async def update_copies(database: Database) -> None:
    """The worker's job: customers take turns, a batch of orders in a transaction each, until nothing is left."""
    ends = time.monotonic() + RUN_SECONDS
    failed: set[CopyUpdate] = set()
    while time.monotonic() < ends:
        async with database.connection() as db:
            waiting = [update for update in await LIST_WAITING.all(db, MOST_CUSTOMERS) if update not in failed]
        if not waiting:
            return
        for update in waiting:
            if time.monotonic() < ends and not await _try_batch(database, update):
                failed.add(update)


async def _try_batch(database: Database, update: CopyUpdate) -> bool:
    """Whether it could be done; one whose orders are locked for too long is the last to be tried again."""
    try:
        await database.transact(partial(_update_batch, update))
    except BUSY as error:
        log.warning("orders of a customer could not be updated yet", customer=update.customer_id, reason=str(error))
        async with database.connection() as db:
            await POSTPONE.run(db, update.company_id, update.customer_id)
        return False
    return True


async def _update_batch(update: CopyUpdate, tx: Tx) -> None:
    key = (update.company_id, update.customer_id)
    state = await LOCK_STATE.find(tx, *key)
    if state is None:
        return
    last = await UPDATE_BATCH.find(
        tx, *key, state.customer, state.customer_text, state.before_at, state.before_id, BATCH
    )
    if last is None:
        await FINISH.run(tx, *key)
    else:
        await MOVE.run(tx, *key, last.created_at, last.id)


def build_customer_text(customer: CustomerRef | None) -> str:
    """What a search for a name looks through."""
    return "" if customer is None else fold(f"{customer.first_name or ''} {customer.last_name or ''}")
