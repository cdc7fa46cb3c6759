"""Requests: Sapa beside the ceiling and the baseline, on orders and on customers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from bench.api.alike import check_alike
from bench.api.budgets import Outcome, judge
from bench.api.chart import draw
from bench.api.data import Data, seed
from bench.api.first_version import COMMIT, compare
from bench.api.load import find_wrk
from bench.api.processes import time_starts, watch_memory
from bench.api.rounds import Bench
from bench.api.scenarios import Scenario, build_scenarios
from bench.api.tables import build_tables
from bench.findings import Findings
from bench.ground import Ground, open_ground
from bench.history import EarlierVersion, open_version
from bench.say import say
from bench.servers import Server, free_port, run_sapa, run_server, run_worker


class Size(Struct, frozen=True):
    many: int
    few: int
    customers_of_many: int
    rounds: int
    memory_requests: int
    starts: int


FULL = Size(many=1_000_000, few=10_000, customers_of_many=100_000, rounds=6, memory_requests=100_000, starts=3)
QUICK = Size(many=50_000, few=10_000, customers_of_many=10_000, rounds=2, memory_requests=10_000, starts=1)


async def measure_api(folder: Path, is_quick: bool) -> Findings:
    find_wrk()
    size = QUICK if is_quick else FULL
    first = open_version(COMMIT, folder)
    say("starting `sapa serve`")
    starts = await time_starts(folder, size.starts)
    data = await _seed(folder, size)
    scenarios = build_scenarios(data)
    # Stopped and started again: the new data are written out before anything is measured.
    async with open_ground(folder) as ground:
        outcome = await _measure(ground, scenarios, size, starts, first)
    tables = build_tables(outcome, scenarios)
    return Findings(judge(outcome), tables, outcome, lambda path: draw(path, outcome, scenarios))


async def _seed(folder: Path, size: Size) -> Data:
    say(f"making {size.many:,} + 2 × {size.few:,} orders and their customers")
    async with open_ground(folder) as ground:
        return await seed(ground, size.many, size.few, size.customers_of_many)


async def _measure(
    ground: Ground, scenarios: Sequence[Scenario], size: Size, starts: list[float], first: EarlierVersion | None
) -> Outcome:
    async with _three_servers(ground) as bench:
        compared = [one for one in scenarios if not one.for_one_caller_only]
        await check_alike(bench.servers, compared)
        crowd = await bench.run(compared, size.rounds)
        say("one caller at a time")
        alone = await bench.run_alone([one for one in scenarios if one.is_read], bench.servers[1], size.rounds)
    say(f"memory over {size.memory_requests:,} requests")
    memory = await watch_memory(ground, list(scenarios[:2]), size.memory_requests)
    beside_first = await compare(ground, first, scenarios, size.few, size.rounds) if first else {}
    return Outcome(crowd, alone, memory, starts, beside_first)


@asynccontextmanager
async def _three_servers(ground: Ground) -> AsyncIterator[Bench]:
    """Each one process of the same server, with the same pool of connections; the worker folds counters beside."""
    async with (
        run_worker(ground),
        _run_yardstick("ceiling", ground) as ceiling,
        run_sapa(ground) as sapa,
        _run_yardstick("baseline", ground) as baseline,
    ):
        yield Bench([ceiling, sapa, baseline], ground.postgres, ground.folder)


@asynccontextmanager
async def _run_yardstick(name: str, ground: Ground) -> AsyncIterator[Server]:
    port = free_port()
    async with run_server(name, ["bench.api.serve", f"bench.{name}.app", str(port)], port, ground) as server:
        yield server
