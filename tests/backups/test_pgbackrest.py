"""The way that the documentation shows for an external server: pgBackRest, with the files of deploy/postgresql."""

import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp

import pytest

from tests.cli.command import sapa
from tests.conftest import free_port

DEPLOY = Path(__file__).parents[2] / "deploy" / "postgresql"
BINARIES = Path("/usr/lib/postgresql/15/bin")
SECONDS = 120

pytestmark = [
    pytest.mark.long,
    pytest.mark.processes,
    pytest.mark.skipif(not BINARIES.exists(), reason="PostgreSQL 15 is not installed"),
    pytest.mark.skipif(which("pgbackrest") is None, reason="pgbackrest is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become the user postgres"),
]


def run(*command: str | Path) -> str:
    """As the user of the database."""
    user = pwd.getpwnam("postgres")
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, check=False, cwd="/", user=user.pw_uid, group=user.pw_gid,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(mkdtemp(prefix="sapa-pgbackrest-"))
    user = pwd.getpwnam("postgres")
    os.chown(made, user.pw_uid, user.pw_gid)
    yield made
    rmtree(made)


def write_configuration(folder: Path, port: int) -> Path:
    """The file of deploy, with the test's folders instead of Debian's."""
    text = (DEPLOY / "pgbackrest.conf").read_text()
    text = text.replace("/var/lib/pgbackrest", f"{folder}/repository")
    text = text.replace("/var/lib/postgresql/15/main", f"{folder}/main\npg1-port={port}\npg1-socket-path={folder}")
    text = text.replace(
        "[global]", f"[global]\nlog-path={folder}/log\nlock-path={folder}/lock\nspool-path={folder}/spool"
    )
    path = folder / "pgbackrest.conf"
    path.write_text(text)
    path.chmod(0o644)
    return path


@contextmanager
def run_server(data: Path, port: int) -> Iterator[str]:
    """The address of a database `sapa`, once the server accepts writes."""
    options = f"-p {port} -k {data.parent} -c listen_addresses=127.0.0.1"
    log = data.parent / "log.txt"
    run(BINARIES / "pg_ctl", "-D", data, "-w", "-t", str(SECONDS), "-l", log, "-o", options, "start")
    try:
        ends = time.monotonic() + SECONDS
        while query(data, port, "SELECT pg_is_in_recovery()") != "f":
            assert time.monotonic() < ends, "the recovery does not end"
            time.sleep(0.1)
        yield f"postgresql://postgres@127.0.0.1:{port}/sapa"
    finally:
        run(BINARIES / "pg_ctl", "-D", data, "-m", "fast", "-w", "stop")


def query(data: Path, port: int, text: str) -> str:
    return run(
        BINARIES / "psql", "-h", data.parent, "-p", str(port), "-U", "postgres", "-Atqc", text, "postgres"
    ).strip()


def test_an_external_server_goes_back_to_an_instant(folder: Path, tmp_path: Path) -> None:
    port, main = free_port(), folder / "main"
    configuration = write_configuration(folder, port)
    run(BINARIES / "initdb", "-D", main, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust")
    archiving = (DEPLOY / "archive.conf").read_text().replace("pgbackrest ", f"pgbackrest --config={configuration} ")
    with (main / "postgresql.conf").open("a") as file:
        file.write(archiving)
    backrest = ("pgbackrest", f"--config={configuration}", "--stanza=sapa")
    with run_server(main, port) as url:
        query(main, port, "CREATE DATABASE sapa")
        assert sapa(tmp_path, "migrate", SAPA_DATABASE_URL=url).code == 0
        run(*backrest, "stanza-create")
        run(*backrest, "check")
        run(*backrest, "--type=full", "backup")
        time.sleep(1.1)  # pgBackRest stores the end of a backup in whole seconds
        assert sapa(tmp_path, "company", "create", "Toko Lama", SAPA_DATABASE_URL=url).code == 0
        instant = query(main, port, "SELECT clock_timestamp()")
        assert sapa(tmp_path, "company", "create", "Toko Baru", SAPA_DATABASE_URL=url).code == 0
        run(*backrest, "check")  # waits until what was written before it is archived
    restored = folder / "restored"
    target = ("--type=time", f"--target={instant}", "--target-action=promote", f"--pg1-path={restored}")
    run("mkdir", "-m", "700", restored)
    run(*backrest, *target, "restore")
    with run_server(restored, port) as url:
        found = sapa(tmp_path, "company", "list", "--json", SAPA_DATABASE_URL=url)
        assert {each["name"] for each in found.json()} == {"Toko Lama"}
