"""The log of API calls: what storing a call costs beside a get, and whether its lists stay quick as it grows."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import aiohttp
from msgspec import Struct

from bench.api.load import Load, find_wrk, measure
from bench.calls.seeding import RARE_ID, RARE_KEY, RARE_ROUTE, make_days, seed_calls
from bench.findings import Findings, Table, Verdict, at_most, ratios, spread
from bench.ground import Ground, SeededCompany, make_company, open_ground
from bench.loyalty.owner import open_owner
from bench.say import say
from bench.servers import Server, cpu_seconds, run_sapa
from sapa.access.calls.recorder import CallRecorder
from sapa.db.pool import open_database
from sapa.http.access_log import MAX_CALLS, FinishedCall

MAX_SHARE = 10
"""Percent of the CPU that an API process needs for a get."""
MAX_GROWTH = 1.3


class Size(Struct, frozen=True):
    many: int
    few: int
    rounds: int
    reads: int
    batches: int


FULL = Size(many=10_000_000, few=10_000, rounds=5, reads=20, batches=200)
QUICK = Size(many=100_000, few=10_000, rounds=2, reads=5, batches=20)


class Question(Struct, frozen=True):
    title: str
    query: dict[str, str]
    is_flat: bool = True


def build_questions() -> list[Question]:
    weeks_ago = (datetime.now(UTC) - timedelta(days=15)).isoformat()
    return [
        Question("the newest 20", {}),
        Question("two weeks ago", {"calledTo": weeks_ago}),
        Question("one of five keys", {"keyId": "key_3"}),
        Question("a key that called weeks ago", {"keyId": RARE_KEY}),
        Question("one of 40 routes", {"route": "/customer/v1/route/7"}),
        Question("a route that was called weeks ago", {"route": RARE_ROUTE}),
        Question("errors", {"status": "4xx"}),
        Question("a key's errors of one kind", {"keyId": "key_0", "code": "NOT_FOUND"}),
        Question("one request", {"requestId": f"{RARE_ID}_7"}),
        Question("a combination that does not occur", {"keyId": "key_0", "address": "192.0.2.1"}, is_flat=False),
    ]


class Cost(Struct, frozen=True):
    """Microseconds of CPU for each call."""

    get: float
    get_postgres: float
    store: float
    store_postgres: float

    @property
    def share(self) -> float:
        """The measured get includes its own entry in the log."""
        return self.store / (self.get - self.store) * 100


class Reading(Struct):
    """The medians of each round, in milliseconds."""

    question: Question
    few: list[float] = []
    many: list[float] = []


async def measure_calls(folder: Path, is_quick: bool) -> Findings:
    find_wrk()
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground:
        few, many = await make_company(ground, "Few calls"), await make_company(ground, "Many calls")
        costs = [await _measure_cost(ground, size) for _ in range(size.rounds)]
        say(f"seeding {size.many:,} + {size.few:,} calls of a month")
        async with open_owner(ground) as owner:
            await make_days(owner)
            await seed_calls(owner, {few.id: size.few, many.id: size.many})
        readings = await _read_lists(ground, few, many, size)
    return Findings(
        [_judge_cost(costs), *(_judge_list(one, size) for one in readings if one.question.is_flat)],
        [_build_cost_table(costs), _build_list_table(readings, size)],
        {"costs": costs, "readings": readings},
    )


async def _measure_cost(ground: Ground, size: Size) -> Cost:
    company = await make_company(ground, f"Calls {time.monotonic_ns()}")
    async with run_sapa(ground) as server:
        order_id = await _create_order(server, company)
        load = Load(company.key, [f"GET /customer/v1/orders/{order_id} "], seconds=2)
        await measure(server, ground.postgres, load, ground.folder)
        got = await measure(server, ground.postgres, load, ground.folder)
    store, store_postgres = await _store(ground, company, size.batches)
    return Cost(got.cpu_us, got.postgres_cpu_us, store, store_postgres)


async def _create_order(server: Server, company: SeededCompany) -> str:
    line = {"title": "Kopi Gayo 250 g", "price": 125000, "quantity": 2}
    async with (
        aiohttp.ClientSession(server.address, headers={"x-api-key": company.key}) as session,
        session.post("/customer/v1/orders", json={"lineItems": [line]}) as answer,
    ):
        return str((await answer.json())["data"]["id"])


async def _store(ground: Ground, company: SeededCompany, batches: int) -> tuple[float, float]:
    """The recorder alone, in this process: its CPU and PostgreSQL's, for each call of full batches."""
    async with open_database(ground.app_url) as database:
        recorder = CallRecorder(database)
        for number in range(batches // 10 + 1):
            recorder.add(_build_calls(company, number))
            await recorder.drain()
        batched = [_build_calls(company, number) for number in range(1000, 1000 + batches)]
        cpu, postgres = time.process_time(), cpu_seconds(ground.postgres)
        for batch in batched:
            recorder.add(batch)
            await recorder.drain()
        cpu, postgres = time.process_time() - cpu, cpu_seconds(ground.postgres) - postgres
        await recorder.close()
    calls = batches * MAX_CALLS
    return cpu / calls * 1e6, postgres / calls * 1e6


def _build_calls(company: SeededCompany, number: int) -> list[FinishedCall]:
    return [
        FinishedCall(
            time.time(), f"req_{number:06d}{n:018d}", "GET", "/customer/v1/orders/{id}", "/customer/v1/orders/x", 200,
            0.001, "203.0.113.7", "key_01jc9y3q5me8w92v7x4t6r0n1k", company.id, None,
        )
        for n in range(MAX_CALLS)
    ]  # fmt: skip


async def _read_lists(ground: Ground, few: SeededCompany, many: SeededCompany, size: Size) -> list[Reading]:
    readings = [Reading(question) for question in build_questions()]
    async with run_sapa(ground) as server, aiohttp.ClientSession(server.address) as session:
        for number in range(size.rounds):
            say(f"round {number + 1} of {size.rounds}")
            for reading in readings:
                reading.few.append(await _read(session, few, reading.question, size.reads))
                reading.many.append(await _read(session, many, reading.question, size.reads))
    return readings


async def _read(session: aiohttp.ClientSession, company: SeededCompany, question: Question, reads: int) -> float:
    times = []
    for _ in range(reads):
        started = time.monotonic()
        url = f"/customer/v1/api-calls?{urlencode(question.query)}"
        async with session.get(url, headers={"x-api-key": company.key}) as answer:
            page = await answer.json()
        times.append((time.monotonic() - started) * 1000)
        if question.is_flat and not page["data"]:
            raise RuntimeError(f"{question.title}: nothing was found: {page}")
    return median(times)


def _judge_cost(costs: Sequence[Cost]) -> Verdict:
    return at_most(MAX_SHARE, " %", "API CPU of storing a call, of that of a get", spread([one.share for one in costs]))


def _judge_list(reading: Reading, size: Size) -> Verdict:
    what = f"time of a page: {reading.question.title}, {size.many:,} calls against {size.few:,}"
    return at_most(MAX_GROWTH, "×", what, ratios(reading.many, reading.few))


def _build_cost_table(costs: Sequence[Cost]) -> Table:
    rows = [
        ["a get, with its entry in the log", f"{median(one.get for one in costs):.0f}",
         f"{median(one.get_postgres for one in costs):.0f}"],
        ["the entry alone, in batches", f"{median(one.store for one in costs):.1f}",
         f"{median(one.store_postgres for one in costs):.1f}"],
    ]  # fmt: skip
    return Table(["CPU of a call, µs", "API", "PostgreSQL"], rows)


def _build_list_table(readings: Sequence[Reading], size: Size) -> Table:
    columns = ["a page of 20, one caller", f"{size.few:,} calls, p50 ms", f"{size.many:,} calls, p50 ms", "ratio"]
    rows = []
    for reading in readings:
        ratio = ratios(reading.many, reading.few)
        times = [f"{median(one):.2f}" for one in (reading.few, reading.many)]
        rows.append([reading.question.title, *times, f"{ratio.median:.2f} ×"])
    return Table(columns, rows)
