"""`sql()`: one statement beside its one function, checked when it is declared and again by the house tests."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, overload

from sapa.db.connection import translate_errors
from sapa.db.pool import Connection

Row = TypeVar("Row")

REGISTRY: list["Statement[Any]"] = []
"""Every statement of the product, for the tests that prepare them against the migrated schema."""

_COMPANY_PREDICATE = re.compile(r"\bcompany_id\s*=\s*\$1\b")
_COMPANY_INSERTED = re.compile(r"\bINSERT\s+INTO\s+\w+\s*(?:AS\s+\w+\s*)?\(\s*company_id\b", re.IGNORECASE)
_INSERT = re.compile(r"\bINSERT\s+INTO\b", re.IGNORECASE)
# A table that is read or changed: not a function call, not the UPDATE of ON CONFLICT.
_TOUCHES_ROWS = re.compile(r"\b(?:FROM|JOIN|(?<!DO )UPDATE)\s+[a-z_]+\b(?!\s*\()", re.IGNORECASE)

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

INSTANT = (datetime, datetime | None)


def build_instant_text(instant: str) -> str:
    """An expression: the instant as the API writes it."""
    return f"""to_char({instant} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


class Statement(Generic[Row]):
    """SQL text and the type of its rows; positional, because a test compares columns with fields.

    Instants arrive as the text that the API writes. A field that is annotated as `datetime` is parsed from it, so that
    rules compare instants and answers need no formatting. `row=datetime` is a statement of one such column.
    """

    __slots__ = ("build_row", "crosses", "row", "text")

    def __init__(self, text: str, row: type[Row] | None, crosses: str | None) -> None:
        self.text = text
        self.row = row
        self.crosses = crosses
        self.build_row = cast(Callable[..., Row], row if row is None else make_row_builder(row))

    async def find(self, db: Connection, *parameters: object) -> Row | None:
        record = await db.fetchrow(self.text, *parameters)
        return None if record is None else self.build_row(*record)

    async def all(self, db: Connection, *parameters: object, seconds: float | None = None) -> list[Row]:
        """`seconds` replaces the usual time limit."""
        build_row = self.build_row
        return [build_row(*record) for record in await db.fetch(self.text, *parameters, timeout=seconds)]

    async def stream(self, tx: Connection, *parameters: object, batch: int = 500) -> AsyncIterator[list[Row]]:
        """Reads the rows through a cursor, in batches; only inside a transaction."""
        build_row = self.build_row
        with translate_errors(tx):
            cursor = await tx.cursor(self.text, *parameters)
            while records := await cursor.fetch(batch):
                yield [build_row(*record) for record in records]

    async def value(self, db: Connection, *parameters: object) -> Any:
        """The first column of the first row, or None."""
        return await db.fetchval(self.text, *parameters)

    async def run(self, db: Connection, *parameters: object) -> int:
        """The number of rows that the statement changed."""
        return int((await db.execute(self.text, *parameters)).rpartition(" ")[2])


def make_row_builder(row: type[Row]) -> Callable[..., Row]:
    """The row's class itself where it has no instants."""
    if row is datetime:
        return cast(Callable[..., Row], datetime.fromisoformat)
    annotations: dict[str, object] = {}
    for base in reversed(row.__mro__):
        annotations |= vars(base).get("__annotations__", {})
    fields = getattr(row, "__struct_fields__", ())
    positions = [n for n, field in enumerate(fields) if annotations[field] in INSTANT]
    if not positions:
        return row

    def build_row(*values: Any) -> Row:
        parsed = list(values)
        for position in positions:
            if (text := parsed[position]) is not None:
                parsed[position] = datetime.fromisoformat(text)
        return row(*parsed)

    return build_row


@overload
def sql(text: str, *, crosses: str | None = None) -> Statement[None]: ...
@overload
def sql(text: str, *, row: type[Row], crosses: str | None = None) -> Statement[Row]: ...
def sql(text: str, *, row: type[Any] | None = None, crosses: str | None = None) -> Statement[Any]:
    """Declare a statement.

    The company is always $1: a statement must filter on `company_id = $1` or insert company_id first. The few that
    cross companies (the directory, key look-up, the worker's search for due work) say why in `crosses`.
    """
    if crosses is None:
        _refuse_without_company(text)
    statement = Statement(text, row, crosses)
    REGISTRY.append(statement)
    return statement


class ComposedStatement(Statement[Row]):
    """A statement whose parameters, besides the company, have names."""

    __slots__ = ("names",)

    def __init__(self, text: str, row: type[Row] | None) -> None:
        self.names = list(dict.fromkeys(_PARAMETER.findall(text)))
        numbers = {name: f"${number}" for number, name in enumerate(self.names, start=2)}
        super().__init__(_PARAMETER.sub(lambda found: numbers[found[1]], text), row, None)

    def order(self, values: Mapping[str, object]) -> list[object]:
        """The parameters after the company."""
        return [values[name] for name in self.names]


def compose(parts: Sequence[str], select: str, *, row: type[Row]) -> ComposedStatement[Row]:
    """One statement of queries that rooms export to each other, each with its name: `clock AS (SELECT …)`.

    What takes several round trips with a function of each room takes one with this. In a part the company is $1 and
    other parameters are named: `:contact_id`. A part may read the ones before it.
    """
    statement = ComposedStatement(f"WITH {', '.join(parts)} {select}", row)
    _refuse_without_company(statement.text)
    REGISTRY.append(statement)
    return statement


def _refuse_without_company(text: str) -> None:
    inserts_company = len(_INSERT.findall(text)) == len(_COMPANY_INSERTED.findall(text))
    reads_company = bool(_COMPANY_PREDICATE.search(text)) or not _TOUCHES_ROWS.search(text)
    if not (inserts_company and reads_company):
        raise ValueError(f"this statement is not confined to company_id = $1:\n{text}")
