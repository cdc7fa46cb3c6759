"""Steps outside a transaction: they go on after a kill, and say how far they are."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from sapa.db.migrations import migrate
from sapa.db.migrations.files import MigrationRefused, list_migrations
from sapa.runtime.processes import wait_until
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, scratch_database

ROWS = 5_000
PATIENCE = 60

TABLE = f"""
SET LOCAL lock_timeout = '1s';
CREATE TABLE letters (company_id bigint, id text COLLATE "C", size int, PRIMARY KEY (company_id, id));
INSERT INTO letters SELECT n % 7, 'l_' || n FROM generate_series(1, {ROWS}) AS n;
"""
INDEX = """
-- step: concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS letters_size_idx ON letters (company_id, size);
CREATE INDEX CONCURRENTLY IF NOT EXISTS letters_id_idx ON letters (company_id, lower(id));
"""
BACKFILL = """
-- step: batches
-- over: letters
UPDATE letters SET size = coalesce(size, 0) + 1 WHERE {batch};
"""
MIGRATE = """
import asyncio, sys, pathlib, sapa.db.migrations as migrations
asyncio.run(migrations.migrate(sys.argv[1], sys.argv[1], pathlib.Path(sys.argv[2]), print))
"""

pytestmark = pytest.mark.processes


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with scratch_database(installation.server) as database:
        yield database


def write(folder: Path, *texts: str) -> Path:
    for number, text in enumerate(texts, start=1):
        (folder / f"{number:04}_step.sql").write_text(text)
    return folder


async def run(scratch: Scratch, folder: Path) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    return await migrate(scratch.owner_url, scratch.owner_url, folder, lines.append), lines


def start(scratch: Scratch, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", MIGRATE, scratch.owner_url, str(folder)])


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    assert process.wait(timeout=PATIENCE) == -signal.SIGKILL


async def test_each_row_is_in_one_batch(scratch: Scratch, tmp_path: Path) -> None:
    applied, lines = await run(scratch, write(tmp_path, TABLE, BACKFILL))
    assert applied == ["0001_step", "0002_step"]
    assert lines == ["applied 0001_step", "applied 0002_step"]
    async with connect(scratch.owner_url) as owner:
        assert await owner.fetchval("SELECT count(*) FROM letters WHERE size = 1") == ROWS
        assert await owner.fetchval("SELECT to_regclass('schema_migrations_progress')") is None


async def test_a_backfill_goes_on_after_a_kill(scratch: Scratch, tmp_path: Path) -> None:
    """It is killed while it waits for a row that somebody else has locked."""
    await run(scratch, write(tmp_path, TABLE))
    folder = tmp_path / "next"
    folder.mkdir()
    write(folder, TABLE, BACKFILL)
    async with connect(scratch.owner_url) as other, connect(scratch.owner_url) as owner:
        locking = other.transaction()
        await locking.start()
        await other.execute("SELECT FROM letters WHERE company_id = 4 FOR UPDATE")
        process = start(scratch, folder)

        async def is_under_way() -> bool:
            try:
                return bool(await owner.fetchval("SELECT rows > 0 FROM schema_migrations_progress"))
            except asyncpg.UndefinedTableError:
                return False

        assert await wait_until(is_under_way, PATIENCE)
        kill(process)
        before = await owner.fetchval("SELECT count(*) FROM letters WHERE size = 1")
        assert 0 < before < ROWS
        assert await owner.fetchval("SELECT count(*) FROM schema_migrations") == 1
        await locking.rollback()
        assert (await run(scratch, folder))[0] == ["0002_step"]
        assert await owner.fetchval("SELECT count(*) FROM letters WHERE size = 1") == ROWS


async def test_an_index_is_made_again_after_a_kill(scratch: Scratch, tmp_path: Path) -> None:
    """It is killed while it waits for a transaction of before."""
    await run(scratch, write(tmp_path, TABLE))
    folder = tmp_path / "next"
    folder.mkdir()
    write(folder, TABLE, INDEX)
    async with connect(scratch.owner_url) as other, connect(scratch.owner_url) as owner:
        reading = other.transaction(isolation="repeatable_read")
        await reading.start()
        await other.fetchval("SELECT count(*) FROM letters")
        await other.execute("LOCK TABLE letters IN ROW EXCLUSIVE MODE")
        process = start(scratch, folder)

        async def is_half_made() -> bool:
            return await owner.fetchval("SELECT true FROM pg_index WHERE NOT indisvalid") is True

        assert await wait_until(is_half_made, PATIENCE)
        kill(process)
        await reading.rollback()
        assert (await run(scratch, folder))[0] == ["0002_step"]
        rows = await owner.fetch("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'letters'::regclass")
        assert {row[0] for row in rows} == {"letters_pkey", "letters_size_idx", "letters_id_idx"}
        assert not await is_half_made()


async def test_of_many_at_once_one_makes_the_index(scratch: Scratch, tmp_path: Path) -> None:
    folder = write(tmp_path, TABLE, INDEX)
    applied = await asyncio.gather(*(run(scratch, folder) for _ in range(3)))
    assert sorted(names for names, _ in applied) == [[], [], ["0001_step", "0002_step"]]


async def test_a_table_that_is_in_use_is_tried_again(scratch: Scratch, tmp_path: Path) -> None:
    await run(scratch, write(tmp_path, TABLE))
    folder = tmp_path / "next"
    folder.mkdir()
    write(folder, TABLE, "SET LOCAL lock_timeout = '10ms';\nALTER TABLE letters ADD COLUMN note text;\n")
    lines: list[str] = []
    async with connect(scratch.owner_url) as other:
        reading = other.transaction()
        await reading.start()
        await other.fetchval("SELECT count(*) FROM letters")
        migrating = asyncio.create_task(migrate(scratch.owner_url, scratch.owner_url, folder, lines.append))
        assert await wait_until(lambda: "0002_step: waits for locks that others hold" in lines, PATIENCE)
        await reading.rollback()
        assert await migrating == ["0002_step"]


@pytest.mark.parametrize(
    "text",
    [
        "-- step: later\nSELECT 1;\n",
        "-- step: batches\nUPDATE letters SET size = 1 WHERE {batch};\n",
        "-- step: batches\n-- over: letters\nUPDATE letters SET size = 1;\n",
        "-- step: batches\n-- over: letters\nUPDATE letters SET size = 1 WHERE {batch};\nSELECT 1;\n",
    ],
    ids=["unknown", "no table", "no batch", "two statements"],
)
def test_a_step_that_cannot_run_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(MigrationRefused, match="0001_step"):
        list_migrations(write(tmp_path, text))
