"""The findings of a part: tables for people, JSON for programs, a stretch of docs/performance.md for readers."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table as RichTable

from bench.findings import Findings, Table, build_budget_table
from bench.machine import OUT, ROOT, Machine
from bench.say import say

DOCUMENT = ROOT / "docs" / "performance.md"


def present(part: str, machine: Machine, findings: Findings, is_quick: bool, publish: bool) -> None:
    tables = [build_budget_table(findings.verdicts), *findings.tables] if findings.verdicts else findings.tables
    print_tables(tables)
    write_json(OUT / f"{part}.json", machine, findings, is_quick)
    chart = OUT / f"{part}.png"
    if findings.draw:
        findings.draw(chart)
    say(f"{OUT / part}.json {'and the .png beside it hold' if findings.draw else 'holds'} the figures")
    if publish:
        write_figures(part, machine, tables, chart if findings.draw else None)


def print_tables(tables: Sequence[Table]) -> None:
    console = Console(width=120)
    for table in tables:
        shown = RichTable()
        for place, column in enumerate(table.columns):
            shown.add_column(column, justify="left" if place < table.words else "right")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)


def write_json(path: Path, machine: Machine, findings: Findings, is_quick: bool) -> None:
    everything = {
        "machine": machine,
        "isQuick": is_quick,
        "budgets": findings.verdicts,
        "measured": findings.measured,
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(everything)) + b"\n")


def write_figures(part: str, machine: Machine, tables: Sequence[Table], chart: Path | None) -> None:
    """Replaces what stands between the part's two marks, and leaves the words around it alone."""
    begin, end = f"<!-- figures of {part}: written by the benchmark -->", f"<!-- end of the figures of {part} -->"
    before, found, rest = DOCUMENT.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise RuntimeError(f"{DOCUMENT} lacks the marks {begin} and {end}")
    figures = "\n\n".join([_about(machine), *_picture(part, chart), *map(build_markdown, tables)])
    DOCUMENT.write_text(f"{before}{begin}\n\n{figures}\n\n{end}{after}")


def _picture(part: str, chart: Path | None) -> list[str]:
    if chart is None:
        return []
    shutil.copy(chart, DOCUMENT.with_name(f"performance-{part}.png"))
    return [f"![The figures of {part} as a chart](performance-{part}.png)"]


def build_markdown(table: Table) -> str:
    sides = ["---" if place < table.words else "---:" for place in range(len(table.columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [table.columns, sides, *table.rows])


def _about(machine: Machine) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return (
        f"Commit `{machine.commit}` on {machine.cores} cores ({machine.processor}), {machine.memory_gb:g} GB, "
        f"{machine.system}, load {machine.load:g} before the run. Python {machine.python}, {versions}."
    )
