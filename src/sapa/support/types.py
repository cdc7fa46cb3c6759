"""Support: agents and tickets, their errors and events."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.messaging.contacts.types import Window
from sapa.messaging.files.types import FileId
from sapa.messaging.messages.types import (
    Message,
    MessageId2,
    Source,
)
from sapa.messaging.sending.types import ReplyTo
from sapa.support.response_times import Cycle, CycleRef
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind, NumberKind

TICKET_ID = IdKind("tkt_")
NOTE_ID = IdKind("note_")
AGENT_ID = NumberKind("agent")

TicketId = Annotated[str, TICKET_ID]
NoteId = Annotated[str, NOTE_ID]
AgentPathId = Annotated[str, AGENT_ID]
"""An agent's id in a path."""

AgentType = Annotated[Literal["human", "ai"], EnumName("AgentType")]
TicketStatus = Annotated[Literal["open", "assigned", "resolved"], EnumName("TicketStatus")]
Reason = Annotated[Literal["manual", "inactivity", "ai", "api", "merged"], EnumName("ResolvedReason")]
EventKind = Annotated[
    Literal["opened", "assigned", "unassigned", "handover", "resolved", "reopened"], EnumName("TicketEventKind")
]
ReopenAssignee = Annotated[Literal["previous", "queue"], EnumName("ReopenAssignee")]

BUSINESS_APP = "Business app"


AgentName = Annotated[str, Meta(min_length=1, max_length=100, examples=["Sari"])]
AgentId = Annotated[int, Meta(ge=1, le=2**53 - 1, examples=[12])]
UserId = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Words = Annotated[str, Meta(min_length=1, max_length=65_536, examples=["Pesanan Kakak kami kirim hari ini."])]


class Agent(Struct, frozen=True, rename="camel"):
    """A person or an AI that replies to customers."""

    id: Annotated[int, Meta(examples=[12])]
    name: Annotated[str, Meta(examples=["Sari"])]
    type: AgentType
    active: Annotated[bool, Meta(description="Only active agents get tickets and can reply.")]
    user_id: Annotated[int | None, Meta(examples=[None], description="The agent's user in the console.")]
    created_at: Timestamp
    updated_at: Timestamp


class AgentIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new agent."""

    name: AgentName
    type: AgentType = "human"
    active: bool = True
    user_id: Annotated[UserId | None, Meta(description="A user of the company's console; for human agents only.")] = (
        None
    )


class AgentPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to an agent: absent fields keep their values."""

    name: AgentName | UnsetType = UNSET
    type: AgentType | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    user_id: UserId | None | UnsetType = UNSET


class Ticket(Struct, frozen=True, rename="camel"):
    """A conversation with a customer over one channel.

    A customer's message opens it. After it is resolved, a message within the company's reopening window reopens it as a
    new cycle; a later message opens another ticket.
    """

    id: TicketId
    status: TicketStatus
    source: Source
    customer_id: CustomerId | None
    client_name: Annotated[
        str | None, Meta(examples=["Ayu Lestari"], description="The customer's name on the channel.")
    ]
    client_number: Annotated[
        str, Meta(examples=["+628123456789"], description="The customer's number or id on the channel.")
    ]
    connected_number: Annotated[
        str, Meta(examples=["+622150001234"], description="The company's number or id on the channel.")
    ]
    agent_id: Annotated[
        int | None, Meta(examples=[12], description="The owner; for a resolved ticket, its last owner.")
    ]
    ai_paused: Annotated[
        bool,
        Meta(description="A human agent has taken over: AI agents cannot reply until one is assigned."),
    ]
    cycle: Annotated[int, Meta(examples=[1], description="Increases with every reopening.")]
    waiting_since: Annotated[Timestamp | None, Meta(description="The time of the first unanswered message.")]
    last_message: Annotated[
        str | None, Meta(examples=["Masih ada?"], description="The beginning of the newest message.")
    ]
    last_message_at: Timestamp
    resolved_at: Timestamp | None
    resolved_reason: Reason | None
    created_at: Timestamp
    updated_at: Timestamp


class TicketEvent(Struct, frozen=True, rename="camel"):
    """A change of a ticket."""

    kind: EventKind
    at: Timestamp
    cycle: Annotated[int, Meta(examples=[1])]
    agent_id: Annotated[
        int | None, Meta(examples=[12], description="The owner after the change, or of the resolved ticket.")
    ]
    actor_id: Annotated[int | None, Meta(examples=[12], description="The agent who made the change, if known.")]
    reason: Annotated[str | None, Meta(examples=[None])]


class Note(Struct, frozen=True, rename="camel"):
    """An internal note of an agent. The customer never sees it."""

    id: NoteId
    agent_id: Annotated[int, Meta(examples=[12])]
    body: Annotated[str, Meta(examples=["Pelanggan VIP"])]
    created_at: Timestamp


