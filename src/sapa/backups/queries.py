"""Reads all rows of all tables, and writes them into an empty database. Runs as the tables' owner."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct

from sapa.backups.types import (
    AppliedChecksum,
    BackupRun,
    BackupState,
    BackupTable,
    SequenceValue,
    TableContent,
    TablePartition,
)
from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql

RUN_DAYS = 90
"""How long it is remembered that a backup was made."""

_ALL = "a backup has the rows of every company"


class StoredTable(Struct, frozen=True):
    """A table with the columns that are stored, not computed."""

    name: str
    columns: list[str]


class Constraint(Struct, frozen=True):
    """What is dropped while rows are loaded, and made again after it: faster, and in no order of tables."""

    drop: str
    create: str


# Unlogged tables hold the current minute's counts and other things that a crash may lose.
LIST_TABLES = sql(
    """
    SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.relpersistence = 'p' AND c.relname NOT IN ('schema_migrations', 'schema_migrations_progress')
     GROUP BY c.relname
     ORDER BY c.relname""",
    row=StoredTable,
    crosses=_ALL,
)

LIST_PARTITIONS = sql(
    """
    SELECT p.relname::text AS parent, c.relname::text AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
      JOIN pg_class p ON p.oid = i.inhparent
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
     ORDER BY c.relname""",
    row=TablePartition,
    crosses=_ALL,
)

LIST_SEQUENCES = sql(
    """
    SELECT sequencename::text AS name, last_value AS value
      FROM pg_sequences
     WHERE schemaname = 'public' AND last_value IS NOT NULL
     ORDER BY sequencename""",
    row=SequenceValue,
    crosses=_ALL,
)

LIST_MIGRATIONS = sql(
    "SELECT number, checksum FROM schema_migrations ORDER BY number", row=AppliedChecksum, crosses=_ALL
)

GET_VERSION = sql("SELECT current_setting('server_version')", crosses=_ALL)

COUNT_FILES_IN_BUCKET = sql("SELECT count(*) FROM files WHERE storage = 'bucket'", crosses=_ALL)

# Those of partitioned tables stay: they are made on every partition, which DROP and CREATE would not restore alike.
LIST_FOREIGN_KEYS = sql(
    """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname) AS drop,
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid))
           AS create
      FROM pg_constraint k
     WHERE k.contype = 'f' AND k.conparentid = 0 AND k.connamespace = 'public'::regnamespace
     ORDER BY k.conrelid::regclass::text, k.conname""",
    row=Constraint,
    crosses=_ALL,
)

LIST_INDEXES = sql(
    """
    SELECT format('DROP INDEX %s', i.indexrelid::regclass) AS drop, pg_get_indexdef(i.indexrelid) AS create
      FROM pg_index i
      JOIN pg_class t ON t.oid = i.indrelid AND t.relkind = 'r' AND NOT t.relispartition
     WHERE t.relnamespace = 'public'::regnamespace AND NOT i.indisreplident AND NOT i.indisclustered
       AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
     ORDER BY i.indexrelid::regclass::text""",
    row=Constraint,
    crosses=_ALL,
)

SET_SEQUENCE = sql("SELECT setval(format('public.%I', $1::text)::regclass, $2)", crosses=_ALL)

_RUN = "number, started_at, finished_at, status, place, rows, bytes, error"

START_RUN = sql("INSERT INTO backup_runs (place) VALUES ($1) RETURNING number", crosses=_ALL)

FINISH_RUN = sql(
    """
    UPDATE backup_runs
       SET finished_at = now(), status = CASE WHEN $4::text IS NULL THEN 'done' ELSE 'failed' END,
           rows = $2, bytes = $3, error = $4
     WHERE number = $1""",
    crosses=_ALL,
)

INSERT_FAILED = sql(
    "INSERT INTO backup_runs (place, finished_at, status, error) VALUES ($1, now(), 'failed', $2)", crosses=_ALL
)

PURGE_RUNS = sql(f"DELETE FROM backup_runs WHERE started_at < now() - interval '{RUN_DAYS} days'", crosses=_ALL)

FIND_NEWEST = sql(
    f"SELECT {_RUN} FROM backup_runs WHERE status = 'done' ORDER BY number DESC LIMIT 1", row=BackupRun, crosses=_ALL
)

FIND_LAST = sql(
    f"SELECT {_RUN} FROM backup_runs WHERE status <> 'running' ORDER BY number DESC LIMIT 1",
    row=BackupRun,
    crosses=_ALL,
)

GET_AGES = sql(
    """
    SELECT extract(epoch FROM now() - max(started_at) FILTER (WHERE status = 'done'))::float8,
           extract(epoch FROM now() - max(started_at) FILTER (WHERE status <> 'running'))::float8
      FROM backup_runs""",
    crosses=_ALL,
)

# The number of a transaction, which an endpoint that catches up waits for, is another server's: it begins again.
RESTART_CATCH_UPS = sql("UPDATE webhook_endpoints SET progress = NULL WHERE progress IS NOT NULL", crosses=_ALL)


async def list_tables(db: Connection) -> list[StoredTable]:
    return await LIST_TABLES.all(db)


async def list_partitions(db: Connection) -> list[TablePartition]:
    return await LIST_PARTITIONS.all(db)


async def list_sequences(db: Connection) -> list[SequenceValue]:
    return await LIST_SEQUENCES.all(db)


async def list_migrations(db: Connection) -> list[AppliedChecksum]:
    return await LIST_MIGRATIONS.all(db)


async def get_version(db: Connection) -> str:
    """That of the server."""
    return str(await GET_VERSION.value(db))


async def count_files_in_bucket(db: Connection, tables: Sequence[str]) -> int:
    """Earlier versions had no files."""
    return int(await COUNT_FILES_IN_BUCKET.value(db)) if "files" in tables else 0


async def get_content(db: Connection, table: str, columns: Sequence[str]) -> TableContent:
    """The sum of the rows' hashes does not depend on their order, which a restore does not keep."""
    text = f"SELECT count(*), coalesce(sum(hashtextextended(ROW({_quote(columns)})::text, 0)), 0)::text"
    row = await db.fetchrow(f"{text} FROM {_quote([table])}")
    assert row is not None  # noqa: S101 - an aggregate
    return TableContent(*row)


