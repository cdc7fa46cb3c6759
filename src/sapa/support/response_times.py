"""How long customers wait. Pure: what happens to a ticket goes in, in the order in which it happened; samples come out.

A cycle goes from the customer's first message to the ticket's resolution. Whoever writes first and has no answer yet
waits; an agent's next response ends the wait, however many messages it was. What an AI agent held is not on the clock
of the human agents who come after it.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sapa.messaging.channels.interface import Source
from sapa.support.samples.types import Metric, Sample

AgentType = Literal["human", "ai"]


class Cycle(Struct, frozen=True, omit_defaults=True):
    """What has to be remembered of a cycle to go on measuring it."""

    started_at: datetime | None = None
    """The customer's first message; None before it, and once the ticket is resolved."""
    waiting_since: datetime | None = None
    handover_at: datetime | None = None
    """When an AI agent last handed it over."""
    answered_by: tuple[AgentType, ...] = ()
    """Who has responded: of each kind only the first response is a first response."""


class Actor(Struct, frozen=True):
    """An agent, as what it was at the time."""

    id: int
    type: AgentType


class CustomerMessage(Struct, frozen=True):
    """The customer wrote."""

    at: datetime


class AgentMessage(Struct, frozen=True):
    """An agent wrote; one who only announces somebody else's answer does not respond."""

    at: datetime
    agent: Actor
    message_id: str
    is_handover: bool = False


class Handover(Struct, frozen=True):
    """An AI agent gave the ticket to people."""

    at: datetime


class Resolution(Struct, frozen=True):
    at: datetime
    owner: Actor | None
    resolver: Actor | None


ClockEvent = CustomerMessage | AgentMessage | Handover | Resolution


class CycleRef(Struct, frozen=True):
    """Which ticket's cycle it is."""

    ticket_id: str
    source: Source
    number: int


def advance(cycle_ref: CycleRef, cycle: Cycle, event: ClockEvent) -> tuple[Cycle, list[Sample]]:
    """The cycle after something happened in it, and what can be measured by it."""
    match event:
        case CustomerMessage(at=at):
            return replace(cycle, started_at=cycle.started_at or at, waiting_since=cycle.waiting_since or at), []
        case Handover(at=at):
            return replace(cycle, handover_at=at), []
        case AgentMessage():
            return _respond(cycle_ref, cycle, event)
        case Resolution():
            return Cycle(answered_by=cycle.answered_by), _resolve(cycle_ref, cycle, event)


def _respond(cycle_ref: CycleRef, cycle: Cycle, message: AgentMessage) -> tuple[Cycle, list[Sample]]:
    samples = [_sample(cycle_ref, Metric.HANDLED, message.agent, message.at, message.at, message.message_id)]
    if message.is_handover:
        return cycle, samples
    kind = message.agent.type
    if cycle.waiting_since is not None:
        start = _start(cycle, cycle.waiting_since, kind)
        metrics = [Metric.RESPONSE] if kind in cycle.answered_by else [Metric.FIRST_RESPONSE, Metric.RESPONSE]
        samples += [
            _sample(cycle_ref, metric, message.agent, start, message.at, message.message_id) for metric in metrics
        ]
    answered_by = cycle.answered_by if kind in cycle.answered_by else (*cycle.answered_by, kind)
    return replace(cycle, waiting_since=None, answered_by=answered_by), samples


def _resolve(cycle_ref: CycleRef, cycle: Cycle, resolved: Resolution) -> list[Sample]:
    """It is its owner's doing; that of whoever resolved it where nobody owned it."""
    credited = resolved.owner or resolved.resolver
    samples = []
    if resolved.owner is not None:
        samples.append(_sample(cycle_ref, Metric.HANDLED, resolved.owner, resolved.at, resolved.at))
    if credited is not None and cycle.started_at is not None:
        start = _start(cycle, cycle.started_at, credited.type)
        samples.append(_sample(cycle_ref, Metric.RESOLUTION, credited, start, resolved.at))
    return samples


def _start(cycle: Cycle, start: datetime, kind: AgentType) -> datetime:
    """A human agent's time begins when an AI agent let go of the ticket."""
    return max(start, cycle.handover_at) if kind == "human" and cycle.handover_at else start


def _sample(
    cycle_ref: CycleRef, metric: Metric, agent: Actor, start: datetime, at: datetime, message_id: str | None = None
) -> Sample:
    """Clocks differ: what seems to end before it began took no time."""
    seconds = max(0.0, (at - start).total_seconds())
    return Sample(
        agent.id,
        cycle_ref.ticket_id,
        cycle_ref.number,
        cycle_ref.source,
        metric,
        seconds,
        min(start, at),
        at,
        message_id,
    )
