"""What a source of files is: shops, marketplaces and spreadsheets, each with the files that it exports."""

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any

from msgspec import Raw, Struct

from sapa.imports.tables.files import Accepts, HeaderRow, TableRecord
from sapa.imports.tables.types import normalise_header
from sapa.imports.types import Problem, Resource

Fields = dict[str, Any]
"""A record as the API accepts it: camelCase names, amounts as decimals."""


class ConversionContext(Struct, frozen=True):
    """What a conversion needs besides the file."""

    region: str
    currency: str
    zone: tzinfo
    keeps_columns: bool
    """Columns that nothing else reads become the customer's additionalData."""


class ConvertedRow(Struct, frozen=True):
    """One record as the API accepts it, and its first line in the file."""

    line: int
    value: Fields | Raw


Converted = ConvertedRow | Problem
Records = Iterable[TableRecord | Problem]
"""The rows of a table; they can be read more than once."""
Convert = Callable[[Records, HeaderRow, ConversionContext], Iterator[Converted]]


class FileProfile(Struct, frozen=True):
    """One kind of file that a source exports."""

    source: str
    resource: Resource
    accepts: Accepts
    convert: Convert
    columns: frozenset[str]
    """The normalised names of the columns that are read; `*` stands for any number in a name."""

    def list_unread(self, header: HeaderRow) -> list[str]:
        """The columns of a file that are not read."""
        return [name for name in header.names if not self.reads(normalise_header(name))]

    def reads(self, key: str) -> bool:
        return key in self.columns or _without_numbers(key) in self.columns


def has_columns(*alternatives: Iterable[str]) -> Accepts:
    """Accepts a header that has all columns of one of the alternatives."""
    wanted = [{normalise_header(name) for name in names} for names in alternatives]
    return lambda keys: any(names <= keys for names in wanted)


def list_columns(*texts: str) -> frozenset[str]:
    """Column names, written one after the other with `|` between them."""
    return frozenset(normalise_header(name) for text in texts for name in text.split("|"))


def _without_numbers(key: str) -> str:
    return "".join("*" if char.isdigit() else char for char in key)
