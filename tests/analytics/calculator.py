"""Computes the samples of a ticket's history by their definitions, metric by metric, cycle by cycle."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from sapa.messaging.messages.types import Source
from sapa.support.samples.types import Metric, Sample

Kind = Literal["heard", "said", "lost", "announced", "assigned", "handover", "resolved", "reopened"]
"""`lost` is a message that was never dispatched; `announced` only says that another agent will answer."""


class Agent(Struct, frozen=True):
    id: int
    type: Literal["human", "ai"]


class HistoryEvent(Struct, frozen=True):
    """An event of a ticket, as its author describes it."""

    kind: Kind
    at: datetime
    agent: Agent | None = None
    """The author or resolver, or the new owner."""
    message_id: str | None = None


class Step(Struct, frozen=True):
    """An event, and the ticket's owner just before it."""

    event: HistoryEvent
    owner: Agent | None

    @property
    def ends_ai(self) -> bool:
        """Whether an AI agent handed the ticket over."""
        author = self.event.agent if self.event.kind == "announced" else self.owner
        return self.event.kind in {"announced", "handover"} and author is not None and author.type == "ai"


def measure(ticket_id: str, source: Source, history: Sequence[HistoryEvent]) -> list[Sample]:
    """All samples of a ticket."""
    found = []
    for number, cycle in enumerate(split(list(follow(history))), start=1):
        for metric, agent, start, end in measure_cycle(cycle):
            seconds = max(0.0, (end.at - start).total_seconds())
            found.append(Sample(agent.id, ticket_id, number, source, metric, seconds, start, end.at, end.message_id))
    return found


def follow(history: Sequence[HistoryEvent]) -> Iterator[Step]:
    """Tracks the owner: the first agent who writes, and a human who writes in an AI agent's ticket."""
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
    """What is written after a resolution still belongs to the resolved cycle."""
    cycles: list[list[Step]] = [[]]
    is_resolved = False
    for step in steps:
        if is_resolved and step.event.kind in {"heard", "reopened"}:
            cycles.append([])
            is_resolved = False
        is_resolved = is_resolved or step.event.kind == "resolved"
        cycles[-1].append(step)
    return cycles


def measure_cycle(steps: Sequence[Step]) -> Iterator[tuple[Metric, Agent, datetime, HistoryEvent]]:
    """Metric, agent, start and ending event."""
    events = [step.event for step in steps]
    for place, step in enumerate(steps):
        one, before = step.event, steps[:place]
        handovers = [earlier.event.at for earlier in before if earlier.ends_ai]
        if one.kind in {"said", "announced"} and one.agent:
            yield Metric.HANDLED, one.agent, one.at, one
        if one.kind == "said" and one.agent and (waiting := list_waiting(events[:place])):
            start = begin(one.agent, min(message.at for message in waiting), handovers)
            yield Metric.RESPONSE, one.agent, start, one
            begun = next(n for n, other in enumerate(events) if other.kind == "heard")
            kinds = [other.agent.type for other in events[begun:place] if other.kind == "said" and other.agent]
            if one.agent.type not in kinds:
                yield Metric.FIRST_RESPONSE, one.agent, start, one
        if one.kind == "resolved":
            inbound = [other.at for other in events[:place] if other.kind == "heard"]
            if step.owner:
                yield Metric.HANDLED, step.owner, one.at, one
            if inbound and (credited := step.owner or one.agent):
                yield Metric.RESOLUTION, credited, begin(credited, inbound[0], handovers), one


def list_waiting(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """The customer's messages since the last answer or resolution."""
    closed = max((n for n, one in enumerate(events) if one.kind in {"said", "resolved"}), default=-1)
    return [one for one in events[closed + 1 :] if one.kind == "heard"]


def begin(agent: Agent, start: datetime, handovers: Sequence[datetime]) -> datetime:
    """A human agent's time begins when an AI agent last handed the ticket over."""
    return max([start, *handovers[-1:]]) if agent.type == "human" else start
