"""How the log of API calls is stored and read.

A page is read along one index, newest first. The filters decide which index, not the planner: by its estimates it would
search the whole log for a key that has made no call for weeks, or for one request. The other filters are applied to one
slice of that index after another.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sapa.access.calls.types import ApiCall
from sapa.db.pool import Connection, Tx
from sapa.db.sql import Statement, sql

COLUMNS = (
    "company_id", "called_at", "request_id", "key_id", "method", "route", "status", "code", "address", "microseconds",
)  # fmt: skip

CallRow = tuple[int, datetime, str, str, str, str, int, str | None, str, int]
"""The values of COLUMNS."""

FIRST_ERROR = 400
"""Calls with this status or above have an index of their own."""

# The sizes of the slices that a page reads at most. The first is small: it is enough for most pages. Along the time,
# calls are neighbours on the disk; along another index, each may lie on a page of its own.
SLICES_BY_TIME = (500, *[10_000] * 10)
SLICES_BY_OTHERS = (500, *[2_500] * 10)


class CallPosition(Struct, frozen=True):
    """A place in the log; calls of one millisecond are in the order of their ids."""

    called_at: datetime
    request_id: str


class CallFilter(Struct, frozen=True, kw_only=True):
    """Which calls to read; both statuses are included."""

    key_id: str | None = None
    route: str | None = None
    method: str | None = None
    lowest_status: int = 100
    highest_status: int = 599
    code: str | None = None
    address: str | None = None
    request_id: str | None = None

    @property
    def values(self) -> tuple[object, ...]:
        return (
            self.key_id, self.route, self.method, self.lowest_status, self.highest_status, self.code, self.address,
            self.request_id,
        )  # fmt: skip


class CallIndex(Struct, frozen=True):
    """The statements that read the log along one index."""

    page: Statement[ApiCall]
    slice_end: Statement[CallPosition]
    lead: Sequence[str]
    """The value that leads the index."""
    serves: CallFilter
    """What it finds without reading other calls."""
    slices: Sequence[int] = SLICES_BY_OTHERS


# A crash may lose the last calls: nobody waits for them to be stored.
COMMIT_LATE = sql("SELECT set_config('synchronous_commit', 'off', true)")

# IS TRUE makes a condition a filter, which is never looked up in an index.
_PAGE = """
    SELECT request_id, called_at, key_id, method, route, status, code, address,
           microseconds::float8 / 1000 AS milliseconds
      FROM api_calls
     WHERE company_id = $1
       AND {range}
       AND ($6::text IS NULL OR key_id = $6) IS TRUE AND ($7::text IS NULL OR route = $7) IS TRUE
       AND ($8::text IS NULL OR method = $8) AND status BETWEEN $9 AND $10
       AND ($11::text IS NULL OR code = $11) AND ($12::text IS NULL OR address = $12)
       AND ($13::text IS NULL OR request_id = $13) IS TRUE
     ORDER BY {order}
     LIMIT $14"""

_SLICE_END = """
    SELECT called_at, request_id
      FROM api_calls
     WHERE company_id = $1
       AND {range}
     ORDER BY {order}
    OFFSET $6 LIMIT 1"""

# Only the plain comparison tells the planner which days to leave out.
_DAYS = "called_at BETWEEN $2 AND $4"
_TIME = f"{_DAYS} AND (called_at, request_id) >= ($2, $3) AND (called_at, request_id) < ($4, $5)"
_ERRORS = f"{_TIME} AND status >= {FIRST_ERROR}"
_NEWEST = "called_at DESC, request_id DESC"


def _build_slice(column: str) -> Statement[CallPosition]:
    """With a plain `=`, unlike the page: the planner must know how many calls there are, or it would sort them all. No
    other index is quicker, because this one has all that is asked for."""
    return sql(_SLICE_END.format(range=f"{column} = $7 AND {_TIME}", order=_NEWEST), row=CallPosition)


def _build_range(column: str, value: str) -> str:
    """The column is compared together with the time: with a plain `=` the planner could read another index."""
    position = f"({column}, called_at, request_id)"
    return f"{_DAYS} AND {position} >= ({value}, $2, $3) AND {position} < ({value}, $4, $5)"


PAGE_BY_TIME = sql(_PAGE.format(range=_TIME, order=_NEWEST), row=ApiCall)
SLICE_BY_TIME = sql(_SLICE_END.format(range=_TIME, order=_NEWEST), row=CallPosition)

PAGE_BY_ERROR = sql(_PAGE.format(range=_ERRORS, order=_NEWEST), row=ApiCall)
SLICE_BY_ERROR = sql(_SLICE_END.format(range=_ERRORS, order=_NEWEST), row=CallPosition)

PAGE_BY_KEY = sql(_PAGE.format(range=_build_range("key_id", "$6"), order=f"key_id DESC, {_NEWEST}"), row=ApiCall)
SLICE_BY_KEY = _build_slice("key_id")

PAGE_BY_ROUTE = sql(_PAGE.format(range=_build_range("route", "$7"), order=f"route DESC, {_NEWEST}"), row=ApiCall)
SLICE_BY_ROUTE = _build_slice("route")

FIND = sql(_PAGE.format(range=f"request_id = $13 AND ({_TIME}) IS TRUE", order=_NEWEST), row=ApiCall)


async def insert_calls(tx: Tx, rows: Sequence[CallRow]) -> None:
    """One COPY."""
    await COMMIT_LATE.value(tx)
    await tx.copy_records_to_table("api_calls", records=rows, columns=COLUMNS)


async def list_calls(
    db: Connection, company_id: int, filter: CallFilter, start: CallPosition, end: CallPosition, limit: int
) -> list[ApiCall]:
    """From `start` on and before `end`, newest first."""
    statement = FIND if filter.request_id is not None else _choose_index(filter).page
    return await statement.all(db, company_id, *_bounds(start, end), *filter.values, limit)


def get_slices(filter: CallFilter) -> Sequence[int]:
    """The sizes of the slices to read for a page."""
    return _choose_index(filter).slices


async def find_slice(
    db: Connection, company_id: int, filter: CallFilter, start: CallPosition, end: CallPosition, size: int
) -> CallPosition | None:
    """Where the slice before `end` begins; None if the rest is smaller, or needs no slices."""
    chosen = _choose_index(filter)
    if filter.request_id is not None or filter == chosen.serves:
        return None
    return await chosen.slice_end.find(db, company_id, *_bounds(start, end), size - 1, *chosen.lead)


def _choose_index(filter: CallFilter) -> CallIndex:
    """The one that holds the fewest calls that the filter leaves out, as a rule."""
    if filter.lowest_status >= FIRST_ERROR or filter.code is not None:
        return CallIndex(PAGE_BY_ERROR, SLICE_BY_ERROR, (), CallFilter(lowest_status=FIRST_ERROR))
    if filter.route is not None:
        return CallIndex(PAGE_BY_ROUTE, SLICE_BY_ROUTE, (filter.route,), CallFilter(route=filter.route))
    if filter.key_id is not None:
        return CallIndex(PAGE_BY_KEY, SLICE_BY_KEY, (filter.key_id,), CallFilter(key_id=filter.key_id))
    return CallIndex(PAGE_BY_TIME, SLICE_BY_TIME, (), CallFilter(), SLICES_BY_TIME)


def _bounds(start: CallPosition, end: CallPosition) -> tuple[object, ...]:
    return start.called_at, start.request_id, end.called_at, end.request_id
