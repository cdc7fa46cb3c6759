"""The columns that a struct is written to, derived from it, so that a new field is written nowhere by its position."""

from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct

from sapa.values.json import encode

Row = TypeVar("Row", bound=Struct)

_CASTS: dict[Any, str] = {
    list[str]: "string_to_array({}, ',')",
    bytes: "{}::json",
    bool: "{}::boolean",
    int: "{}::bigint",
    Decimal: "{}::numeric",
    date: "{}::date",
    datetime: "{}::timestamptz",
}


class WriteColumns(Generic[Row]):
    """The fields of a struct and properties computed from them, in one order for every statement.

    Fields `without` are written otherwise and left out. Structs and lists of structs are stored as JSON.

    `cast` reads the columns from arrays of text, as a statement that writes many rows gets them: lists of text are
    joined with commas there, and bytes hold JSON.
    """

    def __init__(self, struct: type[Row], *computed: str, without: Collection[str] = ()) -> None:
        hints: dict[str, Any] = get_type_hints(struct)
        fields = [name for name in struct.__struct_fields__ if name not in without]
        self.names: tuple[str, ...] = (*fields, *computed)
        self._json = {name for name in fields if _is_json(hints[name])}
        self.listed = ", ".join(self.names)
        self.cast = ", ".join(self._get_cast(name, hints.get(name)).format(name) for name in self.names)
        self.excluded = ", ".join(f"{name} = excluded.{name}" for name in self.names)

    def _get_cast(self, name: str, hint: Any) -> str:
        return "{}::json" if name in self._json else _CASTS.get(_without_none(hint), "{}")

    def numbered(self, first: int) -> str:
        """`$3, $4, …`"""
        return ", ".join(f"${number}" for number, _ in enumerate(self.names, first))

    def assigned(self, first: int) -> str:
        """`email = $3, phone_number = $4, …`"""
        return ", ".join(f"{name} = ${number}" for number, name in enumerate(self.names, first))

    def arrays(self, first: int) -> str:
        """`$3::text[], $4::text[], …`"""
        return ", ".join(f"${number}::text[]" for number, _ in enumerate(self.names, first))

    def values(self, row: Row) -> list[Any]:
        values = ((name, getattr(row, name)) for name in self.names)
        return [encode(value) if name in self._json and value is not None else value for name, value in values]

    def texts(self, row: Row) -> list[str | None]:
        """One element for each of the arrays that `cast` reads."""
        return [_build_text(value) for value in self.values(row)]


def _is_json(hint: Any) -> bool:
    kinds = [kind for kind in get_args(hint) or (hint,) if isinstance(kind, type)]
    return any(issubclass(kind, Struct) for kind in kinds)


def _without_none(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(hint) and len(kinds) == 1 else hint


def _build_text(value: Any) -> str | None:
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bytes):
        return value.decode()
    return None if value is None else str(value)
