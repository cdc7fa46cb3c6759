"""The history of requests: pages of companies with a long one and a short one, one caller at a time."""

from datetime import timedelta
from urllib.parse import urlencode

from msgspec import Struct

from bench.api.load import Load, Measurement, measure, run_wrk
from bench.findings import Table, Verdict, at_most, ratios, spread
from bench.ground import Ground
from bench.messaging.records import History, make_history
from bench.say import say
from bench.servers import run_sapa

REQUESTS = "/messaging/v1/messages/requests"


class Question(Struct, frozen=True):
    """One way to ask for the history."""

    name: str
    title: str
    key: str
    paths: list[str]


class HistoryRounds(Struct, frozen=True):
    titles: dict[str, str]
    """By question."""
    measured: dict[str, list[Measurement]]


async def measure_history(ground: Ground, rounds: int, few: int, many: int) -> HistoryRounds:
    say(f"storing {few:,} and {many:,} records")
    short = await make_history(ground, "Few", few)
    long = await make_history(ground, "Many", many)
    questions = _build_questions(short, long)
    say(f"the history, {rounds} rounds")
    measured: dict[str, list[Measurement]] = {question.name: [] for question in questions}
    async with run_sapa(ground) as sapa:
        loads = {question.name: _build_load(question) for question in questions}
        for load in loads.values():
            await run_wrk(sapa, load, ground.folder)
        for _ in range(rounds):
            for name, load in loads.items():
                measured[name].append(await measure(sapa, ground.postgres, load, ground.folder))
    return HistoryRounds({question.name: question.title for question in questions}, measured)


def judge_history(history: HistoryRounds) -> Verdict:
    few, many = ([one.p50_ms for one in history.measured[name]] for name in ("few", "many"))
    what = "time of the history's page 1 with its total, many records against few"
    return at_most(1.3, "×", what, ratios(many, few))


def build_history_table(history: HistoryRounds) -> Table:
    rows = []
    for name, measured in history.measured.items():
        p50, p99 = spread([one.p50_ms for one in measured]), spread([one.p99_ms for one in measured])
        rows.append([history.titles[name], f"{p50.median:.2f}", f"{p50.least:.2f}–{p50.most:.2f}", f"{p99.median:.2f}"])
    return Table(["the history, one caller", "p50, ms", "rounds", "p99, ms"], rows)


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


def _build_load(question: Question) -> Load:
    return Load(question.key, [f"GET {path}" for path in question.paths], seconds=1, connections=1)
