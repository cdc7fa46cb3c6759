"""The figures of the API as tables."""

from collections.abc import Sequence

from bench.api.budgets import Outcome, cpu, p50, p99, postgres_cpu, throughput
from bench.api.scenarios import Scenario
from bench.findings import Table

SERVERS = ("ceiling", "sapa", "baseline")

LOAD_COLUMNS = ["16 callers", "server", "requests/s", "API CPU, µs", "PostgreSQL CPU, µs", "p50, ms", "p99, ms"]
ALONE_COLUMNS = ["one caller", "p50, ms", "p99, ms"]


def build_tables(outcome: Outcome, scenarios: Sequence[Scenario]) -> list[Table]:
    crowd = [one for one in scenarios if one.name in outcome.crowd.rounds]
    alone = [one for one in scenarios if one.name in outcome.alone.rounds]
    return [
        Table(LOAD_COLUMNS, [_load_row(outcome, one, server) for one in crowd for server in SERVERS], words=2),
        Table(ALONE_COLUMNS, [_alone_row(outcome, one) for one in alone]),
    ]


def _load_row(outcome: Outcome, scenario: Scenario, server: str) -> list[str]:
    figures = [outcome.crowd.typical(scenario.name, server, value) for value in (throughput, cpu, postgres_cpu)]
    times = [outcome.crowd.typical(scenario.name, server, value) for value in (p50, p99)]
    return [scenario.title, server, *(f"{one:,.0f}" for one in figures), *(f"{one:.1f}" for one in times)]


def _alone_row(outcome: Outcome, scenario: Scenario) -> list[str]:
    times = [outcome.alone.typical(scenario.name, "sapa", value) for value in (p50, p99)]
    return [scenario.title, *(f"{one:.2f}" for one in times)]
