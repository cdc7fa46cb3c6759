import pytest

from sapa.db.migrations.files import Migration, list_migrations
from tests.house.frozen_migrations import list_changed, read_frozen
from tests.house.lock_rules import FIRST, list_long_locks

LIMIT = "-- runs with code since: 0001\nSET LOCAL lock_timeout = '1s';\n"
CONTRACTION = "SET LOCAL lock_timeout = '500ms';\n"
CONCURRENTLY = "-- step: concurrently\n"
BATCHES = "-- step: batches\n-- over: orders\n"


def build(text: str) -> Migration:
    return Migration(99, "0099_planted", text)


def test_released_migrations_are_as_they_were() -> None:
    frozen = read_frozen()
    assert frozen
    assert list_changed(list_migrations(), frozen) == []


def test_a_changed_migration_is_seen() -> None:
    first, second = build("SELECT 1;"), Migration(98, "0098_planted", "SELECT 2;")
    frozen = {first.name: first.checksum, second.name: second.checksum}
    assert list_changed([first, second, build("SELECT 3;")], frozen) == ["0099_planted was changed or removed"]
    assert list_changed([first], frozen) == ["0098_planted was changed or removed"]


def test_new_migrations_stop_nobody() -> None:
    new = [migration for migration in list_migrations() if migration.number >= FIRST]
    assert [reason for migration in new for reason in list_long_locks(migration)] == []


@pytest.mark.parametrize(
    "text",
    [
        "SET LOCAL lock_timeout = '5s';\nALTER TABLE orders ADD COLUMN note text;",
        "ALTER TABLE orders ADD COLUMN note text;",
        LIMIT + "ALTER TABLE orders ADD COLUMN note text NOT NULL;",
        LIMIT + "ALTER TABLE orders ADD COLUMN at timestamptz DEFAULT clock_timestamp();",
        LIMIT + "ALTER TABLE orders ADD COLUMN twice int GENERATED ALWAYS AS (units * 2) STORED;",
        LIMIT + "ALTER TABLE orders ADD COLUMN units int CHECK (units > 0);",
        LIMIT + "ALTER TABLE orders ALTER COLUMN note SET NOT NULL;",
        LIMIT + "ALTER TABLE orders ALTER COLUMN units TYPE bigint;",
        LIMIT + "ALTER TABLE orders ADD CONSTRAINT orders_units_check CHECK (units > 0);",
        LIMIT + "ALTER TABLE orders ADD CONSTRAINT orders_units_key UNIQUE (company_id, units);",
        LIMIT + "ALTER TABLE orders VALIDATE CONSTRAINT orders_units_check;",
        LIMIT + "ALTER TABLE orders SET LOGGED;",
        LIMIT + "ALTER TABLE orders DROP COLUMN note;",
        LIMIT + "ALTER TABLE orders RENAME COLUMN note TO remark;",
        LIMIT + "DROP TABLE orders;",
        LIMIT + "DROP INDEX orders_note_idx;",
        CONTRACTION + "DROP INDEX orders_note_idx;",
        LIMIT + "CREATE INDEX orders_note_idx ON orders (company_id, note);",
        LIMIT + "UPDATE orders SET note = '';",
        LIMIT + "INSERT INTO orders SELECT 1;",
        LIMIT + "SELECT count(*) FROM orders;",
        LIMIT + "DO $$ BEGIN UPDATE orders SET note = ''; END $$;",
        LIMIT + "TRUNCATE orders;",
        LIMIT + "LOCK TABLE orders;",
        LIMIT + "CLUSTER orders;",
        LIMIT + "CREATE TRIGGER odd AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION odd();",
        CONCURRENTLY + "CREATE INDEX CONCURRENTLY orders_note_idx ON orders (company_id, note);",
        CONCURRENTLY + "CREATE INDEX IF NOT EXISTS orders_note_idx ON orders (company_id, note);",
        CONCURRENTLY + "UPDATE orders SET note = '';",
        BATCHES + "ALTER TABLE orders ADD COLUMN note text;",
    ],
)
def test_a_migration_that_stops_callers_is_seen(text: str) -> None:
    assert len(list_long_locks(build(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        LIMIT + "ALTER TABLE orders ADD COLUMN note text, ADD COLUMN units int NOT NULL DEFAULT 0;",
        LIMIT + "ALTER TABLE orders ADD COLUMN at timestamptz NOT NULL DEFAULT now();",
        LIMIT + "ALTER TABLE orders ADD COLUMN tags text[] DEFAULT '{}'::text[];",
        LIMIT + "ALTER TABLE orders ADD CONSTRAINT orders_units_check CHECK (units > 0) NOT VALID;",
        LIMIT + "ALTER TABLE orders ADD CONSTRAINT orders_units_key UNIQUE USING INDEX orders_units_key;",
        LIMIT + "ALTER TABLE orders ALTER COLUMN note DROP NOT NULL, ALTER COLUMN note SET DEFAULT '';",
        LIMIT + "CREATE TABLE letters (company_id bigint PRIMARY KEY, size int CHECK (size > 0));"
        "CREATE INDEX letters_idx ON letters (size); INSERT INTO letters SELECT 1;"
        "ALTER TABLE letters ADD UNIQUE (size);",
        LIMIT + "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON FUNCTION one FROM PUBLIC;",
        LIMIT + "SELECT keep_day_partitions('events', 7, 30);",
        CONTRACTION + "ALTER TABLE orders DROP COLUMN note; DROP TABLE letters;",
        CONCURRENTLY + "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_note_idx ON orders (company_id, note);",
        CONCURRENTLY + "DROP INDEX CONCURRENTLY IF EXISTS orders_note_idx;",
        CONCURRENTLY + "ALTER TABLE orders VALIDATE CONSTRAINT orders_units_check;",
        BATCHES + "UPDATE orders SET note = '' WHERE {batch} AND note IS NULL;",
    ],
)
def test_what_stops_nobody_is_allowed(text: str) -> None:
    assert list_long_locks(build(text)) == []
