"""How imports start, change hands and end."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from sapa.db.pool import Connection, Database, Tx
from sapa.imports import queries
from sapa.imports.conversion import FileReading, ImportPreview, check_header, find_hint
from sapa.imports.converter import preview_file
from sapa.imports.converter_process import AUTO
from sapa.imports.lines import Read
from sapa.imports.readings import ReadingOptions, choose_reading, choose_reading_of_bytes
from sapa.imports.resources import KINDS
from sapa.imports.rows import read_header
from sapa.imports.tables.workbooks import refuse_unsafe_archive
from sapa.imports.types import (
    IMPORT_ID,
    Format,
    Import,
    ImportJob,
    ImportRunning,
    ImportStarted,
    ImportTakenOver,
    NewImport,
    Problem,
    Resource,
    UnusableFile,
)
from sapa.values.company import Company
from sapa.values.json import encode

MAX_ATTEMPTS = 5


async def upload(
    tx: Tx,
    company: Company,
    resource: Resource,
    format: Format,
    content: bytes,
    *,
    dry_run: bool,
    options: ReadingOptions = ReadingOptions(),
    starts: bool = True,
) -> Import:
    """Stores a file for the worker; raises UnusableFile when its header cannot be read.

    If it does not start, it waits for `start`, and what it is may still be unknown.
    """
    reading = None
    if starts:
        reading = choose_reading_of_bytes(company, resource, format, content, options)
        await _check_header(resource, format, content, reading)
    id = IMPORT_ID.new()
    new = NewImport(
        resource=resource,
        format=format,
        dry_run=dry_run,
        is_upload=True,
        fingerprint=sha256(content).digest(),
        size=len(content),
        status="queued" if starts else "draft",
        source=None if reading is None else reading.source,
        effects=options.has_effects,
        reading=None if reading is None else encode(reading),
    )
    await queries.insert_import(tx, company.id, id, new)
    await queries.insert_chunks(tx, company.id, id, content)
    return await queries.get_import(tx, company.id, id)


async def start(tx: Tx, company: Company, id: str, options: ReadingOptions, *, dry_run: bool) -> Import:
    """Starts an import that was uploaded before; raises UnusableFile when its header cannot be read."""
    draft = await queries.get_import(tx, company.id, id)
    content = await get_upload(tx, company, id)
    reading = choose_reading_of_bytes(company, draft.resource, draft.format, content, options)
    await _check_header(draft.resource, draft.format, content, reading)
    stored, source = (None, None) if reading is None else (encode(reading), reading.source)
    effects = options.has_effects
    if not await queries.start_import(tx, company.id, id, source, stored, effects=effects, dry_run=dry_run):
        raise ImportStarted
    return await queries.get_import(tx, company.id, id)


async def preview(
    path: Path, company: Company, resource: Resource, format: Format, options: ReadingOptions
) -> ImportPreview:
    """What the file is and what its first records would become; without a source it is recognised."""
    if format == "ndjson":
        raise UnusableFile("The file is NDJSON, which has the API's own fields: there is nothing to preview.")
    with path.open("rb") as file:
        reading = choose_reading(company, resource, format, file, options) or FileReading(
            resource=resource,
            format=format,
            source=None,
            time_zone=options.time_zone or company.time_zone,
            region=company.region,
            currency=company.currency,
        )
    if options.source is None and options.mapping is None:
        reading = msgspec.structs.replace(reading, source=AUTO)
    return await preview_file(path, reading)


async def _check_header(resource: Resource, format: Format, content: bytes, reading: FileReading | None) -> None:
    """A workbook is opened only in the process that converts it; here its archive is checked."""
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        path = Path(file.name)
        if reading is None:
            await check_own_header(path, resource, format)
        elif reading.format == "xlsx":
            refuse_unsafe_archive(path)
        else:
            check_header(path, reading)


async def check_own_header(path: Path, resource: Resource, format: Format) -> None:
    """Raises UnusableFile when a file with our own fields cannot be imported, with what to do if it is another's."""

    async def read(position: int) -> bytes:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(queries.CHUNK)

    try:
        await read_header(read, format, KINDS[resource].row)
    except UnusableFile as error:
        hint = find_hint(path, format) if format == "csv" else None
        raise UnusableFile(f"{error.message} {hint}" if hint else error.message) from None


async def begin(tx: Tx, company: Company, new: NewImport) -> str:
    """The id of the file's unfinished import in this format, or of a new one."""
    inserted = await queries.insert_import(tx, company.id, IMPORT_ID.new(), new)
    return inserted or await queries.get_unfinished(
        tx, company.id, new.resource, new.format, new.fingerprint, dry_run=new.dry_run
    )


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
    if failure is not None and failure.attempts >= MAX_ATTEMPTS:
        reason = f"The import failed {failure.attempts} times after line {failure.line:,}; the file is not the cause."
        await finish(tx, company, id, holder, f"{reason} See the worker's log for the import's id.")


async def list_problems_after(tx: Tx, company: Company, id: str, line: int, most: int) -> list[Problem]:
    return await queries.list_problems_after(tx, company.id, id, line, most)


async def get_upload(db: Connection, company: Company, id: str) -> bytes:
    """The whole uploaded file."""
    content = bytearray()
    while chunk := await queries.get_chunk(db, company.id, id, len(content)):
        content += chunk
    return bytes(content)


async def store_converted(tx: Tx, company: Company, id: str, holder: str, size: int, chunks: Iterable[bytes]) -> None:
    """Replaces an upload by its converted form."""
    if not await queries.replace_chunks(tx, company.id, id, holder, size, chunks):
        raise ImportTakenOver


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
