"""The worker's share: uploaded files, one after the other, the one that has waited longest first."""

import asyncio
import time
from contextlib import suppress

import structlog

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.imports import actions, queries
from sapa.imports.queries import Waiting
from sapa.imports.types import ImportRunning, ImportTakenOver, UnusableFile
from sapa.imports.work import Work, go_on, new_holder
from sapa.settings import Settings

REST_SECONDS = 1.0
# After this long another file gets its turn.
TURN_SECONDS = 20.0

log = structlog.get_logger()


async def import_uploads(database: Database, _: Settings, stopping: asyncio.Event) -> None:
    """The worker's service: goes on as long as the worker does, and stops between two batches."""
    while not stopping.is_set():
        async with database.connection() as db:
            waiting = await queries.WAITING.all(db)
        for upload in waiting:
            with suppress(ImportRunning, ImportTakenOver):
                await _take_turn(database, upload, stopping)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), REST_SECONDS)


async def _take_turn(database: Database, upload: Waiting, stopping: asyncio.Event) -> None:
    holder, ends = new_holder(), time.monotonic() + TURN_SECONDS
    async with database.transaction() as tx:
        company = await access.get_company(tx, upload.company_id)
        job = await actions.claim(tx, company, upload.id, holder)
    work = Work(database, company, job, holder, actions.read_upload(database, company, upload.id))
    error = None
    try:
        if not await go_on(work, _unseen, lambda: stopping.is_set() or time.monotonic() > ends):
            async with database.transaction() as tx:
                await actions.release(tx, company, upload.id, holder)
            return
    except UnusableFile as refusal:
        error = refusal.message
    async with database.transaction() as tx:
        done = await actions.finish(tx, company, upload.id, holder, error)
    log.info("import finished", company_id=company.id, id=done.id, status=done.status, rows=done.rows)


def _unseen(position: int, rows: int) -> None:
    """Whoever wants to know asks for the import."""
