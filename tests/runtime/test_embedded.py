import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from signal import SIGKILL, SIGTERM
from tempfile import mkdtemp

import asyncpg
import psutil
import pytest

from sapa.db.pool import open_database
from sapa.runtime.cluster import find_account, get_connection_limit, program
from sapa.runtime.connection_budget import RESERVED, count_connections
from sapa.runtime.embedded import MIN_CONNECTIONS, EmbeddedServer, claim_folder, open_embedded
from sapa.runtime.processes import (
    CannotStart,
    ProcessUser,
    spawn,
    wait_until,
)
from sapa.settings import read_settings
from tests.conftest import copy_prepared

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

HOLD = """
import asyncio, sys
from pathlib import Path
from sapa.runtime.embedded import open_embedded, claim_folder

async def hold():
    if sys.argv[2] == "cli":
        async with open_embedded(Path(sys.argv[1])):
            print("ready", flush=True)
            await asyncio.sleep(3600)
    async with claim_folder(Path(sys.argv[1])) as server:
        await server.start()
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(hold())
"""


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A data folder to be, that other users can reach; pytest's own folders are closed to them."""
    folder = Path(mkdtemp(prefix="sapa-test-"))
    folder.chmod(0o755)
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.fixture
def data(fresh: Path) -> Path:
    """A data folder whose database was made before."""
    copy_prepared(fresh)
    return fresh


@asynccontextmanager
async def holding(data: Path, kind: str, account: ProcessUser | None = None) -> AsyncIterator[psutil.Process]:
    """Another process that holds the folder with its server running."""
    child = spawn([sys.executable, "-c", HOLD, str(data), kind], SIGKILL, account=account, output=subprocess.PIPE)
    try:
        assert child.stdout is not None
        said = await asyncio.to_thread(child.stdout.readline)
        assert said == b"ready\n", said + child.stdout.read()
        yield psutil.Process(child.pid)
    finally:
        child.kill()
        child.communicate()
        await wait_until(lambda: not is_running(recorded_pid(data)), 30)


