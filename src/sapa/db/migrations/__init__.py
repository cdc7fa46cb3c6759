"""Migrations: numbered SQL files, applied in order and once, by the first process that starts."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

import asyncpg
from msgspec import Struct

from sapa.db.connection import Connection, connect

FOLDER = Path(__file__).parent
GRANTS = FOLDER.parent / "grants.sql"
OLDEST_POSTGRESQL = 15
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql").fullmatch
_RUNS_WITH = re.compile(r"^-- runs with code since: (\d{4})$", re.MULTILINE).search
_LOCK = 0x5A9A  # any number that nothing else in the database takes an advisory lock on
_WAIT_MILLISECONDS = 60_000

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


class MigrationRefused(Exception):
    """This version of Sapa cannot run on the database; the text says why."""


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str

    @property
    def runs_with_code_since(self) -> int:
        """The oldest version, named by its newest migration, whose code still runs once this one is applied."""
        found = _RUNS_WITH(self.text)
        return int(found[1]) if found else self.number

    @property
    def checksum(self) -> str:
        return sha256(self.text.encode()).hexdigest()


@cache
def list_migrations(folder: Path = FOLDER) -> list[Migration]:
    """All migrations of this version, in order and without gaps."""
    files = sorted(path for path in folder.iterdir() if _NAME(path.name))
    migrations = [Migration(int(path.name[:4]), path.stem, path.read_text()) for path in files]
    if [migration.number for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise MigrationRefused("The migrations are not numbered 1, 2, 3 … without gaps.")
    for migration in migrations:
        if not 1 <= migration.runs_with_code_since <= migration.number:
            raise MigrationRefused(f"Migration {migration.name} names a version that is not between 1 and its own.")
    return migrations


async def migrate(owner_url: str, app_url: str, folder: Path = FOLDER) -> list[str]:
    """Brings the schema up to date and grants the product its rights; returns what was applied.

    A database of a newer version that this one's code still runs on is left as it is.
    """
    migrations = list_migrations(folder)
    connection = await connect(owner_url, timeout=10)
    try:
        await _refuse_unfit(connection)
        await connection.execute(f"SET lock_timeout = {_WAIT_MILLISECONDS}")
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        await connection.execute(_HISTORY)
        done = await _list_applied(connection)
        _refuse_mismatch(migrations, done)
        if done and max(done) > len(migrations):
            return []
        applied = await _apply(connection, [migration for migration in migrations if migration.number not in done])
        await _grant(connection, await _role_of(app_url))
        return applied
    finally:
        await connection.close()


async def migrate_to(owner_url: str, number: int) -> None:
    """Makes the tables of an earlier version in a database that has none; `migrate` goes on from there."""
    connection = await connect(owner_url, timeout=10)
    try:
        await _refuse_unfit(connection)
        await connection.execute(_HISTORY)
        if not await _list_applied(connection):
            await _apply(connection, list_migrations()[:number])
    finally:
        await connection.close()


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


async def _apply(connection: Connection, pending: list[Migration]) -> list[str]:
    for migration in pending:
        async with connection.transaction():
            await connection.execute(migration.text)
            await connection.execute(
                "INSERT INTO schema_migrations (number, name, checksum, runs_with_code_since) VALUES ($1, $2, $3, $4)",
                migration.number, migration.name, migration.checksum, migration.runs_with_code_since,
            )  # fmt: skip
    return [migration.name for migration in pending]


async def _role_of(url: str) -> str:
    """The role that an address logs in as, which need not be written in it."""
    connection = await connect(url, timeout=10)
    try:
        return str(await connection.fetchval("SELECT current_user"))
    finally:
        await connection.close()


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
