"""The first version, on this machine: nothing that came since may have made an order or a list slower."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil

from bench.api.data import Data
from bench.api.load import run_wrk
from bench.api.scenarios import Scenario, build_scenarios
from bench.findings import Spread, ratios
from bench.ground import Ground, plain_environment
from bench.history import unpack_version
from bench.say import say
from bench.servers import Server, cpu_seconds, run_sapa

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


async def compare(ground: Ground, scenarios: Sequence[Scenario], orders: int, rounds: int) -> dict[str, Spread]:
    """CPU of a request, today's against the first version's; nothing where its history is not at hand."""
    tree = unpack_version(COMMIT, ground.folder)
    if tree is None:
        return {}
    say("the same beside the first version")
    async with _start(tree, orders) as first, run_sapa(ground) as sapa:
        today = Side(sapa, _choose(scenarios), [sapa.process, ground.postgres])
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in COMPARED}
        for name in COMPARED:
            for side in (today, first):
                await side.spend(name, ground.folder)
            for _ in range(rounds):
                spent[name].append((await today.spend(name, ground.folder), await first.spend(name, ground.folder)))
    return {name: ratios(*zip(*both, strict=True)) for name, both in spent.items()}


@asynccontextmanager
async def _start(tree: Path, orders: int) -> AsyncIterator[Side]:
    environment = plain_environment() | {"PYTHONPATH": f"{tree / 'src'}:{tree}"}
    # -P, because the program's own folder is not where the first version looks for modules.
    command = [sys.executable, "-P", str(PROGRAM), str(tree / "run"), str(orders)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, cwd=tree, env=environment, limit=2**24
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            if line.startswith(b'{"address"'):
                version = msgspec.json.decode(line, type=FirstVersion)
                program = psutil.Process(process.pid)
                server = Server("first version", version.address, program)
                yield Side(server, _choose(build_scenarios(version.data)), [program])
                return
        raise RuntimeError("the first version failed")
    finally:
        process.stdin.close()
        await process.wait()


def _choose(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    return {one.name: one for one in scenarios if one.name in COMPARED}
