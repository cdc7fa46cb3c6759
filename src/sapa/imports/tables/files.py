"""Opens a file as a table, and finds its header."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from sapa.imports.tables.delimited import open_delimited
from sapa.imports.tables.types import Table, TableFormat, TableRow, clean_cell, is_blank, normalise_header
from sapa.imports.tables.workbooks import open_workbook
from sapa.imports.types import Problem, UnusableFile

MAX_COLUMNS = 1_000
LOOKED_AT = 30
"""Rows among which the header stands; above it may be titles."""

TOTALS = {"total", "grand total", "jumlah total", "total keseluruhan", "subtotal"}
"""The first word of a row of totals below the data."""


class HeaderRow(Struct, frozen=True):
    """The names of a table's columns."""

    line: int
    names: list[str]
    """As the file has them, each once."""

    @property
    def keys(self) -> list[str]:
        return [normalise_header(name) for name in self.names]


class TableRecord(Struct, frozen=True):
    """One row below the header, by normalised column names."""

    line: int
    cells: dict[str, str]

    def get(self, *names: str) -> str:
        """The first of the columns that is filled in; empty if none is."""
        for name in names:
            if value := self.cells.get(name, ""):
                return value
        return ""


Accepts = Callable[[set[str]], bool]
"""Whether a row with these normalised names is the header that is looked for."""


def open_table(path: Path, format: TableFormat) -> Table:
    return open_workbook(path) if format == "xlsx" else open_delimited(path)


def read_first_rows(table: Table) -> list[TableRow]:
    with closing(table.read_rows()) as all_rows:
        rows = list(itertools.islice((row for row in all_rows if not is_blank(row.cells)), LOOKED_AT))
    if not rows:
        raise UnusableFile("The file is empty.")
    return rows


def find_header(rows: Sequence[TableRow], accepts: Accepts) -> HeaderRow | None:
    """The first of the rows that is accepted."""
    for row in rows:
        if accepts({normalise_header(cell) for cell in row.cells}):
            return build_header(row)
    return None


def guess_header(rows: Sequence[TableRow]) -> HeaderRow:
    """The first row with as many cells as any: titles above it have fewer. Of a header of several rows it is the last
    one, in which the cells that are merged over all of them are repeated."""
    widths = [sum(1 for cell in row.cells if clean_cell(cell)) for row in rows]
    widest = max(widths)
    first = next(n for n, width in enumerate(widths) if (width * 2 > widest and width > 1) or width == widest)
    header, *below = rows[first:]
    for row in below:
        if not _continues(header, row):
            break
        header = row
    return build_header(header)


def _continues(header: TableRow, row: TableRow) -> bool:
    """Whether a row has names for columns that the header leaves empty, and repeats another one."""
    pairs = [(clean_cell(above), clean_cell(cell)) for above, cell in zip(header.cells, row.cells, strict=False)]
    return any(above and above == cell for above, cell in pairs) and any(cell and not above for above, cell in pairs)


def build_header(row: TableRow) -> HeaderRow:
    """Without empty columns at the end; a repeated or missing name gets its number."""
    names = [clean_cell(cell).removeprefix("\ufeff") for cell in row.cells]
    while names and not names[-1]:
        names.pop()
    if len(names) > MAX_COLUMNS:
        raise UnusableFile(f"The header has {len(names):,} columns; at most {MAX_COLUMNS:,} are allowed.")
    seen: dict[str, int] = {}
    unique = []
    for position, name in enumerate(names, 1):
        name = name or f"Column {position}"
        key = normalise_header(name)
        seen[key] = seen.get(key, 0) + 1
        unique.append(name if seen[key] == 1 else f"{name} ({seen[key]})")
    return HeaderRow(row.line, unique)


class TableRecords:
    """The rows below the header, without empty ones and totals; they can be read more than once."""

    def __init__(self, table: Table, header: HeaderRow) -> None:
        self._table = table
        self._header = header

    def __iter__(self) -> Iterator[TableRecord | Problem]:
        keys, start = self._header.keys, self._header.line
        for row in self._table.read_rows():
            if row.line <= start or is_blank(row.cells) or _is_total(row.cells):
                continue
            if any(map(clean_cell, row.cells[len(keys) :])):
                yield Problem(row.line, "", f"has {len(row.cells)} cells, but the header has {len(keys)}")
                continue
            yield TableRecord(row.line, {key: clean_cell(cell) for key, cell in zip(keys, row.cells, strict=False)})


def _is_total(cells: Sequence[str]) -> bool:
    """A row that sums up the others: a word for it, and otherwise only a few numbers."""
    filled = [text for cell in cells if (text := clean_cell(cell))]
    return filled[0].rstrip(":").casefold() in TOTALS and 2 * len(filled) <= len(cells)
