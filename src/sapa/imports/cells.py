"""Turns a CSV record into the JSON object that the API accepts; the header maps cells to fields."""

import csv
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Raw, inspect

from sapa.imports.lines import LONGEST_RECORD
from sapa.imports.types import UnusableFile
from sapa.values.spreadsheet_cells import unescape_formula

SEPARATORS = ",;\t"
MAX_SHOWN = 20
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

    def parse(self, cell: str) -> Any:
        try:
            return self.read(unescape_formula(cell) if "'" in cell else cell) if self.read else None
        except BadCell as error:
            error.field = self.name
            raise


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


class Branch(msgspec.Struct):
    """A field or position of a record's object: a cell's, or that of an object or a list of more branches."""

    step: str | int
    column: Column | None
    index: int = 0
    branches: "list[Branch]" = []
    is_list: bool = False

    def fill(self, cells: Sequence[str]) -> Any:
        """An object, or a list without gaps; empty cells are left out."""
        filled: dict[str | int, Any] = {}
        for branch in self.branches:
            if branch.column is not None:
                if cell := cells[branch.index]:
                    filled[branch.step] = branch.column.parse(cell)
            elif value := branch.fill(cells):
                filled[branch.step] = value
        return list(filled.values()) if self.is_list else filled


class ObjectBuilder:
    """Builds the JSON objects of records with these columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._size = len(columns)
        self._root = Branch("", None)
        for index, column in enumerate(columns):
            if column.read is not None:
                parent = reduce(_grow, column.above, self._root)
                parent.branches.append(Branch(column.last, column, index))
        _sort_lists(self._root)

    def build(self, cells: Sequence[str]) -> bytes | None:
        """The record's JSON; None when every cell is empty."""
        if len(cells) != self._size:
            raise BadCell(f"has {len(cells)} cells, but the header has {self._size}")
        return _encode(self._root.fill(cells)) if any(cells) else None


def _grow(parent: Branch, step: str | int) -> Branch:
    """The object or list at a step of its parent."""
    found = next((branch for branch in parent.branches if branch.step == step), None)
    if found is None:
        found = Branch(step, None)
        parent.branches.append(found)
    return found


def _sort_lists(branch: Branch) -> None:
    """The steps of a branch are all positions, or all fields."""
    branch.is_list = any(isinstance(inner.step, int) for inner in branch.branches)
    if branch.is_list:
        branch.branches.sort(key=lambda inner: int(inner.step))
    for inner in branch.branches:
        _sort_lists(inner)


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
    shown = [name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…" for name in names[:MAX_SHOWN]]
    hidden = len(names) - len(shown)
    return ", ".join(shown) + (f" and {hidden:,} more" if hidden else "")
