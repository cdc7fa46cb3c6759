"""Exact totals without counting rows.

A counter has cells, one per combination of the list's enum filters (one cell, named '', where there is none). The
statement that changes a row appends the delta of its cell; the worker folds deltas into cells; a total is the sum of
both, in one snapshot.
"""

from functools import partial

from sapa.db import queries
from sapa.db.pool import Connection, Database
from sapa.db.wakeups import DueQueue

BATCH = 10_000
QUEUE = DueQueue("counters", queries.NEXT_DELTAS.text)


async def get_total(db: Connection, company_id: int, counter: str, cells: list[str] | None = None) -> int:
    """The rows that the counter's cells count: all cells, or those that are named."""
    if cells is None:
        return await queries.sum_cells(db, company_id, counter)
    return await queries.sum_named_cells(db, company_id, counter, cells)


async def list_totals(db: Connection, company_id: int, counter: str) -> dict[str, int]:
    """The rows of each cell."""
    return await queries.list_cells(db, company_id, counter)


async def fold(database: Database) -> None:
    """Folds the deltas of every company, each batch in its own transaction; two folds of one company may deadlock, and
    one of them is retried."""
    async with database.connection() as db:
        companies = await queries.list_companies_to_fold(db)
    for company_id in companies:
        folded = BATCH
        while folded == BATCH:
            folded = await database.transact(partial(queries.fold, company_id=company_id, most=BATCH))
