"""What a part found: verdicts on its budgets, tables of figures, perhaps a chart."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles

from msgspec import Struct


class Spread(Struct, frozen=True):
    """A median and how far the rounds lay apart."""

    median: float
    least: float
    most: float


class Verdict(Struct, frozen=True):
    what: str
    budget: str
    measured: str
    spread: str
    kept: bool


class Table(Struct, frozen=True):
    columns: list[str]
    rows: list[list[str]]
    words: int = 1
    """So many columns at the left hold words; the others hold numbers."""


class Findings(Struct, frozen=True):
    verdicts: list[Verdict]
    tables: list[Table]
    measured: object
    """Every single measurement, for programs."""
    draw: Callable[[Path], None] | None = None


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Round by round."""
    return spread([one / other for one, other in zip(above, below, strict=True)])


def percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def at_most(bound: float, unit: str, what: str, measured: Spread) -> Verdict:
    return _verdict(f"≤ {bound:g}{unit}", unit, what, measured, measured.median <= bound)


def at_least(bound: float, unit: str, what: str, measured: Spread) -> Verdict:
    return _verdict(f"≥ {bound:g}{unit}", unit, what, measured, measured.median >= bound)


def build_budget_table(verdicts: Sequence[Verdict]) -> Table:
    rows = [[one.what, one.budget, one.measured, one.spread, "kept" if one.kept else "MISSED"] for one in verdicts]
    return Table(["what", "budget", "measured", "rounds", ""], rows)


def _verdict(budget: str, unit: str, what: str, measured: Spread, kept: bool) -> Verdict:
    apart = "" if measured.least == measured.most else f"{measured.least:.2f}–{measured.most:.2f}"
    return Verdict(what, budget, f"{measured.median:.2f}{unit}", apart, kept)
