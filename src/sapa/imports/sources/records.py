"""Reading records by their columns; an error names the column."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from sapa.imports.cells import BadCell
from sapa.imports.sources.interface import ConversionContext, Converted, ConvertedRow, Fields, Records
from sapa.imports.tables.files import TableRecord
from sapa.imports.types import Problem
from sapa.imports.values.amounts import DecimalSign, parse_amount_cell, parse_quantity_cell
from sapa.imports.values.contacts import parse_id_cell, unquote_cell
from sapa.imports.values.dates import DayOrder, parse_date_cell

Value = TypeVar("Value")
Group = list[TableRecord]

ZERO = Decimal(0)
LONGEST_DATA = 5_000
LONGEST_KEY = 100
MAX_DATA = 200


def read_text(record: TableRecord, *names: str) -> str | None:
    """None for an empty cell."""
    return unquote_cell(record.get(*names)) or None


def read_id(record: TableRecord, name: str) -> str | None:
    """None for an empty cell; an error names the column of a number that lost its digits."""
    return read_cell(record, name, parse_id_cell)


def read_cell(record: TableRecord, name: str, parse: Callable[[str], Value]) -> Value | None:
    """None for an empty cell; an error names the column."""
    text = record.get(name)
    if not text:
        return None
    try:
        return parse(text)
    except BadCell as error:
        error.field = name
        raise


def read_amount(record: TableRecord, name: str, sign: DecimalSign | None = ".") -> Decimal:
    """0 for an empty cell."""
    return read_cell(record, name, lambda text: parse_amount_cell(unquote_cell(text), sign)) or ZERO


def read_quantity(record: TableRecord, name: str) -> int:
    """0 for an empty cell."""
    return read_cell(record, name, parse_quantity_cell) or 0


def read_instant(
    record: TableRecord, name: str, context: ConversionContext, order: DayOrder | None = None
) -> datetime | None:
    return read_cell(record, name, lambda text: parse_date_cell(text, context.zone, order))


def convert_each(records: Records, build: Callable[[TableRecord], Fields | None]) -> Iterator[Converted]:
    """One record for each row; a row for which `build` returns None is left out."""
    return convert_groups(records, lambda record: str(record.line), lambda group: build(group[0]))


def convert_groups(
    records: Records, key: Callable[[TableRecord], str], build: Callable[[Group], Fields | None]
) -> Iterator[Converted]:
    """One record for each run of rows with the same key; a row without a key belongs to the one above."""
    for group in _group(records, key):
        if isinstance(group, Problem):
            yield group
            continue
        try:
            value = build(group)
        except BadCell as error:
            yield Problem(group[0].line, error.field, str(error))
        else:
            if value is not None:
                yield ConvertedRow(group[0].line, value)


def list_scattered(records: Records, key: Callable[[TableRecord], str]) -> dict[str, list[str]]:
    """The first lines of each run of rows with the same key, where there are several: as one record each, they would
    replace each other."""
    lines: dict[str, list[str]] = {}
    before = ""
    for record in records:
        if isinstance(record, TableRecord) and (found := key(record)) and found != before:
            lines.setdefault(found, []).append(f"{record.line:,}")
            before = found
    return {found: starts for found, starts in lines.items() if len(starts) > 1}


def _group(records: Records, key: Callable[[TableRecord], str]) -> Iterator[Group | Problem]:
    """A line that cannot be read may belong to the group above it or below it, so neither is converted."""
    group: Group = []
    unread: int | None = None
    before: int | None = None
    for record in records:
        if isinstance(record, Problem):
            yield record
            unread = before = record.line
        elif group and key(record) in {"", key(group[0])}:
            group.append(record)
            before = None
        else:
            if group:
                yield _refuse_beside(group, unread)
            group, unread, before = [record], before, None
    if group:
        yield _refuse_beside(group, unread)


def _refuse_beside(group: Group, unread: int | None) -> Group | Problem:
    if unread is None:
        return group
    return Problem(group[0].line, "", f"is beside line {unread}, which cannot be read and may be part of it")


def first_filled(group: Sequence[TableRecord], *names: str) -> TableRecord:
    """The first row of a group in which one of the columns is filled in; else its first row."""
    return next((record for record in group if record.get(*names)), group[0])


def build_data(record: TableRecord, columns: dict[str, str]) -> Fields:
    """additionalData of these columns, by normalised name, each with its key."""
    data: Fields = {}
    for name, key in columns.items():
        if text := read_text(record, name):
            data[key[:LONGEST_KEY]] = build_data_value(text)
        if len(data) == MAX_DATA:
            break
    return data


def build_data_value(text: str) -> str | int:
    """A number where it is written as one; `007` and very long ones stay text."""
    is_number = text.isascii() and text.isdigit() and len(text) < 16 and (text == "0" or text[0] != "0")
    return int(text) if is_number else text[:LONGEST_DATA]


def without_empty(fields: Fields) -> Fields:
    """Without what a file leaves empty: an import keeps what is there."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