async def is_empty(db: Connection, table: str) -> bool:
    text = f"SELECT NOT EXISTS (SELECT FROM {_quote([table])})"
    return bool(await db.fetchval(text))


async def read_rows(
    db: Connection, table: str, columns: Sequence[str], write: Callable[[bytes], Coroutine[Any, Any, None]]
) -> None:
    """As lines of COPY. A partitioned table can only be copied as a query."""
    await db.copy_from_query(f"SELECT {_quote(columns)} FROM {_quote([table])}", output=write)


async def write_rows(tx: Tx, table: BackupTable, lines: AsyncIterator[bytes]) -> None:
    await tx.copy_to_table(table.name, source=lines, columns=table.columns)


async def create_partition(tx: Tx, partition: TablePartition) -> None:
    child, parent = _quote([partition.name]), _quote([partition.parent])
    statement = f"CREATE TABLE IF NOT EXISTS {child} PARTITION OF {parent} {partition.bounds}"
    await tx.execute(statement)


async def drop_constraints(tx: Tx) -> list[Constraint]:
    """Drops foreign keys, and indexes that are not unique constraints; returns them in the order to make them in."""
    foreign_keys = await LIST_FOREIGN_KEYS.all(tx)
    indexes = await LIST_INDEXES.all(tx)
    for constraint in (*foreign_keys, *indexes):
        await tx.execute(constraint.drop)
    return [*indexes, *foreign_keys]


async def create_constraint(tx: Tx, constraint: Constraint) -> None:
    await tx.execute(constraint.create)


async def truncate(tx: Tx, tables: Sequence[str]) -> None:
    """What the migrations of an empty database inserted."""
    statement = f"TRUNCATE {_quote(tables)}"
    await tx.execute(statement)


async def analyze(db: Connection) -> None:
    """Lets the planner know the new rows."""
    await db.execute("ANALYZE")


async def set_sequence(tx: Tx, sequence: SequenceValue) -> None:
    await SET_SEQUENCE.value(tx, sequence.name, sequence.value)


async def restart_catch_ups(tx: Tx) -> None:
    await RESTART_CATCH_UPS.run(tx)


async def start_run(db: Connection, place: str) -> int:
    await PURGE_RUNS.run(db)
    return int(await START_RUN.value(db, place))


async def finish_run(db: Connection, number: int, rows: int, size: int, error: str | None) -> None:
    await FINISH_RUN.run(db, number, rows, size, error)


async def insert_failed(db: Connection, place: str, error: str) -> None:
    """A backup that could not even begin."""
    await INSERT_FAILED.run(db, place, error)


async def get_state(db: Connection) -> BackupState:
    ages = await db.fetchrow(GET_AGES.text) or (None, None)
    return BackupState(await FIND_NEWEST.find(db), await FIND_LAST.find(db), *ages)


def _quote(names: Sequence[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)
