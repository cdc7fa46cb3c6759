import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import httpx
import psutil
import pytest

from sapa.runtime.api_server import HEALTHY_SECONDS
from sapa.runtime.embedded import EmbeddedServer, open_embedded
from sapa.runtime.processes import wait_until
from tests.conftest import TLS, copy_prepared, free_port
from tests.db.scratch import connect

EVERYWHERE = "0.0.0.0"  # noqa: S104

PATIENCE = 120


class Serving:
    """One `sapa serve`, and what an onlooker sees of it."""

    def __init__(self, folder: Path, port: int, processes: int = 1, **environment: str) -> None:
        self.folder = folder
        self.port = port
        self._processes = processes
        self._output = Path(mkdtemp(dir=folder, prefix="output-")) / "output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sapa", "serve", "--port", str(port), "--data", str(folder / "data")],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "SAPA_PROCESSES": str(processes), **environment},
            )
        self.supervisor = psutil.Process(self._process.pid)

    @property
    def output(self) -> str:
        return self._output.read_text()

    def answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=120, verify=TLS).status_code == 200
        except httpx.HTTPError:
            return False

    async def sees(self, condition: Callable[[], bool]) -> None:
        assert await wait_until(condition, PATIENCE), self.output

    async def ready(self) -> None:
        await self.sees(lambda: "Sapa is running at" in self.output)
        await self.sees(self.answers)
        await self.sees(lambda: len(self.answering()) == self._processes)

    def answering(self) -> list[psutil.Process]:
        """The processes that answer: the children of `sapa api`, except the one of lower priority, which serves the
        metrics."""
        with suppress(psutil.NoSuchProcess):
            api = self.get("api")
            return [child for child in api.children() if child.nice() == api.nice()]
        return []

    def everything(self) -> list[psutil.Process]:
        return [self.supervisor, *self.supervisor.children(recursive=True)]

    def find(self, name: str) -> psutil.Process | None:
        """The direct child called `api`, `worker` or `postgres`."""
        return next((child for child in self.supervisor.children() if name_of(child) == name), None)

    def get(self, name: str) -> psutil.Process:
        found = self.find(name)
        assert found, self.output
        return found

    async def replaced(self, name: str, before: psutil.Process) -> None:
        await self.sees(lambda: self.find(name) not in {None, before})

    async def exit_code(self) -> int:
        await self.sees(lambda: self._process.poll() is not None)
        return int(self._process.returncode)

    async def clean_up(self) -> None:
        family = self.everything() if self.supervisor.is_running() else []
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(PATIENCE)
        assert await wait_until(lambda: not any(map(is_alive, family)), PATIENCE)


Start = Callable[..., Serving]


def name_of(process: psutil.Process) -> str:
    try:
        command = process.cmdline()
    except psutil.NoSuchProcess:
        return ""
    return "postgres" if command and Path(command[0]).name == "postgres" else "".join(command[-1:])


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def all_gone(processes: list[psutil.Process]) -> bool:
    return await wait_until(lambda: not any(map(is_alive, processes)), PATIENCE)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own folders are closed to them."""
    path = Path(mkdtemp(prefix="sapa-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def serve(folder: Path, port: int) -> AsyncIterator[Start]:
    """Starts `sapa serve` on the test's folder and port, and cleans up after it."""
    started: list[Serving] = []

    def start(port: int = port, **environment: str) -> Serving:
        started.append(Serving(folder, port, processes=1, **environment))
        return started[-1]

    yield start
    for serving in started:
        await serving.clean_up()


@pytest.fixture
def sapa(serve: Start, folder: Path) -> Serving:
    """One that the test ends, on a database that was made before."""
    copy_prepared(folder / "data")
    return serve()


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[Serving]:
    with open_folder() as folder:
        copy_prepared(folder / "data")
        serving = Serving(folder, free_port(), processes=2)
        yield serving
        await serving.clean_up()


@pytest.fixture
async def running(shared: Serving) -> Serving:
    """One for all tests that leave it running, with two processes that answer."""
    await shared.ready()
    return shared


