"""How imports start, change hands and end."""

from hashlib import sha256

from sapa.db.pool import Database, Tx
from sapa.imports import queries
from sapa.imports.lines import Read
from sapa.imports.resources import KINDS
from sapa.imports.rows import read_header
from sapa.imports.types import (
    IMPORT_ID,
    Format,
    Import,
    ImportJob,
    ImportRunning,
    ImportTakenOver,
    Problem,
    Resource,
)
from sapa.values.company import Company

MOST_ATTEMPTS = 5


async def upload(
    tx: Tx, company: Company, resource: Resource, format: Format, content: bytes, *, dry_run: bool
) -> Import:
    """Stores a file for the worker; raises UnusableFile when its header cannot be read."""

    async def read(position: int) -> bytes:
        return content[position:]

    await read_header(read, format, KINDS[resource].row)
    id = IMPORT_ID.new()
    await queries.insert_import(
        tx, company.id, id, resource, format, sha256(content).digest(), len(content), dry_run=dry_run, is_upload=True
    )
    await queries.insert_chunks(tx, company.id, id, content)
    return await queries.get_import(tx, company.id, id)


async def begin(
    tx: Tx, company: Company, resource: Resource, format: Format, fingerprint: bytes, size: int, *, dry_run: bool
) -> str:
    """The id of the file's unfinished import in this format, or of a new one."""
    inserted = await queries.insert_import(
        tx, company.id, IMPORT_ID.new(), resource, format, fingerprint, size, dry_run=dry_run, is_upload=False
    )
    return inserted or await queries.get_unfinished(tx, company.id, resource, format, fingerprint, dry_run=dry_run)


async def claim(tx: Tx, company: Company, id: str, holder: str, dead: list[str] | None = None) -> ImportJob:
    """Makes the holder the one who works on the import; raises ImportRunning unless the current holder is dead."""
    job = await queries.claim(tx, company.id, id, holder, dead or [])
    if job is None:
        raise ImportRunning
    return job


async def find_holder(tx: Tx, company: Company, id: str) -> str | None:
    return await queries.find_holder(tx, company.id, id)


async def release(tx: Tx, company: Company, id: str, holder: str) -> None:
    """Lets another holder resume the import at once."""
    await queries.release(tx, company.id, id, holder)


async def finish(tx: Tx, company: Company, id: str, holder: str, error: str | None = None) -> Import:
    """With an error when the file cannot be used at all."""
    if not await queries.finish(tx, company.id, id, holder, error):
        raise ImportTakenOver
    return await queries.get_import(tx, company.id, id)


async def record_failure(tx: Tx, company: Company, id: str, holder: str) -> None:
    """After an unexpected error: the worker retries the import, a few times."""
    failure = await queries.count_failure(tx, company.id, id, holder)
    if failure is not None and failure.attempts >= MOST_ATTEMPTS:
        reason = f"The import failed {failure.attempts} times after line {failure.line:,}; the file is not the cause."
        await finish(tx, company, id, holder, f"{reason} See the worker's log for the import's id.")


async def list_problems_after(tx: Tx, company: Company, id: str, line: int, most: int) -> list[Problem]:
    return await queries.list_problems_after(tx, company.id, id, line, most)


def read_upload(database: Database, company: Company, id: str) -> Read:
    async def read(position: int) -> bytes:
        async with database.connection() as db:
            return await queries.get_chunk(db, company.id, id, position)

    return read


async def purge_old(database: Database) -> None:
    """The worker's job: deletes imports after a month."""
    async with database.connection() as db:
        company_ids = await queries.list_companies_to_purge(db)
    for company_id in company_ids:
        async with database.transaction() as tx:
            await queries.purge(tx, company_id)
