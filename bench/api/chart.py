"""The figures of the API as one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bench.api.budgets import Outcome, cpu, p50, postgres_cpu, throughput
from bench.api.scenarios import Scenario
from bench.api.tables import SERVERS

COLOURS = {"ceiling": "#9aa5b1", "sapa": "#0f766e", "baseline": "#d97706"}
POSTGRES = "#d5dbe1"
HEIGHT = 0.26


def draw(path: Path, outcome: Outcome, scenarios: Sequence[Scenario]) -> None:
    figure = Figure(figsize=(17, 6), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    _draw_cpu(left, outcome, scenarios)
    _draw_throughput(middle, outcome, scenarios)
    _draw_alone(right, outcome, scenarios)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.invert_yaxis()
    figure.savefig(path, dpi=110)


def _draw_cpu(axes: Any, outcome: Outcome, scenarios: Sequence[Scenario]) -> None:
    shown = [scenario for scenario in scenarios if scenario.name in {"get", "list", "create", "update"}]
    for place, server in enumerate(SERVERS):
        for row, scenario in enumerate(shown):
            api = outcome.crowd.typical(scenario.name, server, cpu)
            postgres = outcome.crowd.typical(scenario.name, server, postgres_cpu)
            y = row + (place - 1) * HEIGHT
            axes.barh(y, api, HEIGHT * 0.9, color=COLOURS[server], label=server if row == 0 else None)
            axes.barh(y, postgres, HEIGHT * 0.9, left=api, color=POSTGRES)
            axes.text(api + postgres, y, f" {api:,.0f} + {postgres:,.0f}", va="center", fontsize=8)
    axes.set_yticks(range(len(shown)), [scenario.title for scenario in shown])
    axes.set_title("CPU per request, µs: API + PostgreSQL (light)")
    axes.margins(x=0.18)
    axes.legend(frameon=False)


def _draw_throughput(axes: Any, outcome: Outcome, scenarios: Sequence[Scenario]) -> None:
    shown = [scenario for scenario in scenarios if scenario.name in outcome.crowd.rounds]
    ratios = [outcome.crowd.ratio((one.name, "sapa"), (one.name, "baseline"), throughput) for one in shown]
    for row, ratio in enumerate(ratios):
        error = [[ratio.median - ratio.least], [ratio.most - ratio.median]]
        axes.barh(row, ratio.median - 1, 0.5, 1, color=COLOURS["sapa"], xerr=error, ecolor="#475569", capsize=3)
        axes.text(ratio.most, row, f"  {ratio.median:.1f} ×", va="center", fontsize=9)
    axes.axvline(1, color=COLOURS["baseline"], linewidth=4)
    axes.set_xscale("log")
    axes.set_xlim(0.95, 2 * max(ratio.most for ratio in ratios))
    axes.xaxis.set_major_formatter("{x:g} ×")
    axes.set_yticks(range(len(shown)), [scenario.title for scenario in shown])
    axes.set_title("Throughput of Sapa, × the baseline (log scale)")


def _draw_alone(axes: Any, outcome: Outcome, scenarios: Sequence[Scenario]) -> None:
    shown = [scenario for scenario in scenarios if scenario.name in outcome.alone.rounds]
    for row, scenario in enumerate(shown):
        time = outcome.alone.typical(scenario.name, "sapa", p50)
        axes.barh(row, time, 0.5, color=COLOURS["sapa"])
        axes.text(time, row, f" {time:.2f} ms", va="center", fontsize=9)
    axes.set_yticks(range(len(shown)), [scenario.title for scenario in shown])
    axes.set_title("What one caller waits, p50 in ms")
    axes.margins(x=0.18)
