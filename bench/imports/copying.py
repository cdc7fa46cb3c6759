"""The yardstick: PostgreSQL's own COPY of the same rows, out of the table and into it again, indexes and all."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import asyncpg

from bench.ground import Ground

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

COLUMNS = """
    SELECT attname FROM pg_attribute
     WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
     ORDER BY attnum"""
NOBODY = 1_000_000_000
"""No company has so high a number; its rows are those that were copied in."""


class Copier:
    def __init__(self, db: Connection, file: Path) -> None:
        self._db = db
        self._file = file

    async def copy(self, table: str, company_id: int) -> tuple[float, float]:
        """Rows per second, of a company's rows into a file, and of the file into the table for nobody."""
        columns = [name for (name,) in await self._db.fetch(COLUMNS, table)]
        chosen = ", ".join(["$2::bigint", *columns[1:]])
        started = time.monotonic()
        await self._db.copy_from_query(
            f"SELECT {chosen} FROM {table} WHERE company_id = $1", company_id, NOBODY, output=self._file, format="csv"
        )
        written = time.monotonic()
        copied = await self._db.copy_to_table(table, source=self._file, columns=columns, format="csv")
        read = time.monotonic()
        await self._db.execute(f"DELETE FROM {table} WHERE company_id = $1", NOBODY)
        rows = int(copied.removeprefix("COPY "))
        return rows / (written - started), rows / (read - written)


@asynccontextmanager
async def open_copier(ground: Ground) -> AsyncIterator[Copier]:
    db = await asyncpg.connect(ground.server.owner_url)
    try:
        yield Copier(db, ground.folder / "copied.csv")
    finally:
        await db.close()
