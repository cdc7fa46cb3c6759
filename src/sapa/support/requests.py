"""What requests say about tickets: their bodies."""

from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.http.errors import ErrorBody
from sapa.messaging.files.types import FileId
from sapa.messaging.messages.types import Source
from sapa.messaging.sending.types import ReplyTo
from sapa.support.types import TICKET_ID, AgentId, LabelId, Priority, TeamId, Ticket, TicketId, Words
from sapa.values.ids import CUSTOMER_ID, CustomerId


class TicketPatch(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a ticket: absent fields keep their values."""

    label_ids: (
        Annotated[list[LabelId], Meta(max_length=20, description="All labels of the ticket from now on.")] | UnsetType
    ) = UNSET
    priority: Priority | UnsetType = UNSET
    team_id: Annotated[TeamId | None | UnsetType, Meta(examples=[None])] = UNSET
    snoozed_until: Annotated[
        Annotated[datetime, Meta(tz=True)] | None | UnsetType,
        Meta(examples=[None], description="At most a year ahead. Null wakes the ticket."),
    ] = UNSET
    actor_id: Annotated[
        Annotated[int, Meta(ge=1, le=2**53 - 1)] | None,
        Meta(examples=[None], description="The agent who makes the change."),
    ] = None


class TicketActions(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Several actions on a ticket. Absent ones change nothing."""

    add_label_ids: Annotated[list[LabelId], Meta(max_length=20, examples=[[]])] = []
    remove_label_ids: Annotated[list[LabelId], Meta(max_length=20, examples=[[]])] = []
    priority: Annotated[Priority | None, Meta(examples=["high"])] = None
    team_id: Annotated[TeamId | None, Meta(examples=[None])] = None
    snooze_minutes: Annotated[
        Annotated[int, Meta(ge=1, le=525_600)] | None, Meta(examples=[None], description="From now on.")
    ] = None
    assign_to: Annotated[
        Annotated[int, Meta(ge=1, le=2**53 - 1)] | None, Meta(examples=[None], description="The new owner.")
    ] = None
    unassign: Annotated[bool, Meta(description="Put it back into the queue.")] = False
    resolve: bool = False


class BulkActionsIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What to do with which tickets."""

    ids: Annotated[list[TicketId], Meta(min_length=1, max_length=100)]
    actions: TicketActions
    actor_id: Annotated[
        Annotated[int, Meta(ge=1, le=2**53 - 1)] | None,
        Meta(examples=[None], description="The agent who makes the change."),
    ] = None


class BulkOutcome(Struct, frozen=True, rename="camel"):
    """What became of one ticket: either the ticket or the error."""

    id: Annotated[str, Meta(examples=[TICKET_ID.example], description="As it was sent.")]
    ticket: Ticket | None
    error: ErrorBody | None


class MergeIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The ticket that is merged into this one."""

    ticket_id: Annotated[TicketId, Meta(examples=["tkt_01jc9y3q5me8w92v7x4t6r0n2m"])]


class CustomerLinkIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Who the ticket's contact is."""

    customer_id: Annotated[CustomerId, Meta(examples=[CUSTOMER_ID.example])]


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
    seen_sequence: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(
            examples=[None],
            description="The ticket's `sequence` that the agent saw. If another agent has replied since, or this "
            "one has sent the same text, the message is refused with ANSWERED_MEANWHILE.",
        ),
    ] = None
    handover: Annotated[
        bool,
        Meta(description="True: it announces that someone else will answer. The ticket goes back to the queue."),
    ] = False


class TicketIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A conversation to start: to whom, over which channel, and its first message."""

    agent_id: AgentId
    customer_id: Annotated[CustomerId | None, Meta(description="Required without orderId.")] = None
    order_id: Annotated[
        Annotated[str, Meta(max_length=255)] | None,
        Meta(examples=[None], description="An order, whose customer gets the message."),
    ] = None
    source: Annotated[
        Source | None,
        Meta(examples=[None], description="Default: the first connected channel that can send it to the customer."),
    ] = None
    body: Annotated[Words | None, Meta(examples=["Halo, pesanan Anda sudah siap."])] = None
    template_name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=512)] | None,
        Meta(examples=[None], description="A template in place of `body`; required where the reply window is closed."),
    ] = None
    params: Annotated[list[Annotated[str, Meta(max_length=4_096)]], Meta(max_length=100, examples=[[]])] = []
    language: Annotated[Annotated[str, Meta(max_length=20)] | None, Meta(examples=[None])] = None


class NoteIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A new note."""

    agent_id: AgentId
    body: Annotated[str, Meta(min_length=1, max_length=10_000, examples=["Pelanggan VIP"])]


class AssignIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The new owner; null for none."""

    agent_id: AgentId | None


class TakeIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who takes the ticket."""

    agent_id: AgentId


class HandoverIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who gets the ticket; without one, the ticket goes to the queue."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
    from_agent_id: (
        Annotated[int, Meta(ge=1, le=2**53 - 1, description="The agent who hands it over. Default: its owner.")] | None
    ) = None


class ResolveIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The agent who resolves it, if any."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1)] | None = None
