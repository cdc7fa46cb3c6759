"""`sapa areas`: the installation's area data."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sapa.cli.connect import AsJson, harmless, reach_database, show, transact
from sapa.cli.files import explain_os_errors
from sapa.cli.progress import open_progress
from sapa.http.errors import Invalid
from sapa.shipping.areas import importing
from sapa.shipping.areas.files import AreaFile, parse_areas, read_area_file
from sapa.shipping.areas.types import AreaImport

app = typer.Typer(no_args_is_help=True, help="Indonesian areas: provinces, cities, districts and sub-districts.")

LICENCE = (
    "The area data is licensed under the Open Database License (ODbL) 1.0, not under Sapa's licence. You may use it. "
    "If you distribute the database, or one derived from it, you must keep it under the ODbL and name its source. "
    "Full text: opendatacommons.org/licenses/odbl/1-0"
)
_MAX_LICENCE_LINES = 12


@app.callback()
def group() -> None:
    """Indonesian areas: provinces, cities, districts and sub-districts."""


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The tarball of idn-area-data, or a zip or folder with its CSV files.")],
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="You have read and accept the data's licence.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import provinces, cities, districts and sub-districts.

    Download the file with `npm pack idn-area-data@4.0.1`; it is not part of Sapa. Importing the same file again changes
    nothing.
    """
    with explain_os_errors(f"The file {file} cannot be read"):
        area_file = read_area_file(file)
    _confirm_licence(area_file, accept_licence=accept_licence, is_quiet=json)
    result = asyncio.run(_import(area_file, json))
    if json:
        show(result, json, "", [])
    else:
        _print_summary(area_file, result)


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List the imported files, newest first."""
    show(transact(importing.list_datasets), json, "Area data", ["name", "areas", "importedAt", "sha512"])


def _confirm_licence(file: AreaFile, *, accept_licence: bool, is_quiet: bool) -> None:
    if not is_quiet:
        console = Console(stderr=True, highlight=False)
        console.print(LICENCE, markup=False)
        for line in (file.licence or "").splitlines()[:_MAX_LICENCE_LINES]:
            console.print(f"  {harmless(line)}", markup=False)
    if accept_licence:
        return
    if is_quiet or not sys.stdin.isatty():
        raise Invalid("The licence of the data (ODbL 1.0) is not accepted. Read it, then add --accept-licence.")
    if not typer.confirm("Do you accept this licence?", err=True):
        raise typer.Exit(1)


async def _import(file: AreaFile, is_quiet: bool) -> AreaImport:
    rows = parse_areas(file)
    async with reach_database() as database:
        with open_progress("importing areas", len(rows), is_quiet=is_quiet) as show_progress:
            async with database.transaction() as tx:
                return await importing.import_areas(tx, file, rows, lambda arrived: show_progress(arrived, arrived))


def _print_summary(file: AreaFile, result: AreaImport) -> None:
    console = Console(soft_wrap=True, highlight=False)
    if not file.is_published:
        console.print("This file is not a known release, but its lists are consistent.", markup=False)
    if result.was_known:
        console.print(f"{harmless(result.dataset.name)} was already imported; nothing changed.", markup=False)
        return
    console.print(
        f"{harmless(result.dataset.name)}: {result.dataset.areas:,} areas, {result.created:,} new,"
        f" {result.updated:,} changed, {result.retired:,} retired.",
        markup=False,
    )
