"""Completes the orders that code of earlier versions stored or changed, batch by batch, after an upgrade."""

import time
from functools import partial

from sapa.access import actions as access
from sapa.db.pool import Database, Tx
from sapa.orders import actions
from sapa.orders.backfill import actions as backfill
from sapa.values.company import Company

RUN_SECONDS = 12.0


async def backfill_amounts(database: Database) -> None:
    """The worker's job; with nothing to complete it costs one look at an empty index."""
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        async with database.transaction() as tx:
            company_id = await backfill.find_company_id(tx)
            if company_id is None:
                return
            company = await access.get_company(tx, company_id)
            changed = await backfill.list_unrecorded(tx, company_id)
        await database.transact(partial(_complete_batch, company_id))
        for id in changed:
            if time.monotonic() < deadline:
                await database.transact(partial(_record, company, id))


async def _complete_batch(company_id: int, tx: Tx) -> None:
    await backfill.complete_batch(tx, company_id)


async def _record(company: Company, id: str, tx: Tx) -> None:
    await actions.record_earlier_changes(tx, company, id)
