"""An embedded database is brought back to an instant, with exactly what was committed until then."""

import asyncio
import base64
import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from sapa.db.pool import Database, open_database
from sapa.runtime.embedded import EmbeddedServer, claim_folder, open_embedded
from tests.backups.conftest import PASSPHRASE
from tests.cli.command import Outcome, sapa
from tests.conftest import copy_prepared
from tests.db.scratch import connect
from tests.factories import make_company


@pytest.fixture
def parent() -> Iterator[Path]:
    """Where the user of the embedded server can reach everything."""
    folder = Path(mkdtemp(prefix="sapa-instant-"))
    folder.chmod(0o755)
    yield folder
    rmtree(folder)


def run(data: Path, *arguments: str) -> Outcome:
    return sapa(data, *arguments, SAPA_BACKUP_PASSPHRASE=PASSPHRASE)


async def archive_changes(server: EmbeddedServer) -> None:
    """As after a minute."""
    url = server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", f"postgres:{server.secrets.superuser}")
    async with connect(url) as superuser:
        name = await superuser.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
        archived = ""
        while archived < name:
            await asyncio.sleep(0.05)
            archived = await superuser.fetchval("SELECT last_archived_wal FROM pg_stat_archiver") or ""


async def make_named_companies(database: Database, number: int) -> list[str]:
    return [(await make_company(database)).name for _ in range(number)]


async def test_an_instant_between_two_changes_is_restored(parent: Path) -> None:
    data, archive = parent / "data", parent / "archive"
    copy_prepared(data)
    assert run(data, "backup", "base").sentence().startswith("This data folder has no archive.")
    assert run(data, "backup", "archive", str(archive)).code == 0
    made = await asyncio.to_thread(run, data, "backup", "base", "--json")
    assert made.code == 0, made.err
    async with open_embedded(data) as server, open_database(server.app_url) as database:
        before = await make_named_companies(database, 3)
        async with database.connection() as db:
            instant = str(await db.fetchval("SELECT clock_timestamp()::text"))
        after = await make_named_companies(database, 3)
        await archive_changes(server)
    restored = run(parent / "then", "restore", str(archive), "--until", instant)
    assert restored.code == 0, restored.err
    names = {each["name"] for each in run(parent / "then", "company", "list", "--json").json()}
    assert names == set(before)
    latest = run(parent / "latest", "restore", str(archive), "--until", "latest")
    assert latest.code == 0, latest.err
    names = {each["name"] for each in run(parent / "latest", "company", "list", "--json").json()}
    assert names == {*before, *after}
    assert EmbeddedServer(parent / "latest").secret_key == EmbeddedServer(data).secret_key
    assert "has a database already" in run(data, "restore", str(archive), "--until", "latest").sentence()
    early = run(parent / "early", "restore", str(archive), "--until", "2020-01-01T00:00:00Z").sentence()
    assert early.startswith("The archive has no base copy from before that instant.")
    late = run(parent / "late", "restore", str(archive), "--until", "2100-01-01T00:00:00Z").sentence()
    assert late.startswith("The archive ends before that instant")
    unclear = run(parent / "late", "restore", str(archive), "--until", "noon").sentence()
    assert unclear.startswith("--until must be an instant with an offset")


@pytest.mark.long
async def test_a_server_that_does_not_archive_yet_is_not_copied(parent: Path) -> None:
    data, archive = parent / "data", parent / "archive"
    copy_prepared(data)
    async with claim_folder(data) as server:
        await server.start()
        assert (await asyncio.to_thread(run, data, "backup", "archive", str(archive))).code == 0
        refused = await asyncio.to_thread(run, data, "backup", "base")
        await server.stop()
    assert refused.sentence().startswith(f"Sapa has not been started again since it got the archive {archive}.")
    assert not list(archive.glob("base-*"))


def test_an_archive_in_the_wrong_folder_is_refused(parent: Path) -> None:
    refused = run(parent / "data", "backup", "archive", str(parent / "archive"))
    assert refused.sentence().startswith("There is no installation in")
    assert list(parent.iterdir()) == []


@pytest.mark.long
def test_a_base_copy_has_the_key_that_replaced_that_of_the_data_folder(parent: Path) -> None:
    data, archive = parent / "data", parent / "archive"
    key = base64.b64encode(os.urandom(32)).decode()
    copy_prepared(data)
    run(data, "backup", "archive", str(archive))
    made = sapa(data, "backup", "base", SAPA_BACKUP_PASSPHRASE=PASSPHRASE, SAPA_SECRET_KEY=key)
    assert made.code == 0, made.err
    restored = run(parent / "restored", "restore", str(archive), "--until", "latest")
    assert restored.code == 0, restored.err
    assert EmbeddedServer(parent / "restored").secret_key == key


@pytest.mark.long
async def test_older_base_copies_go_with_the_changes_that_only_they_need(parent: Path) -> None:
    data, archive = parent / "data", parent / "archive"
    copy_prepared(data)
    run(data, "backup", "archive", str(archive))
    first = run(data, "backup", "base", "--json").json()["name"]
    changes = {path.name for path in (archive / "changes").iterdir()}
    second = run(data, "backup", "base", "--keep", "1", "--json").json()["name"]
    assert [path.name for path in archive.glob("base-*")] == [second] != [first]
    assert not changes <= {path.name for path in (archive / "changes").iterdir()}
    restored = run(parent / "restored", "restore", str(archive), "--until", "latest")
    assert restored.code == 0, restored.err
