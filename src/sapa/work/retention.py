"""Rows that are deleted after their retention."""

from sapa.db.pool import Database
from sapa.db.sql import sql
from sapa.http.idempotency import KEPT_HOURS

DAYS_AHEAD = 7
DAYS_KEPT = {"events": 30, "webhook_attempts": 30}
MONTHS_AHEAD = 2
HISTORY_MONTHS = 12
_BATCH = 5_000

PURGE_IDEMPOTENCY = sql(
    """
    DELETE FROM idempotency_records
     WHERE (company_id, key, target) IN (
           SELECT company_id, key, target FROM idempotency_records
            WHERE created_at < now() - make_interval(hours => $1)
            ORDER BY created_at LIMIT $2)""",
    crosses="the worker forgets old records of every company",
)

KEEP_PARTITIONS = sql("SELECT keep_day_partitions($1, $2, $3)", crosses="partitions hold every company's rows")

KEEP_MONTHS = sql("SELECT keep_month_partitions($1, $2, $3)", crosses="partitions hold every company's rows")


async def purge_idempotency_records(database: Database) -> None:
    """In small batches, so that no request waits for a long delete."""
    deleted = _BATCH
    while deleted == _BATCH:
        async with database.transaction() as tx:
            deleted = await PURGE_IDEMPOTENCY.run(tx, KEPT_HOURS, _BATCH)


async def keep_partitions(database: Database, history_months: int = HISTORY_MONTHS) -> None:
    """Creates the partitions of the coming days and months and drops those past their retention."""
    for parent, days in DAYS_KEPT.items():
        async with database.transaction() as tx:
            await KEEP_PARTITIONS.value(tx, parent, DAYS_AHEAD, days)
    async with database.transaction() as tx:
        await KEEP_MONTHS.value(tx, "api_requests", MONTHS_AHEAD, history_months)
