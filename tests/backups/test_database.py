"""Moving to an external database and back, and to another PostgreSQL: the same rows, and the old ones stay."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from sapa.db.migrations import find_mismatch, migrate, migrate_to
from sapa.db.migrations.files import list_migrations
from sapa.db.pool import open_database
from sapa.runtime.cluster import find_account, make_secrets
from sapa.runtime.embedded import EmbeddedServer
from tests.backups.conftest import Source
from tests.backups.test_restore import read_everything
from tests.cli.command import sapa
from tests.conftest import Installation, copy_prepared
from tests.db.scratch import connect, scratch_database
from tests.factories import make_company

OLD = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A data folder to be, that the user of the embedded server can reach."""
    parent = Path(mkdtemp(prefix="sapa-moved-"))
    parent.chmod(0o755)
    yield parent / "data"
    rmtree(parent)


async def test_an_external_database_moves_into_a_data_folder_and_out_again(
    source: Source, fresh: Path, installation: Installation
) -> None:
    moved = source.run("database", "move", "--to-embedded", SAPA_DATA=str(fresh))
    assert moved.code == 0, moved.err
    assert EmbeddedServer(fresh).secret_key == source.secret_key
    async with scratch_database(installation.server) as target:
        urls = ("--to", target.app_url, "--to-owner", target.owner_url)
        moved = sapa(fresh, "database", "move", *urls, SAPA_SECRET_KEY=source.secret_key)
        assert moved.code == 0, moved.err
        assert "SAPA_SECRET_KEY, as it is now." in moved.out
        assert await read_everything(target.owner_url) == await read_everything(source.database.owner_url)
        assert "not empty" in sapa(fresh, "database", "move", *urls).sentence()
    assert "not empty" in source.run("database", "move", "--to-embedded", SAPA_DATA=str(fresh)).sentence()


async def test_a_database_that_is_in_use_is_not_moved(source: Source, fresh: Path) -> None:
    async with connect(source.database.app_url) as db:
        await db.execute("SET application_name = 'sapa worker'")
        message = source.run("database", "move", "--to-embedded", SAPA_DATA=str(fresh)).sentence()
    assert message == "Sapa is still connected to the database (sapa worker). Stop it first."


async def test_a_folder_without_an_installation_is_not_moved(fresh: Path, installation: Installation) -> None:
    async with scratch_database(installation.server) as target:
        message = sapa(fresh, "database", "move", "--to", target.owner_url).sentence()
    assert message.startswith("There is no installation in")


async def test_a_running_installation_is_not_moved(installation: Installation) -> None:
    async with scratch_database(installation.server) as target:
        message = sapa(installation.data, "database", "move", "--to", target.owner_url).sentence()
    assert message.startswith("Sapa already runs on the data folder")


@pytest.mark.parametrize("options", [(), ("--to", "postgresql://x/y", "--to-embedded"), ("--to", "nonsense")])
def test_a_move_needs_one_target(source: Source, options: tuple[str, ...]) -> None:
    assert source.run("database", "move", *options).sentence()


