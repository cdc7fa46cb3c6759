"""Working through a file: rows are stored in one transaction with the place where the file goes on behind them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import asyncpg
from msgspec import Struct

from sapa.db.pool import RETRYABLE, Database, Tx
from sapa.db.retry import Backoff, retry
from sapa.imports import queries
from sapa.imports.attempts import Result
from sapa.imports.lines import Read
from sapa.imports.resources import KINDS
from sapa.imports.rows import (
    Batch,
    FileRow,
    RowReader,
    read_header,
)
from sapa.imports.types import ImportJob, ImportTakenOver, Problem
from sapa.values.company import Company

IN_THE_WAY = (*RETRYABLE, asyncpg.LockNotAvailableError)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0

Report = Callable[[int, int], None]
"""Told after each batch: the bytes and the rows that are done."""
Until = Callable[[], bool]
"""Whether it is time to stop."""


class Work(Struct, frozen=True):
    """One import in somebody's hands."""

    database: Database
    company: Company
    job: ImportJob
    holder: str
    read: Read


async def go_on(work: Work, report: Report, until: Until = lambda: False) -> bool:
    """Imports what is left; whether the end was reached before it had to stop."""
    kind = KINDS[work.job.resource]
    header = await read_header(work.read, work.job.format, kind.row)
    reader = RowReader(work.read, work.job, header, kind.row)
    position, rows = work.job.position, 0
    while not until():
        batch = await reader.next_batch(kind.batch)
        if not await _import(work, position, batch, until):
            return False
        position, rows = batch.position, rows + batch.size
        report(position, rows)
        if batch.is_last:
            return True
        await asyncio.sleep(0)
    return False


async def _import(work: Work, position: int, batch: Batch, until: Until) -> bool:
    """Together, or row by row where others may stand in the way; whether it came to its end."""
    is_single = KINDS[work.job.resource].is_single
    if not is_single and await _has_imported(work, position, batch, is_last=True):
        return True
    rows = batch.split()
    for row in rows:
        if not await _insist(work, position, row, until, is_last=row is rows[-1]):
            return False
        position = row.position
    return True


class _InTheWay(Exception):
    pass


async def _insist(work: Work, position: int, row: Batch, until: Until, *, is_last: bool) -> bool:
    """A row that others stand in the way of is no bad row: it is tried until it is through, or time is up."""
    backoff = Backoff(SHORTEST_PAUSE, LONGEST_PAUSE)

    async def import_row() -> None:
        if not await _has_imported(work, position, row, is_last=is_last):
            raise _InTheWay

    try:
        await retry(
            import_row, _InTheWay, pause=lambda _: None if until() else backoff.next(), between=partial(_renew, work)
        )
    except _InTheWay:
        return False
    return True


async def _renew(work: Work) -> None:
    async with work.database.transaction() as tx:
        if not await queries.renew(tx, work.company.id, work.job.id, work.holder):
            raise ImportTakenOver


async def _has_imported(work: Work, position: int, batch: Batch, *, is_last: bool) -> bool:
    """One try, in one transaction; False when another one stood in the way."""
    try:
        async with work.database.transaction() as tx:
            await queries.use_generic_plans(tx, commit_fast=not is_last)
            await _import_batch(tx, work, position, batch)
    except IN_THE_WAY:
        return False
    return True


async def _import_batch(tx: Tx, work: Work, position: int, batch: Batch) -> None:
    """The place is moved under the condition that it is still ours to move: nobody imports the same rows."""
    results = await _try_out(tx, work, batch.rows) if work.job.dry_run else await _store(tx, work, batch.rows)
    problems = batch.problems + [result for result in results if isinstance(result, Problem)]
    if problems:
        await queries.insert_problems(tx, work.company.id, work.job.id, problems)
    counts = (batch.size, results.count("created"), results.count("updated"), len(problems))
    place = (batch.position, batch.line)
    if not await queries.advance(tx, work.company.id, work.job.id, work.holder, position, place, counts):
        raise ImportTakenOver


async def _store(tx: Tx, work: Work, rows: Sequence[FileRow]) -> list[Result]:
    return await KINDS[work.job.resource].store(tx, work.company, rows) if rows else []


async def _try_out(tx: Tx, work: Work, rows: Sequence[FileRow]) -> list[Result]:
    """All is done and undone again; then the rows are held against those of earlier batches."""
    savepoint = tx.transaction()
    await savepoint.start()
    results = await _store(tx, work, rows)
    await savepoint.rollback()
    return await _refuse_repeated(tx, work, rows, results)


async def _refuse_repeated(tx: Tx, work: Work, rows: Sequence[FileRow], results: list[Result]) -> list[Result]:
    list_keys = KINDS[work.job.resource].list_keys
    if list_keys is None:
        return results
    good = [place for place, result in enumerate(results) if not isinstance(result, Problem)]
    owned = {place: list_keys(work.company, rows[place]) for place in good}
    every_key = [key for _, keys in owned.values() for key in keys]
    owners = await queries.find_keys(tx, work.company.id, work.job.id, every_key)
    for place, (owner, keys) in owned.items():
        taken = next((key for key in keys if owners.setdefault(key, owner) != owner), None)
        if taken is not None:
            field = taken.partition(":")[0]
            results[place] = Problem(rows[place].line, field, "is given in an earlier line for another customer")
    await queries.insert_keys(tx, work.company.id, work.job.id, owners)
    return results
