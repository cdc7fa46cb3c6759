"""Processes that a run starts: how they begin, what they cost, how they end."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import SystemRandom
from signal import SIGKILL, SIGTERM
from socket import socket
from subprocess import Popen

import httpx
import psutil
from msgspec import Struct

from bench.ground import Ground
from sapa.runtime.processes import (
    ended,
    signal_group,
    spawn,
    wait_until,
)

READY_SECONDS = 120
MEGABYTE = 1024 * 1024


class Server(Struct, frozen=True):
    name: str
    address: str
    process: psutil.Process

    @property
    def busiest(self) -> psutil.Process:
        """The process that answers: once there was some load, the one that did the work."""
        return max([self.process, *self.process.children(recursive=True)], key=lambda one: one.cpu_times().user)


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of a process and everything it started, ended children included."""
    total = sum(process.cpu_times()[:4])
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:4])
    return float(total)


def resident_megabytes(process: psutil.Process) -> float:
    """Cheap enough to be read during a measurement; PSS walks through all pages."""
    return float(process.memory_info().rss / MEGABYTE)


def proportional_megabytes(process: psutil.Process) -> float:
    """PSS: what several processes share counts in each of them in part."""
    return float(process.memory_full_info().pss / MEGABYTE)


def free_port() -> int:
    """Not one of those that the system gives to outgoing connections: it would be gone before anybody listens on it."""
    while True:
        port = SystemRandom().randrange(20_000, 32_768)
        with socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@asynccontextmanager
async def run_sapa(ground: Ground, **settings: str) -> AsyncIterator[Server]:
    """The real `sapa api`, with its metrics shared between processes as under `sapa serve`."""
    port = free_port()
    async with run_server("sapa", ["sapa", "api", "--port", str(port)], port, ground, settings) as server:
        yield server


@asynccontextmanager
async def run_worker(ground: Ground) -> AsyncIterator[psutil.Process]:
    """The real `sapa worker`."""
    async with run_module("worker", ["sapa", "worker"], ground) as child:
        yield psutil.Process(child.pid)


@asynccontextmanager
async def run_server(
    name: str, module: Sequence[str], port: int, ground: Ground, settings: Mapping[str, str] = {}
) -> AsyncIterator[Server]:
    """A module that listens on the port; it answered once before the block begins."""
    async with run_module(name, module, ground, settings) as child:
        server = Server(name, f"http://127.0.0.1:{port}", psutil.Process(child.pid))
        await wait_for_answer(server.address + "/healthz", child, ground.folder / f"{name}.log")
        yield server


@asynccontextmanager
async def run_module(
    name: str, module: Sequence[str], ground: Ground, settings: Mapping[str, str] = {}
) -> AsyncIterator[Popen[bytes]]:
    with (ground.folder / f"{name}.log").open("wb") as log:
        command = [sys.executable, "-m", *module]
        child = spawn(command, SIGTERM, env=ground.environment | dict(settings), output=log.fileno())
    try:
        yield child
    finally:
        await end(child)


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
    raise RuntimeError(f"a server did not start:\n{_last_words(log)}")


def _last_words(log: Path) -> str:
    return log.read_text()[-4000:]


async def end(child: Popen[bytes]) -> None:
    child.terminate()
    await wait_until(lambda: child.poll() is not None, 15)
    signal_group(child.pid, SIGKILL)
    await ended(child)
