"""How a migration is applied. A step that is interrupted goes on where it stopped when it is applied again."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import asyncpg

from sapa.db.connection import Connection
from sapa.db.migrations.files import BATCH, Migration

Report = Callable[[str], None]
"""Is given one line at a time about what is under way."""
OpenConnection = Callable[[], AbstractAsyncContextManager[Connection]]

BATCH_ROWS = 1_000
LOCK_SECONDS = 60.0
"""How long a step tries to get locks that others hold; each try has the migration's own, shorter limit."""
_LOCK_PAUSE_SECONDS = 0.5
_BATCH_LOCK_LIMIT = "SET LOCAL lock_timeout = '1s'"
_REPORT_SECONDS = 2.0
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)

_MADE_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+) ").match

_IS_INVALID = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"

_INDEX_PROGRESS = """
    SELECT phase, 100 * CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END
                      / greatest(tuples_total, blocks_total, 1) AS percent
      FROM pg_stat_progress_create_index
     WHERE pid = $1"""

_PROGRESS = """
    CREATE TABLE IF NOT EXISTS schema_migrations_progress (
        number    integer NOT NULL,
        position  text[]  NOT NULL,
        rows      bigint  NOT NULL,
        CONSTRAINT schema_migrations_progress_pkey PRIMARY KEY (number)
    )"""

_STORE_PROGRESS = """
    INSERT INTO schema_migrations_progress AS p (number, position, rows)
    VALUES ($1, $2, $3)
        ON CONFLICT (number) DO UPDATE SET position = excluded.position, rows = excluded.rows"""

_KEY = """
    SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type
      FROM pg_index i
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
     WHERE i.indrelid = $1::regclass AND i.indisprimary
     ORDER BY array_position(i.indkey::smallint[], a.attnum)"""

_ROWS = """
    SELECT sum(greatest(reltuples, 0))::bigint
      FROM pg_class
     WHERE relkind = 'r' AND (oid = $1::regclass OR oid IN (SELECT relid FROM pg_partition_tree($1::regclass)))"""


async def apply(connection: Connection, migration: Migration, open_observer: OpenConnection, report: Report) -> None:
    """The row in `schema_migrations` comes last, so that no process takes half a migration for a whole one."""
    if migration.step == "batches":
        await _apply_in_batches(connection, migration, report)
    elif migration.step == "concurrently":
        await _apply_concurrently(connection, migration, open_observer, report)
    else:
        await _retry_locked(lambda: _apply_at_once(connection, migration), migration, report)


async def _retry_locked(work: Callable[[], Awaitable[None]], migration: Migration, report: Report) -> None:
    """Each try waits for locks only as long as the migration allows, because everybody else waits behind it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return await work()
        except _BUSY:
            if time.monotonic() > deadline:
                raise
            report(f"{migration.name}: waits for locks that others hold")
            await asyncio.sleep(_LOCK_PAUSE_SECONDS)


async def _apply_at_once(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.text)
        await _record(connection, migration)


async def _apply_concurrently(
    connection: Connection, migration: Migration, open_observer: OpenConnection, report: Report
) -> None:
    """Without a limit on locks: these statements wait for transactions of before, and nobody waits for them."""
    limit = await connection.fetchval("SHOW lock_timeout")
    await connection.execute("SET lock_timeout = 0")
    async with open_observer() as observer:
        for statement in migration.statements:
            await _drop_unfinished(connection, statement)
            reporting = asyncio.create_task(_report_index(observer, connection.get_server_pid(), migration, report))
            try:
                await connection.execute(statement)
            finally:
                reporting.cancel()
                await asyncio.gather(reporting, return_exceptions=True)
    await _record(connection, migration)
    await connection.execute(f"SET lock_timeout = '{limit}'")


async def _drop_unfinished(connection: Connection, statement: str) -> None:
    """An index whose making was interrupted stays in the table, and nothing uses it."""
    found = _MADE_INDEX(statement)
    if found and await connection.fetchval(_IS_INVALID, found[1]):
        await connection.execute(f"DROP INDEX CONCURRENTLY {found[1]}")


async def _report_index(observer: Connection, pid: int, migration: Migration, report: Report) -> None:
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        if row := await observer.fetchrow(_INDEX_PROGRESS, pid):
            report(f"{migration.name}: {row['phase']}, {row['percent']} %")


async def _apply_in_batches(connection: Connection, migration: Migration, report: Report) -> None:
    """Each batch commits together with its position."""
    await connection.execute(_PROGRESS)
    batches = TableBatches(connection, migration, await connection.fetch(_KEY, migration.over))
    total = await connection.fetchval(_ROWS, migration.over) or 0
    await batches.resume()
    reported = time.monotonic()
    while not batches.is_finished:
        await _retry_locked(batches.apply_next, migration, report)
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            report(f"{migration.name}: {batches.rows:,} of about {max(total, batches.rows):,} rows")
    async with connection.transaction():
        await connection.execute("DROP TABLE schema_migrations_progress")
        await _record(connection, migration)


class TableBatches:
    """Runs a migration over the rows of a table in batches, in the order of its primary key."""

    def __init__(self, connection: Connection, migration: Migration, key: list[asyncpg.Record]) -> None:
        self._connection = connection
        self._migration = migration
        self._types = [column["type"] for column in key]
        self._names = [f"{migration.over}.{column['name']}" for column in key]
        self._position: list[str] | None = None
        self.rows = 0
        self.is_finished = False

    async def resume(self) -> None:
        stored = await self._connection.fetchrow(
            "SELECT position, rows FROM schema_migrations_progress WHERE number = $1", self._migration.number
        )
        if stored is not None:
            self._position, self.rows = stored

    async def apply_next(self) -> None:
        position = self._position or []
        after = self._compare(">", 1) if position else "true"
        columns = ", ".join(f"{name}::text" for name in self._names)
        order = ", ".join(self._names)
        found = await self._connection.fetch(
            f"SELECT {columns} FROM {self._migration.over} WHERE {after} ORDER BY {order} LIMIT {BATCH_ROWS}", *position
        )
        if not found:
            self.is_finished = True
            return
        last = list(found[-1])
        batch = f"{after} AND {self._compare('<=', len(position) + 1)}"
        async with self._connection.transaction():
            await self._connection.execute(_BATCH_LOCK_LIMIT)
            await self._connection.execute(self._migration.statements[0].replace(BATCH, batch), *position, *last)
            await self._connection.execute(_STORE_PROGRESS, self._migration.number, last, self.rows + len(found))
        self._position, self.rows = last, self.rows + len(found)

    def _compare(self, operator: str, first: int) -> str:
        values = [f"${first + index}::text::{type}" for index, type in enumerate(self._types)]
        return f"({', '.join(self._names)}) {operator} ({', '.join(values)})"


async def _record(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO schema_migrations (number, name, checksum, runs_with_code_since) VALUES ($1, $2, $3, $4)",
        migration.number, migration.name, migration.checksum, migration.runs_with_code_since,
    )  # fmt: skip
