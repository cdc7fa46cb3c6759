"""What one process of Sapa needs: memory over many requests, and seconds from the start to the first answer."""

import sys
import time
from pathlib import Path
from signal import SIGTERM

from msgspec import Struct

from bench.api.load import run_wrk
from bench.api.scenarios import Scenario
from bench.ground import Ground, plain_environment
from bench.servers import end, free_port, proportional_megabytes, run_sapa, wait_for_answer
from sapa.runtime.processes import spawn


class MemorySample(Struct, frozen=True):
    requests: int
    megabytes: float


async def watch_memory(ground: Ground, scenarios: list[Scenario], requests: int) -> list[MemorySample]:
    """A fresh API process under a mix of calls, its memory (PSS) after each slice."""
    async with run_sapa(ground) as server:
        done = 0
        samples: list[MemorySample] = []
        while done < requests:
            for scenario in scenarios:
                done += (await run_wrk(server, scenario.load(server, seconds=1), ground.folder)).requests
            samples.append(MemorySample(done, proportional_megabytes(server.busiest)))
    return samples


async def time_starts(folder: Path, starts: int) -> list[float]:
    """`sapa serve` on a data folder of its own: the first start makes the database, the others find it."""
    return [await _time_start(folder) for _ in range(starts + 1)]


async def _time_start(folder: Path) -> float:
    port, log = free_port(), folder / "serve.log"
    command = [sys.executable, "-m", "sapa", "serve", "--port", str(port), "--data", str(folder / "serve")]
    with log.open("ab") as output:
        started = time.monotonic()
        child = spawn(command, SIGTERM, env=plain_environment(), output=output.fileno())
    try:
        await wait_for_answer(f"http://127.0.0.1:{port}/readyz", child, log, status=200)
        return time.monotonic() - started
    finally:
        await end(child)
