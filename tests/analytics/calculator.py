"""The figures worked out from a ticket's history by their definitions, one after the other, cycle by cycle."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from sapa.messaging.messages.types import Source
from sapa.support.samples.types import Metric, Sample

Kind = Literal["heard", "said", "lost", "announced", "assigned", "handover", "resolved", "reopened"]
"""What was lost was written and never arrived; what was announced is only that somebody else will answer."""


class Agent(Struct, frozen=True):
    id: int
    type: Literal["human", "ai"]


class ClockEvent(Struct, frozen=True):
    """Something that happened to a ticket, as whoever made it happen tells it."""

    kind: Kind
    at: datetime
    agent: Agent | None = None
    """Who wrote or resolved it, or who is to have it."""
    message_id: str | None = None


class Step(Struct, frozen=True):
    """A happening, and whose the ticket was just before."""

    event: ClockEvent
    owner: Agent | None

    @property
    def ends_ai(self) -> bool:
        """Whether an AI agent handed the ticket over."""
        giver = self.event.agent if self.event.kind == "announced" else self.owner
        return self.event.kind in {"announced", "handover"} and giver is not None and giver.type == "ai"


def measure(ticket_id: str, source: Source, history: Sequence[ClockEvent]) -> list[Sample]:
    """All samples of a ticket."""
    found = []
    for number, cycle in enumerate(split(list(follow(history))), start=1):
        for metric, agent, start, end in measure_cycle(cycle):
            seconds = max(0.0, (end.at - start).total_seconds())
            found.append(Sample(agent.id, ticket_id, number, source, metric, seconds, start, end.at, end.message_id))
    return found


def follow(history: Sequence[ClockEvent]) -> Iterator[Step]:
    """Whose the ticket is: the first one's who writes in it, and a person's who writes in an AI agent's."""
    owner: Agent | None = None
    is_resolved = False
    for event in history:
        yield Step(event, owner)
        kind, agent = event.kind, event.agent
        if kind in {"heard", "reopened"}:
            is_resolved = False
        elif kind in {"assigned", "handover"}:
            owner = agent
        elif kind == "resolved":
            is_resolved = True
        elif not is_resolved and agent is not None:
            is_free = owner is None or (owner.type, agent.type) == ("ai", "human")
            owner = None if kind == "announced" else agent if is_free else owner


def split(steps: Sequence[Step]) -> list[list[Step]]:
    """What is written after a resolution still belongs to the cycle that it ended."""
    cycles: list[list[Step]] = [[]]
    is_resolved = False
    for step in steps:
        if is_resolved and step.event.kind in {"heard", "reopened"}:
            cycles.append([])
            is_resolved = False
        is_resolved = is_resolved or step.event.kind == "resolved"
        cycles[-1].append(step)
    return cycles


def measure_cycle(steps: Sequence[Step]) -> Iterator[tuple[Metric, Agent, datetime, ClockEvent]]:
    """Who is measured by what, from when on, and what ended it."""
    events = [step.event for step in steps]
    for place, step in enumerate(steps):
        one, before = step.event, steps[:place]
        handovers = [earlier.event.at for earlier in before if earlier.ends_ai]
        if one.kind in {"said", "announced"} and one.agent:
            yield Metric.HANDLED, one.agent, one.at, one
        if one.kind == "said" and one.agent and (waiting := list_waiting(events[:place])):
            start = begin(one.agent, waiting[0].at, handovers)
            yield Metric.RESPONSE, one.agent, start, one
            kinds = [other.agent.type for other in events[:place] if other.kind == "said" and other.agent]
            if one.agent.type not in kinds:
                yield Metric.FIRST_RESPONSE, one.agent, start, one
        if one.kind == "resolved":
            heard = [other.at for other in events[:place] if other.kind == "heard"]
            if step.owner:
                yield Metric.HANDLED, step.owner, one.at, one
            if heard and (credited := step.owner or one.agent):
                yield Metric.RESOLUTION, credited, begin(credited, heard[0], handovers), one


def list_waiting(events: Sequence[ClockEvent]) -> list[ClockEvent]:
    """What the customer wrote since somebody last answered, or since the ticket was resolved."""
    closed = max((n for n, one in enumerate(events) if one.kind in {"said", "resolved"}), default=-1)
    return [one for one in events[closed + 1 :] if one.kind == "heard"]


def begin(agent: Agent, start: datetime, handovers: Sequence[datetime]) -> datetime:
    """People's time begins when an AI agent last let go of the ticket."""
    return max([start, *handovers[-1:]]) if agent.type == "human" else start
