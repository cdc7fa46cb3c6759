"""The figures of webhooks as one picture."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from bench.findings import spread
from bench.webhooks.rates import Pace, Progress


def draw(path: Path, bare: Sequence[Pace], sapa: Sequence[Pace], backlog: Sequence[Progress]) -> None:
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    rates = [spread([pace.per_second for pace in paces]) for paces in (bare, sapa)]
    errors = [[rate.median - rate.least for rate in rates], [rate.most - rate.median for rate in rates]]
    left.bar(["bare loop", "sapa worker"], [rate.median for rate in rates], 0.6, color=["#9aa5b1", "#0f766e"],
             yerr=errors, ecolor="#475569", capsize=4)  # fmt: skip
    left.set_title("Deliveries per second")
    seconds = [one.seconds for one in backlog]
    right.plot(seconds, [one.delivered for one in backlog], color="#0f766e")
    right.set_title("A backlog, delivered over seconds; the worker's memory in MB (dashed)")
    memory = right.twinx()
    memory.plot(seconds, [one.megabytes for one in backlog], color="#d97706", linestyle="--")
    memory.set_ylim(0, 2 * max(one.megabytes for one in backlog))
    for axes in (left, right):
        axes.spines["top"].set_visible(False)
    memory.spines["top"].set_visible(False)
    figure.savefig(path, dpi=110)
