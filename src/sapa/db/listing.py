"""Paged lists: a table's filters and sorts, declared once, put together into one statement per combination."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from sapa.db.counters import get_total
from sapa.db.pool import Connection
from sapa.db.sql import Statement, sql

Row = TypeVar("Row", bound=msgspec.Struct)

MOST_GATHERED = 5_000

REGISTRY: list["Listing[Any]"] = []
"""Every listing of the product, for the tests that prepare their statements."""


class Listing(Generic[Row]):
    """One table as a list.

    Filters are conditions with {} for their value. Sorts are expressions with an index (company_id, expression, id)
    behind them; the id makes every order total.
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
        self.page_statement = lru_cache(maxsize=None)(self._page_statement)
        self.count_statement = lru_cache(maxsize=None)(self._count_statement)
        REGISTRY.append(self)

    async def page(
        self, db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        """One page and the exact total. `sort` is a name and a direction, such as updatedAt:desc.

        The total comes first, because it tells which way to the page is short: few matches are gathered and sorted,
        many are met soon enough by walking the sort's index. PostgreSQL alone can only guess which it will be.
        """
        total = await self._total(db, company_id, filters)
        if offset >= total:
            return [], total
        if not filters and offset == 0:
            return await self.first_page_statement(sort, limit).all(db, company_id), total
        gathers = bool(filters) and total <= MOST_GATHERED
        statement = self.page_statement(tuple(filters), sort, gathers)
        return await statement.all(db, company_id, *filters.values(), limit, offset), total

    async def _total(self, db: Connection, company_id: int, filters: Mapping[str, object]) -> int:
        if not filters:
            return await get_total(db, company_id, self.counter)
        return int(await self.count_statement(tuple(filters)).value(db, company_id, *filters.values()))

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
             LIMIT {limit:d}""",  # noqa: S608 - fragments from declarations
            row=self.row,
        )

    def _page_statement(self, names: tuple[str, ...], sort: str, gathers: bool) -> Statement[Row]:
        """Ids come from the sort's covering index first, so that a deep page never reads the rows it skips."""
        name, _, direction = sort.partition(":")
        columns = ", ".join(f"r.{field}" for field in self.row.__struct_fields__)
        limit, offset = len(names) + 2, len(names) + 3
        return sql(
            f"""
            WITH matching AS {"" if gathers else "NOT "}MATERIALIZED (
                SELECT id, {self.sorts[name]} AS place
                  FROM {self.table}
                 WHERE company_id = $1{self._conditions(names)}
            ), page AS (
                SELECT id, place
                  FROM matching
                 ORDER BY place {direction}, id {direction}
                 LIMIT ${limit} OFFSET ${offset}
            )
            SELECT {columns}
              FROM page JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}""",  # noqa: S608 - fragments from declarations
            row=self.row,
        )

    def _count_statement(self, names: tuple[str, ...]) -> Statement[None]:
        return sql(f"SELECT count(*) FROM {self.table} WHERE company_id = $1{self._conditions(names)}")  # noqa: S608


def contains(text: str) -> str:
    """A LIKE pattern for texts that hold this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
