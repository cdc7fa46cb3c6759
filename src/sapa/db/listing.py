"""Paged lists: a table's filters and sorts, declared once and combined into one statement per combination."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from sapa.db.counters import get_total
from sapa.db.pool import Connection
from sapa.db.sql import Statement, make_row_builder, sql

Row = TypeVar("Row", bound=msgspec.Struct)
Filters = Mapping[str, object]

MAX_GATHERED = 5_000
CELLS = "cells"
USUAL_LIMITS = frozenset({10, 20, 25, 50, 100})

OWNS_MOST = """
    SELECT reltuples BETWEEN 1 AND 2 * (
               (SELECT coalesce(sum(total), 0) FROM counter_cells WHERE company_id = $1 AND counter = $2)
             + (SELECT coalesce(sum(delta), 0) FROM counter_deltas WHERE company_id = $1 AND counter = $2))
      FROM pg_class
     WHERE oid = '{table}'::regclass"""

REGISTRY: list["Listing[Any]"] = []
"""Every listing of the product, for the tests that prepare their statements."""


class Listing(Generic[Row]):
    """One table as a list.

    Filters are conditions with {} for their value. Sorts are expressions with an index (company_id, expression, id)
    behind them; the id makes every order total. A `sort` is a name and a direction, such as updatedAt:desc.

    `cell` is the column that holds a row's counter cell; the filter `cells`, a list of cells, is counted without
    reading any row. An index (company_id, cell, expression, id) serves its pages; sorts without one are `walked_sorts`.
    `columns` gives fields that are not plain columns their expression over the row `r`.

    `texts` are the filters that a trigram index serves. Where they need another index as well, they contain
    `company_id = $1` themselves.

    `alternatives` split a filter into conditions of which a row meets at most one, each with an index of its own that
    also has the sort: matches are counted and gathered from these indexes, without reading their rows.
    """

    def __init__(
        self,
        table: str,
        *,
        row: type[Row],
        filters: Mapping[str, str],
        sorts: Mapping[str, str],
        counter: str,
        cell: str | None = None,
        walked_sorts: Collection[str] = (),
        texts: Collection[str] = (),
        alternatives: Mapping[str, Sequence[str]] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.table = table
        self.row = row
        self.build_row = make_row_builder(row)
        self.filters = dict(filters)
        self.sorts = dict(sorts)
        self.counter = counter
        self.cell = cell
        self.walked_sorts = frozenset(walked_sorts)
        self.texts = frozenset(texts)
        self.alternatives = alternatives or {}
        if cell is not None:
            self.filters[CELLS] = f"{cell} = ANY({{}}::text[])"
        self._columns = ", ".join(
            f"{(columns or {})[field]} AS {field}" if field in (columns or {}) else f"r.{field}"
            for field in row.__struct_fields__
        )
        self.first_page_statement = lru_cache(maxsize=None)(self._first_page_statement)
        self.walk_statement = lru_cache(maxsize=None)(self._walk_statement)
        self.gather_statement = lru_cache(maxsize=None)(self._gather_statement)
        self.count_statement = lru_cache(maxsize=None)(self._count_statement)
        self.cells_statement = lru_cache(maxsize=None)(self._cells_statement)
        self.first_cells_statement = lru_cache(maxsize=None)(self._first_cells_statement)
        self.owns_most_statement = sql(OWNS_MOST.format(table=table))
        REGISTRY.append(self)

    async def page(
        self, db: Connection, company_id: int, filters: Filters, sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        """One page and the exact total."""
        if self.cell is not None and tuple(filters) == (CELLS,):
            return await self._page_of_cells(db, company_id, filters[CELLS], sort, limit, offset)
        if filters:
            return await self._filtered_page(db, company_id, filters, sort, limit, offset)
        if offset == 0 and limit in USUAL_LIMITS:
            first = await self.first_page_statement(sort, limit).all(db, company_id)
            return first, len(first) if len(first) < limit else await get_total(db, company_id, self.counter)
        total = await get_total(db, company_id, self.counter)
        if offset >= total:
            return [], total
        return await self.walk_statement((), sort).all(db, company_id, limit, offset), total

    async def _page_of_cells(
        self, db: Connection, company_id: int, cells: Any, sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        total = await get_total(db, company_id, self.counter, cells)
        if offset >= total:
            return [], total
        if sort.partition(":")[0] in self.walked_sorts:
            return await self._walked_page_of_cells(db, company_id, cells, sort, limit, offset, total), total
        if offset == 0 and limit in USUAL_LIMITS:
            return await self.first_cells_statement(sort, limit, len(cells)).all(db, company_id, *cells), total
        return await self.cells_statement(sort).all(db, company_id, cells, limit, offset), total

    async def _walked_page_of_cells(
        self, db: Connection, company_id: int, cells: Any, sort: str, limit: int, offset: int, total: int
    ) -> list[Row]:
        """One walk along the sort's index for all cells together: a walk for each would go to its end for every cell
        with few rows. The rows of few are gathered."""
        if total > MAX_GATHERED:
            return await self.walk_statement((CELLS,), sort).all(db, company_id, cells, limit, offset)
        gather = self.gather_statement((CELLS,), sort, False)
        records = await db.fetch(gather.text, company_id, cells, limit, offset)
        return [self.build_row(*record[1:]) for record in records]

    async def _filtered_page(
        self, db: Connection, company_id: int, filters: Filters, sort: str, limit: int, offset: int
    ) -> tuple[list[Row], int]:
        """Few matches are gathered, counted and sorted by one statement. Many are counted, and read along the sort's
        index. PostgreSQL alone would have to guess which case it is."""
        names, values = tuple(filters), tuple(filters.values())
        gather = self.gather_statement(names, sort, await self._is_text_enough(db, company_id, names))
        records = await db.fetch(gather.text, company_id, *values, limit, offset)
        if records and records[0][0] <= MAX_GATHERED:
            return [self.build_row(*record[1:]) for record in records], records[0][0]
        if not records and offset == 0:
            return [], 0
        total: int = await self.count_statement(names).value(db, company_id, *values)
        if offset >= total:
            return [], total
        return await self.walk_statement(names, sort).all(db, company_id, *values, limit, offset), total

    async def _is_text_enough(self, db: Connection, company_id: int, names: tuple[str, ...]) -> bool:
        """Whether to search the text over all companies' rows: where most rows are this company's, reading the long
        list of its rows in the index costs more than reading the few matches of others."""
        if self.texts.isdisjoint(names) or not self.texts | {CELLS} >= set(names):
            return False  # no text filter, or another filter that a company's index serves sooner
        return bool(await self.owns_most_statement.value(db, company_id, self.counter))

    def _conditions(self, names: tuple[str, ...]) -> str:
        return _join_conditions(names, self.filters)

    def _matching(self, names: tuple[str, ...], columns: str, own: str = "company_id = $1") -> str:
        split = next((name for name in names if name in self.alternatives), None)
        choices = [{split: one} for one in self.alternatives[split]] if split else [{}]
        return " UNION ALL ".join(
            f"SELECT {columns} FROM {self.table} WHERE {own}{_join_conditions(names, {**self.filters, **chosen})}"
            for chosen in choices
        )

    def _first_page_statement(self, sort: str, limit: int) -> Statement[Row]:
        """By far the most frequent. With a literal limit PostgreSQL plans it once, not at every call."""
        name, _, direction = sort.partition(":")
        return sql(
            f"""
            SELECT {self._columns}
              FROM {self.table} AS r
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
            SELECT {self._columns}
              FROM (SELECT id, {self.sorts[name]} AS place
                      FROM {self.table}
                     WHERE company_id = $1{self._conditions(names)}
                     ORDER BY place {direction}, id {direction}
                     LIMIT ${len(names) + 2} OFFSET ${len(names) + 3}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}""",
            row=self.row,
        )

    def _gather_statement(self, names: tuple[str, ...], sort: str, by_text: bool) -> Statement[None]:
        """The total, then the row's columns. One match above the limit means that there are too many."""
        name, _, direction = sort.partition(":")
        own = (
            "(company_id = $1) IS TRUE" if by_text else "company_id = $1"
        )  # the first form is a filter, never an index condition
        return sql(
            f"""
            SELECT page.total, {self._columns}
              FROM (SELECT id, place, count(*) OVER () AS total
                      FROM ({self._matching(names, f"id, {self.sorts[name]} AS place", own)}
                             LIMIT {MAX_GATHERED + 1:d}) AS matching
                     ORDER BY place {direction}, id {direction}
                     LIMIT ${len(names) + 2} OFFSET ${len(names) + 3}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}"""
        )

    def _cells_statement(self, sort: str) -> Statement[Row]:
        return self._build_cells_statement(sort, "$2::text[]", "LIMIT $3::bigint + $4::bigint", "LIMIT $3 OFFSET $4")

    def _first_cells_statement(self, sort: str, limit: int, cells: int) -> Statement[Row]:
        """With a parameter for each cell and a literal limit PostgreSQL plans it once, not at every call."""
        array = ", ".join(f"${number}" for number in range(2, cells + 2))
        return self._build_cells_statement(sort, f"ARRAY[{array}]::text[]", f"LIMIT {limit:d}", f"LIMIT {limit:d}")

    def _build_cells_statement(self, sort: str, cells: str, first_rows: str, page_rows: str) -> Statement[Row]:
        """Each cell's first rows from the cell's index, then the first of them all: no row of another cell is read."""
        name, _, direction = sort.partition(":")
        return sql(
            f"""
            SELECT {self._columns}
              FROM (SELECT first.id, first.place
                      FROM unnest({cells}) AS requested (cell)
                     CROSS JOIN LATERAL (
                           SELECT id, {self.sorts[name]} AS place
                             FROM {self.table}
                            WHERE company_id = $1 AND {self.cell} = requested.cell
                            ORDER BY place {direction}, id {direction}
                            {first_rows}) AS first
                     ORDER BY first.place {direction}, first.id {direction}
                     {page_rows}) AS page
              JOIN {self.table} AS r ON r.company_id = $1 AND r.id = page.id
             ORDER BY page.place {direction}, page.id {direction}""",
            row=self.row,
        )

    def _count_statement(self, names: tuple[str, ...]) -> Statement[None]:
        return sql(f"SELECT count(*) FROM ({self._matching(names, '1')}) AS matching")


def _join_conditions(names: tuple[str, ...], filters: Mapping[str, str]) -> str:
    return "".join(f" AND {filters[name].format(f'${n}')}" for n, name in enumerate(names, start=2))


def contains(text: str) -> str:
    """A LIKE pattern for texts that contain this one."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
