"""Works through a file: stores rows in one transaction with the position after them."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import asyncpg
from msgspec import Struct

from sapa.customers.bulk import ConcurrentChange
from sapa.db.pool import RETRYABLE, Database, Tx
from sapa.db.retry import Backoff, retry
from sapa.events import silence
from sapa.imports import queries
from sapa.imports.attempts import Result, StoreAlone, StoreContext
from sapa.imports.lines import Read
from sapa.imports.read_ahead import read_ahead
from sapa.imports.resources import KINDS, Kind
from sapa.imports.rows import (
    CONVERTED,
    Batch,
    FileRow,
    Prepare,
    RowReader,
    read_header,
)
from sapa.imports.types import ImportJob, ImportTakenOver, Problem
from sapa.values.company import Company

BLOCKED_BY = (*RETRYABLE, asyncpg.LockNotAvailableError, asyncpg.UniqueViolationError, ConcurrentChange)
# The first batch has as many rows. A transaction that waited for a lock says nothing about the next one.
SMALLEST_BATCH = 25
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0

Report = Callable[[int, int], None]
"""Called after each batch with the bytes and rows that are done."""
Until = Callable[[], bool]
"""Returns whether to stop."""


class RunningImport(Struct, frozen=True):
    """An import that is being worked on, and the holder of its lease."""

    database: Database
    company: Company
    job: ImportJob
    holder: str
    read: Read

    @property
    def context(self) -> StoreContext:
        job = self.job
        return StoreContext(self.company, job.id, job.effects, is_foreign=job.source is not None)


async def resume(running: RunningImport, report: Report, until: Until = lambda: False) -> bool:
    """Imports the rest of the file; False when it had to stop before the end."""
    kind = KINDS[running.job.resource]
    header = CONVERTED if running.job.is_converted else await read_header(running.read, running.job.format, kind.row)
    prepare: Prepare = partial(kind.prepare, running.context) if kind.prepare else _keep
    reader = RowReader(running.read, running.job, header, kind.row, prepare)
    position, rows, size = running.job.position, 0, BatchSize(kind)
    async with read_ahead(reader, kind.batch) as ahead:
        while not until():
            batch = await ahead.next_batch(size.rows)
            if not await _import(running, position, batch, until, size):
                return False
            position, rows = batch.position, rows + batch.size
            report(position, rows)
            if batch.is_last:
                return True
    return False


def _keep(value: Struct) -> Struct:
    return value


class BatchSize:
    """How many rows to store together, so that a transaction takes about as long as it may."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.rows = kind.batch if kind.batch_seconds is None else SMALLEST_BATCH

    def adapt(self, seconds: float, rows: int) -> None:
        """After a transaction of so many rows: at most half as many more next time. On a busy machine, a fast one
        says little about the next."""
        if self._kind.batch_seconds is not None and rows:
            fitting = int(rows * self._kind.batch_seconds / max(seconds, 0.001))
            self.rows = min(max(fitting, SMALLEST_BATCH), max(rows, SMALLEST_BATCH) * 3 // 2, self._kind.batch)


async def _import(running: RunningImport, position: int, batch: Batch, until: Until, size: BatchSize) -> bool:
    """Together if possible, otherwise in parts; False when it had to stop."""
    if batch.size <= 1:
        return await _retry_row(running, position, batch, until)
    parts = batch.split()
    if not KINDS[running.job.resource].is_single:
        try:
            if await _try_together(running, position, batch, size):
                return True
        except StoreAlone as error:
            parts = batch.split(error.lines)
    for part in parts:
        if not await _import(running, position, part, until, size):
            return False
        position = part.position
    return True


async def _try_together(running: RunningImport, position: int, batch: Batch, size: BatchSize) -> bool:
    """False when one of the rows cannot be stored, or another transaction blocked it."""
    started = time.monotonic()
    try:
        return await _try_import(running, position, batch)
    except asyncpg.PostgresError:
        return False
    finally:
        size.adapt(time.monotonic() - started, batch.size)


class _Blocked(Exception):
    pass


async def _retry_row(running: RunningImport, position: int, row: Batch, until: Until) -> bool:
    """A row that another transaction blocks is not a bad row: retries until it is stored, or time is up."""
    backoff = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE)

    async def import_row() -> None:
        if not await _try_import(running, position, row):
            raise _Blocked

    try:
        await retry(
            import_row, _Blocked, pause=lambda _: None if until() else backoff.next(), between=partial(renew, running)
        )
    except _Blocked:
        return False
    return True


async def renew(running: RunningImport) -> None:
    async with running.database.transaction() as tx:
        if not await queries.renew(tx, running.company.id, running.job.id, running.holder):
            raise ImportTakenOver


async def _try_import(running: RunningImport, position: int, batch: Batch) -> bool:
    """One attempt, in one transaction; False when another transaction blocked it."""
    try:
        async with running.database.transaction() as tx:
            await queries.prepare_batch(tx)
            await _import_batch(tx, running, position, batch)
    except BLOCKED_BY:
        return False
    return True


async def _import_batch(tx: Tx, running: RunningImport, position: int, batch: Batch) -> None:
    """Moves the position only while the import is still ours, so that no two holders import the same rows."""
    results = await _dry_run(tx, running, batch.rows) if running.job.dry_run else await _store(tx, running, batch.rows)
    problems = batch.problems + [result for result in results if isinstance(result, Problem)]
    if problems:
        await queries.insert_problems(tx, running.company.id, running.job.id, problems)
    counts = (batch.size, results.count("created"), results.count("updated"), len(problems))
    next = (batch.position, batch.line)
    if not await queries.advance(tx, running.company.id, running.job.id, running.holder, position, next, counts):
        raise ImportTakenOver


async def _store(tx: Tx, running: RunningImport, rows: Sequence[FileRow]) -> list[Result]:
    if not rows:
        return []
    is_announced = running.job.effects and not running.job.dry_run
    with nullcontext() if is_announced else silence(tx):
        return await KINDS[running.job.resource].store(tx, running.context, rows)


async def _dry_run(tx: Tx, running: RunningImport, rows: Sequence[FileRow]) -> list[Result]:
    """Stores the rows, rolls back, and compares the rows with those of earlier batches."""
    savepoint = tx.transaction()
    await savepoint.start()
    results = await _store(tx, running, rows)
    await savepoint.rollback()
    return await _refuse_repeated(tx, running, rows, results)


async def _refuse_repeated(
    tx: Tx, running: RunningImport, rows: Sequence[FileRow], results: list[Result]
) -> list[Result]:
    list_keys = KINDS[running.job.resource].list_keys
    if list_keys is None:
        return results
    good = [index for index, result in enumerate(results) if not isinstance(result, Problem)]
    owned = {index: list_keys(running.company, rows[index]) for index in good}
    every_key = [key for _, keys in owned.values() for key in keys]
    owners = await queries.list_key_owners(tx, running.company.id, running.job.id, every_key)
    for index, (owner, keys) in owned.items():
        taken = next((key for key in keys if owners.setdefault(key, owner) != owner), None)
        if taken is not None:
            field = taken.partition(":")[0]
            results[index] = Problem(rows[index].line, field, "belongs to another customer in an earlier line")
    await queries.insert_keys(tx, running.company.id, running.job.id, owners)
    return results
