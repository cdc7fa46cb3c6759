"""A backup becomes an installation that is equal to its source, or nothing at all."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access.actions import get_company
from sapa.customers import actions as customers
from sapa.customers.types import CustomerIn
from sapa.db.migrations.files import list_migrations
from sapa.db.pool import Database, open_database
from sapa.domains import SEALED_TABLES
from sapa.values.sealing import ProbeVault
from sapa.work import rotation
from tests.backups.conftest import PASSPHRASE, Source
from tests.cli.command import Outcome, sapa
from tests.conftest import Installation, start_installation, stop_installation
from tests.db.scratch import Scratch, connect, migrated_database, scratch_database
from tests.factories import make_company
from tests.house.catalogue import differences
from tests.messaging.files.object_server import run_object_server

OTHER_KEY = "b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgISE="

TABLES = """
    SELECT relname FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND relpersistence = 'p'"""


async def read_everything(url: str) -> dict[str, Any]:
    """All rows and the states of all sequences, read in a way that the backup does not use."""
    async with connect(url) as db:
        names = sorted(row[0] for row in await db.fetch(TABLES))
        rows = {
            name: [row[0] for row in await db.fetch(f'SELECT to_jsonb(t)::text FROM "{name}" t ORDER BY 1')]
            for name in names
        }
        del rows["backup_runs"]  # each backup of a test adds one
        # Applied at another time.
        rows["schema_migrations"] = [row[0] for row in await db.fetch("SELECT checksum FROM schema_migrations")]
        sequences = await db.fetch(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1"
        )
        return rows | {"sequences": [tuple(row) for row in sequences if row[0] != "backup_runs_number_seq"]}


@pytest.fixture(scope="module")
def folder(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with one backup of the shop."""
    place = tmp_path_factory.mktemp("backups")
    source.run("backup", str(place), "--json").json()
    return place


@pytest.fixture
def damaged(folder: Path, tmp_path: Path) -> Path:
    """A copy of that place, to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "damaged"))


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A data folder to be, that the user of the embedded server can reach."""
    parent = Path(mkdtemp(prefix="sapa-restored-"))
    parent.chmod(0o755)
    yield parent / "data"
    shutil.rmtree(parent)


@pytest.fixture
async def empty(installation: Installation) -> AsyncIterator[Scratch]:
    async with scratch_database(installation.server) as scratch:
        yield scratch


def find_file(place: Path, name: str) -> Path:
    """A file of the only backup there."""
    (found,) = place.glob(f"*/{name}")
    return found


def restore(source: Source, into: Scratch, address: str, *arguments: str, **variables: str) -> Outcome:
    own = source.variables | {"SAPA_DATABASE_URL": into.app_url, "SAPA_DATABASE_OWNER_URL": into.owner_url}
    return sapa(source.data, "restore", address, *arguments, **(own | variables))


async def test_a_restored_database_equals_its_source(
    source: Source, folder: Path, empty: Scratch, installation: Installation
) -> None:
    outcome = restore(source, empty, str(folder))
    assert outcome.code == 0, outcome.err
    restored, original = await read_everything(empty.owner_url), await read_everything(source.database.owner_url)
    assert len(original["orders"]) == 60
    assert restored == original
    async with (
        migrated_database(installation.server) as migrated,
        connect(migrated.owner_url) as first,
        connect(empty.owner_url) as second,
    ):
        assert await differences(first, second) == []
    async with open_database(empty.app_url) as database:
        vault = ProbeVault(source.secret_key)
        assert await rotation.probe(database, SEALED_TABLES, vault, seconds=120)
        assert (vault.opened, vault.unreadable) == (2, 0)


@pytest.mark.long
def test_a_restored_data_folder_serves_the_same_shop(source: Source, folder: Path, fresh: Path) -> None:
    outcome = sapa(fresh, "restore", str(folder), SAPA_BACKUP_PASSPHRASE=PASSPHRASE)
    assert outcome.code == 0, outcome.err
    running = start_installation(fresh)
    try:
        answer = httpx.get(f"{running.customer_base}/customers", headers={"x-api-key": source.api_key.raw}, timeout=120)
        assert answer.json()["meta"]["total"] == 30
        assert running.server.secret_key == source.secret_key
    finally:
        assert stop_installation(running) == 0
    again = sapa(fresh, "restore", str(folder), SAPA_BACKUP_PASSPHRASE=PASSPHRASE)
    assert "The database is not empty" in again.sentence()


