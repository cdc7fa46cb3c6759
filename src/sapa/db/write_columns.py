"""The columns that a struct is written to, derived from it, so that a new field is written nowhere by its position."""

from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from msgspec import Raw, Struct

from sapa.values.json import encode

Row = TypeVar("Row", bound=Struct)

_TYPES: dict[Any, str] = {
    list[str]: "text[]",
    bytes: "json",
    bool: "boolean",
    int: "bigint",
    Decimal: "numeric",
    date: "date",
    datetime: "timestamptz",
    Raw: "json",
}


class WriteColumns(Generic[Row]):
    """The fields of a struct and properties computed from them, in one order for every statement.

    Fields `without` are written otherwise and left out. Structs and lists of structs are stored as JSON.

    A statement that writes many rows gets them as one JSON document, because the driver inspects every element of an
    array: `typed` declares the columns for json_to_recordset, and bytes hold JSON.
    """

    def __init__(self, struct: type[Row], *computed: str, without: Collection[str] = ()) -> None:
        hints: dict[str, Any] = get_type_hints(struct)
        hints |= {name: get_type_hints(getattr(struct, name).fget)["return"] for name in computed}
        fields = [name for name in struct.__struct_fields__ if name not in without]
        self.names: tuple[str, ...] = (*fields, *computed)
        self._json = {name for name in fields if _is_json(hints[name])}
        self._json_positions = [position for position, name in enumerate(self.names) if name in self._json]
        self._get_all = attrgetter(*self.names)
        self.listed = ", ".join(self.names)
        self._hints = hints
        self.typed = ", ".join(f"{name} {self._get_type(name)}" for name in self.names)
        self._encoded = [name for name in fields if _without_none(hints[name]) is bytes]
        self.excluded = ", ".join(f"{name} = excluded.{name}" for name in self.names)

    def _get_type(self, name: str) -> str:
        return "json" if name in self._json else _TYPES.get(_without_none(self._hints[name]), "text")

    def numbered(self, first: int) -> str:
        """`$3, $4, …`"""
        return ", ".join(f"${number}" for number, _ in enumerate(self.names, first))

    def named(self, prefix: str) -> str:
        """`:message_id::text, :message_agent_id::bigint, …`, for a part of a composed statement."""
        return ", ".join(f":{prefix}{name}::{self._get_type(name)}" for name in self.names)

    def name_values(self, prefix: str, row: Row) -> dict[str, Any]:
        """The values of `named`."""
        return {f"{prefix}{name}": value for name, value in zip(self.names, self.values(row), strict=True)}

    def assigned(self, first: int) -> str:
        """`email = $3, phone_number = $4, …`"""
        return ", ".join(f"{name} = ${number}" for number, name in enumerate(self.names, first))

    def values(self, row: Row) -> list[Any]:
        values: list[Any] = list(self._get_all(row))
        for position in self._json_positions:
            if values[position] is not None:
                values[position] = encode(values[position])
        return values

    def document(self, row: Row) -> dict[str, Any]:
        """The row as an object of the document that `typed` declares."""
        fields: dict[str, Any] = dict(zip(self.names, self._get_all(row), strict=True))
        for name in self._encoded:
            if fields[name] is not None:
                fields[name] = Raw(fields[name])
        return fields


def _is_json(hint: Any) -> bool:
    kinds = [kind for kind in get_args(hint) or (hint,) if isinstance(kind, type)]
    return any(issubclass(kind, Struct) for kind in kinds)


def _without_none(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(hint) and len(kinds) == 1 else hint
