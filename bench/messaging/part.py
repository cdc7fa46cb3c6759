"""Messages: sends through the sandbox beside a bare process that does the least of the same, and the history."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

from msgspec import Struct

from bench.api.load import Load, Measurement, measure, run_wrk
from bench.findings import Findings, Table, Verdict, at_most, ratios, spread
from bench.ground import Ground, SeededCompany, open_ground
from bench.messaging.records import History, make_history
from bench.say import say
from bench.servers import Server, free_port, run_sapa, run_server
from sapa.access import actions
from sapa.access.types import MOST_RATE_LIMIT, KeyIn, Scope
from sapa.db.pool import open_database

RECIPIENTS = 500
REQUESTS = "/messaging/v1/messages/requests"


class Size(Struct, frozen=True):
    rounds: int
    seconds: int
    many: int
    few: int


FULL = Size(rounds=6, seconds=5, many=5_000_000, few=10_000)
QUICK = Size(rounds=2, seconds=1, many=100_000, few=10_000)


class Question(Struct, frozen=True):
    """One way to ask for the history."""

    name: str
    title: str
    key: str
    paths: list[str]


class Outcome(Struct, frozen=True):
    """Every measurement, round by round."""

    sends: dict[str, list[Measurement]]
    """By server."""
    history: dict[str, list[Measurement]]
    """By question, one caller at a time."""


async def measure_messaging(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    async with open_ground(folder) as ground:
        sends = await _measure_sends(ground, size)
        questions = await _seed(ground, size)
        history = await _measure_history(ground, size, questions)
    outcome = Outcome(sends, history)
    titles = {question.name: question.title for question in questions}
    return Findings(judge(outcome), [_sends_table(sends), _history_table(titles, history)], outcome)


async def _measure_sends(ground: Ground, size: Size) -> dict[str, list[Measurement]]:
    say(f"sends through the sandbox, {size.rounds} rounds")
    company = await _make_test_company(ground)
    load = Load(key=company.key, requests=_build_sends(), seconds=size.seconds)
    async with run_sapa(ground) as sapa, _run_bare(ground) as bare:
        servers = [bare, sapa]
        measured: dict[str, list[Measurement]] = {server.name: [] for server in servers}
        for server in servers:
            await run_wrk(server, load, ground.folder)
        for _ in range(size.rounds):
            for server in servers:
                measured[server.name].append(await measure(server, ground.postgres, load, ground.folder))
    return measured


def _build_sends() -> list[str]:
    body = '{{"to":"+62811{number:07d}","sources":"MSGAPP_CLOUD","message":"Halo, pesanan # sudah dikirim."}}'
    return [f"POST /messaging/v1/messages/send {body.format(number=number)}" for number in range(RECIPIENTS)]


@asynccontextmanager
async def _run_bare(ground: Ground) -> AsyncIterator[Server]:
    port = free_port()
    async with run_server("bare", ["bench.api.serve", "bench.messaging.bare", str(port)], port, ground) as server:
        yield server


async def _make_test_company(ground: Ground) -> SeededCompany:
    async with open_database(ground.app_url) as database, database.transaction() as tx:
        made = await actions.create_company(tx, "Sender")
        given = KeyIn(name="benchmark", scopes=list(Scope), rate_limit=MOST_RATE_LIMIT)
        key = await actions.create_key(tx, made.test_company_id, given)
    return SeededCompany(made.test_company_id, key.key)


async def _seed(ground: Ground, size: Size) -> list[Question]:
    say(f"storing {size.few:,} and {size.many:,} records")
    few = await make_history(ground, "Few", size.few)
    many = await make_history(ground, "Many", size.many)
    return _build_questions(few, many)


def _build_questions(few: History, many: History) -> list[Question]:
    middle = many.first + (many.last - many.first) / 2
    window = urlencode(
        {"startDate": (middle - timedelta(days=3, minutes=7)).isoformat(), "endDate": middle.isoformat()}
    )
    deep = many.records // 20 // 10
    records, key = f"{many.records:,}", many.company.key
    return [
        Question("few", f"20 of {few.records:,}", few.company.key, [REQUESTS]),
        Question("many", f"20 of {records}", key, [REQUESTS]),
        Question("template", f"20 of {records}, one template's", key, [f"{REQUESTS}?templateId=template_7"]),
        Question("window", f"20 of {records}, three days' of them", key, [f"{REQUESTS}?{window}"]),
        Question("deep", f"page {deep:,} of {records}", key, [f"{REQUESTS}?page={deep}"]),
        Question("one", f"one message's of {records}", key,
                 [f"{REQUESTS}?responseId={id}" for id in many.message_ids]),
    ]  # fmt: skip


async def _measure_history(ground: Ground, size: Size, questions: Sequence[Question]) -> dict[str, list[Measurement]]:
    say(f"the history, {size.rounds} rounds")
    measured: dict[str, list[Measurement]] = {question.name: [] for question in questions}
    async with run_sapa(ground) as sapa:
        loads = {question.name: _build_load(question) for question in questions}
        for load in loads.values():
            await run_wrk(sapa, load, ground.folder)
        for _ in range(size.rounds):
            for name, load in loads.items():
                measured[name].append(await measure(sapa, ground.postgres, load, ground.folder))
    return measured


def _build_load(question: Question) -> Load:
    return Load(question.key, [f"GET {path}" for path in question.paths], seconds=1, connections=1)


def judge(outcome: Outcome) -> list[Verdict]:
    few, many = ([one.p50_ms for one in outcome.history[name]] for name in ("few", "many"))
    return [
        at_most(1.3, "×", "time of the history's page 1 with its total, many records against few", ratios(many, few))
    ]


def _sends_table(sends: dict[str, list[Measurement]]) -> Table:
    rows = []
    for name, measured in sends.items():
        speeds = [one.requests_per_second for one in measured]
        ratio = ratios(speeds, [one.requests_per_second for one in sends["bare"]])
        figures = [
            spread(speeds).median,
            spread([one.cpu_us for one in measured]).median,
            spread([one.postgres_cpu_us for one in measured]).median,
        ]
        latency = [spread([one.p50_ms for one in measured]).median, spread([one.p99_ms for one in measured]).median]
        rows.append([name, *(f"{figure:,.0f}" for figure in figures), *(f"{one:.1f}" for one in latency),
                     f"{ratio.median:.3f} ×"])  # fmt: skip
    return Table(["16 senders", "sends/s", "CPU, µs", "PostgreSQL CPU, µs", "p50, ms", "p99, ms", "ratio"], rows)


def _history_table(titles: dict[str, str], history: dict[str, list[Measurement]]) -> Table:
    rows = []
    for name, measured in history.items():
        p50, p99 = spread([one.p50_ms for one in measured]), spread([one.p99_ms for one in measured])
        rows.append([titles[name], f"{p50.median:.2f}", f"{p50.least:.2f}–{p50.most:.2f}", f"{p99.median:.2f}"])
    return Table(["the history, one caller", "p50, ms", "rounds", "p99, ms"], rows)