@pytest.mark.long
async def test_a_bucket_holds_backups_like_a_folder(source: Source, empty: Scratch) -> None:
    with run_object_server() as url:
        first = source.run("backup", url, "--json").json()
        second = source.run("backup", "--json", SAPA_BACKUP_URL=url).json()
        listed = source.run("backup", "list", url, "--json").json()
        assert [each["name"] for each in listed] == [first["name"], second["name"]]
        assert second["rows"] == first["rows"] + 1 > 1000, "the first one is recorded"
        outcome = restore(source, empty, url, "--backup", first["name"])
    assert outcome.code == 0, outcome.err
    assert await read_everything(empty.owner_url) == await read_everything(source.database.owner_url)


def test_a_database_with_rows_is_refused(source: Source, folder: Path) -> None:
    assert "The database is not empty" in restore(source, source.database, str(folder)).sentence()


async def count_companies(scratch: Scratch) -> int:
    async with connect(scratch.owner_url) as db:
        return int(await db.fetchval("SELECT count(*) FROM companies"))


async def test_a_changed_byte_is_noticed_and_nothing_is_restored(
    source: Source, folder: Path, damaged: Path, empty: Scratch
) -> None:
    part = find_file(damaged, "orders/000000.gz")
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    assert "orders/000000.gz of the backup is damaged" in restore(source, empty, str(damaged)).sentence()
    assert await count_companies(empty) == 0
    assert restore(source, empty, str(folder)).code == 0
    assert await count_companies(empty) == 2


@pytest.mark.long
async def test_a_missing_part_is_noticed_and_nothing_is_restored(source: Source, damaged: Path, empty: Scratch) -> None:
    find_file(damaged, "orders/000000.gz").unlink()
    assert "The backup cannot be read" in restore(source, empty, str(damaged)).sentence()
    assert await count_companies(empty) == 0


def edit_manifest(place: Path, **changes: Any) -> None:
    path = find_file(place, "manifest.json")
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | changes))


@pytest.mark.long
async def test_rows_that_the_manifest_does_not_have_are_noticed(source: Source, damaged: Path, empty: Scratch) -> None:
    path = find_file(damaged, "manifest.json")
    tables = msgspec.json.decode(path.read_bytes())["tables"]
    (orders,) = (table for table in tables if table["name"] == "orders")
    orders["content"]["checksum"] = "1"
    edit_manifest(damaged, tables=tables)
    assert "The rows of orders are not those of the backup" in restore(source, empty, str(damaged)).sentence()
    assert await count_companies(empty) == 0


def test_a_backup_of_an_unknown_version_is_refused(source: Source, damaged: Path, empty: Scratch) -> None:
    newest = list_migrations()[-1]
    applied = [{"number": each.number, "checksum": each.checksum} for each in list_migrations()]
    edit_manifest(damaged, migrations=[*applied, {"number": newest.number + 1, "checksum": "new"}], sapaVersion="9.9")
    assert "made by Sapa 9.9" in restore(source, empty, str(damaged)).sentence()
    edit_manifest(damaged, format=2)
    assert "by a newer Sapa" in restore(source, empty, str(damaged)).sentence()


def test_a_backup_that_was_not_finished_is_not_there(source: Source, damaged: Path, empty: Scratch) -> None:
    find_file(damaged, "manifest.json").unlink()
    assert source.run("backup", "list", str(damaged), "--json").json() == []
    assert "no complete backup" in restore(source, empty, str(damaged)).sentence()


