"""One real installation for the whole run: `sapa serve` on its embedded database, two API processes, one worker."""

import asyncio
import gc
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory

import httpx
import pytest
from hypothesis import settings
from msgspec import Struct
from playwright.async_api import Browser

from sapa import domains, wiring  # noqa: F401 - `domains` declares every statement and every kind of event
from sapa.db.migrations import migrate
from sapa.db.pool import Database, open_database
from sapa.runtime.embedded import EmbeddedServer, claim_folder
from tests import browsers, depth  # noqa: F401 - registers the profiles
from tests.citus import cluster
from tests.db.scratch import make_template
from tests.factories import Environments, make_company, make_key
from tests.http.response_check import check_answer

STARTUP_SECONDS = 120

PREPARED = "PREPARED_FOLDER"
"""The variable with the folder that all processes of a run share."""

TLS = ssl.create_default_context()
"""For every client: reading the certificates anew takes as long as ten requests."""

settings.load_profile("quick")  # `--hypothesis-profile=long` is read after this

wiring.install()

gc.disable()  # until the tests are collected: none of that is garbage, and looking for some takes a quarter of the time

# A shell ignores SIGINT in what it runs in the background, and the commands that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


RUNNING = {
    "installation", "post_office", "victim", "own", "alone", "server", "fresh", "shared", "serve", "scratch", "browser",
}  # fmt: skip
"""Fixtures that start something: a test without any of them is pure."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The house rules come first: they are quick, and whoever breaks one wants to know. Then files of few tests, which
    are the long ones: begun last, one of them would keep a single core busy while the other is done."""
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (not is_of_the_house(item), sizes[item.path], item.path))
    for item in items:
        if is_of_the_house(item) or is_pure(item) or item.get_closest_marker("smoke"):
            item.add_marker("check")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    result = yield
    gc.freeze()
    gc.enable()
    return result


def is_of_the_house(item: pytest.Item) -> bool:
    return "tests/house/" in item.nodeid


def is_pure(item: pytest.Item) -> bool:
    return RUNNING.isdisjoint(getattr(item, "fixturenames", ())) and not item.get_closest_marker("processes")


class Installation(Struct, frozen=True):
    """A running `sapa serve`."""

    address: str
    data: Path
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def server(self) -> EmbeddedServer:
        return EmbeddedServer(self.data) if cluster.URL is None else cluster.ClusterServer(self.data)

    @property
    def customer_base(self) -> str:
        return f"{self.address}/customer/v1"

    @property
    def metrics(self) -> str:
        """Where its metrics are, as its log says."""
        deadline = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < deadline:
            if found := re.findall(r'"address": ?"(http://[^"]+/metrics)"', self.log.read_text()):
                return str(found[-1])
            time.sleep(0.05)
        raise AssertionError(f"the log does not say where the metrics are:\n{self.log.read_text()}")


def free_port() -> int:
    """Not one of those that the system gives to outgoing connections: it would be gone before anybody listens on it."""
    while True:
        port = SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def pytest_configure(config: pytest.Config) -> None:
    """The first process of a run makes the folder that all of them share, and removes it."""
    if PREPARED not in os.environ:
        folder = TemporaryDirectory(prefix="sapa-prepared-")
        Path(folder.name).chmod(0o755)
        os.environ[PREPARED] = folder.name
        config.add_cleanup(folder.cleanup)


def prepare_folder() -> Path:
    """A data folder with a migrated database that nobody has started yet: made once in a run, then copied."""
    folder = Path(os.environ[PREPARED])
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (folder / "data").exists():
            with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop that runs
                thread.submit(asyncio.run, _prepare(folder / "unfinished")).result()
            (folder / "unfinished").rename(folder / "data")
    return folder / "data"


async def _prepare(data: Path) -> None:
    async with claim_folder(data) as server:
        await server.start()
        try:
            await migrate(server.owner_url, server.app_url)
            await make_template(server)
        finally:
            await server.stop()