class TicketDetail(Ticket, frozen=True, kw_only=True, rename="camel"):
    """A ticket with its messages, events and notes."""

    agent: Agent | None
    messages: Annotated[
        list[Message], Meta(description="The newest messages, in the order in which they were written.")
    ]
    earlier: Annotated[
        MessageId2 | None, Meta(description="Send it as `before` to get earlier messages; null if there are none.")
    ]
    events: list[TicketEvent]
    notes: list[Note]
    window: Annotated[
        Window | None, Meta(description="The window may have closed. Null on a channel without a reply window.")
    ]


class ReplyIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A reply to the customer: a text, files, or both."""

    agent_id: AgentId
    body: Annotated[
        Words | None,
        Meta(examples=["Pesanan Kakak kami kirim hari ini."], description="Required without attachmentIds."),
    ] = None
    attachment_ids: Annotated[
        list[FileId],
        Meta(
            max_length=10,
            examples=[[]],
            description="Uploaded files. Most channels send one in a message; mail and the web chat send several.",
        ),
    ] = []
    reply_to: ReplyTo | None = None
    handover: Annotated[
        bool,
        Meta(description="True: it announces that someone else will answer. The ticket goes back to the queue."),
    ] = False


class NoteIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new note."""

    agent_id: AgentId
    body: Annotated[str, Meta(min_length=1, max_length=10_000, examples=["Pelanggan VIP"])]


class AssignIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The new owner; null for none."""

    agent_id: AgentId | None


class HandoverIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who gets the ticket; without one, the ticket goes to the queue."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
    from_agent_id: (
        Annotated[int, Meta(ge=1, le=2**53 - 1, description="The agent who hands it over. Default: its owner.")] | None
    ) = None


class ResolveIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who resolves it, if any."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None


class SupportSettings(Struct, frozen=True, rename="camel"):
    """When tickets are reopened and resolved."""

    reopen_window_hours: Annotated[
        int, Meta(examples=[24], description="How long after its resolution a message reopens a ticket; 0: never.")
    ]
    auto_resolve_hours: Annotated[
        int,
        Meta(examples=[72], description="After how long without a message an answered ticket is resolved; 0: never."),
    ]
    reopen_assignee: Annotated[
        ReopenAssignee, Meta(description="The owner of a reopened ticket: its last owner, or none.")
    ]


class SupportSettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the settings: absent fields keep their values."""

    reopen_window_hours: Annotated[int, Meta(ge=0, le=8760)] | UnsetType = UNSET
    auto_resolve_hours: Annotated[int, Meta(ge=0, le=8760)] | UnsetType = UNSET
    reopen_assignee: ReopenAssignee | UnsetType = UNSET


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
    cycle: int
    clock: Raw
    number: int
    last_message: str | None
    last_message_at: datetime
    silent_since: datetime
    resolved_at: datetime | None
    resolved_reason: Reason | None
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


class ReplyTarget(Struct, frozen=True):
    """The address of replies."""

    source: str
    connection_id: str
    identity: str
    contact_id: str


class SilentTicket(Struct, frozen=True):
    """An active ticket without recent messages."""

    company_id: int
    id: str
    silent_since: datetime


def build_cell(status: str, source: str) -> str:
    return f"{status}/{source}"


class UserTaken(Conflict):
    """Another agent already has this user. Choose another user."""

    code = "AGENT_EXISTS"
    constraint = "agents_user_key"
    fix = "Choose another user, or update the agent that has this one."


class BusinessAppIsHuman(Conflict):
    """The business app's agent must be human. Create another agent for an AI."""

    code = "AGENT_IS_HUMAN"
    constraint = "agents_business_app_check"
    fix = "Create another agent for the AI."


class TicketResolved(Conflict):
    """The ticket is resolved. Reopen it first."""

    code = "TICKET_RESOLVED"
    fix = "Reopen the ticket, then try again."


class AnotherTicketActive(Conflict):
    """The customer has another active ticket on this channel. Use that one."""

    code = "ANOTHER_TICKET_ACTIVE"
    constraint = "tickets_active_key"
    fix = "Use the active ticket, or resolve it first."


class TicketOpened(Event):
    """A customer's message opened a ticket."""

    kind = "ticket.opened"
    base = Base.MESSAGING
    resource_type = Ticket


class TicketUpdated(Event):
    """A ticket was assigned, handed over, put back into the queue or reopened."""

    kind = "ticket.updated"
    base = Base.MESSAGING
    resource_type = Ticket


class TicketClosed(Event):
    """A ticket was resolved."""

    kind = "ticket.resolved"
    base = Base.MESSAGING
    resource_type = Ticket
