"""The worker's share: uploaded files, one after the other, the one that has waited longest first."""

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
from sapa.imports.work import Until, Work, go_on
from sapa.work.leases import new_holder
from sapa.work.loops import repeat

REST_SECONDS = 1.0
# After this long another file gets its turn.
TURN_SECONDS = 20.0

log = structlog.get_logger()


async def import_uploads(kit: AppContext, stopping: asyncio.Event) -> None:
    """The worker's service: goes on as long as the worker does, and stops between two batches."""
    database = kit.database

    async def step() -> None:
        async with database.connection() as db:
            waiting = await queries.list_waiting(db)
        for upload in waiting:
            with suppress(ImportRunning, ImportTakenOver):
                await _take_turn(database, upload, stopping)

    await repeat(step, stopping, every=REST_SECONDS)


async def _take_turn(database: Database, upload: WaitingUpload, stopping: asyncio.Event) -> None:
    """What goes wrong with one file is told and counted, and the next one has its turn; without a database none has."""
    holder, ends = new_holder(), time.monotonic() + TURN_SECONDS
    async with database.transaction() as tx:
        company = await access.get_company(tx, upload.company_id)
        job = await actions.claim(tx, company, upload.id, holder)
    work = Work(database, company, job, holder, actions.read_upload(database, company, upload.id))
    try:
        await _go_on(work, lambda: stopping.is_set() or time.monotonic() > ends)
    except BaseException as error:
        is_unforeseen = _is_unforeseen(error)
        if is_unforeseen:
            log.exception("import failed", company_id=company.id, id=job.id)
        await _lay_down(work, is_unforeseen=is_unforeseen)
        if not is_unforeseen:
            raise


async def _go_on(work: Work, until: Until) -> None:
    refusal = None
    try:
        is_done = await go_on(work, _unseen, until)
    except UnusableFile as error:
        refusal, is_done = error.message, True
    async with work.database.transaction() as tx:
        if not is_done:
            await actions.release(tx, work.company, work.job.id, work.holder)
            return
        done = await actions.finish(tx, work.company, work.job.id, work.holder, refusal)
    log.info("import finished", company_id=work.company.id, id=done.id, status=done.status, rows=done.rows)


def _is_unforeseen(error: BaseException) -> bool:
    """Neither a database that is away nor another worker."""
    return isinstance(error, Exception) and not isinstance(error, DatabaseAway | ImportTakenOver)


async def _lay_down(work: Work, *, is_unforeseen: bool) -> None:
    """For whoever comes next to go on at once; if not even that can be told, the hold runs out by itself."""
    give = actions.record_failure if is_unforeseen else actions.release
    with suppress(DatabaseAway, ImportTakenOver):
        async with work.database.transaction() as tx:
            await give(tx, work.company, work.job.id, work.holder)


def _unseen(position: int, rows: int) -> None:
    """Whoever wants to know asks for the import."""
