"""Deliveries: a real worker beside a bare loop of POSTs to the same receiver."""

from itertools import chain
from pathlib import Path

from msgspec import Struct

from bench.findings import Findings, Spread, Table, Verdict, at_least, at_most, percentile, ratios, spread
from bench.ground import Ground, open_ground
from bench.say import say
from bench.servers import run_sapa, run_worker
from bench.webhooks.chart import draw
from bench.webhooks.latency import COMPANIES, HANGING_PER_COMPANY, PER_SECOND, Idle, measure_idle, open_crowd
from bench.webhooks.post import Receiver, run_receiver
from bench.webhooks.rates import CONCURRENCY, Pace, Progress, open_shelf, post_bare
from bench.webhooks.stored import make_partitions

HANGING = COMPANIES * HANGING_PER_COMPANY


class Size(Struct, frozen=True):
    rounds: int
    deliveries: int
    backlog: int
    soon: int
    late: int
    fair_rounds: int
    fair_seconds: int


FULL = Size(rounds=6, deliveries=20_000, backlog=100_000, soon=200, late=20, fair_rounds=3, fair_seconds=15)
QUICK = Size(rounds=2, deliveries=4_000, backlog=12_800, soon=20, late=3, fair_rounds=1, fair_seconds=5)


class Outcome(Struct, frozen=True):
    """Everything that a run measured."""

    bare: list[Pace]
    sapa: list[Pace]
    backlog: list[Progress]
    idle: Idle
    without: list[list[float]]
    """Milliseconds of healthy endpoints alone, round by round."""
    beside: list[list[float]]
    """The same while others hang."""


async def measure_webhooks(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground, run_receiver(ground) as receiver:
        await make_partitions(ground)
        bare, sapa, backlog = await _measure_rates(ground, receiver, size)
        idle = await _measure_idle(ground, receiver, size)
        without, beside = await _measure_fairness(ground, receiver, size)
    outcome = Outcome(bare, sapa, backlog, idle, without, beside)
    return Findings(judge(outcome), build_tables(outcome), outcome, lambda path: draw(path, bare, sapa, backlog))


async def _measure_rates(
    ground: Ground, receiver: Receiver, size: Size
) -> tuple[list[Pace], list[Pace], list[Progress]]:
    say(f"{size.deliveries:,} deliveries, {size.rounds} rounds")
    bare, sapa = [], []
    async with run_worker(ground) as worker, open_shelf(ground, receiver) as shelf:
        await shelf.drain(size.deliveries, worker)
        for _ in range(size.rounds):
            bare.append(await post_bare(receiver, size.deliveries))
            sapa.append(await shelf.drain(size.deliveries, worker))
        say(f"a backlog of {size.backlog:,} deliveries")
        return bare, sapa, await shelf.watch(size.backlog, worker)


async def _measure_idle(ground: Ground, receiver: Receiver, size: Size) -> Idle:
    say("an idle installation")
    async with run_worker(ground), run_sapa(ground) as api:
        return await measure_idle(ground, receiver, api, size.soon, size.late)


async def _measure_fairness(
    ground: Ground, receiver: Receiver, size: Size
) -> tuple[list[list[float]], list[list[float]]]:
    without, beside = [], []
    async with run_worker(ground), open_crowd(ground, receiver) as crowd:
        for number in range(size.fair_rounds):
            say(f"{PER_SECOND} events a second, without and with {HANGING} hanging endpoints: round {number + 1}")
            without.append(await crowd.measure(size.fair_seconds))
            async with crowd.hanging():
                beside.append(await crowd.measure(size.fair_seconds))
    return without, beside


def judge(outcome: Outcome) -> list[Verdict]:
    idle = outcome.idle
    return [
        at_least(0.7, "×", "deliveries per second from stored events, against the bare loop", _rate_ratio(outcome)),
        at_most(50, " ms", "customer updated to event arrived, nothing else to do, p50", _p50(idle.soon)),
        at_most(50, " ms", "… after seconds without a change, p50", _p50(idle.late)),
        at_most(2, "×", f"p99 of healthy endpoints beside {HANGING} hanging ones, against without them",
                ratios([percentile(times, 99) for times in outcome.beside],
                       [percentile(times, 99) for times in outcome.without])),
        at_most(10, " MB", "growth of the worker over the last four fifths of a backlog",
                spread([outcome.backlog[-1].megabytes - _at(outcome.backlog, 0.2).megabytes])),
    ]  # fmt: skip


def build_tables(outcome: Outcome) -> list[Table]:
    waits = [
        ("customer updated → arrived, idle", outcome.idle.soon),
        ("… after seconds without a change", outcome.idle.late),
        (f"committed → arrived, {PER_SECOND} events/s", list(chain(*outcome.without))),
        (f"… beside {HANGING} hanging endpoints", list(chain(*outcome.beside))),
    ]
    return [
        Table([f"{CONCURRENCY} under way", "deliveries/s", "sender CPU, µs", "PostgreSQL CPU, µs"],
              [_pace_row("bare loop", outcome.bare), _pace_row("sapa worker", outcome.sapa)]),
        Table(["a delivery's way", "number", "p50, ms", "p99, ms"], [_wait_row(*wait) for wait in waits]),
        _backlog_table(outcome.backlog),
    ]  # fmt: skip


def _rate_ratio(outcome: Outcome) -> Spread:
    return ratios([pace.per_second for pace in outcome.sapa], [pace.per_second for pace in outcome.bare])


def _p50(times: list[float]) -> Spread:
    return spread([spread(times).median])


def _at(backlog: list[Progress], part: float) -> Progress:
    """The first sample with that part of the backlog delivered."""
    return next(one for one in backlog if one.delivered >= part * backlog[-1].delivered)


def _pace_row(name: str, paces: list[Pace]) -> list[str]:
    figures = [[pace.per_second for pace in paces], [pace.cpu_us for pace in paces],
               [pace.postgres_cpu_us for pace in paces]]  # fmt: skip
    return [name, *(f"{spread(values).median:,.0f}" for values in figures)]


def _wait_row(name: str, times: list[float]) -> list[str]:
    return [name, f"{len(times):,}", *(f"{percentile(times, percent):.1f}" for percent in (50, 99))]


def _backlog_table(backlog: list[Progress]) -> Table:
    first, fourth, last = _at(backlog, 0.2), _at(backlog, 0.8), backlog[-1]
    rows = [
        ["deliveries", f"{last.delivered:,}"],
        ["drained in, s", f"{last.seconds:.1f}"],
        ["deliveries/s over the first fifth", f"{first.delivered / first.seconds:,.0f}"],
        [
            "deliveries/s over the last fifth",
            f"{(last.delivered - fourth.delivered) / (last.seconds - fourth.seconds):,.0f}",
        ],
        ["worker's memory after the first fifth, MB", f"{first.megabytes:.1f}"],
        ["worker's memory in the end, MB", f"{last.megabytes:.1f}"],
    ]
    return Table(["a backlog", ""], rows)
