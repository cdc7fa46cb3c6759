"""Converts a file of another system into records as the API accepts them. Runs in a process of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from sapa.imports.cells import BadCell, Column, ObjectBuilder, build_columns
from sapa.imports.converted import ConvertedRecord, encode_record
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.resources import KINDS
from sapa.imports.sources import spreadsheet
from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    ConvertedRow,
    FileProfile,
    Records,
)
from sapa.imports.sources.registry import LABELS, find_profile, recognise
from sapa.imports.sources.spreadsheet_fields import check_mapping, find_column, propose_mapping
from sapa.imports.tables.files import (
    HeaderRow,
    TableRecords,
    build_header,
    find_header,
    guess_header,
    open_table,
    read_first_rows,
)
from sapa.imports.tables.types import Table, TableFormat, TableRow, normalise_header
from sapa.imports.types import Problem, Resource, SourceName, UnusableFile
from sapa.imports.values.dates import get_zone
from sapa.values.json import encode

PREVIEWED = 10


class FileReading(Struct, frozen=True, kw_only=True):
    """How a file is read: what it is, and the rules for its cells. Stored with the import."""

    resource: Resource
    format: TableFormat
    source: str | None
    """None for a file with the API's own field names."""
    mapping: ImportMapping | None = None
    """For a spreadsheet; proposed from its header if there is none."""
    keep_columns: bool = False
    time_zone: str = "Asia/Jakarta"
    region: str
    currency: str


class PreviewColumn(Struct, frozen=True, rename="camel"):
    """A column of the file."""

    name: Annotated[str, Meta(examples=["No HP"])]
    field: Annotated[str | None, Meta(examples=["phoneNumber"], description="The field it is read as; null if none.")]
    samples: Annotated[list[str], Meta(examples=[["0812 3456 789"]])]


class PreviewRecord(Struct, frozen=True, rename="camel"):
    """One of the first records: as it would be imported, or why it cannot be."""

    line: Annotated[int, Meta(examples=[2])]
    record: Annotated[
        dict[str, Any] | None, Meta(examples=[{"email": "ayu@example.com"}], description="As the API accepts it.")
    ]
    field: Annotated[str, Meta(examples=[""], description="The column of the problem, if there is one.")]
    message: Annotated[str, Meta(examples=[""], description="Why it cannot be imported; empty if it can.")]
    column: Annotated[
        str | None,
        Meta(examples=[None], description="The column that the field was mapped from, as the file's header names it."),
    ] = None


class ImportPreview(Struct, frozen=True, rename="camel"):
    """What a file is, and what its first records would become."""

    source: Annotated[
        SourceName | None,
        Meta(examples=["shopify"], description="What the file was recognised as; null for our own format."),
    ]
    details: Annotated[str, Meta(examples=["UTF-8, separated by commas"])]
    columns: list[PreviewColumn]
    unread: Annotated[list[str], Meta(examples=[["Risk Level"]], description="Columns that nothing is read from.")]
    mapping: Annotated[ImportMapping | None, Meta(description="The mapping in use; only for spreadsheets.")]
    records: list[PreviewRecord]
    error: Annotated[
        str | None,
        Meta(examples=[None], description="Why the file cannot be imported like this, such as a missing field."),
    ]


class RecognisedFile(Struct, frozen=True):
    """A file whose header was recognised."""

    table: Table
    header: HeaderRow
    profile: FileProfile | None = None
    mapping: ImportMapping | None = None


def recognise_file(path: Path, reading: FileReading) -> RecognisedFile:
    """Raises UnusableFile with what the file is instead. Reads the first rows only."""
    table = open_table(path, reading.format)
    rows = read_first_rows(table)
    _build_context(reading)
    if reading.source is None:
        return RecognisedFile(table, _build_own_header(rows, reading.resource))
    if reading.source == spreadsheet.NAME:
        header = guess_header(rows)
        mapping = reading.mapping or propose_mapping(reading.resource, header.names)
        return RecognisedFile(table, header, mapping=mapping)
    profile, header = _get_profile(rows, reading.source, reading.resource)
    return RecognisedFile(table, header, profile)


def check_header(path: Path, reading: FileReading) -> None:
    """Raises UnusableFile unless the file can be imported. Reads the first rows only."""
    file = recognise_file(path, reading)
    if file.mapping is not None:
        check_mapping(reading.resource, file.mapping, file.header.names)


def convert_records(file: RecognisedFile, reading: FileReading) -> Iterator[Converted]:
    records, context = TableRecords(file.table, file.header), _build_context(reading)
    if file.profile is not None:
        return file.profile.convert(records, file.header, context)
    if file.mapping is not None:
        return spreadsheet.convert(reading.resource, file.mapping, records, file.header, context)
    return _convert_own(records, build_columns(file.header.names, KINDS[reading.resource].row))


