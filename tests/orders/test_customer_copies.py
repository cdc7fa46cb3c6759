"""Renaming a customer with many orders: the newest change at once, the others in the background."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.customers import actions
from sapa.customers.types import CustomerIn, CustomerPatch
from sapa.db.migrations import migrate
from sapa.db.migrations.files import list_migrations
from sapa.db.pool import Database, open_database
from sapa.orders import customer_copies
from sapa.values.company import Company
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import Environments, make_company, make_customer, make_order
from tests.http.wire import eventually

MORE = 3_000
"""Orders beyond those that are renamed at once."""

RUN_ALONE = """
import asyncio, sys
from sapa.db.pool import open_database
from sapa.orders.customer_copies import update_copies

async def main():
    async with open_database(sys.argv[1]) as database:
        await update_copies(database)

asyncio.run(main())
"""

ADD_ORDERS = """
    INSERT INTO orders (company_id, id, order_id, order_number, status, fulfillment_status, financial_status, total,
                        currency, line_items, tags, customer, customer_id, customer_text, created_at)
    SELECT $1, 'ord_' || n, 'own-' || n, (100000 + n)::text, 'active', 'unfulfilled', 'pending', 1, 'IDR', '[]', '{}',
           json_build_object('id', $2::text, 'firstName', 'Ayu', 'lastName', null, 'email', null, 'phoneNumber', null),
           $2, 'ayu', now() - make_interval(days => 1, secs => n / 2)
      FROM generate_series(1, $3) AS n"""
"""Two orders in each second: the time alone does not determine the position."""


async def add_orders(database: Database, company_id: int, customer_id: str, number: int) -> None:
    async with database.connection() as db:
        await db.execute(ADD_ORDERS, company_id, customer_id, number)


async def names_of(database: Database, company_id: int) -> dict[str, int]:
    """How many orders show each first name."""
    async with database.connection() as db:
        rows = await db.fetch(
            """SELECT customer ->> 'firstName' || '/' || customer_text, count(*)
                 FROM orders WHERE company_id = $1 GROUP BY 1""",
            company_id,
        )
    return {row[0]: row[1] for row in rows}


async def test_every_order_shows_the_new_name_in_the_end(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    customer = await make_customer(api, firstName="Ayu")
    other = await make_order(api, customer={"email": "x@example.com", "firstName": "Citra"})
    await add_orders(database, company.live, customer["id"], customer_copies.MAX_ORDERS + MORE)
    await api.put(f"/customers/{customer['id']}", json={"firstName": "Budi"})

    async def is_done() -> bool | None:
        return (await names_of(database, company.live)).keys() == {"Budi/budi", "Citra/citra"} or None

    await eventually(is_done)
    assert (await api.get(f"/orders/{other['id']}")).json()["data"] == other


@pytest.fixture(scope="module")
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    """Without a worker."""
    async with migrated_database(installation.server) as made:
        yield made


@pytest.fixture
async def quiet(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url, size=4) as opened:
        yield opened


async def make_regular(quiet: Database, orders: int) -> tuple[Company, str]:
    """A company with one customer who has so many orders."""
    company = Company((await make_company(quiet)).live, "live", "ID", "IDR")
    async with quiet.transaction() as tx:
        customer = await actions.create(tx, company, CustomerIn(first_name="Ayu", email="ayu@example.com"))
    await add_orders(quiet, company.id, customer.id, orders)
    return company, customer.id


async def rename(quiet: Database, company: Company, customer_id: str, name: str) -> None:
    async with quiet.transaction() as tx:
        await actions.update(tx, company, customer_id, CustomerPatch(first_name=name))


async def count_waiting(quiet: Database, company: Company) -> int:
    async with quiet.connection() as db:
        number: int = await db.fetchval("SELECT count(*) FROM customer_copies WHERE company_id = $1", company.id)
    return number


async def update_all(quiet: Database, company: Company) -> None:
    """A run of the job ends after some seconds, and a loaded machine needs several."""
    while await count_waiting(quiet, company):
        await customer_copies.update_copies(quiet)


async def test_a_customer_with_fewer_orders_leaves_nothing_to_do(quiet: Database) -> None:
    company, customer_id = await make_regular(quiet, customer_copies.MAX_ORDERS - 1)
    await rename(quiet, company, customer_id, "Budi")
    assert await names_of(quiet, company.id) == {"Budi/budi": customer_copies.MAX_ORDERS - 1}
    assert await count_waiting(quiet, company) == 0


async def test_a_second_rename_replaces_the_first(quiet: Database) -> None:
    company, customer_id = await make_regular(quiet, customer_copies.MAX_ORDERS + MORE)
    await rename(quiet, company, customer_id, "Budi")
    assert await names_of(quiet, company.id) == {"Budi/budi": customer_copies.MAX_ORDERS, "Ayu/ayu": MORE}
    await rename(quiet, company, customer_id, "Citra")
    await update_all(quiet, company)
    assert await names_of(quiet, company.id) == {"Citra/citra": customer_copies.MAX_ORDERS + MORE}
    assert await count_waiting(quiet, company) == 0


async def test_all_orders_keep_the_last_name_of_a_deleted_customer(quiet: Database) -> None:
    company, customer_id = await make_regular(quiet, customer_copies.MAX_ORDERS + MORE)
    await rename(quiet, company, customer_id, "Budi")
    async with quiet.transaction() as tx:
        await actions.delete(tx, company, customer_id)
    await update_all(quiet, company)
    assert await names_of(quiet, company.id) == {"Budi/budi": customer_copies.MAX_ORDERS + MORE}


async def test_a_worker_that_is_killed_half_way_is_followed_by_another(scratch: Scratch, quiet: Database) -> None:
    company, customer_id = await make_regular(quiet, customer_copies.MAX_ORDERS + MORE)
    await rename(quiet, company, customer_id, "Budi")
    async with connect(scratch.owner_url) as owner, owner.transaction():
        oldest = "SELECT id FROM orders WHERE company_id = $1 ORDER BY created_at, id LIMIT 1 FOR UPDATE"
        await owner.fetchval(oldest, company.id)
        worker = await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", RUN_ALONE, scratch.app_url])
        try:
            await eventually(lambda: is_half_way(quiet, company))
        finally:
            worker.kill()
        assert await asyncio.to_thread(worker.wait) == -signal.SIGKILL
    left = (await names_of(quiet, company.id))["Ayu/ayu"]
    assert 0 < left < MORE
    await update_all(quiet, company)
    assert await names_of(quiet, company.id) == {"Budi/budi": customer_copies.MAX_ORDERS + MORE}
    assert await count_waiting(quiet, company) == 0


async def is_half_way(quiet: Database, company: Company) -> bool | None:
    return (await names_of(quiet, company.id))["Ayu/ayu"] <= customer_copies.BATCH or None


async def test_a_customer_whose_orders_are_locked_does_not_block_others(scratch: Scratch, quiet: Database) -> None:
    companies = [await make_regular(quiet, customer_copies.MAX_ORDERS + 1) for _ in range(2)]
    for company, customer_id in companies:
        await rename(quiet, company, customer_id, "Budi")
    (locked, _), (free, _) = companies
    async with connect(scratch.owner_url) as owner, owner.transaction():
        await owner.fetch("SELECT id FROM orders WHERE company_id = $1 FOR UPDATE", locked.id)
        await customer_copies.update_copies(quiet)
        assert (await names_of(quiet, free.id)).keys() == {"Budi/budi"}
        assert await count_waiting(quiet, locked) == 1
    await update_all(quiet, locked)
    assert (await names_of(quiet, locked.id)).keys() == {"Budi/budi"}


@pytest.mark.long
async def test_the_migration_queues_names_that_are_out_of_date(scratch: Scratch, quiet: Database) -> None:
    (migration,) = [one for one in list_migrations() if one.name.endswith("_customer_copies")]
    company, customer_id = await make_regular(quiet, customer_copies.MAX_ORDERS + MORE)
    await rename(quiet, company, customer_id, "Budi")
    async with connect(scratch.owner_url) as owner, owner.transaction():
        await owner.execute("DROP TABLE customer_copies")
        await owner.execute(migration.text)
    await migrate(scratch.owner_url, scratch.app_url)  # grants
    await update_all(quiet, company)
    assert await names_of(quiet, company.id) == {"Budi/budi": customer_copies.MAX_ORDERS + MORE}
