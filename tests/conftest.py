"""One real installation for the whole run: `sapa serve` on its embedded database, two API processes, one worker."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import settings
from msgspec import Struct

from sapa import domains
from sapa.db.pool import Database, open_database
from sapa.runtime.embedded import EmbeddedServer
from tests.factories import Environments, make_company, make_key
from tests.http.answer_check import check_answer

STARTUP_SECONDS = 60

# How long an example takes says something of the machine, and nothing of the product.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

domains.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The house rules come first: they are quick, and whoever breaks one wants to know. Then files of few tests, which
    are the long ones: begun last, one of them would keep a single core busy while the other is done."""
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: ("tests/house/" not in item.nodeid, sizes[item.path], item.path))


class Installation(Struct, frozen=True):
    """A running `sapa serve`."""

    address: str
    data: Path
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def server(self) -> EmbeddedServer:
        return EmbeddedServer(self.data)

    @property
    def customer_base(self) -> str:
        return f"{self.address}/customer/v1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_installation(data: Path, port: int | None = None, **variables: str) -> Installation:
    """Starts `sapa serve` and waits until it is ready."""
    port = port or free_port()
    data.mkdir(parents=True, exist_ok=True)
    log = data / "serve.log"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}
    environ |= {"SAPA_PROCESSES": "2", **variables}
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
        raise
    return installation


def wait_until_ready(installation: Installation) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{installation.address}/readyz", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        if installation.process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"sapa serve did not become ready:\n{installation.log.read_text()}")


def stop_installation(installation: Installation) -> int:
    installation.process.send_signal(signal.SIGTERM)
    return installation.process.wait(timeout=60)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    running = start_installation(tmp_path_factory.mktemp("sapa") / "data")
    yield running
    assert stop_installation(running) == 0


@pytest.fixture(scope="session")
async def database(installation: Installation) -> AsyncIterator[Database]:
    """The installation's database, as the product's own role."""
    async with open_database(installation.server.app_url, size=10) as opened:
        yield opened


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
        timeout=30,
        event_hooks={"response": [check_answer]},
    )
