"""An import finds customers by the right index, whatever the statistics say."""

from collections.abc import AsyncIterator

import pytest

from sapa.access.actions import get_company
from sapa.customers import bulk
from sapa.customers.bulk import BulkCustomer, Outcome
from sapa.customers.types import CustomerPatch
from sapa.db.pool import Database, Tx, open_database
from sapa.imports.queries import prepare_batch
from sapa.values.company import Company
from tests.conftest import Installation
from tests.factories import Environments

FILLED, LOOKED_UP = 2_000, 100
MAX_READ = 10 * LOOKED_UP
"""Of each customer a few times: found, locked, changed."""

OURS = "SELECT id FROM customers WHERE company_id = $1 ORDER BY id DESC LIMIT $2"
INDEXES = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'customers'::regclass"
SET_STATISTICS = """
    SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', $1::text, 'relpages', $2::int,
                                     'reltuples', $3::real)"""
READ = """
    SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
     WHERE relname = 'customers'"""


@pytest.fixture
async def owner(installation: Installation) -> AsyncIterator[Database]:
    async with open_database(installation.server.owner_url) as opened:
        yield opened


@pytest.fixture
async def live(owner: Database, company: Environments) -> Company:
    """With many customers, of whom the last are looked up."""
    async with owner.transaction() as tx:
        live = await get_company(tx, company.live)
        assert None not in await bulk.store_together(tx, live, [build_customer(number) for number in range(FILLED)])
    return live


def build_customer(number: int, name: str = "Ayu") -> BulkCustomer:
    return BulkCustomer(f"own-{number}", None, CustomerPatch(email=f"{number}@example.com", first_name=name))


async def set_statistics(tx: Tx, pages: int, rows: int) -> None:
    """Sets the statistics until the transaction is rolled back."""
    for name in ["customers", *[row[0] for row in await tx.fetch(INDEXES)]]:
        await tx.execute(SET_STATISTICS, name, pages, rows)


async def store(
    owner: Database, live: Company, customers: list[BulkCustomer], pages: int, rows: int
) -> tuple[set[Outcome | None], int]:
    """The outcomes, and how many customers were read for them."""
    async with owner.connection() as db:
        transaction = db.transaction()
        await transaction.start()
        try:
            await set_statistics(db, pages, rows)
            await prepare_batch(db)
            before = await db.fetchval(READ)
            outcomes = await bulk.store_together(db, live, customers)
            return set(outcomes), await db.fetchval(READ) - before
        finally:
            await transaction.rollback()


STATISTICS = pytest.mark.parametrize(("pages", "rows"), [(5_000, 0), (5_000, 1), (1, 0), (1, 25), (0, -1)])


@STATISTICS
async def test_new_customers_are_recorded_without_reading_the_others(
    owner: Database, live: Company, pages: int, rows: int
) -> None:
    customers = [build_customer(number) for number in range(FILLED, FILLED + LOOKED_UP)]
    outcomes, read = await store(owner, live, customers, pages, rows)
    assert outcomes == {"created"}
    assert read <= MAX_READ


@STATISTICS
async def test_existing_customers_are_found_by_external_id(
    owner: Database, live: Company, pages: int, rows: int
) -> None:
    customers = [build_customer(number) for number in range(FILLED - LOOKED_UP, FILLED)]
    outcomes, read = await store(owner, live, customers, pages, rows)
    assert outcomes == {"unchanged"}
    assert read <= MAX_READ


@STATISTICS
async def test_changed_customers_are_found_by_external_id(
    owner: Database, live: Company, pages: int, rows: int
) -> None:
    customers = [build_customer(number, "Budi") for number in range(FILLED - LOOKED_UP, FILLED)]
    outcomes, read = await store(owner, live, customers, pages, rows)
    assert outcomes == {"updated"}
    assert read <= MAX_READ


@STATISTICS
async def test_existing_customers_are_found_by_contact(owner: Database, live: Company, pages: int, rows: int) -> None:
    customers = [
        BulkCustomer(None, None, CustomerPatch(email=f"{number}@example.com", first_name="Ayu"), matches_contact=True)
        for number in range(FILLED - LOOKED_UP, FILLED)
    ]
    outcomes, read = await store(owner, live, customers, pages, rows)
    assert outcomes == {"unchanged"}
    assert read <= MAX_READ


@STATISTICS
async def test_existing_customers_are_found_by_id(owner: Database, live: Company, pages: int, rows: int) -> None:
    async with owner.connection() as db:
        ours = await db.fetch(OURS, live.id, LOOKED_UP)
    customers = [BulkCustomer(None, row[0], CustomerPatch(first_name="Ayu")) for row in ours]
    outcomes, read = await store(owner, live, customers, pages, rows)
    assert outcomes == {"unchanged"}
    assert read <= MAX_READ
