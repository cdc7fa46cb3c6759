"""Tables: rows of cells, as any file that holds one is read."""

import re
from collections.abc import Callable, Generator, Sequence
from typing import Literal

from msgspec import Struct

TableFormat = Literal["csv", "xlsx"]

_BLANKS = re.compile(r"[\s\u00a0\u200b\ufeff]+")


class TableRow(Struct, frozen=True):
    """The cells of one row, and its first line in the file, from 1."""

    line: int
    cells: list[str]


ReadRows = Callable[[], Generator[TableRow]]
"""Reads a table from its start; it can be called again."""


class Table(Struct, frozen=True):
    """The rows of a file, and how they were read."""

    read_rows: ReadRows
    details: str
    """For people: the encoding and the separator, or the worksheet's name."""


def clean_cell(text: str) -> str:
    """Without blanks around it, tabs and non-breaking ones included."""
    return text.strip(" \t\r\n\f\v\u00a0\u200b\ufeff")


def normalise_header(text: str) -> str:
    """Column names are compared without case, BOM and differences in white space."""
    return _BLANKS.sub(" ", text).strip().casefold()


def is_blank(cells: Sequence[str]) -> bool:
    return not any(map(clean_cell, cells))
