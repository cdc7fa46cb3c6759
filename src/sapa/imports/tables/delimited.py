"""Reads CSV as spreadsheets and shops write it: any usual encoding and separator, with or without `sep=`."""

import csv
import io
import itertools
import re
from collections.abc import Generator, Iterator
from pathlib import Path

from sapa.imports.lines import LONGEST_RECORD
from sapa.imports.tables.encodings import LABELS, detect_encoding, open_text
from sapa.imports.tables.types import Table, TableRow
from sapa.imports.types import UnusableFile
from sapa.values.spreadsheet_cells import unwrap_text

SEPARATORS = ",;\t|"
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
LOOKED_AT = 50
"""Lines of which the separator is found."""

_find_declared = re.compile(r'\A\ufeff?"?sep=(?P<separator>.)"?\r?\n?\Z', re.IGNORECASE).match
_QUOTED = re.compile(r'(?<![^,;\t|\r\n\ufeff])"[^"]*(?:""[^"]*)*"?')
"""A quoted cell; a quotation mark inside a cell begins none."""


def open_delimited(path: Path) -> Table:
    """Raises UnusableFile with the name of an encoding or a kind of file that cannot be read."""
    with path.open("rb") as file:
        codec = detect_encoding(file)
        with open_text(file, codec) as text:
            head = [line[:LONGEST_RECORD] for line in itertools.islice(text, LOOKED_AT)]
    if not any(line.strip("\ufeff \t\r\n") for line in head):
        raise UnusableFile("The file is empty.")
    declared = _find_declared(head[0])
    separator = declared["separator"] if declared else detect_separator(head)

    def read_rows() -> Generator[TableRow]:
        with path.open("rb") as file, open_text(file, codec) as text:
            yield from _read_rows(text, separator, skipped=1 if declared else 0)

    return Table(read_rows, f"{LABELS[codec]}, separated by {NAMES.get(separator, repr(separator))}")


def detect_separator(lines: list[str]) -> str:
    """The one that occurs in most lines outside quotes, and of those the one that occurs most. Quoted cells may go on
    over several lines."""
    unquoted = _QUOTED.sub("", "".join(lines)).splitlines()
    counts = {separator: [line.count(separator) for line in unquoted if line.strip()] for separator in SEPARATORS}
    return max(SEPARATORS, key=lambda separator: (sum(map(bool, counts[separator])), sum(counts[separator])))


def _read_rows(text: io.TextIOWrapper, separator: str, skipped: int) -> Iterator[TableRow]:
    for _ in range(skipped):
        text.readline()
    csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader((line.replace("\0", "") for line in text), delimiter=separator)
    line = skipped + 1
    try:
        for cells in rows:
            yield TableRow(line, [unwrap_text(cell) for cell in cells])
            line = skipped + rows.line_num + 1
    except csv.Error as error:
        raise UnusableFile(f"Line {line:,} cannot be read as CSV; a quoted cell may not be closed: {error}.") from None
