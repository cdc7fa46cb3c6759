"""`python -m bench`: seeds a database of its own, measures three servers, prints tables, draws a chart."""

import argparse
import asyncio
import shutil
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from msgspec import Struct

from bench.alike import check_alike
from bench.budgets import Outcome, judge
from bench.chart import draw
from bench.data import Data, seed
from bench.load import find_wrk
from bench.machine import ROOT, Machine, describe_machine
from bench.processes import time_starts, watch_memory
from bench.report import print_tables, write_figures, write_json
from bench.rounds import Bench
from bench.scenarios import Scenario, build_scenarios
from bench.servers import run_baseline, run_ceiling, run_sapa, run_worker
from sapa.db.embedded import EmbeddedServer, open_embedded
from sapa.db.migrations import migrate

OUT = ROOT / "bench" / "out"
DOCUMENT = ROOT / "docs" / "performance.md"


class Size(Struct, frozen=True):
    many: int
    few: int
    rounds: int
    memory_requests: int
    starts: int


FULL = Size(many=1_000_000, few=10_000, rounds=6, memory_requests=100_000, starts=3)
QUICK = Size(many=50_000, few=10_000, rounds=2, memory_requests=10_000, starts=1)


async def bench(size: Size, publish: bool) -> None:
    find_wrk()
    machine = describe_machine()
    with_data = OUT / "run"
    shutil.rmtree(with_data, ignore_errors=True)
    with_data.mkdir(parents=True)
    try:
        scenarios, outcome = await measure_everything(with_data, size)
    finally:
        shutil.rmtree(with_data, ignore_errors=True)
    present(machine, scenarios, outcome, size, publish)


async def measure_everything(folder: Path, size: Size) -> tuple[list[Scenario], Outcome]:
    say("starting `sapa serve`")
    starts = await time_starts(folder, size.starts)
    say(f"making {size.many:,} + {size.few:,} customers")
    data = await _seed(folder, size)
    # Stopped and started again: the new data are written out before anything is measured.
    async with open_embedded(folder / "data") as server:
        return await _measure_servers(server, folder, data, size, starts)


async def _seed(folder: Path, size: Size) -> Data:
    async with open_embedded(folder / "data") as server:
        await migrate(server.owner_url, server.app_url)
        return await seed(server.owner_url, server.app_url, size.many, size.few)


async def _measure_servers(
    server: EmbeddedServer, folder: Path, data: Data, size: Size, starts: list[float]
) -> tuple[list[Scenario], Outcome]:
    scenarios = build_scenarios(data)
    reads = [scenario for scenario in scenarios if not scenario.creates]
    async with _three_servers(server, folder) as bench:
        await check_alike(bench.servers, scenarios)
        crowd = await bench.run(scenarios, size.rounds, say)
        say("one caller at a time")
        alone = await bench.run_alone(reads, bench.servers[1], size.rounds)
    say(f"memory over {size.memory_requests:,} requests")
    memory = await watch_memory(server.app_url, folder, scenarios[:2], size.memory_requests)
    return scenarios, Outcome(crowd, alone, memory, starts)


@asynccontextmanager
async def _three_servers(server: EmbeddedServer, folder: Path) -> AsyncIterator[Bench]:
    url = server.app_url
    async with (
        run_worker(url, folder),
        run_ceiling(url, folder) as ceiling,
        run_sapa(url, folder) as sapa,
        run_baseline(url, folder) as baseline,
    ):
        yield Bench([ceiling, sapa, baseline], find_postgres(server), folder)


def find_postgres(server: EmbeddedServer) -> psutil.Process:
    return psutil.Process(int((server.cluster / "postmaster.pid").read_text().split("\n", 1)[0]))


def present(machine: Machine, scenarios: list[Scenario], outcome: Outcome, size: Size, publish: bool) -> None:
    verdicts = judge(outcome)
    print_tables(verdicts, outcome, scenarios)
    draw(OUT / "performance.png", outcome, scenarios)
    write_json(OUT / "results.json", machine, verdicts, outcome, {"size": size})
    say(f"{OUT / 'performance.png'} and results.json beside it hold the figures")
    if publish:
        shutil.copy(OUT / "performance.png", DOCUMENT.with_suffix(".png"))
        write_figures(DOCUMENT, machine, verdicts, outcome, scenarios)


_started = time.monotonic()


def say(what: str) -> None:
    print(f"{time.monotonic() - _started:6.0f} s  {what}", flush=True)


async def run_until_told(size: Size, publish: bool) -> None:
    """SIGTERM ends a run as Ctrl-C does: everything it started is stopped first."""
    work = asyncio.create_task(bench(size, publish))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await work


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little data and two rounds: to try it, not to quote it")
    parser.add_argument("--publish", action="store_true", help="put figures and chart into docs/performance.md")
    given = parser.parse_args()
    try:
        asyncio.run(run_until_told(QUICK if given.quick else FULL, given.publish))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise SystemExit("stopped; nothing was left running") from None


if __name__ == "__main__":
    main()
