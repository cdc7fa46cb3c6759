"""The worker imports uploaded files, one after the other, the longest waiting first."""

import asyncio
import time
from contextlib import suppress

import structlog

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database
from sapa.imports import actions, queries
from sapa.imports.queries import WaitingUpload
from sapa.imports.types import ImportRunning, ImportTakenOver, UnusableFile
from sapa.imports.work import Until, Work, resume
from sapa.work.leases import new_holder
from sapa.work.loops import repeat

PAUSE_SECONDS = 1.0
TURN_SECONDS = 20.0
"""After this another file gets its turn."""

log = structlog.get_logger()


async def import_uploads(context: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service: runs until the worker stops, and stops between two batches."""
    database = context.database

    async def step() -> None:
        async with database.connection() as db:
            waiting = await queries.list_waiting(db)
        for upload in waiting:
            with suppress(ImportRunning, ImportTakenOver):
                await _import_for_a_turn(database, upload, stopping)

    await repeat(step, stopping, every=PAUSE_SECONDS)


async def _import_for_a_turn(database: Database, upload: WaitingUpload, stopping: asyncio.Event) -> None:
    """An error of one file is logged and counted, and the next file gets its turn; a lost database stops all."""
    holder, ends = new_holder(), time.monotonic() + TURN_SECONDS
    async with database.transaction() as tx:
        company = await access.get_company(tx, upload.company_id)
        job = await actions.claim(tx, company, upload.id, holder)
    work = Work(database, company, job, holder, actions.read_upload(database, company, upload.id))
    try:
        await _resume(work, lambda: stopping.is_set() or time.monotonic() > ends)
    except BaseException as error:
        is_unexpected = _is_unexpected(error)
        if is_unexpected:
            log.exception("import failed", company_id=company.id, import_id=job.id)
        await _release(work, is_unexpected=is_unexpected)
        if not is_unexpected:
            raise


async def _resume(work: Work, until: Until) -> None:
    refusal = None
    try:
        is_done = await resume(work, _ignore_progress, until)
    except UnusableFile as error:
        refusal, is_done = error.message, True
    async with work.database.transaction() as tx:
        if not is_done:
            await actions.release(tx, work.company, work.job.id, work.holder)
            return
        done = await actions.finish(tx, work.company, work.job.id, work.holder, refusal)
    log.info("import finished", company_id=work.company.id, import_id=done.id, status=done.status, rows=done.rows)


def _is_unexpected(error: BaseException) -> bool:
    """Neither a lost database nor another worker."""
    return isinstance(error, Exception) and not isinstance(error, DatabaseAway | ImportTakenOver)


async def _release(work: Work, *, is_unexpected: bool) -> None:
    """Lets the next worker resume at once. Without a database the hold expires automatically."""
    end = actions.record_failure if is_unexpected else actions.release
    with suppress(DatabaseAway, ImportTakenOver):
        async with work.database.transaction() as tx:
            await end(tx, work.company, work.job.id, work.holder)


def _ignore_progress(position: int, rows: int) -> None:
    """The import's own row shows it."""
