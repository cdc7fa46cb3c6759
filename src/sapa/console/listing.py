"""One page of a list, by the query of the address, and the filters that have a name."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct

from sapa.console.formats import get_zone
from sapa.console.page_request import PageRequest
from sapa.db import counters
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time

PAGE = 25

NamedFilters = Sequence[tuple[str, Mapping[str, str]]]
"""Labels, each with the query that it stands for."""


class ListTab(Struct, frozen=True):
    """A filter that has a name, and how many rows it finds."""

    label: str
    query: Mapping[str, str]
    total: int
    is_chosen: bool


async def read_list(page: PageRequest, path: str, *filters: str, base: Base = Base.CUSTOMER) -> dict[str, Any]:
    """The API's list; an invalid query shows its error in place of the list."""
    page.keep_filters()
    params = page.request.query_params
    query = {name: params.get(name, "").strip() for name in ("search", "page", *filters)}
    try:
        found = await page.call("GET", path, query | {"limit": str(PAGE)}, base=base)
    except Invalid as error:
        page.error = error
        found = {"data": [], "meta": {"page": 1, "limit": PAGE, "total": 0, "hasNextPage": False}}
    return {"items": found["data"], "meta": found["meta"], "query": query}


def read_period(page: PageRequest, query: Mapping[str, str]) -> dict[str, datetime]:
    """The instants that limit the list, as far as they can be shown: the API says what is wrong with the others."""
    period, zone = {}, get_zone(page.time_zone)
    for name in ("createdFrom", "createdTo"):
        with suppress(BadValue, OverflowError):
            period[name] = parse_date_time(query[name]).astimezone(zone)
    return period


async def read_cells(page: PageRequest, counter: str, *names: str) -> list[tuple[dict[str, str], int]]:
    """How many rows each combination of these fields has."""
    async with page.context.database.connection() as db:
        totals = await counters.list_totals(db, page.company_id, counter)
    return [(dict(zip(names, cell.split("/"), strict=True)), total) for cell, total in totals.items()]


def count_cells(cells: Iterable[tuple[Mapping[str, str], int]], wanted: Mapping[str, str]) -> int:
    return sum(total for fields, total in cells if wanted.items() <= fields.items())


def build_tabs(query: Mapping[str, str], counted: Sequence[tuple[str, Mapping[str, str], int]]) -> list[ListTab]:
    names = {name for _, wanted, _ in counted for name in wanted}
    present = {name: query[name] for name in names if query[name]}
    return [ListTab(label, wanted, total, wanted == present) for label, wanted, total in counted]
