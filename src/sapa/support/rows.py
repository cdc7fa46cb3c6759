"""Tickets as they are stored: rows that never leave this room."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct

from sapa.messaging.messages.types import Source
from sapa.support.response_times import Cycle, CycleRef
from sapa.support.types import AgentType, Priority, Reason, TicketSla, TicketStatus, build_cell

DISPATCHED = frozenset({"sent", "delivered", "read"})
"""The statuses of a message that the channel accepted."""


class AnsweringAgent(Struct, frozen=True):
    """Who wrote after an entry of the ticket."""

    id: int
    name: str


class LockedTicket(Struct, frozen=True):
    id: str
    source: Source
    connection_id: str
    contact_id: str
    customer_id: str | None
    identity: str
    client_number: str
    connected_number: str
    status: TicketStatus
    agent_id: int | None
    ai_paused: bool
    label_ids: list[str]
    priority: Priority
    team_id: str | None
    snoozed_until: datetime | None
    sla: Raw | None
    sla_due_at: datetime | None
    cycle: int
    clock: Raw
    number: int
    last_message: str | None
    last_message_at: datetime
    silent_since: datetime
    resolved_at: datetime | None
    resolved_reason: Reason | None
    merged_into_id: str | None
    agent_type: AgentType | None
    """The type of the owner."""

    @property
    def cell(self) -> str:
        return build_cell(self.status, self.source)

    @property
    def cycle_ref(self) -> CycleRef:
        return CycleRef(self.id, Source(self.source), self.cycle)

    @property
    def is_active(self) -> bool:
        return self.status != "resolved"

    @property
    def breached(self) -> list[str]:
        return [] if self.sla is None else list(msgspec.json.decode(self.sla, type=TicketSla).breached)

    def read_clock(self) -> Cycle:
        return msgspec.json.decode(self.clock, type=Cycle)


class NewTicketEntry(Struct, frozen=True):
    """An entry of a ticket to insert; the fields are the columns."""

    number: int
    cycle: int
    kind: str
    at: datetime
    agent_id: int | None = None
    agent_type: AgentType | None = None
    actor_id: int | None = None
    actor_type: AgentType | None = None
    message_id: str | None = None
    reason: str | None = None


class StoredTicketEntry(Struct, frozen=True):
    """A stored entry, with the status of its message."""

    number: int
    cycle: int
    kind: str
    at: datetime
    agent_id: int | None
    agent_type: AgentType | None
    actor_id: int | None
    actor_type: AgentType | None
    message_id: str | None
    reason: str | None
    status: str | None

    @property
    def is_dispatched(self) -> bool:
        """Whether the channel accepted the message."""
        return self.status in DISPATCHED


class ReplyTarget(Struct, frozen=True):
    """The address of replies."""

    source: str
    connection_id: str
    identity: str
    contact_id: str


class DueTicket(Struct, frozen=True):
    """A ticket that the worker has something to do for, and since when."""

    company_id: int
    id: str
    due_at: datetime
