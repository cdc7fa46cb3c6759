"""Filters that a person saved: their struct and errors."""

from msgspec import Struct

from sapa.values.ids import IdKind

FILTER_ID = IdKind("flt_")


class SavedFilter(Struct, frozen=True):
    """A person's own filter of a list."""

    id: str
    name: str
    query: str
