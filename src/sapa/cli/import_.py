"""`sapa import`: a file into a company."""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO

import msgspec
import typer
import uvloop
from rich.console import Console

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, reach_database
from sapa.cli.error_file import HEADER, build_lines, check_error_file, drop_error_file
from sapa.cli.files import explain_os_errors, open_input, open_output, write_all
from sapa.cli.garbage import collect_rarely
from sapa.cli.import_preview import read_mapping, show_preview
from sapa.cli.progress import open_progress
from sapa.db.pool import Database
from sapa.imports import actions
from sapa.imports.conversion import FileReading, ImportPreview
from sapa.imports.converter import convert_file
from sapa.imports.lines import Read
from sapa.imports.readings import ReadingOptions, choose_reading
from sapa.imports.types import (
    Format,
    Import,
    ImportJob,
    ImportRunning,
    ImportTakenOver,
    NewImport,
    Problem,
    Resource,
    UnusableFile,
)
from sapa.imports.work import Report, RunningImport, resume
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.work.leases import new_holder

PIECE = 1_048_576
SOME_FAILED = 2
INTERRUPTED = 130


class ResourceName(StrEnum):
    customers = "customers"
    products = "products"
    orders = "orders"


class FileFormat(StrEnum):
    csv = "csv"
    ndjson = "ndjson"
    xlsx = "xlsx"


class SourceName(StrEnum):
    shopify = "shopify"
    woocommerce = "woocommerce"
    tokopedia = "tokopedia"
    tiktok = "tiktok"
    shopee = "shopee"
    medusa = "medusa"
    spreadsheet = "spreadsheet"


EXTENSIONS = {
    ".csv": FileFormat.csv,
    ".tsv": FileFormat.csv,
    ".ndjson": FileFormat.ndjson,
    ".jsonl": FileFormat.ndjson,
    ".xlsx": FileFormat.xlsx,
}


class ImportOptions(msgspec.Struct, frozen=True):
    """The command's options."""

    resource: Resource
    format: Format
    path: Path
    file: BinaryIO
    size: int
    dry_run: bool
    is_quiet: bool
    reading: ReadingOptions


class InputFile(msgspec.Struct, frozen=True):
    """What is imported: the file itself, or what it was converted to."""

    file: BinaryIO
    reading: FileReading | None
    converted_size: int | None


