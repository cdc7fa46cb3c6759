import pytest

from sapa.db import migrations
from sapa.db.migrations.files import FOLDER, list_migrations
from sapa.db.pool import Connection
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, scratch_database
from tests.house.catalogue import differences, read_catalogue
from tests.house.schema_rules import unlimited_migrations, unshardable, wrong_rights

SCHEMA = FOLDER.parent / "schema.sql"
APP = "sapa_app"


async def test_the_schema_file_is_what_the_migrations_give(installation: Installation, migrated: Scratch) -> None:
    async with (
        scratch_database(installation.server) as written,
        connect(written.owner_url) as second,
        connect(migrated.owner_url) as first,
    ):
        await second.execute(SCHEMA.read_text())
        assert await differences(first, second) == []


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE letters (company_id bigint PRIMARY KEY)",
        "DROP TABLE counter_cells",
        "ALTER TABLE customers ADD COLUMN note text",
        "ALTER TABLE customers ALTER COLUMN first_name SET NOT NULL",
        "ALTER TABLE customers ALTER COLUMN created_at TYPE timestamptz",
        "ALTER TABLE customers ALTER COLUMN created_at DROP DEFAULT",
        'ALTER TABLE customers ALTER COLUMN external_id TYPE text COLLATE pg_catalog."default"',
        "ALTER TABLE customers DROP CONSTRAINT customers_reachable_check",
        "ALTER TABLE api_keys DROP CONSTRAINT api_keys_rate_limit_check, "
        "ADD CONSTRAINT api_keys_rate_limit_check CHECK (rate_limit > 1)",
        "DROP INDEX customers_tags_idx",
        "CREATE INDEX letters_idx ON customers (company_id, image_url)",
        "DROP INDEX customers_email_key; CREATE INDEX customers_email_key ON customers (company_id, email_key)",
        "ALTER TABLE rate_windows SET LOGGED",
        "ALTER TABLE rate_windows SET (fillfactor = 60)",
        "DROP FUNCTION keep_day_partitions",
        "GRANT EXECUTE ON FUNCTION keep_day_partitions TO PUBLIC",
        "ALTER FUNCTION keep_day_partitions SECURITY INVOKER",
        "DROP EXTENSION pg_trgm CASCADE",
        "ALTER TABLE events DETACH PARTITION events_default",
    ],
)
async def test_a_difference_between_schema_and_migrations_is_seen(owner: Connection, change: str) -> None:
    before = await read_catalogue(owner)
    await owner.execute(change)
    assert await read_catalogue(owner) != before


async def test_a_companys_tables_can_be_spread_over_machines(owner: Connection) -> None:
    assert await unshardable(owner) == []


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("CREATE TABLE letters (id text PRIMARY KEY)", 2),
        ("CREATE TABLE letters (id text, company_id bigint, PRIMARY KEY (id, company_id))", 1),
        ("CREATE TABLE letters (company_id bigint, id text)", 1),
        ("CREATE UNIQUE INDEX odd ON customers (external_id)", 1),
        ("CREATE UNIQUE INDEX odd ON customers (lower(email))", 1),
        ("ALTER TABLE customers ADD CONSTRAINT odd UNIQUE (id)", 1),
        ("ALTER TABLE customers ADD CONSTRAINT odd FOREIGN KEY (company_id) REFERENCES companies (company_id)", 1),
        (
            "CREATE TABLE letters (company_id bigint, id text, customer_id text, PRIMARY KEY (company_id, id),"
            " CONSTRAINT odd FOREIGN KEY (customer_id, company_id) REFERENCES customers (id, company_id))",
            1,
        ),
        (
            "CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER odd AFTER INSERT ON customers FOR EACH ROW EXECUTE FUNCTION odd()",
            1,
        ),
    ],
)
async def test_what_ties_companies_together_is_seen(owner: Connection, change: str, seen: int) -> None:
    await owner.execute(change)
    assert len(await unshardable(owner)) == seen


async def test_the_products_role_has_exactly_the_granted_rights(owner: Connection) -> None:
    assert await wrong_rights(owner, APP, migrations.GRANTS) == []


async def test_new_partitions_give_no_rights_either(owner: Connection) -> None:
    await owner.execute("SELECT keep_day_partitions('events', 20, 30)")
    assert await wrong_rights(owner, APP, migrations.GRANTS) == []


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (f"GRANT UPDATE ON events TO {APP}", 1),
        (f"REVOKE INSERT ON customers FROM {APP}", 1),
        (f"GRANT SELECT ON events_default TO {APP}", 2),
        ("GRANT SELECT ON events_default TO PUBLIC", 2),
        (f"GRANT UPDATE (body) ON events TO {APP}", 1),
        (f"REVOKE EXECUTE ON FUNCTION keep_day_partitions FROM {APP}", 1),
        ("CREATE FUNCTION odd() RETURNS int LANGUAGE sql AS 'SELECT 1'", 1),
        (f"GRANT CREATE ON SCHEMA public TO {APP}", 1),
        (f"ALTER DEFAULT PRIVILEGES GRANT UPDATE ON TABLES TO {APP}; SELECT keep_day_partitions('events', 8, 30)", 2),
    ],
)
async def test_another_right_is_seen(owner: Connection, change: str, seen: int) -> None:
    await owner.execute(change)
    assert len(await wrong_rights(owner, APP, migrations.GRANTS)) == seen


def test_every_migration_starts_with_a_lock_time_out() -> None:
    texts = {migration.name: migration.text for migration in list_migrations() if migration.step == "transaction"}
    assert texts
    assert unlimited_migrations(texts) == []


def test_a_migration_that_may_wait_for_ever_is_seen() -> None:
    texts = {
        "none": "ALTER TABLE customers ADD note text;",
        "late": "ALTER TABLE customers ADD note text;\nSET LOCAL lock_timeout = '5s';",
        "commented": "-- SET LOCAL lock_timeout = '5s';\nALTER TABLE customers ADD note text;",
        "session": "SET lock_timeout = '5s';",
        "good": "-- Notes.\n\nSET LOCAL lock_timeout = '5s';\nALTER TABLE customers ADD note text;",
    }
    assert len(unlimited_migrations(texts)) == 4
