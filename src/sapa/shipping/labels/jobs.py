"""The worker makes the files of many labels, one after the other."""

import asyncio
from collections.abc import Sequence

import structlog

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Tx
from sapa.http.errors import ApiError
from sapa.shipping.labels import actions, queries
from sapa.shipping.labels.types import PrintingFailed, WaitingBatch
from sapa.work.leases import new_holder
from sapa.work.loops import repeat_when_due

PAUSE_SECONDS = 1.0
LONGEST_ERROR = 500

log = structlog.get_logger()


async def print_waiting(context: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service. A file whose worker dies is made by another one, after its hold."""

    async def step() -> bool:
        async with context.database.connection() as db:
            waiting = await queries.list_waiting(db)
        for batch in waiting:
            if stopping.is_set():
                return False
            await _print(context, batch)
        return bool(waiting)

    await repeat_when_due(context.database, queries.BATCHES, step, stopping, pause=PAUSE_SECONDS)


async def free_batches(tx: Tx, processes: Sequence[str]) -> None:
    """Those of workers that died."""
    await queries.free(tx, processes)


async def _print(context: AppContext, batch: WaitingBatch) -> None:
    holder = new_holder()
    async with context.database.transaction() as tx:
        company = await access.get_company(tx, batch.company_id)
        job = await queries.claim(tx, company.id, batch.id, holder)
    if job is None:
        return
    content, error = b"", None
    try:
        if job.attempts > queries.MAX_ATTEMPTS:
            raise PrintingFailed("Printing was started several times and never finished.")
        content = await actions.print_batch(context, company, job)
    except DatabaseAway:
        raise
    except ApiError as refusal:
        error = refusal.message
    except Exception:
        log.exception("printing failed", company_id=company.id, batch_id=job.id)
        async with context.database.transaction() as tx:
            if await queries.release(tx, company.id, job.id, holder):
                return
        error = "Printing failed. The server's log has the details."
    async with context.database.transaction() as tx:
        size = None if error else len(content)
        if await queries.finish(tx, company.id, job.id, holder, error and error[:LONGEST_ERROR], size) and not error:
            await queries.insert_file(tx, company.id, job.id, content)
