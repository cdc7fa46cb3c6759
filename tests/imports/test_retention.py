"""When imports are purged, and who may finish one."""

from collections.abc import AsyncIterator

import pytest

from sapa.access import actions as access
from sapa.db.counters import get_total
from sapa.db.pool import Database, open_database
from sapa.http.errors import NotFound
from sapa.imports import actions, queries
from sapa.imports.types import Import, ImportTakenOver, Problem
from sapa.values.company import Company
from tests.conftest import Installation
from tests.db.scratch import migrated_database
from tests.factories import make_company


@pytest.fixture
async def quiet(installation: Installation) -> AsyncIterator[Database]:
    """A database without a worker."""
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url) as database:
        yield database


async def upload(database: Database) -> tuple[Company, Import]:
    environments = await make_company(database)
    async with database.transaction() as tx:
        company = await access.get_company(tx, environments.live)
        return company, await actions.upload(tx, company, "customers", "csv", b"email\nx\n", dry_run=False)


async def count(database: Database, table: str, id: str) -> int:
    async with database.connection() as db:
        return int(await db.fetchval(f"SELECT count(*) FROM {table} WHERE import_id = $1", id))


async def test_only_the_holder_ends_an_import(quiet: Database) -> None:
    company, made = await upload(quiet)
    async with quiet.transaction() as tx:
        await actions.claim(tx, company, made.id, "holder")
    with pytest.raises(ImportTakenOver):
        async with quiet.transaction() as tx:
            await actions.finish(tx, company, made.id, "another")
    assert await count(quiet, "import_chunks", made.id) == 1
    async with quiet.transaction() as tx:
        assert (await actions.finish(tx, company, made.id, "holder")).status == "succeeded"
    assert await count(quiet, "import_chunks", made.id) == 0


async def test_imports_are_purged_after_thirty_days(quiet: Database) -> None:
    company, old = await upload(quiet)
    async with quiet.transaction() as tx:
        young = await actions.upload(tx, company, "products", "csv", b"name\n", dry_run=False)
        await queries.insert_problems(tx, company.id, old.id, [Problem(2, "email", "is wrong")])
        age = "UPDATE imports SET created_at = now() - make_interval(days => $2, mins => $3) WHERE id = $1"
        await tx.execute(age, old.id, 30, 1)
        await tx.execute(age, young.id, 30, -1)
    await actions.purge_old(quiet)
    async with quiet.connection() as db:
        assert (await queries.get_import(db, company.id, young.id)).id == young.id
        with pytest.raises(NotFound):
            await queries.get_import(db, company.id, old.id)
        assert await get_total(db, company.id, "imports") == 1
    assert await count(quiet, "import_errors", old.id) == await count(quiet, "import_chunks", old.id) == 0
