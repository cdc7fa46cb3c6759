"""Interleaved rounds: every server in turn, again and again, so that a busy machine is busy for all of them alike."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import psutil
from msgspec import Struct

from bench.api.load import Measurement, measure, run_wrk
from bench.api.scenarios import Scenario
from bench.findings import Spread, ratios
from bench.say import say
from bench.servers import Server

Value = Callable[[Measurement], float]


class Results(Struct, frozen=True):
    """Measurements by scenario, then by server, one for each round."""

    rounds: dict[str, dict[str, list[Measurement]]]

    def of(self, scenario: str, server: str, value: Value) -> list[float]:
        return [value(measurement) for measurement in self.rounds[scenario][server]]

    def typical(self, scenario: str, server: str, value: Value) -> float:
        return median(self.of(scenario, server, value))

    def ratio(self, above: tuple[str, str], below: tuple[str, str], value: Value) -> Spread:
        """Between two (scenario, server) pairs, round by round."""
        return ratios(self.of(*above, value), self.of(*below, value))


class Bench(Struct, frozen=True):
    """The servers of a run and what watches them."""

    servers: list[Server]
    postgres: psutil.Process
    folder: Path

    async def run(self, scenarios: Sequence[Scenario], rounds: int) -> Results:
        results: dict[str, dict[str, list[Measurement]]] = {}
        for scenario in scenarios:
            say(scenario.title)
            await self._warm_up(scenario)
            measured = results[scenario.name] = {server.name: [] for server in self.servers}
            for _ in range(rounds):
                for server in self.servers:
                    load = scenario.load(server)
                    measured[server.name].append(await measure(server, self.postgres, load, self.folder))
        return Results(results)

    async def run_alone(self, scenarios: Sequence[Scenario], server: Server, rounds: int) -> Results:
        """One request at a time: what a single caller waits."""
        results: dict[str, dict[str, list[Measurement]]] = {scenario.name: {server.name: []} for scenario in scenarios}
        for _ in range(rounds):
            for scenario in scenarios:
                load = scenario.load(server, seconds=1, connections=1)
                measured = await measure(server, self.postgres, load, self.folder)
                results[scenario.name][server.name].append(measured)
        return Results(results)

    async def _warm_up(self, scenario: Scenario) -> None:
        for server in self.servers:
            await run_wrk(server, scenario.load(server, seconds=1), self.folder)
