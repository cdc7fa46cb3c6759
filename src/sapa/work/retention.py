"""Rows that are deleted after their retention."""

import time
from collections.abc import Mapping

from sapa.db.pool import Database
from sapa.http.retention import KEPT_HOURS
from sapa.work import queries

DAYS_AHEAD = 7
DAYS_KEPT = {"events": 30, "webhook_attempts": 30, "api_calls": 30}
MONTHS_AHEAD = 2
HISTORY_MONTHS = 12
_BATCH = 5_000
PURGE_SECONDS = 15.0
"""Of one run: the next one goes on."""


async def purge_idempotency_records(database: Database) -> None:
    """In small batches, so that no request waits for a long delete."""
    deleted = _BATCH
    while deleted == _BATCH:
        async with database.transaction() as tx:
            deleted = await queries.purge_idempotency_records(tx, KEPT_HOURS, _BATCH)


async def keep_partitions(database: Database, history_months: int = HISTORY_MONTHS) -> None:
    """Creates the partitions of the coming days and months and drops those past their retention."""
    for table, days in DAYS_KEPT.items():
        async with database.transaction() as tx:
            await queries.keep_days(tx, table, DAYS_AHEAD, days)
    async with database.transaction() as tx:
        await queries.keep_months(tx, "api_requests", MONTHS_AHEAD, history_months)


async def purge_rows(database: Database, months: Mapping[str, int]) -> None:
    """`months` is the retention by kind. In small batches, each a transaction of its own."""
    deadline = time.monotonic() + PURGE_SECONDS
    for kind, retention in months.items():
        purged = _BATCH
        while purged == _BATCH and time.monotonic() < deadline:
            async with database.transaction() as tx:
                purged = await queries.purge_rows(tx, kind, retention, _BATCH)
