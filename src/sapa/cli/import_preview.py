"""Shows how a file would be read, and saves the mapping of its columns."""

from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sapa.cli.connect import harmless
from sapa.cli.files import explain_os_errors, open_output, write_all
from sapa.http.errors import Invalid
from sapa.imports.conversion import ImportPreview
from sapa.imports.mappings.types import ImportMapping
from sapa.values.json import encode


def read_mapping(path: Path) -> ImportMapping:
    with explain_os_errors(f"The mapping {path} cannot be read"):
        content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=ImportMapping)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"The mapping {path} cannot be used: {error}. Write one with --save-mapping.") from None


def show_preview(preview: ImportPreview, save_to: Path | None, *, as_json: bool) -> None:
    if save_to is not None:
        _save(preview, save_to)
    if as_json:
        typer.echo(msgspec.json.format(encode(preview), indent=2).decode())
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"Source: {preview.source or 'our own fields'} ({preview.details})", markup=False)
    _print_columns(console, preview)
    for record in preview.records:
        text = f"line {record.line}: "
        text += encode(record.record).decode() if record.record is not None else f"{record.field} {record.message}"
        console.print(harmless(text), markup=False)
    if preview.error:
        console.print(harmless(preview.error), markup=False)
    if save_to is not None:
        console.print(f"The mapping is in {save_to}. Change it if necessary, then import with --mapping.", markup=False)


def _print_columns(console: Console, preview: ImportPreview) -> None:
    unread = set(preview.unread)
    table = Table("column", "field", "first values")
    for column in preview.columns:
        field = column.field or ("not read" if column.name in unread else "")
        table.add_row(*(Text(harmless(text)) for text in (column.name, field, " · ".join(column.samples))))
    console.print(table)


def _save(preview: ImportPreview, path: Path) -> None:
    if preview.mapping is None:
        raise Invalid(f"The file is recognised as {preview.source or 'our own format'} and needs no mapping.")
    with open_output(path) as file:
        write_all(file, msgspec.json.format(encode(preview.mapping), indent=2) + b"\n")
