"""Points: adjustments of one wallet and of many, and the history of a customer who has very many entries."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.findings import Findings, Table, Verdict, at_least, at_most, ratios, spread
from bench.ground import Ground, make_company, open_ground
from bench.loyalty.bare import open_bare
from bench.loyalty.callers import CALLERS, Crowd, Measured, open_crowd
from bench.loyalty.checking import check_points, reconcile
from bench.loyalty.owner import Connection, open_owner
from bench.loyalty.seeding import LongLedger, seed_ledger, seed_timeline
from bench.say import say
from bench.servers import Server, free_port, run_sapa, run_server
from sapa.db.counters import fold
from sapa.db.pool import open_database
from sapa.timeline.jobs import backfill_counters


class Size(Struct, frozen=True):
    entries: int
    few: int
    timeline: int
    wallets: int
    seconds: float
    rounds: int
    reads: int


FULL = Size(entries=1_000_000, few=1_000, timeline=100_000, wallets=1_000, seconds=4, rounds=5, reads=100)
QUICK = Size(entries=20_000, few=1_000, timeline=20_000, wallets=100, seconds=1, rounds=2, reads=30)

FILTERS = ("all", "points_added", "points_deducted")
PLACES = ("first", "middle", "last")
MAX_TIMES = 1.3
FEW_OF_TIMELINE = 100


MIN_ONE_WALLET = 0.3
MIN_MANY_WALLETS = 0.18


class Adjusting(Struct):
    """Sapa, the bare statement and the bare statement behind HTTP on so many wallets, round by round."""

    wallets: int
    sapa: list[Measured] = []
    bare: list[float] = []
    served: list[Measured] = []


class Reading(Struct):
    """One page of the history: the median of each round, in milliseconds."""

    place: str
    filter: str
    long: list[float] = []
    short: list[float] = []


class TimelineReading(Struct):
    """The first page of a timeline: the median of each round, in milliseconds."""

    long: list[float] = []
    short: list[float] = []


class Reconciling(Struct, frozen=True):
    entries: int
    seconds: float


async def measure_loyalty(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground, open_owner(ground) as owner:
        adjustings = await _measure_adjusting(ground, owner, size)
        readings, reconciling = await _measure_reading(ground, owner, size)
        timelines = await _measure_timelines(ground, owner, size)
    tables = [_adjusting_table(adjustings), _reading_table(readings, size), _reconciling_table(reconciling),
              _timeline_table(timelines, size)]  # fmt: skip
    measured = {"adjusting": adjustings, "reading": readings, "reconciling": reconciling, "timelines": timelines}
    verdicts = [_judge_adjusting(one) for one in adjustings] + [_judge(reading, size) for reading in readings]
    return Findings([*verdicts, _judge_timelines(timelines, size)], tables, measured)


async def _measure_adjusting(ground: Ground, owner: Connection, size: Size) -> list[Adjusting]:
    company = await make_company(ground, "Points")
    found = [Adjusting(1), Adjusting(size.wallets)]
    async with (
        run_sapa(ground) as server,
        open_crowd(server, ground.postgres, company.key) as crowd,
        open_bare(ground) as bare,
        run_bare_server(ground) as bare_server,
        open_crowd(bare_server, ground.postgres, "none") as bare_crowd,
    ):
        customers = await crowd.make_customers(1 + size.wallets)
        chosen = [customers[:1], customers[1:]]
        for ids in chosen:
            await crowd.adjust(ids, 1)
        for number in range(size.rounds):
            say(f"adjustments, round {number + 1} of {size.rounds}")
            for adjusting, ids in zip(found, chosen, strict=True):
                adjusting.sapa.append(await crowd.adjust(ids, size.seconds))
                adjusting.bare.append(await bare.adjust(len(ids), size.seconds))
                wallets = [str(n) for n in range(len(ids))]
                adjusting.served.append(await bare_crowd.adjust(wallets, size.seconds, "/{}"))
        say("every point is looked for")
        await check_points(ground, owner, company.id, crowd.told)
    return found


@asynccontextmanager
async def run_bare_server(ground: Ground) -> AsyncIterator[Server]:
    port = free_port()
    module = ["bench.api.serve", "bench.loyalty.bare_server", str(port)]
    async with run_server("bare", module, port, ground) as server:
        yield server


async def _measure_reading(ground: Ground, owner: Connection, size: Size) -> tuple[list[Reading], Reconciling]:
    company = await make_company(ground, "History")
    readings = [Reading(place, filter) for place, filter in product(PLACES, FILTERS)]
    async with run_sapa(ground) as server, open_crowd(server, ground.postgres, company.key) as crowd:
        say(f"seeding {size.entries:,} entries of one customer")
        many, few = await crowd.make_customers(2)
        long = await seed_ledger(owner, company.id, many, size.entries)
        short = await seed_ledger(owner, company.id, few, size.few)
        await owner.execute("VACUUM ANALYZE")
        for number in range(size.rounds):
            say(f"history, round {number + 1} of {size.rounds}")
            for reading in readings:
                await _read(reading, crowd, long, short, size.reads)
    say("the seeded ledger is reconciled")
    started = time.monotonic()
    await reconcile(ground, company.id)
    return readings, Reconciling(long.entries + short.entries, time.monotonic() - started)


async def _measure_timelines(ground: Ground, owner: Connection, size: Size) -> TimelineReading:
    """A customer with very many entries and one with few, counted as the worker does it."""
    company, reading = await make_company(ground, "Timelines"), TimelineReading()
    async with run_sapa(ground) as server, open_crowd(server, ground.postgres, company.key) as crowd:
        many, few = await crowd.make_customers(2)
        await seed_timeline(owner, company.id, many, size.timeline)
        await seed_timeline(owner, company.id, few, FEW_OF_TIMELINE)
        async with open_database(ground.app_url) as database:
            await backfill_counters(database)
            await fold(database)
        await owner.execute("VACUUM ANALYZE")
        paths = [f"/customer/v1/loyalty/customers/{id}/timeline" for id in (many, few)]
        for number in range(size.rounds):
            say(f"timelines, round {number + 1} of {size.rounds}")
            taken = [[await crowd.read(path) for path in paths] for _ in range(size.reads)]
            reading.long.append(median(one for one, _ in taken))
            reading.short.append(median(other for _, other in taken))
    return reading


async def _read(reading: Reading, crowd: Crowd, long: LongLedger, short: LongLedger, times: int) -> None:
    """The two take turns, so that what else the machine does is shared by both."""
    paths = [_path(reading, ledger) for ledger in (long, short)]
    taken = [[await crowd.read(path) for path in paths] for _ in range(times)]
    reading.long.append(median(one for one, _ in taken))
    reading.short.append(median(other for _, other in taken))


def _path(reading: Reading, ledger: LongLedger) -> str:
    before = {"first": "", "middle": f"&before={ledger.middle}", "last": f"&before={ledger.last}"}[reading.place]
    return f"/customer/v1/loyalty/customers/{ledger.customer_id}/history?filter={reading.filter}{before}"


def _judge_adjusting(adjusting: Adjusting) -> Verdict:
    least = MIN_ONE_WALLET if adjusting.wallets == 1 else MIN_MANY_WALLETS
    measured = ratios([one.per_second for one in adjusting.sapa], adjusting.bare)
    return at_least(least, "×", f"adjustments of {_title(adjusting)} a second, against the bare statement", measured)


def _title(adjusting: Adjusting) -> str:
    return "one wallet" if adjusting.wallets == 1 else f"{adjusting.wallets:,} wallets"


def _judge(reading: Reading, size: Size) -> Verdict:
    what = f"{reading.place} page of {reading.filter}, {size.entries:,} entries against {size.few:,}"
    return at_most(MAX_TIMES, "×", what, ratios(reading.long, reading.short))


def _adjusting_table(adjustings: list[Adjusting]) -> Table:
    columns = [f"{CALLERS} callers adjust", "adjustments/s", "p50, ms", "p99, ms", "API CPU, µs", "PostgreSQL CPU, µs",
               "bare statement, /s", "ratio", "rounds", "bare over HTTP, /s", "ratio"]  # fmt: skip
    return Table(columns, [_adjusting_row(one) for one in adjustings])


def _adjusting_row(adjusting: Adjusting) -> list[str]:
    per_second = [one.per_second for one in adjusting.sapa]
    ratio = ratios(per_second, adjusting.bare)
    waits = [median(one.p50 for one in adjusting.sapa), median(one.p99 for one in adjusting.sapa)]
    costs = [median(one.api_cpu for one in adjusting.sapa), median(one.postgres_cpu for one in adjusting.sapa)]
    served = [one.per_second for one in adjusting.served]
    told = [f"{one:.1f}" for one in waits] + [f"{one:,.0f}" for one in [*costs, median(adjusting.bare)]]
    return [_title(adjusting), f"{median(per_second):,.0f}", *told, f"{ratio.median:.2f} ×",
            f"{ratio.least:.2f}–{ratio.most:.2f}", f"{median(served):,.0f}",
            f"{ratios(per_second, served).median:.2f} ×"]  # fmt: skip


def _reading_table(readings: list[Reading], size: Size) -> Table:
    columns = ["20 entries of the history", "filter", f"of {size.entries:,}, p50 ms", f"of {size.few:,}, p50 ms"]
    rows = [
        [f"{one.place} page", one.filter, f"{spread(one.long).median:.2f}", f"{spread(one.short).median:.2f}"]
        for one in readings
    ]
    return Table(columns, rows, words=2)


def _judge_timelines(reading: TimelineReading, size: Size) -> Verdict:
    what = f"first page of a timeline, {size.timeline:,} entries against {FEW_OF_TIMELINE}"
    return at_most(MAX_TIMES, "×", what, ratios(reading.long, reading.short))


def _timeline_table(reading: TimelineReading, size: Size) -> Table:
    columns = ["20 entries of a timeline", f"of {size.timeline:,}, p50 ms", f"of {FEW_OF_TIMELINE}, p50 ms"]
    return Table(columns, [["first page", *(f"{spread(one).median:.2f}" for one in (reading.long, reading.short))]])


def _reconciling_table(reconciling: Reconciling) -> Table:
    row = [f"{reconciling.entries:,} entries", f"{reconciling.seconds:.1f}"]
    return Table(["`sapa loyalty reconcile`", "s"], [row])
