"""Support: agents and tickets, their errors and events."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import StoredJson, Timestamp
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.messaging.contacts.types import Window
from sapa.messaging.messages.types import (
    Message,
    MessageId2,
    Source,
)
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind, NumberKind

TICKET_ID = IdKind("tkt_")
NOTE_ID = IdKind("note_")
AGENT_ID = NumberKind("agent")
SLA_POLICY_ID = IdKind("sla_")
LABEL_ID = IdKind("lab_")
TEAM_ID = IdKind("team_")

TicketId = Annotated[str, TICKET_ID]
NoteId = Annotated[str, NOTE_ID]
SlaPolicyId = Annotated[str, SLA_POLICY_ID]
LabelId = Annotated[str, LABEL_ID]
TeamId = Annotated[str, TEAM_ID]
AgentPathId = Annotated[str, AGENT_ID]
"""An agent's id in a path."""

AgentType = Annotated[Literal["human", "ai"], EnumName("AgentType")]
Priority = Annotated[Literal["low", "normal", "high", "urgent"], EnumName("TicketPriority")]
TicketStatus = Annotated[Literal["open", "assigned", "resolved"], EnumName("TicketStatus")]
StatusFilter = Annotated[Literal["open", "assigned", "resolved", "active"], EnumName("TicketStatusFilter")]
TicketSort = Annotated[
    Literal[
        "createdAt:desc",
        "createdAt:asc",
        "lastMessageAt:desc",
        "lastMessageAt:asc",
        "waitingSince:asc",
        "waitingSince:desc",
    ],
    EnumName("TicketSort"),
]
Reason = Annotated[Literal["manual", "inactivity", "ai", "api", "merged"], EnumName("ResolvedReason")]
EventKind = Annotated[
    Literal[
        "opened",
        "assigned",
        "unassigned",
        "handover",
        "resolved",
        "reopened",
        "labels",
        "priority",
        "team",
        "snoozed",
        "woken",
        "merged",
    ],
    EnumName("TicketEventKind"),
]
ReopenAssignee = Annotated[Literal["previous", "queue"], EnumName("ReopenAssignee")]

if TYPE_CHECKING:
    ChannelOrSource = str
else:
    ChannelOrSource = Literal[(*CHANNEL_NAMES, *(str(source) for source in Source))]

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