@contextmanager
def other_process(command: list[str], data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the server's user, started as the server is: that user may not enter the folder of this clone."""
    account = find_account(data, data / "pg")
    process = spawn(command, SIGTERM, account=account, cwd="/", output=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def recorded_pid(data: Path) -> int:
    try:
        return int((data / "pg" / "postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return 0


def is_running(pid: int) -> bool:
    try:
        return pid > 0 and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def unfinished(data: Path) -> list[Path]:
    return list(data.glob("pg.new-*/base"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def leave_mark(url: str) -> None:
    await ask(url, "CREATE TABLE marks AS SELECT 7 AS mark")


async def has_mark(url: str) -> bool:
    return await ask(url, "SELECT mark FROM marks") == 7


async def test_first_start_makes_the_database_and_its_two_roles(fresh: Path) -> None:
    async with open_embedded(fresh) as server:
        for extension in ("pg_trgm", "btree_gin", "citext", "unaccent"):
            await ask(server.owner_url, f"CREATE EXTENSION {extension}")
        assert await ask(server.app_url, "SELECT current_user::text") == "sapa_app"
        assert not await ask(server.app_url, "SELECT bool_or(rolsuper) FROM pg_roles WHERE rolname LIKE 'sapa%'")
        assert await ask(server.app_url, "SHOW server_encoding") == "UTF8"
        locale = "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'sapa'"
        assert await ask(server.app_url, locale) == "bC.UTF-8"
        assert await ask(server.app_url, "SHOW listen_addresses") == ""
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(server.app_url, "CREATE TABLE anything (id int)")


async def test_what_is_secret_is_closed_to_others(fresh: Path) -> None:
    async with open_embedded(fresh) as server:
        assert mode(fresh / "secrets.json") == 0o600
        assert mode(fresh / "pg") == mode(fresh / "socket") == mode(fresh / "log") == 0o700
        for role in ("postgres", "sapa_owner"):
            with pytest.raises(asyncpg.InvalidPasswordError):
                await asyncpg.connect(user=role, password="guess", database="sapa", host=str(server.socket_folder))


@pytest.mark.long
async def test_later_start_keeps_data_and_passwords(data: Path) -> None:
    async with open_embedded(data) as first:
        await leave_mark(first.owner_url)
    async with open_embedded(data) as second:
        assert await has_mark(second.owner_url)
        assert second.secrets == first.secrets
    assert not is_running(recorded_pid(data))


async def test_first_start_killed_in_the_middle_is_resumed(fresh: Path) -> None:
    child = spawn([sys.executable, "-c", HOLD, str(fresh), "cli"], SIGKILL)
    assert await wait_until(lambda: bool(unfinished(fresh)), 30)
    child.kill()
    child.wait()
    assert not (fresh / "pg").exists()
    async with open_embedded(fresh) as server:
        assert await ask(server.app_url, "SELECT 1") == 1
    assert not unfinished(fresh)


async def test_kill_of_the_holder_ends_the_server_and_keeps_what_was_committed(data: Path) -> None:
    async with holding(data, "cli") as holder:
        await leave_mark(EmbeddedServer(data).owner_url)
        postmaster = recorded_pid(data)
        holder.kill()
        assert await wait_until(lambda: not is_running(postmaster), 30)
    async with open_embedded(data) as server:
        assert await has_mark(server.owner_url)


@pytest.mark.long
async def test_server_that_outlived_its_holder_is_replaced(data: Path) -> None:
    async with open_embedded(data) as server:
        await leave_mark(server.owner_url)
    with other_process(
        [program("postgres"), "-D", str(data / "pg"), "-k", str(data / "socket"), "-h", ""], data
    ) as orphan:
        await EmbeddedServer(data).wait_until_accepting(seconds=30)
        async with open_embedded(data) as successor:
            assert orphan.wait(30) == 0
            assert recorded_pid(data) != orphan.pid
            assert await has_mark(successor.owner_url)


@pytest.mark.long
async def test_number_of_a_gone_server_is_no_obstacle(data: Path) -> None:
    async with open_embedded(data):
        left = (data / "pg" / "postmaster.pid").read_text()
    (data / "pg" / "postmaster.pid").write_text(left)
    async with open_embedded(data) as server:
        assert await ask(server.app_url, "SELECT 1") == 1


@pytest.mark.long
async def test_unrelated_process_with_the_number_of_a_gone_server_lives_on(data: Path) -> None:
    async with open_embedded(data):
        left = (data / "pg" / "postmaster.pid").read_text().split("\n")
    with other_process(["sleep", "3600"], data) as bystander:
        (data / "pg" / "postmaster.pid").write_text("\n".join([str(bystander.pid), *left[1:]]))
        async with open_embedded(data) as server:
            assert await ask(server.app_url, "SELECT 1") == 1
        assert bystander.poll() is None


async def test_kill_of_the_server_is_recovered_by_the_next_start(data: Path) -> None:
    async with open_embedded(data) as server:
        await leave_mark(server.owner_url)
        os.kill(recorded_pid(data), signal.SIGKILL)
        assert await server.ended() == -signal.SIGKILL
    async with open_embedded(data) as successor:
        assert await has_mark(successor.owner_url)


@pytest.mark.long
async def test_long_path_gets_its_socket_in_a_short_private_folder(fresh: Path) -> None:
    copy_prepared(fresh / ("x" * 100))
    async with open_embedded(fresh / ("x" * 100)) as server:
        assert mode(server.socket_folder) == 0o700
        assert await ask(server.app_url, "SELECT 1") == 1
    shutil.rmtree(server.socket_folder)


async def test_socket_folder_open_to_others_is_refused(fresh: Path) -> None:
    copy_prepared(fresh / ("y" * 100))
    folder = EmbeddedServer(fresh / ("y" * 100)).socket_folder
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(CannotStart, match=r"open to other users\. Remove it"):
        async with open_embedded(fresh / ("y" * 100)):
            pass
    folder.rmdir()


@pytest.mark.long
async def test_command_uses_the_server_of_serve_and_leaves_it_running(data: Path) -> None:
    async with holding(data, "serve"):
        postmaster = recorded_pid(data)
        async with open_embedded(data) as server:
            assert await ask(server.app_url, "SELECT 1") == 1
        assert recorded_pid(data) == postmaster
        assert is_running(postmaster)


@pytest.mark.long
async def test_command_waits_for_another_command_and_then_starts_its_own_server(data: Path) -> None:
    ran: list[int] = []

    async def command() -> None:
        async with open_embedded(data):
            ran.append(recorded_pid(data))
            await asyncio.sleep(0.3)
            assert ran[-1] == recorded_pid(data)

    await asyncio.gather(command(), command(), command())
    assert len(set(ran)) == 3


async def test_second_serve_is_refused(data: Path) -> None:
    async with holding(data, "serve"):
        with pytest.raises(CannotStart, match="already runs on the data folder"):
            async with claim_folder(data):
                pass


async def test_lock_of_a_killed_serve_is_free(data: Path) -> None:
    async with holding(data, "serve") as holder:
        holder.kill()
        assert (data / "lock").read_text().startswith("serve ")
        async with open_embedded(data) as server:
            assert await ask(server.app_url, "SELECT 1") == 1


async def test_errors_are_reported_in_a_sentence(data: Path) -> None:
    async with open_embedded(data):
        pass
    (data / "pg" / "global" / "pg_control").unlink()
    with pytest.raises(CannotStart, match=r"did not start. See the end of .*postgres\.log"):
        async with open_embedded(data):
            pass
    (data / "secrets.json").unlink()
    with pytest.raises(CannotStart, match=r"secrets\.json is missing"):
        async with open_embedded(data):
            pass


async def test_file_instead_of_the_folder_is_reported_in_a_sentence(fresh: Path) -> None:
    (fresh.parent / "file").touch()
    with pytest.raises(CannotStart, match="cannot be used"):
        async with open_embedded(fresh.parent / "file"):
            pass


@pytest.mark.long
@AS_ROOT
async def test_closed_parents_stay_closed_and_the_server_still_dies_with_its_holder(fresh: Path) -> None:
    fresh.parent.chmod(0o700)
    async with holding(fresh, "cli") as holder:
        postmaster = psutil.Process(recorded_pid(fresh))
        assert postmaster.uids().real != 0
        assert mode(fresh.parent) == 0o700
        holder.kill()
        assert await wait_until(lambda: not is_running(postmaster.pid), 30)


@AS_ROOT
async def test_ordinary_user(fresh: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(fresh.parent, nobody.pw_uid, nobody.pw_gid)
    # The capability is for the interpreter, which may lie where only root can look.
    async with holding(fresh, "cli", ProcessUser(nobody.pw_uid, nobody.pw_gid, "dac_read_search")) as holder:
        assert {child.uids().real for child in holder.children(recursive=True)} == {nobody.pw_uid}
        assert (fresh / "pg").stat().st_uid == (fresh / "secrets.json").stat().st_uid == nobody.pw_uid


@pytest.mark.long
async def test_the_servers_limit_follows_from_the_processes(fresh: Path) -> None:
    settings = read_settings({"SAPA_PROCESSES": "9", "SAPA_DATABASE_POOL": "20", "SAPA_WORKER_POOL": "30"})
    assert count_connections(settings) == 9 * (20 + 6 + 1) + 1 + 30 + 6 + 1
    assert count_connections(read_settings({"SAPA_PROCESSES": "3"})) + RESERVED <= MIN_CONNECTIONS
    copy_prepared(fresh)
    async with claim_folder(fresh) as server:
        server.max_connections = count_connections(settings) + RESERVED
        await server.start()
        try:
            async with open_database(server.app_url) as database, database.connection() as db:
                assert int(await db.fetchval("SHOW max_connections")) == server.max_connections
        finally:
            await server.stop()
    assert get_connection_limit(server.cluster) == server.max_connections
