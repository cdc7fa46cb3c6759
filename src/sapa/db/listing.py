"""Paged lists: a table's filters and sorts, declared once, put together into one statement per combination."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from sapa.db.counters import get_total
from sapa.db.pool import Connection
from sapa.db.sql import Statement, sql

Row = TypeVar("Row", bound=msgspec.Struct)

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
        self.page_statement = lru_cache(maxsize=None)(self._page_statement)
        self.count_statement = lru_cache(maxsize=None)(self._count_statement)
        REGISTRY.append(self)

    async def page(
        self, db: Connection, company_id: int, filters: Mapping[str, object], sort: str, limit: int, offset: int
    ) -> list[Row]:
        """`sort` is a name and a direction, such as updatedAt:desc."""
        statement = self.page_statement(tuple(filters), sort)
        return await statement.all(db, company_id, *filters.values(), limit, offset)

    async def total(self, db: Connection, company_id: int, filters: Mapping[str, object]) -> int:
        """Exact. Without filters it comes from the counter; with filters it is counted over their indexes."""
        if not filters:
            return await get_total(db, company_id, self.counter)
        return int(await self.count_statement(tuple(filters)).value(db, company_id, *filters.values()))

    def _conditions(self, names: tuple[str, ...]) -> str:
        return "".join(f" AND {self.filters[name].format(f'${n}')}" for n, name in enumerate(names, start=2))

    def _page_statement(self, names: tuple[str, ...], sort: str) -> Statement[Row]:
        """Ids come from the sort's covering index first, so that a deep page never reads the rows it skips."""
        name, _, direction = sort.partition(":")
        columns = ", ".join(f"r.{field}" for field in self.row.__struct_fields__)
        limit, offset = len(names) + 2, len(names) + 3
        return sql(
            f"""
            SELECT {columns}
              FROM (SELECT id, {self.sorts[name]} AS place
                      FROM {self.table}
                     WHERE company_id = $1{self._conditions(names)}
                     ORDER BY place {direction}, id {direction}
                     LIMIT ${limit} OFFSET ${offset}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}""",  # noqa: S608 - fragments from declarations
            row=self.row,
        )

    def _count_statement(self, names: tuple[str, ...]) -> Statement[None]:
        return sql(f"SELECT count(*) FROM {self.table} WHERE company_id = $1{self._conditions(names)}")  # noqa: S608


def contains(text: str) -> str:
    """A LIKE pattern for texts that hold this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
