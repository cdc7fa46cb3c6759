"""Measures how long customers wait. Pure: takes the events of a ticket in order, and returns samples.

A cycle lasts from the customer's first message to the ticket's resolution. A customer waits from their first unanswered
message until an agent's next response. The time that an AI agent had the ticket does not count for the human agents
after it.
"""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sapa.messaging.channels.interface import Source
from sapa.support.samples.types import Metric, Sample

AgentType = Literal["human", "ai"]


class Cycle(Struct, frozen=True, omit_defaults=True):
    """The state needed to continue measuring a cycle."""

    started_at: datetime | None = None
    """The customer's first message; None before it and after the resolution."""
    waiting_since: datetime | None = None
    handover_at: datetime | None = None
    """When an AI agent last handed it over."""
    answered_by: tuple[AgentType, ...] = ()
    """The kinds of agents that have responded: a first response is counted once per kind."""


class Actor(Struct, frozen=True):
    """An agent, with its type at that time."""

    id: int
    type: AgentType


class CustomerMessage(Struct, frozen=True):
    """The customer wrote."""

    at: datetime


class AgentMessage(Struct, frozen=True):
    """An agent wrote. Neither a handover message nor one before the customer's first message is a response."""

    at: datetime
    agent: Actor
    message_id: str
    is_handover: bool = False


class Handover(Struct, frozen=True):
    """An AI agent handed the ticket to humans."""

    at: datetime


class Resolution(Struct, frozen=True):
    at: datetime
    owner: Actor | None
    resolver: Actor | None


ClockEvent = CustomerMessage | AgentMessage | Handover | Resolution


class CycleRef(Struct, frozen=True):
    """Identifies a cycle of a ticket."""

    ticket_id: str
    source: Source
    number: int


def advance(cycle_ref: CycleRef, cycle: Cycle, event: ClockEvent) -> tuple[Cycle, list[Sample]]:
    """The cycle after an event, and the samples it yields."""
    match event:
        case CustomerMessage(at=at):
            # One that was delivered late, or came with a merged ticket, may be older than the first.
            waiting_since = min(cycle.waiting_since or at, at)
            return replace(cycle, started_at=cycle.started_at or at, waiting_since=waiting_since), []
        case Handover(at=at):
            return replace(cycle, handover_at=at), []
        case AgentMessage():
            return _respond(cycle_ref, cycle, event)
        case Resolution():
            return Cycle(answered_by=cycle.answered_by), _resolve(cycle_ref, cycle, event)


def _respond(cycle_ref: CycleRef, cycle: Cycle, message: AgentMessage) -> tuple[Cycle, list[Sample]]:
    samples = [_sample(cycle_ref, Metric.HANDLED, message.agent, message.at, message.at, message.message_id)]
    if message.is_handover or cycle.started_at is None:
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
    """The resolution counts for the owner; without an owner, for the agent who resolved it."""
    credited = resolved.owner or resolved.resolver
    samples = []
    if resolved.owner is not None:
        samples.append(_sample(cycle_ref, Metric.HANDLED, resolved.owner, resolved.at, resolved.at))
    if credited is not None and cycle.started_at is not None:
        start = _start(cycle, cycle.started_at, credited.type)
        samples.append(_sample(cycle_ref, Metric.RESOLUTION, credited, start, resolved.at))
    return samples


def _start(cycle: Cycle, start: datetime, kind: AgentType) -> datetime:
    """A human agent's time starts when an AI agent handed the ticket over."""
    return max(start, cycle.handover_at) if kind == "human" and cycle.handover_at else start


def _sample(
    cycle_ref: CycleRef, metric: Metric, agent: Actor, start: datetime, at: datetime, message_id: str | None = None
) -> Sample:
    """Clocks differ: a negative duration counts as zero."""
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
