"""The first version, on this machine: nothing that came since may have made an order or a list slower."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil

from bench.api.data import Data
from bench.api.load import run_wrk
from bench.api.scenarios import Scenario, build_scenarios
from bench.findings import Spread, ratios
from bench.ground import Ground
from bench.history import EarlierVersion, read_answer, run_program
from bench.say import say
from bench.servers import Server, cpu_seconds, free_port, run_sapa

COMMIT = "7f17393"
PROGRAM = Path(__file__).with_name("first_program.py")
COMPARED = {
    "create": "create an order", "get": "get one order", "list": "list 20 orders",
    "customer_get": "get one customer", "customer_list": "list 20 customers",
}  # fmt: skip
"""Titles of scenarios, by name."""


class FirstVersion(msgspec.Struct, frozen=True):
    address: str
    data: Data


class Side(msgspec.Struct, frozen=True):
    server: Server
    scenarios: dict[str, Scenario]
    processes: list[psutil.Process]
    """Which, with their children, do all of its work."""

    async def spend(self, name: str, folder: Path) -> float:
        """CPU per request, PostgreSQL's included."""
        before = sum(map(cpu_seconds, self.processes))
        counted = await run_wrk(self.server, self.scenarios[name].load(self.server), folder)
        return (sum(map(cpu_seconds, self.processes)) - before) / counted.requests


async def compare(
    ground: Ground, version: EarlierVersion, scenarios: Sequence[Scenario], orders: int, rounds: int
) -> dict[str, Spread]:
    """CPU of a request, today's against the first version's."""
    say("the same beside the first version")
    async with _start(version, orders) as first, run_sapa(ground) as sapa:
        today = Side(sapa, _choose(scenarios), [sapa.process, ground.postgres])
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in COMPARED}
        for name in COMPARED:
            for side in (today, first):
                await side.spend(name, ground.folder)
            for _ in range(rounds):
                spent[name].append((await today.spend(name, ground.folder), await first.spend(name, ground.folder)))
    return {name: ratios(*zip(*both, strict=True)) for name, both in spent.items()}


@asynccontextmanager
async def _start(version: EarlierVersion, orders: int) -> AsyncIterator[Side]:
    async with run_program(version, PROGRAM, version.tree / "run", orders, free_port()) as process:
        told = msgspec.json.decode(await read_answer(process), type=FirstVersion)
        program = psutil.Process(process.pid)
        server = Server("first version", told.address, program)
        yield Side(server, _choose(build_scenarios(told.data)), [program])


def _choose(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    return {one.name: one for one in scenarios if one.name in COMPARED}
