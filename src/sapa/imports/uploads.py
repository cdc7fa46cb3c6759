"""The worker imports uploaded files, one after the other, the longest waiting first."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile

import msgspec
import structlog
from msgspec import Raw

from sapa.access import actions as access
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.pool import Database, Tx
from sapa.imports import actions, queries
from sapa.imports.conversion import FileReading
from sapa.imports.converter import UPLOAD_SECONDS, convert_file
from sapa.imports.queries import WaitingUpload
from sapa.imports.types import ImportRunning, ImportTakenOver, UnusableFile
from sapa.imports.work import RunningImport, Until, renew, resume
from sapa.work.leases import new_holder
from sapa.work.loops import repeat_when_due

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

    await repeat_when_due(database, queries.UPLOADS, step, stopping, pause=PAUSE_SECONDS)


async def free_imports(tx: Tx, processes: Sequence[str]) -> None:
    """Those of workers that died."""
    await queries.free(tx, processes)


async def _import_for_a_turn(database: Database, upload: WaitingUpload, stopping: asyncio.Event) -> None:
    """An error of one file is logged and counted, and the next file gets its turn; a lost database stops all."""
    holder, ends = new_holder(), time.monotonic() + TURN_SECONDS
    async with database.transaction() as tx:
        company = await access.get_company(tx, upload.company_id)
        job = await actions.claim(tx, company, upload.id, holder)
    running = RunningImport(database, company, job, holder, actions.read_upload(database, company, upload.id))
    try:
        await _resume(running, lambda: stopping.is_set() or time.monotonic() > ends)
    except BaseException as error:
        is_unexpected = _is_unexpected(error)
        if is_unexpected:
            log.exception("import failed", company_id=company.id, import_id=job.id)
        await _release(running, is_unexpected=is_unexpected)
        if not is_unexpected:
            raise


async def _resume(running: RunningImport, until: Until) -> None:
    refusal = None
    try:
        if running.job.reading is not None and not running.job.is_converted:
            running = await _convert(running, running.job.reading)
        is_done = await resume(running, _ignore_progress, until)
    except UnusableFile as error:
        refusal, is_done = error.message, True
    async with running.database.transaction() as tx:
        if not is_done:
            await actions.release(tx, running.company, running.job.id, running.holder)
            return
        done = await actions.finish(tx, running.company, running.job.id, running.holder, refusal)
    log.info("import finished", company_id=running.company.id, import_id=done.id, status=done.status, rows=done.rows)


async def _convert(running: RunningImport, reading: Raw) -> RunningImport:
    """Replaces the uploaded file by its converted form, and holds the import meanwhile."""
    with NamedTemporaryFile() as source, TemporaryFile() as target:
        async with running.database.connection() as db:
            source.write(await actions.get_upload(db, running.company, running.job.id))
        source.flush()

        async def write(piece: bytes) -> None:
            target.write(piece)

        holding = asyncio.create_task(_keep_holding(running))
        try:
            request = msgspec.json.decode(reading, type=FileReading)
            size = await convert_file(Path(source.name), request, write, UPLOAD_SECONDS)
        finally:
            holding.cancel()
        target.seek(0)
        chunks = iter(lambda: target.read(queries.CHUNK), b"")
        async with running.database.transaction() as tx:
            await actions.store_converted(tx, running.company, running.job.id, running.holder, size, chunks)
    return msgspec.structs.replace(running, job=msgspec.structs.replace(running.job, converted_size=size))


async def _keep_holding(running: RunningImport) -> None:
    while True:
        await asyncio.sleep(queries.HOLD_SECONDS / 3)
        with suppress(DatabaseAway):
            await renew(running)


def _is_unexpected(error: BaseException) -> bool:
    """Neither a lost database nor another worker."""
    return isinstance(error, Exception) and not isinstance(error, DatabaseAway | ImportTakenOver)


async def _release(running: RunningImport, *, is_unexpected: bool) -> None:
    """Lets the next worker resume at once. Without a database the hold expires automatically."""
    end = actions.record_failure if is_unexpected else actions.release
    with suppress(DatabaseAway, ImportTakenOver):
        async with running.database.transaction() as tx:
            await end(tx, running.company, running.job.id, running.holder)


def _ignore_progress(position: int, rows: int) -> None:
    """The import's own row shows it."""
