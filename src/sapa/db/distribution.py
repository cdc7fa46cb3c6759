"""Spreads the companies' tables over the machines of a Citus cluster.

Every connection goes to the coordinator, which holds the directory and the counters of calls. A company's rows are on
one machine, because all of these tables are distributed by `company_id` in the same way.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from graphlib import TopologicalSorter

from sapa.db.connection import Connection, connect
from sapa.db.migrations.files import MigrationRefused
from sapa.db.migrations.steps import Report

REFERENCE_TABLES = frozenset({"companies", "developer_tokens"})
"""Directory tables that statements read together with a company's tables: each machine has a copy."""

LOCAL_TABLES = frozenset({
    "organisations", "api_keys", "leases", "secret_rotations", "schema_migrations", "backup_runs", "areas",
    "area_arrivals", "area_datasets", "area_words", "area_spellings", "message_rates", "users", "memberships",
    "sessions", "known_browsers", "one_time_links", "sign_in_attempts", "audit_entries",
    "rate_windows", "upload_windows", "widget_windows", "channel_paces", "sandbox_paces",
})  # fmt: skip
"""Tables that stay on the coordinator: the rest of the directory, and what counts calls in short windows."""

DEFAULT_SHARDS = 32

_EXTENSIONS = ("pg_trgm", "btree_gin")
_FUNCTIONS = ("complete_line_items(json, text)",)
"""What statements on a company's tables call: each machine needs it."""
_FIRST = "counter_cells"
"""The other tables are distributed like this one."""
_LOCK = 0x5A9D
"""The server finishes the table that an interrupted run had begun: the next run waits for that."""

# A transaction may change the companies and then rows of many of them, over one connection to each machine.
SETTINGS = """
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET citus.multi_shard_modify_mode = sequential', current_database());
    END $$"""

_TABLES = """
    SELECT c.relname::text
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"""

_FOREIGN_KEYS = """
    SELECT conrelid::regclass::text, confrelid::regclass::text
      FROM pg_constraint
     WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conparentid = 0 AND conrelid <> confrelid"""

# A reference table has no distribution column, and neither has a table that Citus only knows.
_DISTRIBUTED = "SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't'"

_LAST_NUMBERS = "SELECT sequencename::text, last_value FROM pg_sequences WHERE schemaname = 'public'"

# Who inserts into a table may take its next number. PostgreSQL does not ask for that; Citus does.
_GRANT_NUMBERS = """
    SELECT DISTINCT format('GRANT USAGE ON SEQUENCE %s TO %s', s.oid::regclass, acl.grantee::regrole)
      FROM pg_depend d
      JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
      JOIN pg_class t ON t.oid = d.refobjid
     CROSS JOIN aclexplode(t.relacl) AS acl
     WHERE d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND t.relnamespace = 'public'::regnamespace
       AND acl.privilege_type = 'INSERT' AND acl.grantee NOT IN (0, t.relowner)"""


async def distribute(owner_url: str, shards: int, report: Report) -> list[str]:
    """Distributes the tables that are not distributed yet, and returns their names.

    One after the other, each in a transaction of its own: a second run goes on where the first one ended.
    """
    connection = await connect(owner_url, timeout=10)
    try:
        await _refuse_unfit(connection)
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        await connection.execute(SETTINGS)
        for extension in _EXTENSIONS:
            await connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")  # the workers get it, too
        for function in _FUNCTIONS:
            await connection.execute("SELECT create_distributed_function($1::text::regprocedure)", function)
        pending = await _list_pending(connection)
        for place, table in enumerate(pending, start=1):
            async with connection.transaction(), _preserve_numbers(connection):
                await _distribute_table(connection, table, shards)
            report(f"distributed {table}, {place} of {len(pending)}")
        for table in await _list_distributed(connection):
            await connection.execute("SELECT truncate_local_data_after_distributing_table($1::text::regclass)", table)
        for (grant,) in await connection.fetch(_GRANT_NUMBERS):
            await connection.execute(grant)
        return pending
    finally:
        await connection.close()


async def _refuse_unfit(connection: Connection) -> None:
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        raise MigrationRefused(
            "The database has no Citus. Load it with shared_preload_libraries = 'citus' on every machine and run "
            "CREATE EXTENSION citus there, in this database."
        )
    if await connection.fetchval("SELECT to_regclass($1::text) IS NULL", _FIRST):
        raise MigrationRefused("The database has no tables of Sapa. Run `sapa migrate` first.")
    groups = {row[0] for row in await connection.fetch("SELECT groupid FROM pg_dist_node WHERE isactive")}
    if 0 not in groups:
        raise MigrationRefused("The cluster has no coordinator. Run SELECT citus_set_coordinator_host('…') in it.")
    if groups == {0}:
        raise MigrationRefused("The cluster has no workers. Run SELECT citus_add_node('…', 5432) for each of them.")


async def _list_pending(connection: Connection) -> list[str]:
    """A table after those that its foreign keys point to."""
    tables = {row[0] for row in await connection.fetch(_TABLES)} - LOCAL_TABLES
    targets: dict[str, set[str]] = {table: set() for table in tables}
    for table, target in await connection.fetch(_FOREIGN_KEYS):
        if table in tables and target in tables:
            targets[table].add(target)
    for table in tables - REFERENCE_TABLES - {_FIRST}:
        targets[table].add(_FIRST)
    done = await _list_distributed(connection)
    return [table for table in TopologicalSorter(targets).static_order() if table not in done]


async def _list_distributed(connection: Connection) -> set[str]:
    return {row[0] for row in await connection.fetch(_DISTRIBUTED)}


@asynccontextmanager
async def _preserve_numbers(connection: Connection) -> AsyncIterator[None]:
    """Restores the sequences of the directory's tables: Citus recreates these tables when it distributes `companies`,
    and their sequences start at 1 again."""
    before = {row["sequencename"]: row["last_value"] for row in await connection.fetch(_LAST_NUMBERS)}
    yield
    for name, last in await connection.fetch(_LAST_NUMBERS):
        if last != before[name]:
            await connection.execute("SELECT setval($1::text::regclass, $2::bigint)", name, before[name])


async def _distribute_table(connection: Connection, table: str, shards: int) -> None:
    if table in REFERENCE_TABLES:
        await connection.execute("SELECT create_reference_table($1::text::regclass)", table)
    elif table == _FIRST:
        await connection.execute(
            "SELECT create_distributed_table($1::text::regclass, 'company_id', shard_count => $2::int)", table, shards
        )
    else:
        await connection.execute(
            "SELECT create_distributed_table($1::text::regclass, 'company_id', colocate_with => $2::text)",
            table,
            _FIRST,
        )