def import_(
    resource: Annotated[ResourceName, typer.Argument(help="What the file contains.")],
    file: Annotated[Path, typer.Argument(help="A CSV, NDJSON or .xlsx file.")],
    company: CompanyId,
    format: Annotated[FileFormat | None, typer.Option(help="Defaults to the file's extension.")] = None,
    source: Annotated[
        SourceName | None,
        typer.Option(
            "--from", help="The system that exported the file. Imports history: no points, stock changes or webhooks."
        ),
    ] = None,
    mapping: Annotated[Path | None, typer.Option(help="A JSON file that says which column is which field.")] = None,
    save_mapping: Annotated[
        Path | None, typer.Option(help="Write the mapping that is proposed for the file, show a preview, and stop.")
    ] = None,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Keep unknown columns as the customers' additionalData.")
    ] = False,
    time_zone: Annotated[
        str | None,
        typer.Option(help="The time zone of times without an offset. Defaults to the company's.", metavar="NAME"),
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="With --from: earn points, take stock and send webhooks.")
    ] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show the first records as read, and stop.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check every line and change nothing.")] = False,
    errors: Annotated[
        Path | None, typer.Option(help="Where to write the failed lines. Defaults to FILE.errors.csv.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Import customers, products or orders. If the import is interrupted, run the same command again to resume it.

    The exit code is 0 if all lines were imported, 2 if some failed, 1 if the file cannot be imported.
    """
    chosen = format or EXTENSIONS.get(file.suffix.lower())
    if chosen is None:
        raise UnusableFile("The file's extension is none of .csv, .ndjson and .xlsx; use --format.")
    reading = ReadingOptions(
        source=source and source.value,
        mapping=None if mapping is None else read_mapping(mapping),
        keep_columns=keep_columns,
        time_zone=time_zone,
        effects=True if effects else None,
    )
    with open_input(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        order = ImportOptions(resource.value, chosen.value, file, opened, size, dry_run, json, reading)
        if preview or save_mapping:
            show_preview(asyncio.run(_preview(order, company)), save_mapping, as_json=json)
            return
        error_file = errors or file.with_name(f"{file.name}.errors.csv")
        check_error_file(error_file, opened)
        done = _run_interruptibly(order, company, error_file)
    _print_summary(done, error_file, json)
    if done.failed:
        raise typer.Exit(SOME_FAILED)


def _run_interruptibly(order: ImportOptions, company_id: int, error_file: Path) -> Import:
    try:
        return uvloop.run(_import(order, company_id, error_file))
    except KeyboardInterrupt:
        typer.echo("sapa: Stopped. Run the same command again to resume.", err=True)
        raise typer.Exit(INTERRUPTED) from None


async def _import(order: ImportOptions, company_id: int, error_file: Path) -> Import:
    async with reach_database() as database:
        company = await _get_company(database, company_id)
        done = await _run(database, company, order)
        await _write_errors(database, company, done, error_file)
    return done


async def _preview(order: ImportOptions, company_id: int) -> ImportPreview:
    async with reach_database() as database:
        company = await _get_company(database, company_id)
    return await actions.preview(order.path, company, order.resource, order.format, order.reading)


async def _get_company(database: Database, company_id: int) -> Company:
    async with database.connection() as db:
        return await access.get_company(db, company_id)


async def _run(database: Database, company: Company, order: ImportOptions) -> Import:
    with explain_os_errors("The file cannot be read"):
        reading = choose_reading(company, order.resource, order.format, order.file, order.reading)
    with TemporaryFile() as target:
        if reading is None:
            await actions.check_own_header(order.path, order.resource, order.format)
            source = InputFile(order.file, None, None)
        else:
            source = InputFile(target, reading, await _convert(order, reading, target))
        return await _run_file(database, company, order, source)


async def _convert(order: ImportOptions, reading: FileReading, target: BinaryIO) -> int:
    """Writes the converted file and returns its size."""

    async def write(piece: bytes) -> None:
        with explain_os_errors("The converted file cannot be written to the temporary folder"):
            target.write(piece)

    return await convert_file(order.path, reading, write)


async def _run_file(database: Database, company: Company, order: ImportOptions, source: InputFile) -> Import:
    holder = new_holder()
    job = await _claim(database, company, order, source, holder)
    async with _held(database, company, job, holder):
        with _shown(order, job) as report, collect_rarely():
            await resume(RunningImport(database, company, job, holder, _reader(source.file)), report)
        async with database.transaction() as tx:
            return await actions.finish(tx, company, job.id, holder)


def _reader(file: BinaryIO) -> Read:
    async def read(position: int) -> bytes:
        with explain_os_errors("The file cannot be read any more"):
            file.seek(position)
            return file.read(PIECE)

    return read


async def _claim(
    database: Database, company: Company, order: ImportOptions, source: InputFile, holder: str
) -> ImportJob:
    """The converted file is what identifies the import: read in another way, it is another import."""
    reading, effects = source.reading, order.reading.has_effects
    new = NewImport(
        resource=order.resource,
        format=order.format,
        dry_run=order.dry_run,
        is_upload=False,
        fingerprint=_fingerprint(source.file, b"" if effects else b"history"),
        size=order.size,
        source=None if reading is None else reading.source,
        effects=effects,
        reading=None if reading is None else encode(reading),
        converted_size=source.converted_size,
    )
    async with database.transaction() as tx:
        id = await actions.begin(tx, company, new)
        other = await actions.find_holder(tx, company, id)
        return await actions.claim(tx, company, id, holder, [other] if other and _is_dead(other) else [])


def _fingerprint(file: BinaryIO, mode: bytes) -> bytes:
    digest = hashlib.sha256(mode)
    with explain_os_errors("The file cannot be read"):
        file.seek(0)
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.digest()


def _is_dead(holder: str) -> bool:
    """The lock of a dead process on this machine need not expire first."""
    host, pid, _ = holder.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


@asynccontextmanager
async def _held(database: Database, company: Company, job: ImportJob, holder: str) -> AsyncIterator[None]:
    """However the command ends, the next one can resume at once."""
    try:
        yield
    except ImportTakenOver:
        raise ImportRunning from None
    except BaseException:
        async with database.transaction() as tx:
            await actions.release(tx, company, job.id, holder)
        raise


@contextmanager
def _shown(order: ImportOptions, job: ImportJob) -> Iterator[Report]:
    description = f"{'checking' if job.dry_run else 'importing'} {order.resource}"
    total = order.size if job.converted_size is None else job.converted_size
    with open_progress(description, total, is_quiet=order.is_quiet) as show:
        show(job.position, 0)
        yield show


async def _write_errors(database: Database, company: Company, done: Import, path: Path) -> None:
    if not done.failed:
        drop_error_file(path)
        return
    with open_output(path) as file:
        write_all(file, HEADER)
        line = 0
        while problems := await _next_problems(database, company, done.id, line):
            write_all(file, build_lines(problems))
            line = problems[-1].line


async def _next_problems(database: Database, company: Company, id: str, line: int) -> list[Problem]:
    async with database.connection() as db:
        return await actions.list_problems_after(db, company, id, line, 1_000)


def _print_summary(done: Import, error_file: Path, as_json: bool) -> None:
    failures = str(error_file) if done.failed else None
    if as_json:
        summary = {**msgspec.to_builtins(done), "errorFile": failures}
        typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        return
    would = "would be " if done.dry_run else ""
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"{done.rows:,} {done.resource} read: {done.created:,} {would}created, {done.updated:,} {would}updated,"
        f" {done.unchanged:,} as they were, {done.failed:,} failed."
    )
    if failures:
        console.print(f"The failed lines are in {failures}.", markup=False)
