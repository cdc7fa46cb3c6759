"""The worker checks the wallets of all companies in turn."""

import time

import structlog

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database
from sapa.loyalty.reconciliation import queries
from sapa.loyalty.reconciliation.actions import get_batch
from sapa.loyalty.reconciliation.queries import CheckProgress, WalletBatch

MAX_COMPANIES = 50

# Together with the check that is started last, a run ends before the worker stops it.
RUN_SECONDS = 7.0
CHECK_SECONDS = 15.0

log = structlog.get_logger()


async def check_wallets(database: Database) -> None:
    """The worker's job: checks the next wallets of each company, a few at a time."""
    deadline = time.monotonic() + RUN_SECONDS
    async with database.connection() as db:
        for progress in await queries.list_rounds(db, MAX_COMPANIES):
            if time.monotonic() > deadline:
                return
            await _check_next(db, progress)


async def _check_next(db: Connection, progress: CheckProgress) -> None:
    batch = await get_batch(db, progress.company_id, progress.position)
    found = progress.found + await _count_drifting(db, progress, batch)
    position = "" if batch.is_last else batch.last_id
    await queries.store_round(db, progress.company_id, position, 0 if batch.is_last else found, found)


async def _count_drifting(db: Connection, progress: CheckProgress, batch: WalletBatch) -> int:
    """Skips wallets that cannot be checked, and continues."""
    try:
        drift = await queries.list_drift(db, progress.company_id, progress.position, batch, CHECK_SECONDS)
    except DatabaseAway:
        raise
    except Exception:
        log.exception("wallets not checked", company_id=progress.company_id, wallet_id=batch.last_id)
        return 0
    return len({one.wallet_id for one in drift})
