"""Every statement runs on Citus, with the companies' tables spread over machines. `make test-citus` asks it."""

from itertools import combinations

import pytest

from sapa.db.distribution import LOCAL_TABLES, REFERENCE_TABLES
from sapa.db.pool import Connection
from sapa.db.sql import Statement
from tests.house.schema_rules import DIRECTORY
from tests.house.sharding_rules import ON_ONE_SERVER, list_inserted, list_unshardable
from tests.house.statement_rules import name_statements

MAX_FORMS = 5
"""How many statements may have another form there: each one is a second way to be wrong."""


def test_every_statement_runs_where_companies_are_spread_over_machines() -> None:
    found = {name: list_unshardable(statement) for name, statement in name_statements().items()}
    assert {name: reasons for name, reasons in found.items() if reasons and name not in ON_ONE_SERVER} == {}
    assert all(found[name] for name in ON_ONE_SERVER)
    assert len(ON_ONE_SERVER) <= MAX_FORMS


async def test_a_row_is_inserted_before_the_rows_that_refer_to_it(owner: Connection) -> None:
    rows = await owner.fetch(
        "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
    )
    references = {(row[0], row[1]) for row in rows}
    inserted = {name: list_inserted(statement) for name, statement in name_statements().items()}
    pairs = {(name, *pair) for name, tables in inserted.items() for pair in combinations(tables, 2)}
    assert {pair for pair in pairs if pair[1:] in references} == set()
    assert ("sapa.products.queries.INSERT", "products", "variants") in pairs


async def test_the_tables_that_are_not_spread_are_the_directory_and_short_windows(owner: Connection) -> None:
    rows = await owner.fetch("SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'")
    assert DIRECTORY <= LOCAL_TABLES | REFERENCE_TABLES
    assert {row[0] for row in rows} >= LOCAL_TABLES - DIRECTORY


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE customers SET updated_at = clock_timestamp() WHERE company_id = $1",
        "UPDATE customers SET updated_at = (SELECT clock_timestamp()) WHERE company_id = $1",
        "UPDATE customers SET id = gen_random_uuid() WHERE company_id = $1",
        "UPDATE customers SET updated_at = CASE WHEN $2 THEN now() END WHERE company_id = $1",
        "UPDATE customers SET updated_at = coalesce(updated_at, CURRENT_TIMESTAMP) WHERE company_id = $1",
        "UPDATE customers SET updated_at = updated_at + interval '1 day' WHERE company_id = $1",
        "UPDATE imports i SET held_until = now() + c.clock_offset FROM companies c WHERE i.company_id = $1",
        "DELETE FROM customers WHERE company_id = $1 AND created_at < clock_timestamp()",
        "DELETE FROM customers WHERE company_id = $1 AND created_at + make_interval(days => $2) < now()",
        "INSERT INTO tags (company_id) SELECT $1 FROM made RETURNING (SELECT count(*) FROM made)",
        "DELETE FROM customers WHERE company_id = $1 RETURNING now()",
        "DELETE FROM customers WHERE company_id = $1 RETURNING array_to_json(tags)",
        "DELETE FROM customers WHERE company_id = $1 RETURNING extract(epoch FROM created_at)",
        "DELETE FROM orders WHERE company_id = $1 RETURNING CASE status WHEN 'active' THEN 1 END",
        "UPDATE imports SET held_until = c.at FROM (SELECT now() + clock_offset AS at FROM companies) AS c"
        " WHERE company_id = $1",
        "UPDATE analytics_tickets SET first_day = days[1] WHERE company_id = $1",
        "UPDATE analytics_tickets SET first_day = ticket_id::date WHERE company_id = $1",
        "INSERT INTO order_numbers (company_id) VALUES ($1) ON CONFLICT (company_id) DO UPDATE SET last = random()",
        "INSERT INTO business_hours AS h (company_id) VALUES ($1) ON CONFLICT (company_id) DO UPDATE SET weekly = $2"
        " WHERE h.updated_at < now()",
        "WITH changed AS (UPDATE orders SET updated_at = clock_timestamp() WHERE company_id = $1 RETURNING id)"
        " SELECT id FROM changed",
        "SELECT pg_snapshot_xmin(pg_current_snapshot())",
        "SELECT pg_snapshot_xmin(pg_current_snapshot()) FROM companies WHERE company_id = $1",
    ],
)
def test_a_change_that_citus_refuses_is_seen(text: str) -> None:
    assert list_unshardable(Statement(text, None, None))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.company_id FROM companies c WHERE EXISTS (SELECT FROM orders o WHERE o.company_id = c.company_id)",
        "SELECT first.id FROM companies c CROSS JOIN LATERAL ("
        "SELECT o.id FROM orders o WHERE o.company_id = c.company_id LIMIT 1) AS first",
        "SELECT id FROM orders WHERE created_at < $1 LIMIT 1 FOR UPDATE SKIP LOCKED",
        "WITH RECURSIVE o AS (SELECT id FROM orders UNION SELECT id FROM o) SELECT id FROM o",
    ],
)
def test_a_search_over_all_companies_that_citus_refuses_is_seen(text: str) -> None:
    assert list_unshardable(Statement(text, None, "a test"))


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE customers SET updated_at = GREATEST(statement_timestamp(), updated_at) WHERE company_id = $1",
        "UPDATE customers SET updated_at = now() + make_interval(secs => $2) WHERE company_id = $1",
        "UPDATE customers SET updated_at = CASE WHEN $2 THEN clock.now END FROM (SELECT now() AS now) AS clock"
        " WHERE company_id = $1",
        "UPDATE customers SET updated_at = (updated_at AT TIME ZONE 'UTC' + interval '1 day') AT TIME ZONE 'UTC'"
        " WHERE company_id = $1",
        "UPDATE customers SET tags = $2 WHERE company_id = $1 AND updated_at - created_at > interval '1 day'",
        "INSERT INTO customers (company_id, updated_at) VALUES ($1, clock_timestamp())",
        "UPDATE imports SET held_until = c.at FROM (SELECT now() + clock_offset AS at FROM companies OFFSET 0) AS c"
        " WHERE company_id = $1",
        "INSERT INTO rate_windows (company_id) VALUES ($1) ON CONFLICT (company_id) DO UPDATE SET window_start = now()",
        "SELECT clock_timestamp() + clock_offset FROM companies WHERE company_id = $1",
        "SELECT pg_snapshot_xmin(pg_current_snapshot()) FROM events WHERE company_id = $1",
        "SELECT o.id FROM orders o JOIN companies c ON c.company_id = o.company_id WHERE c.environment = 'test'",
    ],
)
def test_a_statement_that_citus_runs_is_let_through(text: str) -> None:
    assert list_unshardable(Statement(text, None, "a test")) == []
