"""The budgets of the API, and whether a run kept them."""

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from bench.api.first_version import COMPARED
from bench.api.load import Measurement
from bench.api.processes import MemorySample
from bench.api.rounds import Results, Value
from bench.findings import Spread, Verdict, at_least, at_most, spread


class Outcome(Struct, frozen=True):
    """Everything that a run measured."""

    crowd: Results
    """16 callers at once, all three servers."""
    alone: Results
    """One caller, Sapa only."""
    memory: list[MemorySample]
    starts: list[float]
    """Seconds to the first answer of `sapa serve`; the first one made the database."""
    beside_first: dict[str, Spread]
    """CPU of a request against the first version's, by scenario; empty where that is not at hand."""


def judge(outcome: Outcome) -> list[Verdict]:
    alone, memory = outcome.alone, outcome.memory
    return [
        at_most(1.35, "×", "CPU of get one, against the ceiling", _against(outcome, "get", "ceiling", cpu)),
        at_most(1.2, "×", "CPU of list 20, against the ceiling", _against(outcome, "list", "ceiling", cpu)),
        at_most(1.35, "×", "CPU of create an order, against the ceiling", _against(outcome, "create", "ceiling", cpu)),
        at_most(1.35, "×", "CPU of update an order, against the ceiling", _against(outcome, "update", "ceiling", cpu)),
        *(at_most(1, "×", f"CPU of {title}, with PostgreSQL's, against the first version", outcome.beside_first[name])
          for name, title in COMPARED.items() if name in outcome.beside_first),
        at_least(4, "×", "throughput of get one, against the baseline",
                 _against(outcome, "get", "baseline", throughput)),
        at_least(6, "×", "throughput of list 20, against the baseline",
                 _against(outcome, "list", "baseline", throughput)),
        at_most(1.3, "×", "time of page 1 with its total, many orders against few",
                alone.ratio(("list_many", "sapa"), ("list", "sapa"), p50)),
        at_most(1.3, "×", "… and of the filtered page 1",
                alone.ratio(("filter_many", "sapa"), ("filter", "sapa"), p50)),
        at_most(20, " ms", "time of a search by customer name, many orders", spread(alone.of("search", "sapa", p50))),
        at_most(20, " ms", "time of a search by two letters, many orders",
                spread(alone.of("search_pair", "sapa", p50))),
        at_most(150, " ms", "… by the most frequent two letters, with their total",
                spread(alone.of("search_frequent_pair", "sapa", p50))),
        at_most(82, " MB", f"memory (PSS) of an API process after {memory[-1].requests:,} requests",
                spread([memory[-1].megabytes])),
        at_most(3, " MB", "… and its growth over the second half of them", spread([_growth(memory)])),
        at_most(5, " s", "start of an installation to its first answer", spread(outcome.starts[1:])),
    ]  # fmt: skip


def _against(outcome: Outcome, scenario: str, other: str, value: Value) -> Spread:
    return outcome.crowd.ratio((scenario, "sapa"), (scenario, other), value)


def cpu(measurement: Measurement) -> float:
    return measurement.cpu_us


def postgres_cpu(measurement: Measurement) -> float:
    return measurement.postgres_cpu_us


def throughput(measurement: Measurement) -> float:
    return measurement.requests_per_second


def p50(measurement: Measurement) -> float:
    return measurement.p50_ms


def p99(measurement: Measurement) -> float:
    return measurement.p99_ms


def _growth(samples: Sequence[MemorySample]) -> float:
    """From the middle of the run to its end, each the median of a quarter, so that no single sample decides."""
    quarter = max(1, len(samples) // 4)
    middle = samples[len(samples) // 2 :][:quarter]
    return median(one.megabytes for one in samples[-quarter:]) - median(one.megabytes for one in middle)
