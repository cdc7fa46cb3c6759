"""`sapa export`: a company's data into a file."""

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from sapa.access import actions as access
from sapa.cli.connect import CompanyId, reach_database
from sapa.cli.files import open_output, write_all
from sapa.cli.import_ import ResourceName
from sapa.cli.progress import open_progress
from sapa.exports.actions import Resource, open_snapshot
from sapa.exports.spreadsheet import Format, write_header, write_rows


class ExportFormat(StrEnum):
    csv = "csv"
    ndjson = "ndjson"


EXTENSIONS = {".ndjson": ExportFormat.ndjson, ".jsonl": ExportFormat.ndjson}


def export(
    resource: Annotated[ResourceName, typer.Argument(help="What to export.")],
    company: CompanyId,
    output: Annotated[Path | None, typer.Option(help="The file to write. Defaults to standard output.")] = None,
    format: Annotated[ExportFormat | None, typer.Option(help="Defaults to the file's extension, or csv.")] = None,
) -> None:
    """Export a snapshot of all customers, products or orders to a file that can be imported again."""
    by_name = EXTENSIONS.get(output.suffix.lower()) if output else None
    chosen: Format = (format or by_name or ExportFormat.csv).value
    with open_output(output) as file:
        rows = asyncio.run(_export(resource.value, company, chosen, file))
    if output:
        typer.echo(f"Wrote {rows:,} {resource.value} to {output}.", err=True)


async def _export(resource: Resource, company_id: int, format: Format, file: BinaryIO) -> int:
    rows = 0
    async with reach_database() as database:
        async with database.connection() as db:
            company = await access.get_company(db, company_id)
        async with open_snapshot(database.snapshot(), company, resource) as snapshot:
            write_all(file, write_header(snapshot.row, format))
            with open_progress(f"exporting {resource}", snapshot.total, is_quiet=False) as show:
                async for batch in snapshot.batches:
                    write_all(file, write_rows(batch, format))
                    rows += len(batch)
                    show(rows, rows)
    return rows
