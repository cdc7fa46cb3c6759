"""The figures of a run: a table for people, JSON for programs, a part of docs/performance.md for readers."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.budgets import Outcome, Verdict, cpu, p50, p99, postgres_cpu, throughput
from bench.machine import Machine
from bench.scenarios import Scenario

BEGIN, END = "<!-- figures: written by the benchmark -->", "<!-- end of the figures -->"
SERVERS = ("ceiling", "sapa", "baseline")

Rows = list[list[str]]

BUDGET_COLUMNS = ["what", "budget", "measured", "rounds", ""]
LOAD_COLUMNS = ["16 callers", "server", "requests/s", "API CPU, µs", "PostgreSQL CPU, µs", "p50, ms", "p99, ms"]
ALONE_COLUMNS = ["one caller", "p50, ms", "p99, ms"]


def print_tables(verdicts: Sequence[Verdict], outcome: Outcome, scenarios: Sequence[Scenario]) -> None:
    console = Console(width=120)
    for columns, rows in _tables(verdicts, outcome, scenarios):
        table = Table()
        for place, column in enumerate(columns):
            table.add_column(column, justify="left" if place == 0 or column == "server" else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def write_json(
    path: Path, machine: Machine, verdicts: Sequence[Verdict], outcome: Outcome, options: dict[str, object]
) -> None:
    everything = {"machine": machine, "options": options, "budgets": verdicts, "measured": outcome}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(everything)) + b"\n")


def write_figures(
    document: Path, machine: Machine, verdicts: Sequence[Verdict], outcome: Outcome, scenarios: Sequence[Scenario]
) -> None:
    """Replaces the part between the two marks, and leaves the words around it alone."""
    before, _, rest = document.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = [_markdown(columns, rows) for columns, rows in _tables(verdicts, outcome, scenarios)]
    figures = "\n\n".join([_about(machine), *tables])
    document.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}")


def _tables(
    verdicts: Sequence[Verdict], outcome: Outcome, scenarios: Sequence[Scenario]
) -> list[tuple[list[str], Rows]]:
    budgets = [[one.what, one.budget, one.measured, one.spread, "kept" if one.kept else "MISSED"] for one in verdicts]
    return [
        (BUDGET_COLUMNS, budgets),
        (LOAD_COLUMNS, [_load_row(outcome, scenario, server) for scenario in scenarios for server in SERVERS]),
        (ALONE_COLUMNS, [_alone_row(outcome, one) for one in scenarios if one.name in outcome.alone.rounds]),
    ]


def _load_row(outcome: Outcome, scenario: Scenario, server: str) -> list[str]:
    figures = [outcome.crowd.typical(scenario.name, server, value) for value in (throughput, cpu, postgres_cpu)]
    times = [outcome.crowd.typical(scenario.name, server, value) for value in (p50, p99)]
    return [scenario.title, server, *(f"{one:,.0f}" for one in figures), *(f"{one:.1f}" for one in times)]


def _alone_row(outcome: Outcome, scenario: Scenario) -> list[str]:
    times = [outcome.alone.typical(scenario.name, "sapa", value) for value in (p50, p99)]
    return [scenario.title, *(f"{one:.2f}" for one in times)]


def _markdown(columns: Sequence[str], rows: Rows) -> str:
    sides = ["---" if place == 0 or column == "server" else "---:" for place, column in enumerate(columns)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [columns, sides, *rows])


def _about(machine: Machine) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return (
        f"Commit `{machine.commit}` on {machine.cores} cores ({machine.processor}), {machine.memory_gb:g} GB, "
        f"{machine.system}, load {machine.load:g} before the run. Python {machine.python}, {versions}."
    )
