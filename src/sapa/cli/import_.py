"""`sapa import`: a file into a company."""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
import typer
from rich.console import Console

from sapa.access import actions as access
from sapa.cli.connect import AsJson, CompanyId, reach_database
from sapa.cli.error_file import HEADER, build_lines, check_error_file, drop_error_file
from sapa.cli.files import explain_os_errors, open_input, open_output, write_all
from sapa.cli.progress import open_progress
from sapa.db.pool import Database
from sapa.imports import actions
from sapa.imports.lines import Read
from sapa.imports.resources import KINDS
from sapa.imports.rows import read_header
from sapa.imports.types import (
    Format,
    Import,
    ImportJob,
    ImportRunning,
    ImportTakenOver,
    Problem,
    Resource,
    UnusableFile,
)
from sapa.imports.work import Report, Work, resume
from sapa.values.company import Company
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


EXTENSIONS = {".csv": FileFormat.csv, ".tsv": FileFormat.csv, ".ndjson": FileFormat.ndjson, ".jsonl": FileFormat.ndjson}


class ImportOptions(msgspec.Struct, frozen=True):
    """The command's options."""

    resource: Resource
    format: Format
    file: BinaryIO
    size: int
    dry_run: bool
    is_quiet: bool


def import_(
    resource: Annotated[ResourceName, typer.Argument(help="What each record of the file is.")],
    file: Annotated[Path, typer.Argument(help="A CSV or NDJSON file.")],
    company: CompanyId,
    format: Annotated[FileFormat | None, typer.Option(help="Defaults to the file's extension.")] = None,
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
        raise UnusableFile("The file's extension is neither .csv nor .ndjson; use --format.")
    with open_input(file) as source:
        error_file = errors or file.with_name(f"{file.name}.errors.csv")
        check_error_file(error_file, source)
        size = os.fstat(source.fileno()).st_size
        order = ImportOptions(resource.value, chosen.value, source, size, dry_run, json)
        done = _run_interruptibly(order, company, error_file)
    _print_summary(done, error_file, json)
    if done.failed:
        raise typer.Exit(SOME_FAILED)


def _run_interruptibly(order: ImportOptions, company_id: int, error_file: Path) -> Import:
    try:
        return asyncio.run(_import(order, company_id, error_file))
    except KeyboardInterrupt:
        typer.echo("sapa: Stopped. Run the same command again to resume.", err=True)
        raise typer.Exit(INTERRUPTED) from None


async def _import(order: ImportOptions, company_id: int, error_file: Path) -> Import:
    async with reach_database() as database:
        async with database.connection() as db:
            company = await access.get_company(db, company_id)
        done = await _run(database, company, order)
        await _write_errors(database, company, done, error_file)
    return done


async def _run(database: Database, company: Company, order: ImportOptions) -> Import:
    read = _reader(order.file)
    await read_header(read, order.format, KINDS[order.resource].row)
    holder = new_holder()
    job = await _claim(database, company, order, holder)
    async with _held(database, company, job, holder):
        with _shown(order, job) as report:
            await resume(Work(database, company, job, holder, read), report)
        async with database.transaction() as tx:
            return await actions.finish(tx, company, job.id, holder)


def _reader(file: BinaryIO) -> Read:
    async def read(position: int) -> bytes:
        with explain_os_errors("The file cannot be read any more"):
            file.seek(position)
            return file.read(PIECE)

    return read


async def _claim(database: Database, company: Company, order: ImportOptions, holder: str) -> ImportJob:
    file = _fingerprint(order.file)
    async with database.transaction() as tx:
        id = await actions.begin(tx, company, order.resource, order.format, file, order.size, dry_run=order.dry_run)
        other = await actions.find_holder(tx, company, id)
        return await actions.claim(tx, company, id, holder, [other] if other and _is_dead(other) else [])


def _fingerprint(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
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
    with open_progress(description, order.size, is_quiet=order.is_quiet) as show:
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
