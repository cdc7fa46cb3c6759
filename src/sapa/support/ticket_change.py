"""Collects the changes of a locked ticket in one transaction, and writes them together at the end."""

from datetime import datetime
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from sapa.db.pool import Tx, notify_after_commit
from sapa.events import emit
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
from sapa.support.rows import LockedTicket, NewTicketEntry, StoredTicketEntry
from sapa.support.samples import actions as sample_actions
from sapa.support.samples.types import Metric, Sample
from sapa.support.sla import actions as sla_actions
from sapa.support.types import (
    Agent,
    Priority,
    Reason,
    Ticket,
    TicketBreached,
)
from sapa.values.company import Company
from sapa.values.instants import format_instant
from sapa.values.json import encode

MAX_PREVIEW_LENGTH = 200


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
        self._sent: set[str] = set()
        self._affects_targets = False

    @property
    def waiting_since(self) -> datetime | None:
        return self._clock.waiting_since

    @property
    def is_changed(self) -> bool:
        return bool(self._entries)

    def set(self, **fields: Any) -> None:
        self.locked = replace(self.locked, **fields)

    def record_inbound(self, at: datetime, message_id: str, body: str | None) -> None:
        """A message of the customer wakes a snoozed ticket."""
        if self.locked.snoozed_until is not None:
            self.wake(at, "message")
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

    def label(self, at: datetime, ids: list[str], actor: Actor | None) -> None:
        self.set(label_ids=ids)
        self.check_targets()
        self._add_change("labels", at, ",".join(ids), actor)

    def prioritise(self, at: datetime, priority: Priority, actor: Actor | None) -> None:
        self.set(priority=priority)
        self.check_targets()
        self._add_change("priority", at, priority, actor)

    def set_team(self, at: datetime, team_id: str | None, actor: Actor | None) -> None:
        self.set(team_id=team_id)
        self._add_change("team", at, team_id, actor)

    def snooze(self, at: datetime, until: datetime, actor: Actor | None) -> None:
        self.set(snoozed_until=until)
        self.check_targets()
        self._add_change("snoozed", at, format_instant(until), actor)

    def wake(self, at: datetime, reason: str, actor: Actor | None = None) -> None:
        """It counts as silent from now on: otherwise it would be resolved as soon as it returns."""
        self.set(snoozed_until=None, silent_since=max(self.locked.silent_since, at))
        self.check_targets()
        self._add_change("woken", at, reason, actor)

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
        self.check_targets()
        self._add_entry(
            "resolved", at,
            agent_id=self.locked.agent_id,
            agent_type=self.locked.agent_type,
            actor_id=resolver.id if resolver else None,
            actor_type=resolver.type if resolver else None,
            reason=reason,
        )  # fmt: skip
        self._advance(Resolution(at, owner, resolver))
        self.set(status="resolved", resolved_at=at, resolved_reason=reason, snoozed_until=None)

    def merge(self, at: datetime, into_id: str) -> None:
        """The conversation continues in another ticket: this one is resolved by nobody, and yields no samples. One that
        is resolved already remains as it was resolved."""
        self.set(merged_into_id=into_id)
        if not self.locked.is_active:
            return
        self.check_targets()
        self._add_entry(
            "resolved", at, agent_id=self.locked.agent_id, agent_type=self.locked.agent_type, reason="merged"
        )
        self._advance(Resolution(at, None, None))
        self.set(status="resolved", resolved_at=at, resolved_reason="merged", snoozed_until=None)

    def record_merge(self, at: datetime, other_id: str) -> None:
        """This ticket was merged with another one."""
        self._add_entry("merged", at, reason=other_id)

    def inherit(self, other: "TicketChange") -> None:
        """Takes over the wait of a ticket that is merged into this one."""
        since = other.waiting_since
        if since is None or (self.waiting_since is not None and self.waiting_since <= since):
            return
        self._add_entry("heard", since)
        self._advance(CustomerMessage(since))
        self._set_last_message(since, other.locked.last_message)

    def reopen(self, at: datetime, owner: Agent | None) -> None:
        """Starts a new cycle, whose clock starts with the customer's next message. What was said before a merge is in
        the other ticket, which stays named."""
        if self.locked.merged_into_id is not None:
            self.record_merge(at, self.locked.merged_into_id)
        self.set(
            status="assigned" if owner else "open",
            agent_id=owner.id if owner else None,
            agent_type=owner.type if owner else None,
            ai_paused=owner is not None and owner.type == "human",
            cycle=self.locked.cycle + 1,
            silent_since=max(self.locked.silent_since, at),
            resolved_at=None,
            resolved_reason=None,
            merged_into_id=None,
            sla=None,
            sla_due_at=None,
        )
        self._clock = Cycle()
        self._add_entry("reopened", at, agent_id=self.locked.agent_id, agent_type=self.locked.agent_type)

    def apply(self, event: ClockEvent) -> None:
        """Applies an event whose entry is stored already."""
        if isinstance(event, AgentMessage):
            self._sent.add(event.message_id)
            self.check_targets()
        self._advance(event)

    def check_targets(self) -> None:
        """Measures the ticket against its targets again when it is written. Those of a resolved ticket stay."""
        self._affects_targets = self._affects_targets or self.locked.is_active

    async def write(self, tx: Tx, company: Company) -> Ticket:
        if self._entries:
            await queries.insert_entries(tx, company.id, self.locked.id, self._entries)
        if self._samples:
            await sample_actions.record(tx, company.id, self._samples)
        notify_after_commit(tx, build_tickets_channel(company.id))
        breached = self.locked.breached
        if self._affects_targets:
            await self._measure(tx, company)
        ticket = await queries.update_ticket(tx, company.id, self.locked, self._clock, self._left)
        if set(self.locked.breached) - set(breached):
            await emit(tx, company, TicketBreached(ticket))
        return ticket

    async def _measure(self, tx: Tx, company: Company) -> None:
        policies = await sla_actions.list_policies(tx, company)
        entries = await queries.list_entries(tx, company.id, self.locked.id, self.locked.cycle) if policies else []
        measured = await sla_actions.measure(tx, company, self.locked, policies, entries, self._sent)
        self.set(sla=Raw(encode(measured.sla)) if measured else None, sla_due_at=measured.due_at if measured else None)

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
            if self.locked.sla is not None:
                self._affects_targets = True
                await self.write(tx, company)

    def _add_change(self, kind: str, at: datetime, value: str | None, actor: Actor | None) -> None:
        self._add_entry(
            kind, at, reason=value, actor_id=actor.id if actor else None, actor_type=actor.type if actor else None
        )

    def _add_entry(self, kind: str, at: datetime, **fields: Any) -> None:
        self.set(number=self.locked.number + 1)
        self._entries.append(NewTicketEntry(self.locked.number, self.locked.cycle, kind, at, **fields))

    def _advance(self, event: ClockEvent) -> None:
        if self._clock.started_at is None:
            self.check_targets()
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
        case "said" | "announced" if entry.is_dispatched and agent and entry.message_id:
            return AgentMessage(at, agent, entry.message_id, entry.kind == "announced")
        case "handover" if actor is not None and actor.type == "ai":
            return Handover(at)
        case "resolved":
            return Resolution(at, agent, actor) if entry.reason != "merged" else Resolution(at, None, None)
    return None


def build_actor(id: int | None, type: Any) -> Actor | None:
    return None if id is None or type is None else Actor(id, type)
