"""Rules about the schema, each a plain function that lists what breaks it."""

import re
from pathlib import Path

import asyncpg

from sapa.db.pool import Connection

DIRECTORY = {
    "organisations", "companies", "api_keys", "developer_tokens", "leases", "secret_rotations", "schema_migrations",
    "backup_runs",
    "areas", "area_arrivals", "area_datasets", "area_words", "area_spellings",
    "message_rates",
    "users", "memberships", "sessions", "known_browsers", "one_time_links", "sign_in_attempts", "audit_entries",
}  # fmt: skip
"""Few, small tables that belong to no company. All others do."""

_TABLES = """
    SELECT c.relname AS name, c.oid,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'company_id') AS has_company
      FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')"""

_UNIQUE_INDEXES = """
    SELECT i.indexrelid::regclass::text AS name, i.indrelid AS table, i.indisprimary AS is_primary,
           (SELECT attname FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0]) AS first
      FROM pg_index i
     WHERE i.indisunique"""

_FOREIGN_KEYS = """
    SELECT k.conname AS name, k.conrelid AS table, k.confrelid::regclass::text AS target,
           (SELECT attname FROM pg_attribute WHERE attrelid = k.conrelid AND attnum = k.conkey[1]) AS first,
           (SELECT attname FROM pg_attribute WHERE attrelid = k.confrelid AND attnum = k.confkey[1]) AS target_first
      FROM pg_constraint k
     WHERE k.contype = 'f'"""

_TRIGGERS = "SELECT tgname AS name, tgrelid AS table FROM pg_trigger WHERE NOT tgisinternal"


async def unshardable(db: Connection) -> list[str]:
    """What would keep a company's tables from being spread over machines by company."""
    tables = {row["oid"]: row for row in await db.fetch(_TABLES) if row["name"] not in DIRECTORY}
    indexes = [row for row in await db.fetch(_UNIQUE_INDEXES) if row["table"] in tables]
    keyed = {row["table"] for row in indexes if row["is_primary"]}
    found = [f"table {row['name']} has no company_id" for row in tables.values() if not row["has_company"]]
    found += [f"table {row['name']} has no primary key" for oid, row in tables.items() if oid not in keyed]
    found += [f"index {row['name']} does not start with company_id" for row in indexes if row["first"] != "company_id"]
    for row in await db.fetch(_FOREIGN_KEYS):
        if row["table"] in tables:
            found += _foreign_key(row)
    triggers = [row for row in await db.fetch(_TRIGGERS) if row["table"] in tables]
    return sorted(found + [f"trigger {row['name']} on a company's table" for row in triggers])


def _foreign_key(key: asyncpg.Record) -> list[str]:
    if key["target"] in DIRECTORY:
        return [f"foreign key {key['name']} points into the directory"]
    if (key["first"], key["target_first"]) != ("company_id", "company_id"):
        return [f"foreign key {key['name']} does not start with company_id"]
    return []


_TABLE_RIGHTS = """
    SELECT c.relname AS name, c.relispartition AS is_partition, a.privilege_type AS right
      FROM pg_class c, aclexplode(c.relacl) a
     WHERE c.relnamespace = 'public'::regnamespace AND a.grantee IN (0, $1::regrole)"""

_COLUMN_RIGHTS = """
    SELECT attrelid::regclass::text || '.' || attname AS name, a.privilege_type AS right
      FROM pg_attribute, aclexplode(attacl) a
     WHERE a.grantee IN (0, $1::regrole) AND attrelid IN (
           SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)"""

_FUNCTION_RIGHTS = """
    SELECT p.oid::regprocedure::text AS name
      FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace AND has_function_privilege($1::regrole, p.oid, 'EXECUTE')
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"""

_ROLE = """
    SELECT (SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls FROM pg_roles WHERE oid = $1::regrole)
             AS is_powerful,
           EXISTS (SELECT FROM pg_auth_members WHERE member = $1::regrole) AS is_member,
           has_schema_privilege($1::regrole, 'public', 'CREATE') AS may_create,
           (SELECT count(*) FROM pg_class WHERE relowner = $1::regrole) AS owned"""

Rights = set[tuple[str, str]]


def parse_grants(path: Path) -> tuple[Rights, set[str]]:
    """The rights on tables, and the functions, that grants.sql gives the product's role."""
    text = path.read_text()
    tables = {
        (table, right.strip())
        for rights, table in re.findall(r"^GRANT ([A-Z, ]+) ON (\w+) TO {app};", text, re.MULTILINE)
        for right in rights.split(",")
    }
    return tables, set(re.findall(r"^GRANT EXECUTE ON FUNCTION ([^;]+) TO {app};", text, re.MULTILINE))


async def wrong_rights(db: Connection, role: str, grants: Path) -> list[str]:
    """Where the role may do other than grants.sql says, everybody's rights counted in."""
    tables, functions = parse_grants(grants)
    rows = await db.fetch(_TABLE_RIGHTS, role)
    has = {(row["name"], row["right"]) for row in rows}
    found = [f"{role} may {right} {table}, which is not granted" for table, right in has - tables]
    found += [f"{role} may not {right} {table}" for table, right in tables - has]
    found += [f"{role} has rights on the partition {row['name']}" for row in rows if row["is_partition"]]
    found += [f"{role} has rights on the column {row['name']}" for row in await db.fetch(_COLUMN_RIGHTS, role)]
    may_call = {row["name"] for row in await db.fetch(_FUNCTION_RIGHTS, role)}
    found += [f"{role} differs in {name}" for name in may_call ^ {name.replace(", ", ",") for name in functions}]
    return sorted(found + await _wrong_role(db, role))


async def _wrong_role(db: Connection, role: str) -> list[str]:
    row = await db.fetchrow(_ROLE, role)
    assert row is not None
    return [f"{role}: {name}" for name, value in row.items() if value]


_LOCK_TIMEOUT = re.compile(r"(?:--[^\n]*\n|\s)*SET LOCAL lock_timeout = '\d+m?s';")


def unlimited_migrations(texts: dict[str, str]) -> list[str]:
    """Migrations that could wait for ever for a lock, and make everybody else wait behind them."""
    return [
        f"{name} does not start with a lock time-out" for name, text in texts.items() if not _LOCK_TIMEOUT.match(text)
    ]
