"""Paged lists: a table's filters and sorts, declared once, put together into one statement per combination."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from sapa.db.counters import get_total
from sapa.db.pool import Connection
from sapa.db.sql import Statement, sql

Row = TypeVar("Row", bound=msgspec.Struct)
Filters = Mapping[str, object]

MOST_GATHERED = 5_000
USUAL_LIMITS = frozenset({10, 20, 25, 50, 100})

REGISTRY: list["Listing[Any]"] = []
"""Every listing of the product, for the tests that prepare their statements."""


class Listing(Generic[Row]):
    """One table as a list.

    Filters are conditions with {} for their value. Sorts are expressions with an index (company_id, expression, id)
    behind them; the id makes every order total. A `sort` is a name and a direction, such as updatedAt:desc.
    """

    def __init__(
        self, table: str, *, row: type[Row], filters: Mapping[str, str], sorts: Mapping[str, str], counter: str
    ) -> None:
        self.table = table
        self.row = row
        self.filters = dict(filters)
        self.sorts = dict(sorts)
        self.counter = counter
        self.first_page_statement = lru_cache(maxsize=None)(self._first_page_statement)
        self.walk_statement = lru_cache(maxsize=None)(self._walk_statement)
        self.gather_statement = lru_cache(maxsize=None)(self._gather_statement)
        self.count_statement = lru_cache(maxsize=None)(self._count_statement)
        REGISTRY.append(self)

    async def page(
        self, db: Connection, company_id: int, filters: Filters, sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        """One page and the exact total."""
        if filters:
            return await self._filtered_page(db, company_id, filters, sort, limit, offset)
        total = await get_total(db, company_id, self.counter)
        if offset == 0 and limit in USUAL_LIMITS:
            return await self.first_page_statement(sort, limit).all(db, company_id), total
        if offset >= total:
            return [], total
        return await self.walk_statement((), sort).all(db, company_id, limit, offset), total

    async def _filtered_page(
        self, db: Connection, company_id: int, filters: Filters, sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        """Few matches are gathered, counted and sorted in one go. Many are counted, and met by walking the sort's
        index. PostgreSQL alone would have to guess which it will be."""
        names, values = tuple(filters), tuple(filters.values())
        records = await db.fetch(self.gather_statement(names, sort).text, company_id, *values, limit, offset)
        if records and records[0][0] <= MOST_GATHERED:
            return [self.row(*record[1:]) for record in records], records[0][0]
        if not records and offset == 0:
            return [], 0
        total: int = await self.count_statement(names).value(db, company_id, *values)
        if offset >= total:
            return [], total
        return await self.walk_statement(names, sort).all(db, company_id, *values, limit, offset), total

    def _conditions(self, names: tuple[str, ...]) -> str:
        return "".join(f" AND {self.filters[name].format(f'${n}')}" for n, name in enumerate(names, start=2))

    def _first_page_statement(self, sort: str, limit: int) -> Statement[Row]:
        """By far the most asked for. With its limit written out PostgreSQL plans it once, not at every call."""
        name, _, direction = sort.partition(":")
        return sql(
            f"""
            SELECT {", ".join(self.row.__struct_fields__)}
              FROM {self.table}
             WHERE company_id = $1
             ORDER BY {self.sorts[name]} {direction}, id {direction}
             LIMIT {limit:d}""",
            row=self.row,
        )

    def _walk_statement(self, names: tuple[str, ...], sort: str) -> Statement[Row]:
        """Ids come from the sort's covering index first, so that a deep page never reads the rows it skips."""
        name, _, direction = sort.partition(":")
        return sql(
            f"""
            SELECT {self._columns_of_page()}
              FROM (SELECT id, {self.sorts[name]} AS place
                      FROM {self.table}
                     WHERE company_id = $1{self._conditions(names)}
                     ORDER BY place {direction}, id {direction}
                     LIMIT ${len(names) + 2} OFFSET ${len(names) + 3}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}""",
            row=self.row,
        )

    def _gather_statement(self, names: tuple[str, ...], sort: str) -> Statement[None]:
        """The total, then the row's columns. One match more than is gathered says that there are too many."""
        name, _, direction = sort.partition(":")
        return sql(
            f"""
            SELECT page.total, {self._columns_of_page()}
              FROM (SELECT id, place, count(*) OVER () AS total
                      FROM (SELECT id, {self.sorts[name]} AS place
                              FROM {self.table}
                             WHERE company_id = $1{self._conditions(names)}
                             LIMIT {MOST_GATHERED + 1:d}) AS matching
                     ORDER BY place {direction}, id {direction}
                     LIMIT ${len(names) + 2} OFFSET ${len(names) + 3}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}"""
        )

    def _columns_of_page(self) -> str:
        return ", ".join(f"r.{field}" for field in self.row.__struct_fields__)

    def _count_statement(self, names: tuple[str, ...]) -> Statement[None]:
        return sql(f"SELECT count(*) FROM {self.table} WHERE company_id = $1{self._conditions(names)}")


def contains(text: str) -> str:
    """A LIKE pattern for texts that hold this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
