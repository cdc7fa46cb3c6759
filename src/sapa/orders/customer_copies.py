"""The copy of a customer that each order keeps: updated when the customer is renamed."""

import time
from functools import partial

import structlog

from sapa.customers.types import CustomerRenamed
from sapa.db.pool import BUSY, Database, Tx
from sapa.db.wakeups import DueQueue
from sapa.orders import queries
from sapa.orders.queries import CopyUpdate
from sapa.values.company import Company

MAX_ORDERS = 2_000
"""How many of a customer's newest orders change in the transaction of the rename; the worker updates the rest."""

BATCH = 500
MAX_CUSTOMERS = 100
RUN_SECONDS = 12.0

QUEUE = DueQueue("customer copies", queries.NEXT_COPIES.text)

log = structlog.get_logger()


async def rename_customer(tx: Tx, company: Company, renamed: CustomerRenamed) -> None:
    """Runs under the customer's lock, in the transaction of the rename. The orders do not count as changed."""
    await queries.update_customer_copies(tx, company.id, renamed.customer, MAX_ORDERS)


async def update_copies(database: Database) -> None:
    """The worker's job: customers take turns with one batch of orders per transaction, until none is left."""
    deadline = time.monotonic() + RUN_SECONDS
    failed: set[CopyUpdate] = set()
    while time.monotonic() < deadline:
        async with database.connection() as db:
            listed = await queries.list_waiting_copies(db, MAX_CUSTOMERS)
        waiting = [update for update in listed if update not in failed]
        if not waiting:
            return
        for update in waiting:
            if time.monotonic() < deadline and not await _try_batch(database, update):
                failed.add(update)


async def _try_batch(database: Database, update: CopyUpdate) -> bool:
    """False when the orders stayed locked for too long; the customer then goes to the end of the queue."""
    try:
        await database.transact(partial(_update_batch, update))
    except BUSY as error:
        log.warning(
            "customer's orders not updated yet",
            company_id=update.company_id,
            customer_id=update.customer_id,
            reason=str(error),
        )
        async with database.connection() as db:
            await queries.postpone_copies(db, update)
        return False
    return True


async def _update_batch(update: CopyUpdate, tx: Tx) -> None:
    state = await queries.find_locked_copy_state(tx, update)
    if state is None:
        return
    last = await queries.update_copy_batch(tx, update, state, BATCH)
    if last is None:
        await queries.finish_copies(tx, update)
    else:
        await queries.move_copy_position(tx, update, last)
