"""Random samples of a few agents, tickets and days, close enough to collide."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from hypothesis import strategies as st
from msgspec import Struct

from sapa.db.pool import Tx
from sapa.messaging.messages.types import Source
from sapa.support.samples.actions import record, replace
from sapa.support.samples.types import Metric, Sample

Json = dict[str, Any]

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
TICKETS = [("tkt_1", Source.MSGAPP_CLOUD), ("tkt_2", Source.MSGAPP_COEX), ("tkt_3", Source.MAIL)]
AGENTS = 2

INSTANTS = st.builds(
    lambda day, micros: MIDNIGHT + timedelta(days=day, microseconds=micros),
    st.integers(0, 5),
    st.sampled_from([-1, 0, 1]) | st.integers(0, 86_399_999_999),
)
"""Some at midnight, and one microsecond before and after."""


class Change(Struct, frozen=True):
    """Samples to add, or to replace those of a ticket or of one cycle."""

    samples: list[Sample]
    replaced: tuple[str, int | None] | None = None


def build_sample(agent: int, ticket: int, cycle: int, metric: Metric, at: datetime, micros: int) -> Sample:
    """With the agent's index instead of its id."""
    id, source = TICKETS[ticket]
    seconds = 0.0 if metric == Metric.HANDLED else micros / 1_000_000
    message = None if metric == Metric.RESOLUTION else f"{at:%d%H%M%S%f}"
    return Sample(agent, id, cycle, source, metric, seconds, at - timedelta(seconds=seconds), at, message)


DURATIONS = st.integers(0, 3_000_000) | st.integers(0, 500 * 3_600_000_000)
METRICS = st.sampled_from([*Metric, Metric.HANDLED, Metric.HANDLED, Metric.HANDLED])


def samples_of(ticket: st.SearchStrategy[int], cycle: st.SearchStrategy[int]) -> st.SearchStrategy[list[Sample]]:
    one = st.builds(build_sample, st.integers(0, AGENTS - 1), ticket, cycle, METRICS, INSTANTS, DURATIONS)
    return st.lists(one, max_size=8, unique_by=key_of)


def key_of(sample: Sample) -> tuple[object, ...]:
    """The identity of a sample."""
    return (sample.ticket_id, sample.cycle, sample.metric, sample.agent_id, sample.at, sample.message_id)


ANY_TICKET = st.integers(0, len(TICKETS) - 1)
ANY_CYCLE = st.integers(1, 2)


def _replacements(ticket: int, cycle: int | None) -> st.SearchStrategy[Change]:
    found = samples_of(st.just(ticket), ANY_CYCLE if cycle is None else st.just(cycle))
    return found.map(lambda samples: Change(samples, (TICKETS[ticket][0], cycle)))


RECORDED = samples_of(ANY_TICKET, ANY_CYCLE).map(Change)
REPLACED = st.tuples(ANY_TICKET, ANY_CYCLE | st.none()).flatmap(lambda drawn: _replacements(*drawn))
CHANGES = RECORDED | REPLACED


async def make_agent(client: httpx.AsyncClient, name: str = "Sari", **fields: Any) -> int:
    answer = await client.post("/agents", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    id: int = answer.json()["data"]["id"]
    return id


def named(samples: list[Sample], agents: list[int]) -> list[Sample]:
    """With the agents' ids in this company."""
    fields = [{name: getattr(one, name) for name in Sample.__struct_fields__} for one in samples]
    return [Sample(**{**one, "agent_id": agents[one["agent_id"]]}) for one in fields]


async def apply(tx: Tx, company_id: int, change: Change, agents: list[int]) -> None:
    samples = named(change.samples, agents)
    if change.replaced is None:
        await record(tx, company_id, samples)
    else:
        await replace(tx, company_id, *change.replaced, samples)


def remember(stored: list[Sample], change: Change, agents: list[int]) -> list[Sample]:
    """The samples stored after a change, by the rules."""
    samples = named(change.samples, agents)
    if change.replaced is not None:
        ticket, cycle = change.replaced
        stored = [one for one in stored if one.ticket_id != ticket or cycle not in {None, one.cycle}]
    known = {key_of(one) for one in stored}
    return stored + [one for one in samples if key_of(one) not in known]
