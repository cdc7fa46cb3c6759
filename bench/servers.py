"""The three servers under test: each one process of Granian on uvloop, with the same pool of connections."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from socket import socket
from subprocess import Popen

import httpx
import psutil
from msgspec import Struct

from bench.data import SeededCompany
from sapa.processes import ended, signal_group, spawn, wait_until

POOL = 10
READY_SECONDS = 30


class Server(Struct, frozen=True):
    name: str
    address: str
    process: psutil.Process

    def path(self, company: SeededCompany, rest: str = "") -> str:
        """Where the company's customers are; the ceiling knows no keys, so its path names the company."""
        base = f"/{company.id}" if self.name == "ceiling" else "/customer/v1"
        return f"{base}/customers{rest}"

    @property
    def api_process(self) -> psutil.Process:
        """The process that answers: once there was some load, the one that did the work."""
        return max([self.process, *self.process.children(recursive=True)], key=lambda one: one.cpu_times().user)


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of a process and everything it started, ended children included."""
    times = process.cpu_times()
    total: float = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            spent = child.cpu_times()
            total += spent.user + spent.system
    return total


def free_port() -> int:
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def run_ceiling(url: str, folder: Path) -> AsyncIterator[Server]:
    port = free_port()
    async with _run("ceiling", ["bench.serve", "bench.ceiling.app", str(port)], port, url, folder) as server:
        yield server


@asynccontextmanager
async def run_baseline(url: str, folder: Path) -> AsyncIterator[Server]:
    port = free_port()
    async with _run("baseline", ["bench.serve", "bench.baseline.app", str(port)], port, url, folder) as server:
        yield server


@asynccontextmanager
async def run_sapa(url: str, folder: Path) -> AsyncIterator[Server]:
    """The real `sapa api`, with its metrics shared between processes as under `sapa serve`."""
    port = free_port()
    async with _run("sapa", ["sapa", "api", "--port", str(port)], port, url, folder) as server:
        yield server


@asynccontextmanager
async def run_worker(url: str, folder: Path) -> AsyncIterator[None]:
    """Folds the counters behind the customers that a run creates."""
    with (folder / "worker.log").open("wb") as log:
        child = _spawn(["sapa", "worker"], log.fileno(), _environment(url, folder))
    try:
        yield
    finally:
        await end(child)


@asynccontextmanager
async def _run(name: str, module: Sequence[str], port: int, url: str, folder: Path) -> AsyncIterator[Server]:
    log_path = folder / f"{name}.log"
    with log_path.open("wb") as log:
        child = _spawn(module, log.fileno(), _environment(url, folder))
    try:
        server = Server(name, f"http://127.0.0.1:{port}", psutil.Process(child.pid))
        await wait_for_answer(server.address + "/healthz", child, log_path)
        yield server
    finally:
        await end(child)


def _spawn(module: Sequence[str], log: int, environment: dict[str, str]) -> Popen[bytes]:
    return spawn([sys.executable, "-m", *module], SIGTERM, env=environment, output=log)


def _environment(url: str, folder: Path) -> dict[str, str]:
    metrics = folder / "metrics"
    metrics.mkdir(exist_ok=True)
    return plain_environment() | {
        "SAPA_DATABASE_URL": url,
        "SAPA_DATABASE_POOL": str(POOL),
        "SAPA_PROCESSES": "1",
        "PROMETHEUS_MULTIPROC_DIR": str(metrics),
    }


def plain_environment() -> dict[str, str]:
    """Ours, without settings that whoever runs the benchmark has for an installation of theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SAPA_")}


async def wait_for_answer(url: str, child: Popen[bytes], log: Path, status: int | None = None) -> None:
    """Returns at the first answer, whatever its status unless one is named."""
    deadline = time.monotonic() + READY_SECONDS
    async with httpx.AsyncClient(timeout=5) as client:
        while time.monotonic() < deadline and child.poll() is None:
            with suppress(httpx.TransportError):
                answer = await client.get(url)
                if status in {None, answer.status_code}:
                    return
            await asyncio.sleep(0.02)
    raise RuntimeError(_last_words(log))


def _last_words(log: Path) -> str:
    return f"a server did not start:\n{log.read_text()[-4000:]}"


async def end(child: Popen[bytes]) -> None:
    child.terminate()
    await wait_until(lambda: child.poll() is not None, 15)
    signal_group(child.pid, SIGKILL)
    await ended(child)
