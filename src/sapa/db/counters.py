"""Exact totals without counting rows.

A counter has cells, one per combination of the list's enum filters (one cell, named '', where there is none). The
statement that changes a row appends the delta of its cell; the worker folds deltas into cells; a total is the sum of
both, in one snapshot.
"""

from sapa.db.pool import Connection, Database
from sapa.db.sql import sql

TOTAL = sql(
    """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells WHERE company_id = $1 AND counter = $2)
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas WHERE company_id = $1 AND counter = $2)::bigint"""
)

TOTAL_OF_CELLS = sql(
    """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells
             WHERE company_id = $1 AND counter = $2 AND cell = ANY($3))
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas
             WHERE company_id = $1 AND counter = $2 AND cell = ANY($3))::bigint"""
)

COMPANIES_TO_FOLD = sql(
    "SELECT company_id FROM counter_deltas GROUP BY company_id ORDER BY min(created_at)",
    crosses="the worker looks for due work over all companies, then folds company by company",
)

FOLD = sql(
    """
    WITH folded AS (
        DELETE FROM counter_deltas
         WHERE company_id = $1
           AND (counter, id) IN (SELECT counter, id FROM counter_deltas WHERE company_id = $1 LIMIT $2)
        RETURNING counter, cell, delta
    )
    INSERT INTO counter_cells AS c (company_id, counter, cell, total)
    SELECT $1, counter, cell, sum(delta) FROM folded GROUP BY counter, cell ORDER BY counter, cell
        ON CONFLICT (company_id, counter, cell) DO UPDATE SET total = c.total + excluded.total
    RETURNING (SELECT count(*) FROM folded)"""
)

BATCH = 10_000


async def get_total(db: Connection, company_id: int, counter: str, cells: list[str] | None = None) -> int:
    """The rows that the counter's cells count: all cells, or those that are named."""
    if cells is None:
        return int(await TOTAL.value(db, company_id, counter))
    return int(await TOTAL_OF_CELLS.value(db, company_id, counter, cells))


async def fold(database: Database) -> None:
    """Folds the deltas of every company, each batch in its own transaction."""
    async with database.connection() as db:
        due = await db.fetch(COMPANIES_TO_FOLD.text)
    for (company_id,) in due:
        while await _fold_batch(database, company_id) == BATCH:
            pass


async def _fold_batch(database: Database, company_id: int) -> int:
    async with database.transaction() as tx:
        return await FOLD.value(tx, company_id, BATCH) or 0
