"""How imports begin, change hands and end."""

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
    """Keeps a file for the worker; refuses one that it could not even begin with."""

    async def read(position: int) -> bytes:
        return content[position:]

    await read_header(read, format, KINDS[resource].row)
    id = IMPORT_ID.new()
    fingerprint = sha256(content).digest()
    await queries.INSERT.run(tx, company.id, id, resource, format, dry_run, True, fingerprint, len(content))
    await queries.add_pieces(tx, company.id, id, content)
    return await queries.get_import(tx, company.id, id)


async def begin(
    tx: Tx, company: Company, resource: Resource, format: Format, fingerprint: bytes, size: int, *, dry_run: bool
) -> str:
    """The id of the file's unfinished import in this format, or of a new one."""
    given = (company.id, IMPORT_ID.new(), resource, format, dry_run, False, fingerprint, size)
    made: str | None = await queries.INSERT.value(tx, *given)
    found: str = made or await queries.FIND_UNFINISHED.value(tx, company.id, resource, format, fingerprint, dry_run)
    return found


async def claim(tx: Tx, company: Company, id: str, holder: str, dead: list[str] | None = None) -> ImportJob:
    """Takes the import in hand; that of a holder known to be dead, too."""
    job = await queries.CLAIM.find(tx, company.id, id, holder, queries.HOLD_SECONDS, dead or [])
    if job is None:
        raise ImportRunning
    return job


async def find_holder(tx: Tx, company: Company, id: str) -> str | None:
    holder: str | None = await queries.HOLDER.value(tx, company.id, id)
    return holder


async def release(tx: Tx, company: Company, id: str, holder: str) -> None:
    """Lays it out of hand, for anybody to go on."""
    await queries.RELEASE.run(tx, company.id, id, holder)


async def finish(tx: Tx, company: Company, id: str, holder: str, error: str | None = None) -> Import:
    """The end is reached, or the file cannot be used at all."""
    if not await queries.FINISH.run(tx, company.id, id, holder, error):
        raise ImportTakenOver
    await queries.DROP_PIECES.run(tx, company.id, id)
    await queries.DROP_KEYS.run(tx, company.id, id)
    return await queries.get_import(tx, company.id, id)


async def record_failure(tx: Tx, company: Company, id: str, holder: str) -> None:
    """After something unexpected: to be tried again, a few times."""
    failure = await queries.COUNT_FAILURE.find(tx, company.id, id, holder)
    if failure is not None and failure.attempts >= MOST_ATTEMPTS:
        reason = (
            f"The import failed {failure.attempts} times behind line {failure.line:,}, for no reason of the file's."
        )
        await finish(tx, company, id, holder, f"{reason} The worker's log says more under its id.")


async def list_problems_after(tx: Tx, company: Company, id: str, line: int, most: int) -> list[Problem]:
    return await queries.list_problems_after(tx, company.id, id, line, most)


def read_upload(database: Database, company: Company, id: str) -> Read:
    async def read(position: int) -> bytes:
        async with database.connection() as db:
            return await queries.get_piece(db, company.id, id, position)

    return read


async def purge_old(database: Database) -> None:
    """The worker's job: imports are remembered for a month."""
    async with database.connection() as db:
        due = await db.fetch(queries.COMPANIES_TO_PURGE.text, queries.DAYS_KEPT)
    for (company_id,) in due:
        async with database.transaction() as tx:
            await queries.PURGE.run(tx, company_id, queries.DAYS_KEPT)
