"""Whatever samples are added and replaced, the report equals the figures computed from all of them."""

import asyncio
import random
from datetime import datetime, timedelta
from functools import partial

import httpx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sapa.analytics import queries
from sapa.analytics.report import build_record
from sapa.analytics.window import SampleRange
from sapa.db.pool import Connection, Database
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.messaging.messages.types import Source
from sapa.support.samples.backfill import recount
from sapa.support.samples.types import Metric, Sample
from tests import depth
from tests.analytics.expected_figures import figures_of, list_nonzero
from tests.analytics.sample_strategies import (
    AGENTS,
    CHANGES,
    INSTANTS,
    MIDNIGHT,
    TICKETS,
    Change,
    apply,
    build_sample,
    make_agent,
    remember,
)
from tests.conftest import Installation
from tests.factories import Environments, make_company, make_key
from tests.messaging.conftest import connect_messaging

CHANNELS = st.none() | st.sampled_from([*CHANNEL_NAMES])
EDGES = st.tuples(st.integers(0, 40), st.sampled_from([-1, 0, 1]))
"""An end at a sample's instant, or a microsecond beside it."""
FAR = st.sampled_from([MIDNIGHT - timedelta(days=40), MIDNIGHT + timedelta(days=40)])
ENDS = EDGES | INSTANTS | FAR


@given(
    changes=st.lists(CHANGES, min_size=1, max_size=8),
    windows=st.lists(st.tuples(ENDS, ENDS, CHANNELS), min_size=6, max_size=6),
)
@settings(
    max_examples=depth.examples(40), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
async def test_the_report_equals_a_plain_calculation(
    installation: Installation,
    database: Database,
    changes: list[Change],
    windows: list[tuple[tuple[int, int] | datetime, tuple[int, int] | datetime, str | None]],
) -> None:
    company = (await make_company(database)).test
    async with connect_messaging(installation, (await make_key(database, company)).raw) as client:
        agents = [await make_agent(client, f"Agent {n}") for n in range(AGENTS)]
        stored: list[Sample] = []
        for change in changes:
            async with database.transaction() as tx:
                await apply(tx, company, change, agents)
            stored = remember(stored, change, agents)
        for *ends, channel in windows:
            start, end = sorted(_instant(stored, one) for one in ends)
            asked = {"startAt": start.isoformat(), "endAt": end.isoformat()} | ({"channel": channel} if channel else {})
            answer = await client.get("/analytics/agents", params=asked)
            assert answer.status_code == 200, answer.text
            sources = CHANNEL_NAMES[channel] if channel else None
            assert list_nonzero(answer.json()["data"]["records"]) == figures_of(stored, start, end, sources)


def _instant(stored: list[Sample], drawn: tuple[int, int] | datetime) -> datetime:
    if isinstance(drawn, datetime):
        return drawn
    place, micros = drawn
    at = stored[place % len(stored)].at if stored else MIDNIGHT
    return at + timedelta(microseconds=micros)


STORED = """
    SELECT agent_id, ticket_id, cycle, source, metric, micros, (extract(epoch FROM at) * 1000000)::bigint AS micros_at
      FROM support_samples WHERE company_id = $1"""


async def read_samples(db: Connection, company_id: int) -> list[Sample]:
    epoch = datetime.fromisoformat("1970-01-01T00:00:00Z")
    found = []
    for agent, ticket, cycle, source, metric, micros, at in await db.fetch(STORED, company_id):
        instant = epoch + timedelta(microseconds=at)
        found.append(
            Sample(agent, ticket, cycle, Source(source), Metric(metric), micros / 1_000_000, instant, instant, None)
        )
    return found


def draw_change(chance: random.Random) -> Change:
    ticket, cycle = chance.randrange(len(TICKETS)), chance.randint(1, 2)
    samples = [
        build_sample(
            chance.randrange(AGENTS), ticket, cycle, chance.choice([*Metric, Metric.HANDLED]), draw_instant(chance),
            chance.randrange(10**9),
        )
        for _ in range(chance.randint(0, 4))
    ]  # fmt: skip
    if chance.random() < 0.6:
        return Change(samples)
    return Change(samples, (TICKETS[ticket][0], cycle))


def draw_instant(chance: random.Random) -> datetime:
    return MIDNIGHT + timedelta(days=chance.randint(0, 3), seconds=chance.choice([0, 3_600, 43_200, 86_399]))


RECORD = ("agent_id", "tickets_handled", "first_response_time", "avg_response_time", "resolution_time",
          "last_chat_handled")  # fmt: skip


async def compare(database: Database, company_id: int, chance: random.Random) -> None:
    """Compares report and samples of one snapshot, whatever other transactions do."""
    start, end = sorted(draw_instant(chance) for _ in range(2))
    sources = chance.choice([None, *CHANNEL_NAMES.values()])
    async with database.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
        stored = await read_samples(db, company_id)
        found = await queries.list_figures(db, company_id, SampleRange(start, end), sources, None)
    records = [{name: getattr(build_record(company_id, one), name) for name in RECORD} for one in found]
    assert list_nonzero(records) == figures_of(stored, start, end, sources)


async def test_the_report_is_exact_at_every_instant_of_concurrent_changes(
    database: Database, company: Environments, sandbox: httpx.AsyncClient
) -> None:
    """Writers that collide on agents, tickets and days, while all of it is recounted repeatedly."""
    agents = [await make_agent(sandbox, f"Agent {n}") for n in range(AGENTS)]
    done = asyncio.Event()

    async def write(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            change = draw_change(chance)
            await database.transact(partial(apply, company_id=company.test, change=change, agents=agents))

    async def count() -> None:
        for _ in range(8):
            await recount(database, company.test, lambda number, of: None)

    async def watch(seed: int) -> int:
        chance, looks = random.Random(seed), 0
        while not done.is_set():
            await compare(database, company.test, chance)
            looks += 1
        return looks

    watching = asyncio.gather(watch(1), watch(2))
    try:
        await asyncio.gather(*(write(seed) for seed in range(5)), count())
    finally:
        done.set()
    assert min(await watching) > 1
    for seed in range(20):
        await compare(database, company.test, random.Random(seed))
