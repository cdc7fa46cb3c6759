"""The data of a run: three companies in one fresh database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
from msgspec import Struct

from bench.names import CITIES, FIRST_NAMES, LAST_NAMES, TAGS
from sapa.access import actions
from sapa.access.types import MOST_RATE_LIMIT, KeyIn, Scope
from sapa.customers.queries import COUNTER
from sapa.db.pool import open_database

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# A hash of the row's number picks each value, so that two runs have the same customers in no apparent order.
CUSTOMERS = """
    INSERT INTO customers (company_id, id, email, email_key, phone_number, first_name, last_name, tags, addresses,
                           additional_data, subscription_status, search_text, created_at, updated_at)
    SELECT $1::bigint, 'cust_01' || lpad(to_hex(n), 8, '0') || left(md5('customer' || n), 16), email, email, phone,
           first, last, ($5::text[])[hash % 5 + 1:hash % 5 + 2],
           format('[{"id":"addr_01%s%s","firstName":"%s","lastName":"%s","phone":"%s","address1":"Jl. Merdeka %s",'
                  '"address2":null,"city":"%s","province":null,"country":"Indonesia","zip":"%s","mainAddress":true}]',
                  lpad(to_hex(n), 8, '0'), left(md5('address' || n), 16), first, last, phone, hash % 200 + 1,
                  ($6::text[])[hash % cardinality($6::text[]) + 1], 10000 + hash % 80000)::json,
           format('{"visits":%s}', hash % 40)::json, '[{"app":"CRM","status":"subscribe"}]'::json,
           lower(first || ' ' || last) || E'\\n' || email || E'\\n' || substr(phone, 2),
           created, created + make_interval(mins => (hash % ($2 - n + 1))::int)
      FROM (SELECT n, hash, first, last, lower(first || '.' || last) || n || '@example.com' AS email,
                   '+62811' || lpad(n::text, 8, '0') AS phone, now() - make_interval(mins => ($2 - n)::int) AS created
              FROM (SELECT n, hash, ($3::text[])[hash / 7 % cardinality($3::text[]) + 1] AS first,
                           ($4::text[])[hash / 911 % cardinality($4::text[]) + 1] AS last
                      FROM (SELECT n, abs(hashint8(n)::bigint) AS hash FROM generate_series(1, $2::bigint) AS n) AS a
                   ) AS b
           ) AS c"""

SECONDARY_INDEXES = """
    SELECT indexname AS name, indexdef AS definition FROM pg_indexes
     WHERE tablename = 'customers' AND indexname <> 'customers_pkey'"""

SOME_IDS = "SELECT id FROM customers WHERE company_id = $1 ORDER BY md5(id) LIMIT 500"


class SeededCompany(Struct, frozen=True):
    id: int
    key: str
    customers: int


class Data(Struct, frozen=True):
    many: SeededCompany
    few: SeededCompany
    fresh: SeededCompany
    """Where the run creates customers, so that the other two stay as they are."""
    ids: list[str]
    """Some customers of the company that has few, in no order."""


async def seed(owner_url: str, app_url: str, many: int, few: int) -> Data:
    large, small, fresh = [await _company(app_url, customers) for customers in (many, few, 0)]
    connection = await asyncpg.connect(owner_url)
    try:
        await connection.execute("SET maintenance_work_mem = '512MB'")
        async with _without_indexes(connection):
            for company in (large, small):
                await _fill(connection, company)
        await connection.execute("VACUUM (ANALYZE) customers")
        await connection.execute("VACUUM (ANALYZE) counter_cells")
        ids = await connection.fetch(SOME_IDS, small.id)
    finally:
        await connection.close()
    return Data(large, small, fresh, [id for (id,) in ids])


async def _company(app_url: str, customers: int) -> SeededCompany:
    async with open_database(app_url) as database, database.transaction() as tx:
        made = await actions.create_company(tx, f"Company of {customers} customers")
        given = KeyIn(name="benchmark", scopes=list(Scope), rate_limit=MOST_RATE_LIMIT)
        key = await actions.create_key(tx, made.live_company_id, given)
    return SeededCompany(made.live_company_id, key.key, customers)


async def _fill(connection: Connection, company: SeededCompany) -> None:
    await connection.execute(CUSTOMERS, company.id, company.customers, FIRST_NAMES, LAST_NAMES, TAGS, CITIES)
    await connection.execute(
        "INSERT INTO counter_cells (company_id, counter, cell, total) VALUES ($1, $2, '', $3)",
        company.id, COUNTER, company.customers,
    )  # fmt: skip


@asynccontextmanager
async def _without_indexes(connection: Connection) -> AsyncIterator[None]:
    """Building an index over a full table takes a quarter of the time of filling it row by row."""
    indexes = await connection.fetch(SECONDARY_INDEXES)
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    yield
    for index in indexes:
        await connection.execute(index["definition"])
