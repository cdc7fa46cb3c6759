"""One measurement: wrk for a few seconds, and the CPU that the server and PostgreSQL spent meanwhile."""

import asyncio
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct

from bench.servers import Server, cpu_seconds

SCRIPT = Path(__file__).with_name("wrk.lua")
CLOCK_TICK = 0.0101
HOW_TO_GET_WRK = (
    "The benchmark needs wrk 4: apt-get install wrk (Debian, Ubuntu), dnf install wrk, or brew install wrk."
)


class Counted(Struct, frozen=True):
    """What wrk saw."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    refused: int
    broken: int


class Measurement(Struct, frozen=True):
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """CPU of the server's processes per request, in microseconds."""
    postgres_cpu_us: float


class Load(Struct, frozen=True):
    """What to ask a server for."""

    key: str
    requests: list[str]
    """Lines as wrk.lua reads them, sent in turn."""
    seconds: int
    connections: int = 16
    headers: dict[str, str] = {}
    """Sent with every request, besides the key."""


def find_wrk() -> str:
    found = shutil.which("wrk")
    if found is None:
        raise SystemExit(HOW_TO_GET_WRK)
    return found


async def measure(server: Server, postgres: psutil.Process, load: Load, folder: Path) -> Measurement:
    """Longer than asked for when that was too short for a single answer."""
    await _until_idle(postgres)
    cpu, postgres_cpu = cpu_seconds(server.process), cpu_seconds(postgres)
    counted = await run_wrk(server, load, folder)
    cpu, postgres_cpu = cpu_seconds(server.process) - cpu, cpu_seconds(postgres) - postgres_cpu
    if not counted.requests:
        return await measure(server, postgres, msgspec.structs.replace(load, seconds=load.seconds * 2), folder)
    return Measurement(
        requests_per_second=counted.requests / counted.seconds,
        p50_ms=counted.p50_ms,
        p99_ms=counted.p99_ms,
        cpu_us=cpu / counted.requests * 1e6,
        postgres_cpu_us=postgres_cpu / counted.requests * 1e6,
    )


async def _until_idle(postgres: psutil.Process) -> None:
    """wrk leaves while requests are under way: the next measurement waits until the last one's are done."""
    for _ in range(100):
        before = cpu_seconds(postgres)
        await asyncio.sleep(0.05)
        if cpu_seconds(postgres) - before <= CLOCK_TICK:
            return


async def run_wrk(server: Server, load: Load, folder: Path) -> Counted:
    """Raises when any answer was not a 2xx: what fails fast would look fast."""
    requests = folder / "requests.txt"
    requests.write_text("\n".join(load.requests) + "\n")
    arguments = ["-t1", f"-c{load.connections}", f"-d{load.seconds}s", "--timeout", "30s", "-s", str(SCRIPT)]
    headers = [f"{name}: {value}" for name, value in load.headers.items()]
    counted = await _run([find_wrk(), *arguments, server.address, "--", load.key, str(requests), *headers])
    if counted.refused or counted.broken:
        raise RuntimeError(f"{server.name} did not answer {load.requests[0]} as it should: {counted}")
    return counted


async def _run(command: Sequence[str]) -> Counted:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return msgspec.json.decode(output.splitlines()[-1], type=Counted)
