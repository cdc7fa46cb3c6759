"""Turns a CSV record into the JSON object that the API accepts; the header maps cells to fields."""

import csv
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, inspect

from sapa.imports.lines import LONGEST_RECORD
from sapa.imports.types import UnusableFile
from sapa.values.spreadsheet_cells import unescape_formula

SEPARATORS = ",;\t"
MOST_SHOWN = 20
LONGEST_SHOWN = 60

_is_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
# Exactly as JSON prints it: 007 and 1.50 stay text.
_is_plain_number = re.compile(r"(?!-0$)-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{0,5}[1-9])?").fullmatch
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

Path = tuple[str | int, ...]
Reading = Callable[[str], Any]

_encode = msgspec.json.Encoder().encode

csv.field_size_limit(LONGEST_RECORD)


class BadCell(ValueError):
    """A cell or record that cannot be read; the text says why."""

    field = ""


class Column(msgspec.Struct, frozen=True):
    name: str
    above: Path
    last: str | int
    """The cell's field or position within the objects and lists `above`."""
    read: Reading | None
    """None for a column that an export writes and an import ignores."""


def detect_separator(header: str) -> str:
    """The separator that occurs most; names in a header contain none of them."""
    return max(SEPARATORS, key=header.count)


def parse_cells(record: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([record], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise BadCell(f"cannot be read as CSV: {error}") from None


def build_columns(names: Sequence[str], row: type[msgspec.Struct]) -> list[Column]:
    """Raises UnusableFile with every column that the resource does not have."""
    type_info = inspect.type_info(row)
    unknown, columns = [], []
    for name in names:
        try:
            columns.append(_column(name, type_info))
        except LookupError:
            unknown.append(name or "(a column without a name)")
    if unknown:
        raise UnusableFile(f"The header has unknown columns: {_some(unknown)}.")
    _refuse_overlaps(columns)
    return columns


def build_object(cells: Sequence[str], columns: Sequence[Column]) -> bytes | None:
    """The record's JSON; None when every cell is empty."""
    if len(cells) != len(columns):
        raise BadCell(f"has {len(cells)} cells, but the header has {len(columns)}")
    fields: dict[str | int, Any] = {}
    is_blank = True
    for cell, column in zip(cells, columns, strict=True):
        if not cell:
            continue
        is_blank = False
        if column.read is None:
            continue
        inner = fields
        for step in column.above:
            inner = inner.setdefault(step, {})
        try:
            inner[column.last] = column.read(unescape_formula(cell) if "'" in cell else cell)
        except BadCell as error:
            error.field = column.name
            raise
    return None if is_blank else _encode(_build_lists(fields))


def _build_lists(value: Any) -> Any:
    """Turns objects whose keys are positions into lists, without gaps. The keys of an object are all of one kind."""
    if not isinstance(value, dict):
        return value
    if isinstance(next(iter(value), ""), int):
        return [_build_lists(value[step]) for step in sorted(value)]
    return {step: _build_lists(inner) if isinstance(inner, dict) else inner for step, inner in value.items()}


def _column(name: str, type_info: inspect.Type) -> Column:
    (*above, last), read = _resolve(type_info, name.split("."))
    return Column(name, tuple(above), last, read)


def _resolve(kind: inspect.Type, steps: list[str]) -> tuple[Path, Reading | None]:
    """The path of a cell and how to read it; raises LookupError when the type has no such part."""
    kind = _bare(kind)
    if isinstance(kind, inspect.AnyType | inspect.RawType):
        return (steps[0] if steps else "",), None
    if not steps:
        return (), _reading(kind)
    step, remaining = _step(kind, steps)
    inner, read = _resolve(step[1], remaining)
    return (step[0], *inner) if read else (step[0],), read


def _step(kind: inspect.Type, steps: list[str]) -> tuple[tuple[str | int, inspect.Type], list[str]]:
    first, *remaining = steps
    if isinstance(kind, inspect.StructType):
        field = next(field for field in kind.fields if field.encode_name == first) if _has(kind, first) else None
        if field is not None:
            return (first, field.type), remaining
    if isinstance(kind, inspect.ListType) and first.isascii() and first.isdigit() and len(first) < 5 and int(first):
        return (int(first), kind.item_type), remaining
    if isinstance(kind, inspect.DictType) and ".".join(steps):
        return (".".join(steps), kind.value_type), []
    raise LookupError(first)


def _has(kind: inspect.StructType, name: str) -> bool:
    return any(field.encode_name == name for field in kind.fields)


def _bare(kind: inspect.Type) -> inspect.Type:
    """Without metadata, null and UNSET."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        options = [option for option in kind.types if not isinstance(option, inspect.NoneType)]
        return _bare(options[0]) if len(options) == 1 else inspect.UnionType(tuple(map(_bare, options)))
    return kind


def _reading(kind: inspect.Type) -> Reading:
    if isinstance(kind, inspect.ListType) and isinstance(_bare(kind.item_type), inspect.StrType):
        return _words
    if isinstance(kind, inspect.ListType | inspect.StructType | inspect.DictType):
        return _json
    if isinstance(kind, inspect.IntType | inspect.FloatType | inspect.DecimalType):
        return lambda cell: Raw(cell.encode()) if _is_number(cell) else cell
    if isinstance(kind, inspect.BoolType):
        return lambda cell: _BOOLEANS.get(cell.lower(), cell)
    if isinstance(kind, inspect.UnionType):
        return lambda cell: Raw(cell.encode()) if _is_plain_number(cell) else cell
    return str


def _words(cell: str) -> Any:
    """Comma-separated, or a JSON list, in which a value may contain a comma."""
    if cell.startswith("["):
        try:
            return msgspec.json.decode(cell, type=list[str])
        except msgspec.DecodeError:
            pass
    return [word for part in cell.split(",") if (word := part.strip())]


def _json(cell: str) -> Raw:
    try:
        msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadCell(f"is not valid JSON: {error}") from None
    return Raw(cell.encode())


def _refuse_overlaps(columns: Sequence[Column]) -> None:
    """No field may occur twice, nor whole and in parts.

    Sorted, the parts of a field come right after it.
    """
    twice, whole = [], None
    for path, name in sorted((_full_path(column), column.name) for column in columns):
        if whole is not None and path[: len(whole)] == whole:
            twice.append(name)
        else:
            whole = path
    if twice:
        raise UnusableFile(f"The header has the same field more than once: {_some(twice)}.")


def _full_path(column: Column) -> tuple[str, ...]:
    """Also for a column that is not read."""
    return tuple(map(str, (*column.above, column.last)) if column.read else column.name.split("."))


def _some(names: Sequence[str]) -> str:
    """The first names, shortened."""
    shown = [name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…" for name in names[:MOST_SHOWN]]
    hidden = len(names) - len(shown)
    return ", ".join(shown) + (f" and {hidden:,} more" if hidden else "")
