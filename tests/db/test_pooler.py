"""Behind PgBouncer: a session for each client is enough, one for each transaction is refused by name."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from sapa.backups.write import open_session
from sapa.db.connection import DatabaseAway, connect
from sapa.db.pool import open_database
from sapa.db.pooler import REASON, shares_sessions
from sapa.runtime.cluster import Secrets
from sapa.runtime.processes import wait_until
from tests.conftest import connect as call_api
from tests.conftest import free_port, start_installation, stop_installation
from tests.factories import make_company, make_customer, make_key
from tests.faults.replicas import Replicas, open_replicas

pytestmark = pytest.mark.long

MAX_CLIENTS = 35


class Bouncer:
    """A running PgBouncer, and how each role reaches the database through it."""

    def __init__(self, secrets: Secrets, port: int) -> None:
        self.app_url = f"postgresql://sapa_app:{secrets.app}@127.0.0.1:{port}/sapa"
        self.owner_url = f"postgresql://sapa_owner:{secrets.owner}@127.0.0.1:{port}/sapa"

    async def accepts(self) -> bool:
        try:
            connection = await connect(self.app_url, timeout=10)
        except DatabaseAway:
            return False
        await connection.close()
        return True


@contextmanager
def run_pgbouncer(replicas: Replicas, mode: str, *settings: str) -> Iterator[Bouncer]:
    program = shutil.which("pgbouncer", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    assert program is not None, "install Debian's package pgbouncer"
    folder, port = Path(mkdtemp(prefix="sapa-bouncer-")), free_port()
    secrets = replicas.secrets
    (folder / "users.txt").write_text(f'"sapa_app" "{secrets.app}"\n"sapa_owner" "{secrets.owner}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"""
[databases]
sapa = host=127.0.0.1 port={replicas.primary.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users.txt
pool_mode = {mode}
max_client_conn = {MAX_CLIENTS}
default_pool_size = 40
"""
        + "\n".join(settings)
    )
    user = "nobody" if os.geteuid() == 0 else None  # PgBouncer refuses to be root
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, user or os.geteuid())
    process = subprocess.Popen(
        [program, str(folder / "pgbouncer.ini")], user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield Bouncer(secrets, port)
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
async def replicas(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Replicas]:
    """Servers that PgBouncer reaches over TCP, as another user."""
    folder = tmp_path_factory.mktemp("replicas")
    folder.chmod(0o755)
    async with open_replicas(folder) as opened:
        yield opened


async def test_an_installation_runs_on_sessions_of_its_own(replicas: Replicas, tmp_path: Path) -> None:
    with run_pgbouncer(replicas, "session") as bouncer:
        assert await wait_until(bouncer.accepts, 60)
        assert not await shares_sessions(bouncer.app_url)
        own = await asyncio.to_thread(
            start_installation,
            tmp_path / "data",
            SAPA_DATABASE_URL=bouncer.app_url,
            SAPA_DATABASE_OWNER_URL=bouncer.owner_url,
            SAPA_SECRET_KEY=replicas.secrets.secret_key,
        )
        try:
            async with open_database(bouncer.app_url) as database:
                key = await make_key(database, (await make_company(database)).live)
            async with call_api(own, key.raw) as api:
                made = await make_customer(api)
                assert (await api.get("/customers")).json()["data"] == [made]
            async with open_session(bouncer.owner_url) as owner:  # a backup's
                assert await owner.fetchval("SELECT count(*) FROM customers") == 1
        finally:
            assert stop_installation(own) == 0


async def test_sessions_for_a_transaction_are_refused(replicas: Replicas) -> None:
    with run_pgbouncer(replicas, "transaction") as bouncer:
        assert await wait_until(bouncer.accepts, 60)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
        environ |= {"SAPA_DATABASE_URL": bouncer.app_url, "SAPA_SECRET_KEY": replicas.secrets.secret_key}
        for command in (["api", "--port", str(free_port())], ["worker"], ["serve", "--port", str(free_port())]):
            ended = await asyncio.to_thread(
                subprocess.run, [sys.executable, "-m", "sapa", *command], env=environ, capture_output=True, timeout=120
            )
            assert ended.returncode == 1
            assert REASON in " ".join(ended.stderr.decode().split()), ended.stderr.decode()
        doctor = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "sapa", "doctor", "--json"], env=environ, capture_output=True
        )
        assert doctor.returncode == 1
        assert REASON in doctor.stdout.decode()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_sessions_that_are_taken_in_turn_are_noticed(replicas: Replicas, size: int) -> None:
    settings = ("server_round_robin = 1", f"min_pool_size = {size}", f"default_pool_size = {size}")
    with run_pgbouncer(replicas, "transaction", *settings) as bouncer:
        assert await wait_until(bouncer.accepts, 60)
        assert await shares_sessions(bouncer.app_url)


async def test_a_pooler_that_is_full_is_a_database_that_is_away(replicas: Replicas) -> None:
    with run_pgbouncer(replicas, "session") as bouncer:
        assert await wait_until(bouncer.accepts, 60)
        full = [await connect(bouncer.app_url, timeout=60) for _ in range(MAX_CLIENTS)]
        with pytest.raises(DatabaseAway, match="no more connections allowed"):
            await connect(bouncer.app_url, timeout=60)
        for connection in full:
            connection.terminate()
