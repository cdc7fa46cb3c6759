"""Counts the entries that code of earlier versions stored, batch by batch, after an upgrade."""

import time
from functools import partial

from sapa.db.pool import Database
from sapa.timeline import queries

RUN_SECONDS = 12.0
BATCH = 5_000


async def backfill_counters(database: Database) -> None:
    """The worker's job; with nothing to count it costs one look at an empty index."""
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        async with database.connection() as db:
            company_id = await queries.find_company_to_count(db)
        if company_id is None:
            return
        await database.transact(partial(queries.count_more, company_id=company_id, most=BATCH))
