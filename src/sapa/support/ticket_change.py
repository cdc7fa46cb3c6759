"""Collects the changes of a locked ticket in one transaction, and writes them together at the end."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sapa.db.pool import Tx, notify_after_commit
from sapa.messaging.tickets import build_tickets_channel
from sapa.support import queries
from sapa.support.response_times import (
    Actor,
    AgentMessage,
    ClockEvent,
    CustomerMessage,
    Cycle,
    Handover,
    Resolution,
    advance,
)
from sapa.support.samples import actions as sample_actions
from sapa.support.samples.types import Metric, Sample
from sapa.support.types import (
    Agent,
    LockedTicket,
    NewTicketEntry,
    Reason,
    StoredTicketEntry,
    Ticket,
)
from sapa.values.company import Company

MAX_PREVIEW_LENGTH = 200
DISPATCHED = frozenset({"sent", "delivered", "read"})
"""The statuses of a message that the channel accepted."""


class TicketChange:
    """Changes of a locked ticket. An agent's message is recorded before it is sent, and counts once it is
    dispatched."""

    def __init__(self, locked: LockedTicket) -> None:
        self.locked = locked
        self.response_count = 0
        """The change in the number of answered waits; negative if an answer was reverted."""
        self._samples: list[Sample] = []
        self._left = locked.cell
        self._clock = locked.read_clock()
        self._entries: list[NewTicketEntry] = []

    @property
    def waiting_since(self) -> datetime | None:
        return self._clock.waiting_since

    @property
    def is_changed(self) -> bool:
        return bool(self._entries)

    def set(self, **fields: Any) -> None:
        self.locked = replace(self.locked, **fields)

    def record_inbound(self, at: datetime, message_id: str, body: str | None) -> None:
        self._add_entry("heard", at, message_id=message_id)
        self._advance(CustomerMessage(at))
        self._set_last_message(at, body)

    def record_outbound(
        self, at: datetime, agent: Agent, message_id: str, body: str | None, *, is_handover: bool = False
    ) -> None:
        kind = "announced" if is_handover else "said"
        self._add_entry(kind, at, agent_id=agent.id, agent_type=agent.type, message_id=message_id)
        self._set_last_message(at, body)

    def open(self, at: datetime) -> None:
        self._add_entry("opened", at)

    def assign(self, at: datetime, agent: Agent | None) -> None:
        """Assigning it to a human pauses AI agents until one of them is assigned again."""
        if agent is None:
            self.set(agent_id=None, agent_type=None, status="open")
            self._add_entry("unassigned", at)
            return
        self.set(agent_id=agent.id, agent_type=agent.type, status="assigned", ai_paused=agent.type == "human")
        self._add_entry("assigned", at, agent_id=agent.id, agent_type=agent.type)

    def hand_over(self, at: datetime, previous_owner: Actor | None, to: Agent | None) -> None:
        """An AI agent's handover restarts the clock for human agents."""
        self.set(
            agent_id=to.id if to else None,
            agent_type=to.type if to else None,
            status="assigned" if to else "open",
            ai_paused=to is None or to.type == "human",
        )
        self._add_entry(
            "handover", at,
            agent_id=to.id if to else None,
            agent_type=to.type if to else None,
            actor_id=previous_owner.id if previous_owner else None,
            actor_type=previous_owner.type if previous_owner else None,
        )  # fmt: skip
        if previous_owner is not None and previous_owner.type == "ai":
            self._advance(Handover(at))

    def resolve(self, at: datetime, resolver: Actor | None, reason: Reason) -> None:
        owner = build_actor(self.locked.agent_id, self.locked.agent_type)
        self._add_entry(
            "resolved", at,
            agent_id=self.locked.agent_id,
            agent_type=self.locked.agent_type,
            actor_id=resolver.id if resolver else None,
            actor_type=resolver.type if resolver else None,
            reason=reason,
        )  # fmt: skip
        self._advance(Resolution(at, owner, resolver))
        self.set(status="resolved", resolved_at=at, resolved_reason=reason)

    def merge(self, at: datetime) -> None:
        """The conversation continues in another ticket: this one is resolved by nobody, and yields no samples."""
        self._add_entry(
            "resolved", at, agent_id=self.locked.agent_id, agent_type=self.locked.agent_type, reason="merged"
        )
        self._advance(Resolution(at, None, None))
        self.set(status="resolved", resolved_at=at, resolved_reason="merged")

    def inherit(self, other: "TicketChange") -> None:
        """Takes over the wait of a ticket that is merged into this one."""
        since = other.waiting_since
        if since is None or self.waiting_since is not None:
            return
        self._add_entry("heard", since)
        self._advance(CustomerMessage(since))
        self._set_last_message(since, other.locked.last_message)

    def reopen(self, at: datetime, owner: Agent | None) -> None:
        """Starts a new cycle, whose clock starts with the customer's next message."""
        self.set(
            status="assigned" if owner else "open",
            agent_id=owner.id if owner else None,
            agent_type=owner.type if owner else None,
            ai_paused=owner is not None and owner.type == "human",
            cycle=self.locked.cycle + 1,
            silent_since=max(self.locked.silent_since, at),
            resolved_at=None,
            resolved_reason=None,
        )
        self._clock = Cycle()
        self._add_entry("reopened", at, agent_id=self.locked.agent_id, agent_type=self.locked.agent_type)

    def apply(self, event: ClockEvent) -> None:
        """Applies an event whose entry is stored already."""
        self._advance(event)

    async def write(self, tx: Tx, company: Company) -> Ticket:
        if self._entries:
            await queries.insert_entries(tx, company.id, self.locked.id, self._entries)
        if self._samples:
            await sample_actions.record(tx, company.id, self._samples)
        notify_after_commit(tx, build_tickets_channel(company.id))
        return await queries.update_ticket(tx, company.id, self.locked, self._clock, self._left)

    async def replay(self, tx: Tx, company: Company, cycle: int) -> None:
        """Measures a cycle again from its start, and corrects its samples."""
        cycle_ref = replace(self.locked.cycle_ref, number=cycle)
        clock, found = Cycle(), list[Sample]()
        for entry in await queries.list_entries(tx, company.id, self.locked.id, cycle):
            if (event := build_clock_event(entry)) is not None:
                clock, samples = advance(cycle_ref, clock, event)
                found += samples
        self.response_count += (await sample_actions.replace(tx, company.id, self.locked.id, cycle, found))[
            Metric.RESPONSE
        ]
        if cycle == self.locked.cycle:
            self._clock = clock
            await queries.set_clock(tx, company.id, self.locked.id, clock)

    def _add_entry(self, kind: str, at: datetime, **fields: Any) -> None:
        self.set(number=self.locked.number + 1)
        self._entries.append(NewTicketEntry(self.locked.number, self.locked.cycle, kind, at, **fields))

    def _advance(self, event: ClockEvent) -> None:
        self._clock, samples = advance(self.locked.cycle_ref, self._clock, event)
        self._samples += samples
        self.response_count += sum(sample.metric is Metric.RESPONSE for sample in samples)

    def _set_last_message(self, at: datetime, body: str | None) -> None:
        """A late message updates the preview only if there is none."""
        if self.locked.last_message_at <= at or self.locked.last_message is None:
            self.set(last_message=(body or "")[:MAX_PREVIEW_LENGTH] or None)
        self.set(last_message_at=max(self.locked.last_message_at, at), silent_since=max(self.locked.silent_since, at))


def build_clock_event(entry: StoredTicketEntry) -> ClockEvent | None:
    """The event of an entry for the clock; None for a message that was not dispatched."""
    at = entry.at
    agent, actor = build_actor(entry.agent_id, entry.agent_type), build_actor(entry.actor_id, entry.actor_type)
    match entry.kind:
        case "heard":
            return CustomerMessage(at)
        case "said" | "announced" if entry.status in DISPATCHED and agent and entry.message_id:
            return AgentMessage(at, agent, entry.message_id, entry.kind == "announced")
        case "handover" if actor is not None and actor.type == "ai":
            return Handover(at)
        case "resolved":
            return Resolution(at, agent, actor) if entry.reason != "merged" else Resolution(at, None, None)
    return None


def build_actor(id: int | None, type: Any) -> Actor | None:
    return None if id is None or type is None else Actor(id, type)
