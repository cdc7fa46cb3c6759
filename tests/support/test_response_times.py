"""The definitions of all metrics as a table of events."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.analytics.report import build_duration
from sapa.messaging.messages.types import Source
from sapa.support.response_times import (
    Actor,
    AgentMessage,
    ClockEvent,
    CustomerMessage,
    Cycle,
    CycleRef,
    Handover,
    Resolution,
    advance,
)
from sapa.support.samples.types import Metric, Sample

SARI, BUDI = Actor(1, "human"), Actor(2, "human")
BOT, TWIN = Actor(8, "ai"), Actor(9, "ai")
CYCLE = CycleRef("tkt_1", Source.MSGAPP_CLOUD, 1)

Expected = list[tuple[Actor, str, int]]


def at(clock: str) -> datetime:
    """09:05 or 09:05:20 of one day; 33:00 is the next morning."""
    hours, minutes, seconds, *_ = [*map(int, clock.split(":")), 0, 0]
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def inbound(clock: str) -> CustomerMessage:
    return CustomerMessage(at(clock))


def reply(clock: str, agent: Actor, *, is_handover: bool = False) -> AgentMessage:
    return AgentMessage(at(clock), agent, f"message at {clock}", is_handover)


def handed_over(clock: str) -> Handover:
    return Handover(at(clock))


def resolved(clock: str, owner: Actor | None, resolver: Actor | None = None) -> Resolution:
    return Resolution(at(clock), owner, resolver)


def measure(events: list[ClockEvent]) -> list[Sample]:
    cycle, found = Cycle(), []
    for event in events:
        cycle, samples = advance(CYCLE, cycle, event)
        found += samples
    return found


def timed(samples: list[Sample]) -> set[tuple[int, str, float]]:
    return {(one.agent_id, one.metric, one.seconds) for one in samples if one.metric is not Metric.HANDLED}


CASES: dict[str, tuple[list[ClockEvent], Expected]] = {
    "a burst is one wait, and two answers in a row are one response": (
        [
            inbound("09:00:00"), inbound("09:00:30"), reply("09:05:00", SARI), reply("09:05:20", SARI),
            inbound("09:10"), reply("09:12", SARI), resolved("09:30", SARI),
        ],
        [(SARI, "first_response", 300), (SARI, "response", 300), (SARI, "response", 120), (SARI, "resolution", 1800)],
    ),
    "what an AI agent held is not on the clock of people": (
        [
            inbound("10:00:00"), reply("10:00:05", BOT), inbound("10:01:00"), handed_over("10:01:10"),
            reply("10:06:10", SARI), resolved("10:21:10", SARI),
        ],
        [
            (BOT, "first_response", 5), (BOT, "response", 5),
            (SARI, "first_response", 300), (SARI, "response", 300), (SARI, "resolution", 1200),
        ],
    ),
    "an AI agent that only announces somebody does not stop the clock": (
        [inbound("10:00"), reply("10:00:05", BOT, is_handover=True), handed_over("10:00:05"), reply("10:10:05", SARI)],
        [(SARI, "first_response", 600), (SARI, "response", 600)],
    ),
    "whoever takes over without a handover has the customer's whole wait": (
        [inbound("10:00"), reply("10:00:05", BOT), inbound("10:01"), reply("10:04", SARI), resolved("10:10", SARI)],
        [
            (BOT, "first_response", 5), (BOT, "response", 5),
            (SARI, "first_response", 180), (SARI, "response", 180), (SARI, "resolution", 600),
        ],
    ),
    "the sender is credited, and a kind has one first response": (
        [inbound("09:00"), reply("09:01", SARI), inbound("09:02"), reply("09:05", BUDI), resolved("09:06", SARI)],
        [(SARI, "first_response", 60), (SARI, "response", 60), (BUDI, "response", 180), (SARI, "resolution", 360)],
    ),
    "an AI agent is credited with its resolution from the customer's first message": (
        [inbound("09:00"), reply("09:01", BOT), handed_over("09:02"), reply("09:03", TWIN), resolved("09:10", BOT)],
        [(BOT, "first_response", 60), (BOT, "response", 60), (BOT, "resolution", 600)],
    ),
    "resolved without an answer": ([inbound("09:00"), resolved("09:10", SARI)], [(SARI, "resolution", 600)]),
    "without an owner the resolver": ([inbound("09:00"), resolved("09:10", None, BUDI)], [(BUDI, "resolution", 600)]),
    "an owner before the resolver": ([inbound("09:00"), resolved("09:10", SARI, BUDI)], [(SARI, "resolution", 600)]),
    "nobody's and by nobody": ([inbound("09:00"), resolved("09:10", None)], []),
    "an answer while nobody waits": ([inbound("09:00"), reply("09:01", BOT), reply("09:05", SARI)],
        [(BOT, "first_response", 60), (BOT, "response", 60)]),
    "a message that is delivered late": (
        [inbound("09:01"), inbound("09:00"), reply("09:05", SARI)],
        [(SARI, "first_response", 300), (SARI, "response", 300)],
    ),
    "an agent who writes before the customer": (
        [reply("08:00", SARI), inbound("09:00"), reply("09:05", SARI)],
        [(SARI, "first_response", 300), (SARI, "response", 300)],
    ),
    "after the resolution": (
        [inbound("09:00"), reply("09:01", SARI), resolved("09:02", SARI), reply("09:03", SARI)],
        [(SARI, "first_response", 60), (SARI, "response", 60), (SARI, "resolution", 120)],
    ),
    "reopened by hand, without a word of the customer": ([reply("09:00", SARI), resolved("09:10", SARI)], []),
    "clocks that differ": ([inbound("09:00"), reply("08:59", SARI), resolved("08:58", SARI)],
        [(SARI, "first_response", 0), (SARI, "response", 0), (SARI, "resolution", 0)]),
    "more than four days": ([inbound("09:00"), reply("134:03:09", SARI)],
        [(SARI, "first_response", 125 * 3600 + 189), (SARI, "response", 125 * 3600 + 189)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_measured(name: str) -> None:
    events, expected = CASES[name]
    assert timed(measure(events)) == {(agent.id, metric, float(seconds)) for agent, metric, seconds in expected}
    assert len(measure(events)) == len(expected) + sum(
        isinstance(one, AgentMessage) or (isinstance(one, Resolution) and one.owner is not None) for one in events
    )


def printed(samples: list[Sample], agent: Actor, metric: str) -> str:
    micros = [one.micros for one in samples if (one.agent_id, one.metric) == (agent.id, metric)]
    return build_duration(sum(micros), len(micros))


@pytest.mark.parametrize(
    ("name", "agent", "expected"),
    [
        ("a burst is one wait, and two answers in a row are one response", SARI, ("00:05:00", "00:03:30", "00:30:00")),
        ("what an AI agent held is not on the clock of people", BOT, ("00:00:05", "00:00:05", "00:00:00")),
        ("what an AI agent held is not on the clock of people", SARI, ("00:05:00", "00:05:00", "00:20:00")),
        ("more than four days", SARI, ("125:03:09", "125:03:09", "00:00:00")),
    ],
)
def test_printed(name: str, agent: Actor, expected: tuple[str, ...]) -> None:
    samples = measure(CASES[name][0])
    assert tuple(printed(samples, agent, of) for of in ("first_response", "response", "resolution")) == expected


def test_a_sample_names_its_ticket_and_message() -> None:
    _, first, response = measure([inbound("09:00"), reply("09:05", SARI)])
    assert (first.ticket_id, first.cycle, first.source) == ("tkt_1", 1, Source.MSGAPP_CLOUD)
    assert (first.started_at, first.at, first.message_id) == (at("09:00"), at("09:05"), "message at 09:05")
    assert (response.started_at, response.at) == (first.started_at, first.at)


INSTANTS = st.integers(0, 3600).map(lambda second: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=second))
AGENTS = st.sampled_from([SARI, BUDI, BOT, TWIN])
EVENTS = st.one_of(
    st.builds(CustomerMessage, INSTANTS),
    st.builds(AgentMessage, INSTANTS, AGENTS, st.just("m"), st.booleans()),
    st.builds(Handover, INSTANTS),
    st.builds(Resolution, INSTANTS, st.none() | AGENTS, st.none() | AGENTS),
)


@given(st.lists(EVENTS, max_size=12))
def test_samples_of_any_events_are_consistent(events: list[ClockEvent]) -> None:
    found = measure(events)
    assert all(one.seconds >= 0 and one.started_at <= one.at for one in found)
    responses = [one for one in found if one.metric is Metric.RESPONSE]
    firsts = [one for one in found if one.metric is Metric.FIRST_RESPONSE]
    waits = sum(isinstance(one, CustomerMessage) for one in events)
    assert len(firsts) <= min(2, len(responses)) and len(responses) <= waits  # noqa: PT018
    handled = sum(isinstance(one, AgentMessage) for one in events)
    owned = sum(isinstance(one, Resolution) and one.owner is not None for one in events)
    assert sum(one.metric is Metric.HANDLED for one in found) == handled + owned
