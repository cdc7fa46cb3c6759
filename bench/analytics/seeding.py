"""A year of support: agents, and the samples of their tickets as the product would have written them."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.loyalty.owner import Connection
from bench.names import FIRST_NAMES, LAST_NAMES
from sapa.messaging.messages.types import Source
from sapa.support.samples.types import Metric
from sapa.values.ids import new_id
from sapa.values.text_folding import fold

YEAR = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = 365
GOES_ON = 0.15
"""How many tickets are answered on another day, too."""

AGENT = "INSERT INTO agents (company_id, name, name_text, type) VALUES ($1, $2, $3, $4) RETURNING id"
COLUMNS = ["company_id", "agent_id", "ticket_id", "cycle", "source", "metric", "micros", "started_at", "at"]

Row = tuple[object, ...]


async def seed_agents(db: Connection, company_id: int, number: int) -> list[int]:
    chance = random.Random(7)
    names = [f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}" for _ in range(number)]
    kinds = ["ai" if place % 10 == 0 else "human" for place in range(number)]
    return [
        await db.fetchval(AGENT, company_id, name, fold(name), kind) for name, kind in zip(names, kinds, strict=True)
    ]


async def seed_samples(db: Connection, company_id: int, agents: list[int], number: int) -> None:
    rows = _build_rows(company_id, agents, number)
    await db.copy_records_to_table("support_samples", records=rows, columns=COLUMNS)


def _build_rows(company_id: int, agents: list[int], number: int) -> Iterator[Row]:
    """Ticket by ticket, until there are enough; every agent works on every channel."""
    chance = random.Random(8)
    sources = list(Source)
    made = 0
    while made < number:
        place = (company_id, chance.choice(agents), new_id("tkt_"))
        rows = _build_ticket(chance, place, chance.choice(sources))[: number - made]
        made += len(rows)
        yield from rows


def _build_ticket(chance: random.Random, place: Row, source: Source) -> list[Row]:
    at = YEAR + timedelta(seconds=chance.uniform(0, (DAYS - 3) * 86_400))
    rows = _build_cycle(chance, place, source, 1, at)
    if chance.random() < GOES_ON:
        rows += _build_cycle(chance, place, source, 2, at + timedelta(hours=chance.uniform(20, 60)))
    return rows


def _build_cycle(chance: random.Random, place: Row, source: Source, cycle: int, at: datetime) -> list[Row]:
    """A message, its answer, and the end."""
    answered = at + timedelta(seconds=chance.expovariate(1 / 240))
    resolved = answered + timedelta(seconds=chance.expovariate(1 / 1_800))
    steps = [
        (Metric.FIRST_RESPONSE, at, answered),
        (Metric.RESPONSE, at, answered),
        (Metric.HANDLED, answered, answered),
        (Metric.RESOLUTION, at, resolved),
        (Metric.HANDLED, resolved, resolved),
    ]
    return [
        (*place, cycle, source, metric, (end - start) // timedelta(microseconds=1), start, end)
        for metric, start, end in steps
    ]