class TicketSla(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a ticket stands against the targets of its policy."""

    policy_id: SlaPolicyId
    first_response_due: Annotated[Timestamp | None, Meta(description="Null if the policy has no such target.")]
    first_responded_at: Timestamp | None
    resolution_due: Annotated[
        Timestamp | None, Meta(description="Null if the policy has no such target, and while the ticket is snoozed.")
    ]
    breached: Annotated[
        list[Annotated[Literal["firstResponse", "resolution"], EnumName("SlaTarget")]],
        Meta(examples=[[]], description="The targets that were missed."),
    ]


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
    stated_name: Annotated[
        str | None,
        Meta(examples=[None], description="The name that a visitor of the web chat gave before the chat; unverified."),
    ]
    stated_contact: Annotated[
        str | None,
        Meta(examples=[None], description="The email or phone number that the visitor gave; unverified."),
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
    label_ids: Annotated[list[LabelId], Meta(description="The labels, in the order in which they were set.")]
    priority: Priority
    team_id: TeamId | None
    snoozed_until: Annotated[
        Timestamp | None, Meta(description="When it returns to the queue. A message of the customer wakes it, too.")
    ]
    sla: Annotated[
        Raw | None,
        StoredJson(TicketSla | None),
        Meta(description="Null without a policy that matches, and before the first message of a cycle."),
    ]
    rating: Annotated[
        int | None,
        Meta(examples=[None], description="The customer's newest rating, from 1 to 5. GET /ratings has more."),
    ]
    cycle: Annotated[int, Meta(examples=[1], description="Increases with every reopening.")]
    sequence: Annotated[int, Meta(examples=[7], description="Increases with every message and change.")]
    waiting_since: Annotated[Timestamp | None, Meta(description="The time of the first unanswered message.")]
    last_message: Annotated[
        str | None, Meta(examples=["Masih ada?"], description="The beginning of the newest message.")
    ]
    last_message_at: Timestamp
    resolved_at: Timestamp | None
    resolved_reason: Reason | None
    merged_into_id: Annotated[
        TicketId | None, Meta(examples=[None], description="The ticket in which its conversation continues.")
    ]
    created_at: Timestamp
    updated_at: Timestamp


class TicketCounts(Struct, frozen=True, rename="camel"):
    """How many active tickets there are. Snoozed ones are counted as snoozed only."""

    mine: Annotated[int, Meta(examples=[3], description="Of the agent who asks.")]
    unassigned: Annotated[int, Meta(examples=[2])]
    all: Annotated[int, Meta(examples=[9])]
    snoozed: Annotated[int, Meta(examples=[1])]
    mine_waiting: Annotated[int, Meta(examples=[1], description="Mine whose customer waits for an answer.")]
    unassigned_waiting: Annotated[int, Meta(examples=[2], description="Unassigned whose customer waits.")]


class TicketEvent(Struct, frozen=True, rename="camel"):
    """A change of a ticket."""

    kind: EventKind
    at: Timestamp
    cycle: Annotated[int, Meta(examples=[1])]
    agent_id: Annotated[
        int | None, Meta(examples=[12], description="The owner after the change, or of the resolved ticket.")
    ]
    actor_id: Annotated[int | None, Meta(examples=[12], description="The agent who made the change, if known.")]
    reason: Annotated[
        str | None,
        Meta(
            examples=[None],
            description="Why; for labels, priority, team and snoozed, the new value; for merged, the other ticket.",
        ),
    ]


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
    ask_rating: Annotated[bool, Meta(description="Ask customers for a rating when their ticket is resolved.")]
    auto_assign: Annotated[
        bool, Meta(description="Assign waiting tickets to the agents who are online, to the one with the fewest first.")
    ]


class SupportSettingsPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to the settings: absent fields keep their values."""

    reopen_window_hours: Annotated[int, Meta(ge=0, le=8760)] | UnsetType = UNSET
    auto_resolve_hours: Annotated[int, Meta(ge=0, le=8760)] | UnsetType = UNSET
    reopen_assignee: ReopenAssignee | UnsetType = UNSET
    ask_rating: bool | UnsetType = UNSET
    auto_assign: bool | UnsetType = UNSET


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


class AlreadyAssigned(Conflict):
    """Another agent has this ticket. Take another one, or assign it to yourself."""

    code = "ALREADY_ASSIGNED"
    fix = "Take another ticket. To take it from its owner, assign it."


class DifferentCustomers(Conflict):
    """The tickets are of different customers. Link their contacts to one customer first."""

    code = "DIFFERENT_CUSTOMERS"
    fix = "Link the contacts to one customer, then merge their tickets."


class AnsweredMeanwhile(Conflict):
    """Another agent replied after you opened the ticket, or you sent the same text. Send again without seenSequence to
    send it anyway."""

    code = "ANSWERED_MEANWHILE"
    fix = "Read the reply that is there. To send yours as well, send it again without `seenSequence`."


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
    """A ticket was assigned, handed over, put back into the queue, reopened, labelled, prioritised, given to a team,
    snoozed, woken or merged."""

    kind = "ticket.updated"
    base = Base.MESSAGING
    resource_type = Ticket


class TicketBreached(Event):
    """A ticket missed a target for its first response or resolution."""

    kind = "ticket.sla.breached"
    base = Base.MESSAGING
    resource_type = Ticket


class TicketClosed(Event):
    """A ticket was resolved."""

    kind = "ticket.resolved"
    base = Base.MESSAGING
    resource_type = Ticket
