import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copytree
from uuid import uuid4

import pytest

from sapa.db.migrations import is_current, migrate
from sapa.db.migrations.files import FOLDER, MigrationRefused, list_migrations
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, scratch_database

ALL = [migration.name for migration in list_migrations()]


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with scratch_database(installation.server) as database:
        yield database


async def run(scratch: Scratch) -> list[str]:
    return await migrate(scratch.owner_url, scratch.app_url)


async def as_owner(scratch: Scratch, statement: str) -> None:
    async with connect(scratch.owner_url) as owner:
        await owner.execute(statement)


async def test_migrations_are_applied_once(scratch: Scratch) -> None:
    assert await run(scratch) == ALL
    async with connect(scratch.app_url) as app:
        assert await is_current(app)
        history = await app.fetch("SELECT number, name FROM schema_migrations ORDER BY number")
    assert [tuple(row) for row in history] == list(enumerate(ALL, start=1))
    assert await run(scratch) == []


async def test_of_many_at_once_one_applies_them(scratch: Scratch) -> None:
    applied = await asyncio.gather(*(run(scratch) for _ in range(4)))
    assert sorted(applied) == sorted([ALL, [], [], []])


async def test_a_migration_that_was_changed_afterwards_is_refused(scratch: Scratch) -> None:
    await run(scratch)
    await as_owner(scratch, "UPDATE schema_migrations SET checksum = 'other' WHERE number = 1")
    with pytest.raises(MigrationRefused, match="0001_foundation was applied in another form"):
        await run(scratch)


async def test_a_database_of_a_newer_version_is_refused_and_not_current(scratch: Scratch) -> None:
    await run(scratch)
    newer = len(ALL) + 1
    await as_owner(scratch, f"INSERT INTO schema_migrations (number, name, checksum) VALUES ({newer}, 'later', 'x')")
    with pytest.raises(MigrationRefused, match="install the newer Sapa"):
        await run(scratch)
    async with connect(scratch.app_url) as app:
        assert not await is_current(app)


@pytest.mark.long
async def test_a_newer_database_that_this_version_runs_on_is_left_as_it_is(scratch: Scratch, tmp_path: Path) -> None:
    """Also its grants: those of this version would take rights from the newer one."""
    newer = tmp_path / "newer"
    copytree(FOLDER, newer)
    number = len(ALL) + 1
    text = f"-- runs with code since: {number - 2:04}\nSET LOCAL lock_timeout = '5s';\nCREATE TABLE later (id int);\n"
    (newer / f"{number:04}_later.sql").write_text(text)
    assert await migrate(scratch.owner_url, scratch.app_url, newer) == [*ALL, f"{number:04}_later"]
    await as_owner(scratch, "GRANT UPDATE ON events TO sapa_app")
    assert await run(scratch) == []
    async with connect(scratch.app_url) as app:
        assert await is_current(app)
        assert await app.fetchval("SELECT has_table_privilege('events', 'UPDATE')")


async def test_a_history_without_the_oldest_code_is_migrated(scratch: Scratch) -> None:
    await run(scratch)
    await as_owner(scratch, "ALTER TABLE schema_migrations DROP COLUMN runs_with_code_since")
    async with connect(scratch.app_url) as app:
        assert not await is_current(app)
    assert await run(scratch) == []
    async with connect(scratch.app_url) as app:
        assert await is_current(app)


@pytest.mark.parametrize("since", ["0000", "0002"])
def test_a_migration_cannot_run_with_code_that_does_not_know_it_yet(tmp_path: Path, since: str) -> None:
    (tmp_path / "0001_a.sql").write_text(f"-- runs with code since: {since}\nSELECT 1;")
    with pytest.raises(MigrationRefused, match="0001_a"):
        list_migrations(tmp_path)


async def test_a_database_behind_this_version_is_not_current(scratch: Scratch) -> None:
    await run(scratch)
    await as_owner(scratch, "DELETE FROM schema_migrations")
    async with connect(scratch.app_url) as app:
        assert not await is_current(app)


@pytest.mark.parametrize(
    "names",
    [["0001_a.sql", "0003_c.sql"], ["0002_b.sql"], ["0000_z.sql", "0001_a.sql"], ["0001_a.sql", "0001_b.sql"]],
)
def test_a_gap_or_a_duplicate_among_the_numbers_is_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(MigrationRefused, match="without gaps"):
        list_migrations(tmp_path)


def test_migrations_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1, 3, 9, 4, 8, 5, 7, 6):
        (tmp_path / f"{number:04}_n{number}.sql").write_text("SELECT 1;")
    (tmp_path / "__init__.py").write_text("")
    assert [migration.number for migration in list_migrations(tmp_path)] == list(range(1, 11))


def test_every_file_of_the_folder_is_a_migration() -> None:
    assert len(ALL) == len(list(FOLDER.glob("*.sql")))


async def test_rights_are_put_back_as_they_are_written(scratch: Scratch) -> None:
    await run(scratch)
    await as_owner(scratch, "GRANT UPDATE ON events TO sapa_app; REVOKE INSERT ON customers FROM sapa_app")
    await run(scratch)
    async with connect(scratch.app_url) as app:
        assert not await app.fetchval("SELECT has_table_privilege('events', 'UPDATE')")
        assert await app.fetchval("SELECT has_table_privilege('customers', 'INSERT')")


@pytest.mark.long
async def test_one_role_may_be_owner_and_product(scratch: Scratch) -> None:
    assert await migrate(scratch.owner_url, scratch.owner_url) == ALL
    async with connect(scratch.owner_url) as owner:
        assert await owner.fetchval("SELECT count(*) FROM customers") == 0


async def test_the_product_role_cannot_migrate(scratch: Scratch) -> None:
    with pytest.raises(Exception, match="permission denied"):
        await migrate(scratch.app_url, scratch.app_url)


async def test_a_database_that_is_not_utf_8_is_refused(scratch: Scratch) -> None:
    name = f"latin_{uuid4().hex}"
    url = scratch.superuser_url.replace(scratch.superuser_url.rpartition("@/")[2].partition("?")[0], name)
    async with connect(scratch.superuser_url) as superuser:
        await superuser.execute(
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
        )
        try:
            with pytest.raises(MigrationRefused, match="LATIN1"):
                await migrate(url, url)
        finally:
            await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.long
async def test_the_role_need_not_be_written_in_the_address(scratch: Scratch) -> None:
    credentials, _, place = scratch.app_url.removeprefix("postgresql://").partition("@")
    role, _, password = credentials.partition(":")
    assert await migrate(scratch.owner_url, f"postgresql://@{place}&user={role}&password={password}") == ALL
    async with connect(scratch.app_url) as app:
        assert await app.fetchval("SELECT has_table_privilege('customers', 'INSERT')")