def _list_unread(file: RecognisedFile, reading: FileReading) -> list[str]:
    keeps = reading.keep_columns or (file.mapping is not None and file.mapping.keep_columns)
    if keeps and reading.resource == "customers":
        return []
    if file.profile is not None:
        return file.profile.list_unread(file.header)
    fields = _list_fields(file)
    return [name for name in file.header.names if file.mapping is not None and not fields.get(normalise_header(name))]


def _list_fields(file: RecognisedFile) -> dict[str, str | None]:
    """The field of each column by its normalised name."""
    columns = file.mapping.columns if file.mapping else {}
    return {normalise_header(name): field for name, field in columns.items()}


def recognise_source(path: Path, format: TableFormat, resource: Resource) -> str | None:
    """The name of the file's source; None if it has our own field names, or cannot be told."""
    found = recognise(read_first_rows(open_table(path, format)))
    return found[0].source if found is not None and found[0].resource == resource else None


def find_hint(path: Path, format: TableFormat) -> str | None:
    """What to do with a file that was taken for one of our own, if it is recognised."""
    try:
        rows = read_first_rows(open_table(path, format))
    except UnusableFile:
        return None
    return _describe(rows) if recognise(rows) is not None else None


def convert(path: Path, reading: FileReading) -> Iterator[bytes]:
    """The lines of the converted file."""
    for one in convert_records(recognise_file(path, reading), reading):
        yield encode_record(_build_record(one))


def preview(path: Path, reading: FileReading) -> ImportPreview:
    file = recognise_file(path, reading)
    rows = [row for row in read_first_rows(file.table) if row.line > file.header.line]
    fields, records, error = _list_fields(file), [], None
    try:
        records = [_build_record(one) for one in itertools.islice(convert_records(file, reading), PREVIEWED)]
    except UnusableFile as refusal:
        error = refusal.message
    return ImportPreview(
        source=reading.source,
        details=file.table.details,
        columns=[
            PreviewColumn(name, fields.get(normalise_header(name)), _list_samples(rows, position))
            for position, name in enumerate(file.header.names)
        ],
        unread=_list_unread(file, reading),
        mapping=file.mapping,
        records=[_build_preview(one, file.mapping) for one in records],
        error=error,
    )


def _build_preview(one: ConvertedRecord, mapping: ImportMapping | None) -> PreviewRecord:
    record = None if one.problem else msgspec.json.decode(one.row)
    column = find_column(mapping, one.field) if mapping and one.field else None
    return PreviewRecord(one.line, record, one.field, one.message, column)


def _list_samples(rows: list[TableRow], position: int) -> list[str]:
    cells = [row.cells[position][:60] for row in rows if position < len(row.cells) and row.cells[position].strip()]
    return list(dict.fromkeys(cells))[:3]


def _build_context(reading: FileReading) -> ConversionContext:
    try:
        zone = get_zone(reading.time_zone)
    except BadCell as error:
        raise UnusableFile(f"{error}.") from None
    return ConversionContext(reading.region, reading.currency, zone, reading.keep_columns)


def _get_profile(rows: list[TableRow], source: str, resource: Resource) -> tuple[FileProfile, HeaderRow]:
    profile = find_profile(source, resource)
    if profile is None:
        raise UnusableFile(f"{resource.capitalize()} cannot be imported from {LABELS[source]}. {_describe(rows)}")
    header = find_header(rows, profile.accepts)
    if header is None:
        raise UnusableFile(f"The file is not an export of {resource} from {LABELS[source]}. {_describe(rows)}")
    return profile, header


def _describe(rows: list[TableRow]) -> str:
    """What to do with a file that is not what the caller said."""
    found = recognise(rows)
    if found is not None:
        profile = found[0]
        kind = f"{profile.resource} from {LABELS[profile.source]}"
        return f"It looks like {kind}: import it as {profile.resource} with the source {profile.source}."
    return (
        f"Its header is: {', '.join(guess_header(rows).names[:8])}. Import it with the source {spreadsheet.NAME} to map"
        " its columns."
    )


def _build_own_header(rows: list[TableRow], resource: Resource) -> HeaderRow:
    """Of a workbook, or text in another encoding, with the API's field names."""
    header = build_header(rows[0])
    try:
        build_columns(header.names, KINDS[resource].row)
    except UnusableFile as error:
        raise UnusableFile(f"{error.message} {_describe(rows)}") from None
    return header


def _convert_own(records: Records, columns: list[Column]) -> Iterator[Converted]:
    objects = ObjectBuilder(columns)
    for record in records:
        if isinstance(record, Problem):
            yield record
            continue
        cells = list(record.cells.values())
        try:
            value = objects.build([*cells, *[""] * (len(columns) - len(cells))])
        except BadCell as error:
            yield Problem(record.line, error.field, str(error))
        else:
            if value is not None:
                yield ConvertedRow(record.line, Raw(value))


def _build_record(one: Converted) -> ConvertedRecord:
    if isinstance(one, Problem):
        return ConvertedRecord(one.line, field=one.field, message=one.message)
    return ConvertedRecord(one.line, one.value if isinstance(one.value, Raw) else Raw(encode(one.value)))