def make_old_cluster(data: Path) -> EmbeddedServer:
    """A data folder as a version with an older PostgreSQL would have made it."""
    data.mkdir(mode=0o711, parents=True)
    server = EmbeddedServer(data, binaries=OLD)
    account = find_account(data, server.cluster)
    make_secrets(data / "secrets.json", server.cluster)
    server.cluster.mkdir(mode=0o700)
    user = None
    if account:
        os.chown(server.cluster, account.uid, account.gid)
        user = account.uid
    initdb = [OLD / "initdb", "-D", server.cluster, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust"]
    subprocess.run([*map(str, initdb)], check=True, capture_output=True, user=user, cwd="/")
    secrets = server.secrets
    roles = f"""
        CREATE ROLE sapa_owner LOGIN PASSWORD '{secrets.owner}';\n
        CREATE ROLE sapa_app LOGIN PASSWORD '{secrets.app}';\n
        CREATE DATABASE sapa OWNER sapa_owner;\n
    """
    command = [str(OLD / "postgres"), "--single", "-D", str(server.cluster), "-j", "postgres"]
    subprocess.run(command, input=roles.encode(), check=True, capture_output=True, user=user, cwd="/")
    return server


@pytest.mark.long
@pytest.mark.skipif(not OLD.exists(), reason="PostgreSQL 15 is not installed")
async def test_a_data_folder_of_an_older_postgresql_is_upgraded(fresh: Path) -> None:
    server = make_old_cluster(fresh)
    await server.start()
    try:
        await migrate(server.owner_url, server.app_url)
        async with open_database(server.app_url) as database:
            company = await make_company(database)
        before = await read_everything(server.owner_url)
    finally:
        await server.stop()
    message = sapa(fresh, "company", "list", "--json").sentence()
    assert "has the files of PostgreSQL 15" in message
    assert "sapa database upgrade" in message
    upgraded = sapa(fresh, "database", "upgrade")
    assert upgraded.code == 0, upgraded.err
    assert company.name in sapa(fresh, "company", "list", "--json").out
    assert (fresh / "pg.15" / "PG_VERSION").read_text() == "15\n"
    now = EmbeddedServer(fresh)
    await now.start()
    try:
        assert await read_everything(now.owner_url) == before
    finally:
        await now.stop()
    assert "already" in sapa(fresh, "database", "upgrade").out
    assert "pg.15" in sapa(fresh, "database", "upgrade", "--remove-old").out
    assert not (fresh / "pg.15").exists()


@pytest.mark.long
@pytest.mark.skipif(not OLD.exists(), reason="PostgreSQL 15 is not installed")
async def test_an_upgrade_migrates_as_well(fresh: Path) -> None:
    """A new Sapa may bring a new PostgreSQL and a new schema at once, and starts on neither before the upgrade."""
    server = make_old_cluster(fresh)
    await server.start()
    try:
        await migrate_to(server.owner_url, len(list_migrations()) - 10)
        async with connect(server.owner_url) as db:
            await db.execute("INSERT INTO backup_runs (place) VALUES ('kept')")
    finally:
        await server.stop()
    (fresh / "pg.12").mkdir()
    server.use_archive(fresh / "archived")
    upgraded = sapa(fresh, "database", "upgrade")
    assert upgraded.code == 0, upgraded.err
    assert "Begin a new one" in upgraded.out
    archive = sapa(fresh, "backup", "archive", str(fresh / "archived"))
    assert "has the archive of another database" in archive.sentence()
    now = EmbeddedServer(fresh)
    await now.start()
    try:
        async with connect(now.owner_url) as db:
            assert await find_mismatch(db) is None
            assert await db.fetchval("SELECT place FROM backup_runs") == "kept"
            assert await db.fetchval("SHOW archive_mode") == "off"
            assert await db.fetchval("SELECT archived_count FROM pg_stat_archiver") == 0
    finally:
        await now.stop()


@pytest.mark.long
def test_an_upgrade_that_was_interrupted_at_its_end_is_finished(fresh: Path) -> None:
    copy_prepared(fresh)
    (fresh / "pg").rename(fresh / "pg.upgraded")
    (fresh / "pg.12").mkdir()
    assert "run `sapa database upgrade` again" in sapa(fresh, "company", "list").sentence()
    assert "There is no other database" in sapa(fresh, "database", "upgrade", "--remove-old").sentence()
    assert "finished" in sapa(fresh, "database", "upgrade").out
    assert sapa(fresh, "company", "list", "--json").code == 0
    assert "pg.12" in sapa(fresh, "database", "upgrade", "--remove-old").out


@pytest.mark.long
def test_what_an_upgrade_lacks_is_named(fresh: Path, tmp_path: Path) -> None:
    copy_prepared(fresh)
    assert "already" in sapa(fresh, "database", "upgrade").out
    (fresh / "pg" / "PG_VERSION").write_text("12\n")
    assert "name their folder with --binaries" in sapa(fresh, "database", "upgrade").sentence()
    assert "does not have the programs" in sapa(fresh, "database", "upgrade", "--binaries", str(tmp_path)).sentence()
    (fresh / "pg").rename(fresh / "pg.12")
    assert "was interrupted" in sapa(fresh, "company", "list").sentence()


def test_a_folder_without_a_database_cannot_be_upgraded(fresh: Path) -> None:
    assert "There is no embedded database" in sapa(fresh, "database", "upgrade").sentence()
