"""The rows of counters, and the slots of long reads."""

from sapa.db.due import WORKER, build_is_waiting
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

IS_SHARDED = sql(
    "SELECT to_regclass('pg_dist_partition') IS NOT NULL", crosses="the whole database is distributed, or none of it"
)

SWITCH_SORTING = sql("SELECT set_config('enable_sort', $1, true), set_config('enable_incremental_sort', $1, true)")

SWITCH_SCANS = sql(
    """
    SELECT set_config('enable_seqscan', $1, true), set_config('enable_indexscan', $1, true),
           set_config('enable_indexonlyscan', $1, true), set_config('enable_bitmapscan', $1, true)"""
)

SUM_CELLS = sql(
    """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells WHERE company_id = $1 AND counter = $2)
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas WHERE company_id = $1 AND counter = $2)::bigint"""
)

SUM_NAMED_CELLS = sql(
    """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells
             WHERE company_id = $1 AND counter = $2 AND cell = ANY($3))
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas
             WHERE company_id = $1 AND counter = $2 AND cell = ANY($3))::bigint"""
)

LIST_CELLS = sql(
    """
    SELECT cell, sum(rows)::bigint
      FROM (SELECT cell, total AS rows FROM counter_cells WHERE company_id = $1 AND counter = $2
             UNION ALL
            SELECT cell, delta FROM counter_deltas WHERE company_id = $1 AND counter = $2) AS parts
     GROUP BY cell"""
)

COMPANIES_TO_FOLD = sql(
    "SELECT company_id FROM counter_deltas GROUP BY company_id ORDER BY min(created_at)",
    crosses="the worker looks for due work over all companies, then folds company by company",
)

NEXT_DELTAS = sql(build_is_waiting("counter_deltas"), crosses=WORKER)

# Up to the last of so many, in the order of the key. By IN, the first ones would be listed anew for each row that is
# deleted: the table is empty most of the time, and so the planner thinks that it is.
FOLD = sql(
    """
    WITH first AS (
        SELECT counter, id FROM counter_deltas WHERE company_id = $1 ORDER BY counter, id LIMIT $2
    ), folded AS (
        DELETE FROM counter_deltas
         WHERE company_id = $1
           AND (counter, id) <= (SELECT counter, id FROM first ORDER BY counter DESC, id DESC LIMIT 1)
        RETURNING counter, cell, delta
    ), stored AS (
        INSERT INTO counter_cells AS c (company_id, counter, cell, total)
        SELECT $1, counter, cell, sum(delta) FROM folded GROUP BY counter, cell ORDER BY counter, cell
            ON CONFLICT (company_id, counter, cell) DO UPDATE SET total = c.total + excluded.total
    )
    SELECT count(*) FROM folded"""
)

# Locked until the transaction ends, in whichever process it is.
TAKE_LONG_READ_SLOT = sql(
    """
    SELECT EXISTS (
           SELECT FROM generate_series(1, $2::integer) AS slot
            WHERE pg_try_advisory_xact_lock(hashtextextended('long read of ' || $1::bigint || '/' || slot, 0))
            LIMIT 1)"""
)


async def sum_cells(db: Connection, company_id: int, counter: str) -> int:
    return int(await SUM_CELLS.value(db, company_id, counter))


async def sum_named_cells(db: Connection, company_id: int, counter: str, cells: list[str]) -> int:
    return int(await SUM_NAMED_CELLS.value(db, company_id, counter, cells))


async def list_cells(db: Connection, company_id: int, counter: str) -> dict[str, int]:
    return {row[0]: row[1] for row in await db.fetch(LIST_CELLS.text, company_id, counter)}


async def list_companies_to_fold(db: Connection) -> list[int]:
    """The company whose deltas have waited longest first."""
    return [company_id for (company_id,) in await db.fetch(COMPANIES_TO_FOLD.text)]


async def fold(tx: Tx, company_id: int, most: int) -> int:
    """Adds deltas to their cells; returns how many."""
    return await FOLD.value(tx, company_id, most) or 0


async def take_long_read_slot(tx: Tx, company_id: int, most: int) -> bool:
    """Takes one of the company's slots; False when all are taken."""
    return bool(await TAKE_LONG_READ_SLOT.value(tx, company_id, most))
