"""Figures of agents over a year of samples, beside the plain aggregate on the same rows."""

import time
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import aiohttp
from msgspec import Struct

from bench.analytics.plain import NOTHING, Told, aggregate
from bench.analytics.seeding import seed_agents, seed_samples
from bench.findings import Findings, Table, Verdict, at_most, ratios, spread
from bench.ground import Ground, SeededCompany, make_company, open_ground
from bench.loyalty.owner import Connection, open_owner
from bench.say import say
from bench.servers import run_sapa
from sapa.db.pool import open_database
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.support.samples.backfill import recount

MAX_MILLISECONDS = 150


class Size(Struct, frozen=True):
    samples: int
    agents: int
    rounds: int
    reads: int


FULL = Size(samples=1_000_000, agents=200, rounds=5, reads=10)
QUICK = Size(samples=20_000, agents=20, rounds=2, reads=5)


class Asked(Struct, frozen=True):
    """A window, and perhaps a channel."""

    title: str
    start: str
    end: str
    channel: str | None = None

    @property
    def path(self) -> str:
        given = {"startAt": self.start, "endAt": self.end} | ({"channel": self.channel} if self.channel else {})
        return f"/messaging/v1/analytics/agents?{urlencode(given)}"

    @property
    def sources(self) -> list[str] | None:
        return list(CHANNEL_NAMES[self.channel]) if self.channel else None


YEAR = ("2025-01-01T00:00:00Z", "2025-12-31T23:59:59.999999Z")
ODD = ("2025-02-03T10:17:23.456Z", "2025-11-20T03:04:05.678901Z")
ASKED = [
    Asked("whole year", *YEAR),
    Asked("whole year, one channel", *YEAR, "msgapp"),
    Asked("odd ten months", *ODD),
    Asked("odd ten months, one channel", *ODD, "mail"),
    Asked("odd month", "2025-06-11T13:14:15.161Z", "2025-07-12T11:10:09.876Z"),
    Asked("a day and a half", "2025-06-11T18:00:00+07:00", "2025-06-13T06:30:00+07:00"),
]


class Reading(Struct):
    """The medians of each round, in milliseconds."""

    asked: Asked
    sapa: list[float] = []
    plain: list[float] = []


class Seeding(Struct, frozen=True):
    samples: int
    seconds: float


async def measure_analytics(folder: Path, is_quick: bool) -> Findings:
    size = QUICK if is_quick else FULL
    readings = [Reading(asked) for asked in ASKED]
    async with open_ground(folder) as ground, open_owner(ground) as owner:
        company = await make_company(ground, "Support")
        counting = await _seed(ground, owner, company, size)
        async with (
            run_sapa(ground) as server,
            aiohttp.ClientSession(server.address, headers={"x-api-key": company.key}) as session,
        ):
            for number in range(size.rounds):
                say(f"round {number + 1} of {size.rounds}")
                for reading in readings:
                    await _read(reading, session, owner, company, size.reads)
    verdicts = [_judge(reading, size) for reading in readings]
    return Findings(verdicts, [_table(readings), _counting_table(counting)], {"reading": readings})


async def _seed(ground: Ground, owner: Connection, company: SeededCompany, size: Size) -> Seeding:
    say(f"seeding {size.samples:,} samples of {size.agents} agents")
    agents = await seed_agents(owner, company.id, size.agents)
    await seed_samples(owner, company.id, agents, size.samples)
    await owner.execute("ANALYZE support_samples")
    say("adding them up")
    started = time.monotonic()
    async with open_database(ground.app_url) as database:
        await recount(database, company.id, lambda done, of: None)
    took = time.monotonic() - started
    await owner.execute("VACUUM ANALYZE")
    return Seeding(size.samples, took)


async def _read(
    reading: Reading, session: aiohttp.ClientSession, owner: Connection, company: SeededCompany, times: int
) -> None:
    """Both in turn, so that what else the machine does is shared; and both must say the same."""
    ours, plain = [], []
    for _ in range(times):
        told, took = await _ask(session, reading.asked.path)
        expected, spent = await aggregate(
            owner, company.id, reading.asked.start, reading.asked.end, reading.asked.sources
        )
        if told != dict.fromkeys(told, NOTHING) | expected:
            raise RuntimeError(f"{reading.asked.title}: the report and the plain aggregate differ")
        ours.append(took)
        plain.append(spent)
    reading.sapa.append(median(ours))
    reading.plain.append(median(plain))


async def _ask(session: aiohttp.ClientSession, path: str) -> tuple[dict[int, Told], float]:
    started = time.monotonic()
    async with session.get(path) as answer:
        body = await answer.json()
    took = (time.monotonic() - started) * 1000
    return {one["agent_id"]: _told(one) for one in body["data"]["records"]}, took


def _told(record: dict[str, object]) -> Told:
    names = ("first_response_time", "avg_response_time", "resolution_time")
    return Told(int(str(record["tickets_handled"])), *(str(record[name]) for name in names))


def _judge(reading: Reading, size: Size) -> Verdict:
    what = f"{reading.asked.title}, {size.samples:,} samples, {size.agents} agents"
    return at_most(MAX_MILLISECONDS, " ms", what, spread(reading.sapa))


def _table(readings: list[Reading]) -> Table:
    columns = ["report of all agents", "over HTTP, p50 ms", "plain aggregate, p50 ms", "ratio", "rounds"]
    return Table(columns, [_row(one) for one in readings])


def _row(reading: Reading) -> list[str]:
    ratio = ratios(reading.sapa, reading.plain)
    times = [f"{spread(one).median:.1f}" for one in (reading.sapa, reading.plain)]
    return [reading.asked.title, *times, f"{ratio.median:.3f} ×", f"{ratio.least:.3f}–{ratio.most:.3f}"]


def _counting_table(counting: Seeding) -> Table:
    row = [f"{counting.samples:,} samples", f"{counting.seconds:.1f}"]
    return Table(["counted anew, as `sapa analytics rebuild` does", "s"], [row])
