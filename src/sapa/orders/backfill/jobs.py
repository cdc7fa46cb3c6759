"""Completes the orders of earlier versions, batch by batch, after an upgrade."""

import time
from functools import partial

from sapa.db.pool import Database, Tx
from sapa.orders.backfill import queries

BATCH = 500
RUN_SECONDS = 12.0


async def backfill_amounts(database: Database) -> None:
    """The worker's job; with nothing to complete it costs one look at an empty index."""
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        async with database.connection() as db:
            company_id = await queries.find_company(db)
        if company_id is None:
            return
        await database.transact(partial(_complete_batch, company_id))


async def _complete_batch(company_id: int, tx: Tx) -> None:
    await queries.complete_orders(tx, company_id, BATCH)