@pytest.mark.parametrize("request_to_stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
async def test_stops_everything_when_asked(sapa: Serving, request_to_stop: signal.Signals) -> None:
    await sapa.ready()
    everything = sapa.everything()
    # As a terminal does it: the whole foreground process group gets the signal.
    os.killpg(sapa.supervisor.pid, request_to_stop)
    assert await sapa.exit_code() == 0
    assert not any(map(is_alive, everything))
    assert "Sapa has stopped." in sapa.output


@pytest.mark.long
async def test_second_request_hurries(sapa: Serving) -> None:
    await sapa.ready()
    everything = sapa.everything()
    sapa.get("worker").suspend()
    sapa.supervisor.send_signal(signal.SIGINT)
    await sapa.sees(lambda: "Stopping Sapa" in sapa.output)
    sapa.supervisor.send_signal(signal.SIGINT)
    assert await sapa.exit_code() == 0
    assert not any(map(is_alive, everything))


@pytest.mark.long
async def test_stop_during_the_first_start(serve: Start, folder: Path) -> None:
    sapa = serve()
    await sapa.sees(lambda: (folder / "data" / "lock").exists())
    sapa.supervisor.send_signal(signal.SIGTERM)
    assert await sapa.exit_code() == 0
    await serve().ready()


@pytest.mark.long
async def test_second_start_on_the_same_folder_is_refused(running: Serving) -> None:
    second = Serving(running.folder, port=1)
    assert await second.exit_code() == 1
    assert "already runs on the data folder" in second.output
    assert second.output.count("\n") == 1
    assert running.answers()


async def test_taken_port_is_refused(serve: Start, folder: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        sapa = serve()
        assert await sapa.exit_code() == 1
        assert f"Port {port} on 127.0.0.1 is taken" in sapa.output
        assert not (folder / "data" / "pg").exists()


async def test_kill_of_the_supervisor_leaves_nothing_behind(sapa: Serving, serve: Start) -> None:
    await sapa.ready()
    everything = sapa.everything()
    assert {"api", "worker", "postgres"} <= {name_of(process) for process in everything}
    sapa.supervisor.kill()
    assert await sapa.exit_code() == -signal.SIGKILL
    assert await all_gone(everything)
    await serve().ready()


@pytest.mark.long
async def test_start_right_after_a_kill_of_the_supervisor(sapa: Serving, serve: Start) -> None:
    await sapa.ready()
    everything = sapa.everything()
    sapa.supervisor.kill()
    await serve().ready()
    assert await all_gone(everything)


@pytest.mark.long
async def test_kill_of_an_api_process_and_at_once_of_its_successor(running: Serving) -> None:
    api = running.get("api")
    before = [api, *api.children()]
    victim = running.answering()[0]
    await running.sees(lambda: time.time() - victim.create_time() > HEALTHY_SECONDS + 1)
    victim.kill()
    await running.sees(lambda: bool(set(api.children()) - set(before)))
    (successor,) = set(api.children()) - set(before)
    successor.kill()
    await running.replaced("api", api)
    await running.sees(running.answers)
    assert not any(map(is_alive, [*before, successor]))


@pytest.mark.long
async def test_kill_of_the_api_twice(running: Serving) -> None:
    killed: list[psutil.Process] = []
    for _ in range(2):
        api = running.get("api")
        killed += [api, *api.children()]
        api.kill()
        await running.replaced("api", api)
    await running.sees(running.answers)
    assert not any(map(is_alive, killed))


async def test_kill_of_the_worker(running: Serving) -> None:
    api, worker = running.get("api"), running.get("worker")
    worker.kill()
    await running.replaced("worker", worker)
    assert "sapa worker was ended by SIGKILL; starting it again." in running.output
    assert running.get("api") == api
    assert running.answers()


async def test_kill_of_the_fork_server_and_then_of_the_worker(running: Serving) -> None:
    forks, api, worker = running.get("fork-server"), running.get("api"), running.get("worker")
    forks.kill()
    await running.sees(lambda: not is_alive(forks))
    assert running.answers()
    assert (running.get("api"), running.get("worker")) == (api, worker)
    worker.kill()
    await running.replaced("worker", worker)


async def test_kill_of_the_embedded_server(running: Serving) -> None:
    api, postgres = running.get("api"), running.get("postgres")
    serving = set(api.children())
    postgres.kill()
    await running.replaced("postgres", postgres)
    await running.sees(running.answers)
    assert set(running.get("api").children()) == serving
    assert "The embedded PostgreSQL was ended by SIGKILL; starting it again." in running.output


async def test_children_get_the_lesser_password_only(running: Serving) -> None:
    for process in running.everything():
        assert "sapa_owner" not in str(process.environ())
    assert "SAPA_SECRET_KEY" not in running.get("postgres").environ()
    async with connect(EmbeddedServer(running.folder / "data").owner_url) as owner:
        roles = await owner.fetch("SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name LIKE 'sapa %'")
    assert [role for (role,) in roles] == ["sapa_app"]


@pytest.mark.long
async def test_a_service_that_faces_a_network_keeps_its_keys_out_of_the_log(serve: Start, folder: Path) -> None:
    copy_prepared(folder / "data")
    metrics = f"{EVERYWHERE}:{free_port()}"
    sapa = serve(SAPA_HOST=EVERYWHERE, SAPA_PUBLIC_URL="http://sapa.example.com", SAPA_METRICS_LISTEN=metrics)
    await sapa.ready()
    file = folder / "data" / "first-start.txt"
    assert str(file) in sapa.output
    assert "svc_" not in sapa.output
    assert "/console/link/" not in sapa.output
    assert file.stat().st_mode & 0o777 == 0o600
    assert "svc_live_" in file.read_text()
    for what in ("network", "metrics", "public URL"):
        assert f"Warning: {what}: " in sapa.output
    assert (folder / "data" / "metrics").stat().st_mode & 0o777 == 0o700
    await sapa.clean_up()


@pytest.mark.long
async def test_outside_database(serve: Start, folder: Path) -> None:
    async with open_embedded(folder / "outside") as outside:
        urls = {"SAPA_DATABASE_URL": outside.app_url, "SAPA_DATABASE_OWNER_URL": outside.owner_url}
        sapa = serve(SAPA_SECRET_KEY=outside.secret_key, **urls)
        await sapa.ready()
        assert sapa.find("postgres") is None
        assert "SAPA_DATABASE_OWNER_URL" not in sapa.get("api").environ()
        assert not (folder / "data").exists()
        await sapa.clean_up()


@pytest.mark.long
async def test_outside_database_that_is_away_is_reported_in_a_sentence(serve: Start, port: int) -> None:
    sapa = serve(SAPA_DATABASE_URL=f"postgresql://nobody:secret@127.0.0.1:{port}/sapa")
    assert await sapa.exit_code() == 1
    assert "The database cannot be used" in sapa.output
    assert "secret" not in sapa.output
    assert "Traceback" not in sapa.output