def test_the_secret_key_comes_with_its_passphrase_only(
    source: Source, folder: Path, empty: Scratch, fresh: Path
) -> None:
    assert source.run("backup", "key", str(folder)).out.strip() == source.secret_key
    wrong = {"SAPA_BACKUP_PASSPHRASE": "an entirely different one"}
    assert "The passphrase does not open" in source.run("backup", "key", str(folder), **wrong).sentence()
    assert "The passphrase does not open" in sapa(fresh, "restore", str(folder), **wrong).sentence()
    assert "Set SAPA_BACKUP_PASSPHRASE" in sapa(fresh, "restore", str(folder)).sentence()
    other = restore(source, empty, str(folder), SAPA_SECRET_KEY=OTHER_KEY)
    assert "SAPA_SECRET_KEY is not the key of the backup" in other.sentence()
    assert source.secret_key not in find_file(folder, "manifest.json").read_text()


def test_a_short_passphrase_is_refused(source: Source, tmp_path: Path) -> None:
    outcome = source.run("backup", str(tmp_path), SAPA_BACKUP_PASSPHRASE="short")
    assert "at least 12 characters" in outcome.sentence()


@pytest.mark.parametrize("address", ["s3://bucket/backups", "file:///backups", "https://s3.example.com"])
def test_an_address_that_is_no_bucket_is_not_taken_for_a_folder(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["backup", address], ["backup", "list", address], ["restore", address]):
        assert source.run(*command).sentence().startswith("The bucket of the backups must be an address such as https:")
    assert list(tmp_path.iterdir()) == []


def test_verify_restores_and_opens_every_secret(source: Source, folder: Path) -> None:
    check = source.run("backup", "verify", str(folder), "--json").json()
    assert (check["secrets"], check["unreadableSecrets"]) == (2, 0)
    assert check["rows"] > 1000


@pytest.mark.long
async def test_verify_notices_a_secret_of_another_key(source: Source, tmp_path: Path) -> None:
    made = source.run("backup", str(tmp_path), "--json", SAPA_SECRET_KEY=OTHER_KEY)
    assert made.code == 0
    outcome = source.run("backup", "verify", str(tmp_path), "--json")
    assert outcome.code == 1
    assert msgspec.json.decode(outcome.out)["unreadableSecrets"] == 2


async def test_files_in_a_bucket_are_named_as_missing(source: Source, tmp_path: Path) -> None:
    async with connect(source.database.owner_url) as db:
        await db.execute(
            "INSERT INTO files (company_id, id, size, parts, storage, status)"
            " VALUES (1, 'att_1', 3, 1, 'bucket', 'stored')"
        )
        outcome = source.run("backup", str(tmp_path), "--json")
        await db.execute("DELETE FROM files WHERE id = 'att_1'")
    assert outcome.json()["filesInBucket"] == 1
    assert "Not included: the content of 1 files in the bucket of SAPA_FILES_URL" in outcome.err


async def test_a_backup_shows_one_moment_while_others_write(
    installation: Installation, source: Source, empty: Scratch, tmp_path: Path
) -> None:
    async with migrated_database(installation.server) as busy, open_database(busy.app_url) as database:
        environments = await make_company(database)
        finished = asyncio.Event()
        writing = asyncio.create_task(create_customers(database, environments.live, finished))
        urls = {"SAPA_DATABASE_URL": busy.app_url, "SAPA_DATABASE_OWNER_URL": busy.owner_url}
        made = await asyncio.to_thread(source.run, "backup", str(tmp_path), "--json", **urls)
        finished.set()
        assert await writing > 0
        assert made.code == 0, made.err
    assert restore(source, empty, str(tmp_path)).code == 0
    async with connect(empty.owner_url) as db:
        customers = await db.fetchval("SELECT count(*) FROM customers")
        assert await db.fetchval("SELECT count(*) FROM events WHERE kind = 'customer.created'") == customers
        assert await db.fetchval(COUNTED, environments.live) == customers


COUNTED = """
    SELECT (SELECT coalesce(sum(total), 0) FROM counter_cells WHERE company_id = $1 AND counter = 'customers')
         + (SELECT coalesce(sum(delta), 0) FROM counter_deltas WHERE company_id = $1 AND counter = 'customers')"""


async def create_customers(database: Database, company_id: int, finished: asyncio.Event) -> int:
    async with database.connection() as db:
        company = await get_company(db, company_id)
    number = 0
    while not finished.is_set():
        async with database.transaction() as tx:
            await customers.create(tx, company, CustomerIn(email=f"customer-{number}@example.com"))
        number += 1
    return number
