"""Migrations: numbered SQL files, applied in order and once, by the first process that starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
from msgspec import Struct

from sapa.db.connection import Connection, connect
from sapa.db.migrations.files import FOLDER, Migration, MigrationRefused, list_migrations
from sapa.db.migrations.steps import Report, apply

GRANTS = FOLDER.parent / "grants.sql"
OLDEST_POSTGRESQL = 15
_LOCK = 0x5A9A  # any number that nothing else in the database takes an advisory lock on
_WAIT_MILLISECONDS = 60_000
_LOCK_PAUSE_SECONDS = 0.2
# The lock of a migration that was killed is free at once, not when its statement ends.
_NOTICE_DEATH = "SET client_connection_check_interval = '1s'"

BEHIND = "The database's schema is older than this version of Sapa. Run `sapa migrate`."
TOO_NEW = "This version of Sapa is too old for the database's schema. Start the newer version."

_HISTORY = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number      integer     NOT NULL,
        name        text        NOT NULL,
        checksum    text        NOT NULL,
        applied_at  timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT schema_migrations_pkey PRIMARY KEY (number)
    );
    ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS runs_with_code_since integer"""


def _say_nothing(_: str) -> None:
    pass


async def migrate(owner_url: str, app_url: str, folder: Path = FOLDER, report: Report = _say_nothing) -> list[str]:
    """Brings the schema up to date and grants the product its rights; returns what was applied.

    A database of a newer version that this one's code still runs on is left as it is.
    """
    migrations = list_migrations(folder)
    async with _open(owner_url) as connection:
        await _refuse_unfit(connection)
        await connection.execute(f"SET lock_timeout = {_WAIT_MILLISECONDS}")
        await connection.execute(_NOTICE_DEATH)
        await _lock(connection, report)
        await connection.execute(_HISTORY)
        done = await _list_applied(connection)
        _refuse_mismatch(migrations, done)
        if done and max(done) > len(migrations):
            return []
        pending = [migration for migration in migrations if migration.number not in done]
        for migration in pending:
            await apply(connection, migration, partial(_open, owner_url), report)
            report(f"applied {migration.name}")
        await _grant(connection, await _role_of(app_url))
        return [migration.name for migration in pending]


async def migrate_to(owner_url: str, number: int) -> None:
    """Makes the tables of an earlier version in a database that has none; `migrate` goes on from there."""
    async with _open(owner_url) as connection:
        await _refuse_unfit(connection)
        await connection.execute(_HISTORY)
        if not await _list_applied(connection):
            for migration in list_migrations()[:number]:
                await apply(connection, migration, partial(_open, owner_url), _say_nothing)


@asynccontextmanager
async def _open(url: str) -> AsyncIterator[Connection]:
    connection = await connect(url, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


async def _lock(connection: Connection, report: Report) -> None:
    """Asks again and again: a statement that waits would be a transaction that CREATE INDEX CONCURRENTLY waits for."""
    is_first = True
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
        if is_first:
            report("Another process is migrating; waiting for it.")
        is_first = False
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)


async def _refuse_unfit(connection: Connection) -> None:
    version = int(await connection.fetchval("SELECT current_setting('server_version_num')::int")) // 10_000
    if version < OLDEST_POSTGRESQL:
        raise MigrationRefused(f"PostgreSQL {version} is too old; use {OLDEST_POSTGRESQL} or newer.")
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise MigrationRefused(f"The database is encoded in {encoding}; create one with ENCODING 'UTF8'.")


class AppliedMigration(Struct, frozen=True):
    number: int
    checksum: str
    runs_with_code_since: int


async def _list_applied(connection: Connection) -> dict[int, AppliedMigration]:
    rows = await connection.fetch(
        "SELECT number, checksum, coalesce(runs_with_code_since, number) FROM schema_migrations ORDER BY number"
    )
    return {row[0]: AppliedMigration(*row) for row in rows}


def _refuse_mismatch(migrations: list[Migration], done: dict[int, AppliedMigration]) -> None:
    for migration in migrations:
        if migration.number in done and done[migration.number].checksum != migration.checksum:
            raise MigrationRefused(
                f"Migration {migration.name} was applied in another form. Migrations are history: "
                "restore the file and put the change into a new one."
            )
    if any(applied.runs_with_code_since > len(migrations) for applied in done.values()):
        raise MigrationRefused(
            f"The database is at migration {max(done)}, this version of Sapa knows {len(migrations)}: "
            "install the newer Sapa."
        )


async def _role_of(url: str) -> str:
    """The role that an address logs in as, which need not be written in it."""
    async with _open(url) as connection:
        return str(await connection.fetchval("SELECT current_user"))


async def _grant(connection: Connection, role: str) -> None:
    """Rights are granted table by table on each run, so that grants.sql is complete."""
    owner = await connection.fetchval("SELECT current_user")
    if role != owner:
        quoted = '"' + role.replace('"', '""') + '"'
        async with connection.transaction():
            await connection.execute(GRANTS.read_text().replace("{app}", quoted))


async def is_current(db: Connection) -> bool:
    """Whether every migration of this version was applied, and none that its code cannot run with."""
    return await find_mismatch(db) is None


async def find_mismatch(db: Connection) -> str | None:
    """What is wrong with the schema for this version, and what to do; None when this version runs on it."""
    try:
        row = await db.fetchrow(
            "SELECT max(number), max(coalesce(runs_with_code_since, number)) FROM schema_migrations"
        )
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InsufficientPrivilegeError):
        return BEHIND
    newest, oldest_code = row or (None, None)
    own = len(list_migrations())
    if newest is None or oldest_code is None or newest < own:
        return BEHIND
    return TOO_NEW if oldest_code > own else None


async def is_writable(db: Connection) -> bool:
    """Whether this is a primary: a replica serves only reads, and every API call writes."""
    return not await db.fetchval("SELECT current_setting('transaction_read_only')::bool")