def copy_prepared(data: Path) -> None:
    """Makes the data folder as a copy of the prepared one, with the same passwords and the same secret key."""
    data.parent.mkdir(parents=True, exist_ok=True)
    # Not shutil: the database belongs to the user that its server runs as.
    subprocess.run(["cp", "-a", str(prepare_folder()), str(data)], check=True)


def start_installation(data: Path, port: int | None = None, **variables: str) -> Installation:
    """Starts `sapa serve` and waits until it is ready; on a new folder its database is a copy."""
    port = port or free_port()
    if not data.exists() and "SAPA_DATABASE_URL" not in variables:
        if cluster.URL is None:
            copy_prepared(data)
        else:
            variables = cluster.make_database(data) | variables
    data.mkdir(parents=True, exist_ok=True)
    log = data / "serve.log"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    environ |= {"SAPA_PROCESSES": "2", "SAPA_DATABASE_WAIT": "30", **variables}  # 30: the machine may be busy
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "sapa", "serve", "--port", str(port), "--data", str(data)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environ,
        )
    installation = Installation(f"http://127.0.0.1:{port}", data, log, process)
    try:
        wait_until_ready(installation)
    except BaseException:
        process.terminate()
        process.wait(60)
        raise
    return installation


def wait_until_ready(installation: Installation) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    with httpx.Client(base_url=installation.address, verify=TLS, timeout=120) as client:
        while time.monotonic() < deadline and installation.process.poll() is None:
            try:
                if client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    raise AssertionError(f"sapa serve did not become ready:\n{installation.log.read_text()}")


def stop_installation(installation: Installation) -> int:
    installation.process.send_signal(signal.SIGTERM)
    return installation.process.wait(timeout=120)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    running = start_installation(tmp_path_factory.mktemp("sapa") / "data")
    yield running
    assert stop_installation(running) == 0


@pytest.fixture(scope="session")
def post_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation that may deliver webhooks to this machine."""
    running = start_installation(tmp_path_factory.mktemp("post") / "data", SAPA_WEBHOOK_ALLOW_INSECURE="1")
    yield running
    assert stop_installation(running) == 0
    assert "loop failed" not in running.log.read_text()


@pytest.fixture(scope="session")
async def post(post_office: Installation) -> AsyncIterator[Database]:
    """The database of the post office."""
    async with open_database(post_office.server.app_url, size=10) as opened:
        yield opened


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose processes may be killed. Few files need it; idle until the end it would cost more."""
    running = start_installation(tmp_path_factory.mktemp("victim") / "data")
    yield running
    assert stop_installation(running) == 0
    assert "internal error" not in running.log.read_text()


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsers.launch() as launched:
        yield launched


@pytest.fixture(scope="session")
async def database(installation: Installation) -> AsyncIterator[Database]:
    """The installation's database, as the product's own role."""
    async with open_database(installation.server.app_url, size=10) as opened:
        yield opened


ENOUGH_OF_A_MINUTE = 15


@pytest.fixture
async def early_in_a_minute(database: Database) -> None:
    """For rate limits: a minute that ends in the middle of a test would let more through, and rightly so."""
    async with database.connection() as db:
        left = await db.fetchval("SELECT 60 - extract(second FROM clock_timestamp())::float8")
    if left < ENOUGH_OF_A_MINUTE:
        await asyncio.sleep(left)


@pytest.fixture
async def company(database: Database) -> Environments:
    """A fresh company: what a test does to it, no other test sees."""
    return await make_company(database)


@pytest.fixture
async def api(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The customer base over HTTP, with a live key that may do everything."""
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as client:
        yield client


def connect(installation: Installation, key: str | None) -> httpx.AsyncClient:
    """A caller of the API, each of whose answers is held against the document."""
    return httpx.AsyncClient(
        base_url=installation.customer_base,
        headers={} if key is None else {"x-api-key": key},
        timeout=120,
        verify=TLS,
        event_hooks={"response": [check_answer]},
    )
