"""Endpoints for tickets."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import POSITION, PageLimit, PageQuery
from sapa.http.responses import Accepted, Page, build_page
from sapa.http.schemas import DocumentedAs
from sapa.messaging.channels.registry import CHANNEL_NAMES, ChannelName
from sapa.messaging.consents.types import ConsentMissing
from sapa.messaging.contacts import actions as contacts
from sapa.messaging.messages import actions as messaging
from sapa.messaging.messages.types import Message, MessageId2, Source
from sapa.messaging.sending.actions import REFUSALS
from sapa.messaging.templates.types import (
    TemplateNotApproved,
    TemplateNotFound,
    TemplateNotSendable,
    TemplateParamsMismatch,
)
from sapa.messaging.tickets import AgentInactive, TakenOver
from sapa.support import bulk, changes, joining, queries, replies, starting, tickets
from sapa.support.agents import actions as agents
from sapa.support.requests import (
    AssignIn,
    BulkActionsIn,
    BulkOutcome,
    CustomerLinkIn,
    HandoverIn,
    MergeIn,
    NoteIn,
    ReplyIn,
    ResolveIn,
    TakeIn,
    TicketIn,
    TicketPatch,
)
from sapa.support.types import (
    LABEL_ID,
    TEAM_ID,
    AlreadyAssigned,
    AnotherTicketActive,
    AnsweredMeanwhile,
    ChannelOrSource,
    DifferentCustomers,
    Note,
    Priority,
    StatusFilter,
    Ticket,
    TicketCounts,
    TicketDetail,
    TicketId,
    TicketResolved,
    TicketSort,
    TicketStatus,
    build_cell,
)
from sapa.values.ids import CUSTOMER_ID

routes = Routes(
    "/tickets",
    base=Base.MESSAGING,
    tag="Tickets",
    about="Conversations with customers: replies, notes, assignment, resolution, and the settings of support.",
)

# A reply adds a message. The others can be undone by another call.
NOT_DESTRUCTIVE = ToolTraits(is_destructive=False)
STARTING = (
    TemplateNotFound,
    TemplateNotApproved,
    TemplateNotSendable,
    TemplateParamsMismatch,
    ConsentMissing,
    *REFUSALS,
)
TrueOrFalse = Literal["true", "false"]
STATUSES: Mapping[StatusFilter | None, Sequence[TicketStatus]] = {
    "open": ["open"],
    "assigned": ["assigned"],
    "resolved": ["resolved"],
    "active": ["open", "assigned"],
    None: ["open", "assigned", "resolved"],
}
BY_CHANNEL: Mapping[str, Sequence[Source]] = CHANNEL_NAMES | {source: [source] for source in Source}


class TicketsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Which tickets to list, and in which order."""

    status: (
        Annotated[StatusFilter, Meta(description="Only tickets with this status. active: open and assigned ones.")]
        | None
    ) = None
    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1, description="Only tickets of this agent.")] | None = None
    except_agent_id: (
        Annotated[int, Meta(ge=1, le=2**53 - 1, description="Only tickets of other agents or of none.")] | None
    ) = None
    channel: (
        Annotated[
            ChannelOrSource,
            DocumentedAs(ChannelName),
            Meta(
                description="Only tickets on this channel. msgapp stands for both of its sources. The sources of "
                "tickets are accepted too."
            ),
        ]
        | None
    ) = None
    customer_id: (
        Annotated[str, Meta(pattern=CUSTOMER_ID.pattern, description="Only this customer's tickets.")] | None
    ) = None
    label_id: Annotated[str, Meta(pattern=LABEL_ID.pattern, description="Only tickets with this label.")] | None = None
    priority: Annotated[Priority, Meta(description="Only tickets of this priority.")] | None = None
    rating: Annotated[int, Meta(ge=1, le=5, description="Only tickets that were rated so.")] | None = None
    team_id: Annotated[str, Meta(pattern=TEAM_ID.pattern, description="Only tickets of this team.")] | None = None
    breached: Annotated[TrueOrFalse, Meta(description="Only tickets that missed a target, or only others.")] | None = (
        None
    )
    snoozed: Annotated[TrueOrFalse, Meta(description="Only snoozed tickets, or only others.")] | None = None
    waiting: (
        Annotated[TrueOrFalse, Meta(description="Only tickets whose customer waits for an answer, or only others.")]
        | None
    ) = None
    sort: Annotated[
        TicketSort,
        Meta(description="A field and a direction. waitingSince:asc has the longest wait first."),
    ] = "createdAt:desc"


class TicketCountsQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whose tickets to count as mine."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1, description="The agent who asks.")] | None = None


class TicketQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which of the ticket's messages to show."""

    limit: PageLimit = 50
    before: (
        Annotated[MessageId2, Meta(max_length=36, description="The `earlier` of another response."), POSITION] | None
    ) = None


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_tickets(call: Call, query: TicketsQuery) -> Page[Ticket]:
    """List tickets.

    The newest first by default. For an agent's work, use `agentId` with `status=assigned`; for unassigned tickets,
    `status=open`.
    """
    filters = {
        "cells": _cells(query),
        "agent_id": query.agent_id,
        "except_agent_id": query.except_agent_id,
        "customer_id": query.customer_id,
        "label_id": query.label_id,
        "priority": query.priority,
        "rating": query.rating,
        "team_id": query.team_id,
        "is_breached": None if query.breached is None else query.breached == "true",
        "is_snoozed": True if query.snoozed == "true" else None,
        "is_awake": True if query.snoozed == "false" else None,
        "is_waiting": True if query.waiting == "true" else None,
        "is_answered": True if query.waiting == "false" else None,
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_tickets(call.db, call.company.id, chosen, query.sort, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


def _cells(query: TicketsQuery) -> list[str] | None:
    """The counter's cells for the requested status and channel."""
    if query.status is None and query.channel is None:
        return None
    sources = BY_CHANNEL[query.channel] if query.channel else list(Source)
    return [build_cell(status, source) for status in STATUSES[query.status] for source in sources]


@routes.post("", scope=Scope.MESSAGES_WRITE, status=200, raises=STARTING, tool=NOT_DESTRUCTIVE)
async def start_ticket(call: OutboundCall, body: TicketIn) -> Message | Accepted[Message]:
    """Start a conversation with a customer, or with the customer of an order.

    The message opens a ticket of the agent, named by `ticketId` of the response; a chat that has an active ticket
    continues there. Where the reply window is closed, send a template. 202 means that the channel did not answer in
    time.
    """
    return await starting.start(call, body)


@routes.get("/counts", scope=Scope.MESSAGES_READ)
async def count_tickets(call: Call, query: TicketCountsQuery) -> TicketCounts:
    """Count the active tickets of the inbox, by tab."""
    return await queries.count_tickets(call.db, call.company.id, query.agent_id)


@routes.post("/bulk", scope=Scope.MESSAGES_WRITE, status=200, tool=NOT_DESTRUCTIVE)
async def change_tickets(call: Call, body: BulkActionsIn) -> list[BulkOutcome]:
    """Change up to 100 tickets at once, with an outcome for each.

    Each ticket has all actions applied or none. A ticket that is refused does not stop the others.
    """
    return await bulk.apply_to_many(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_ticket(call: Call, id: TicketId, query: TicketQuery) -> TicketDetail:
    """Get one ticket with its messages, events and notes.

    You get the newest messages. For earlier ones, send the response's `earlier` as `before`.
    """
    db, company = call.db, call.company
    # One snapshot: a message that arrives between two reads would appear in a ticket that does not know it.
    async with db.transaction(isolation="repeatable_read", readonly=True):
        ticket = await queries.get_ticket(db, company.id, id)
        target = await queries.get_reply_target(db, company.id, id)
        messages, earlier = await messaging.list_of_ticket(db, company, id, query.limit, query.before)
        return TicketDetail(
            **structs.asdict(ticket),
            agent=await agents.find_agent(db, company, ticket.agent_id),
            messages=messages,
            earlier=earlier,
            events=await queries.list_events(db, company.id, id),
            notes=await queries.list_notes(db, company.id, id),
            window=await contacts.find_window(db, company, ticket.source, target.connection_id, target.contact_id),
        )


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TicketResolved, AgentInactive])
async def update_ticket(call: Call, id: TicketId, body: TicketPatch) -> Ticket:
    """Change a ticket's labels, priority or team, or snooze it. Absent fields keep their values.

    A snoozed ticket returns at `snoozedUntil`, or earlier when its customer writes. A resolved ticket cannot be
    snoozed.
    """
    return await changes.update(call.db, call.company, id, body)


@routes.post(
    "/{id}/replies",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, AnotherTicketActive, AnsweredMeanwhile, *REFUSALS],
    tool=NOT_DESTRUCTIVE,
)
async def reply_to_ticket(call: OutboundCall, id: TicketId, body: ReplyIn) -> Message | Accepted[Message]:
    """Reply to the customer.

    The message is sent over the ticket's channel. An unassigned ticket is assigned to the agent. A ticket of an AI
    agent is assigned to the human agent who replies; from then on AI agents get TAKEN_OVER. 202 means that the channel
    did not answer in time.
    """
    return await replies.reply(call, id, body)


@routes.post("/{id}/notes", scope=Scope.MESSAGES_WRITE, raises=[NotFound, AgentInactive])
async def add_ticket_note(call: Call, id: TicketId, body: NoteIn) -> Note:
    """Add an internal note, which the customer never sees."""
    return await tickets.add_note(call.db, call.company, id, body)


@routes.post(
    "/{id}/assign",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, TicketResolved, AgentInactive],
    tool=NOT_DESTRUCTIVE,
)
async def assign_ticket(call: Call, id: TicketId, body: AssignIn) -> Ticket:
    """Assign a ticket to an agent, or unassign it with null.

    AI agents cannot reply in a ticket of a human agent until it is assigned to one of them again.
    """
    return await tickets.assign(call.db, call.company, id, body.agent_id)


@routes.post(
    "/{id}/take",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, TicketResolved, AgentInactive, AlreadyAssigned],
    tool=NOT_DESTRUCTIVE,
)
async def take_ticket(call: Call, id: TicketId, body: TakeIn) -> Ticket:
    """Take an unassigned ticket.

    Of several agents who take it at once, one gets it and the others get ALREADY_ASSIGNED.
    """
    return await tickets.take(call.db, call.company, id, body.agent_id)


@routes.post(
    "/{id}/handover",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, TicketResolved, AgentInactive, TakenOver],
    tool=NOT_DESTRUCTIVE,
)
async def hand_over_ticket(call: Call, id: TicketId, body: HandoverIn = HandoverIn()) -> Ticket:
    """Hand a ticket over to another agent, or to the queue.

    After an AI agent's handover, response times of human agents count from the handover. An AI agent that names itself
    in `fromAgentId` gets TAKEN_OVER if a human agent has taken over the ticket.
    """
    return await tickets.hand_over(call.db, call.company, id, body)


@routes.post(
    "/{id}/resolve",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, AgentInactive, TakenOver],
    tool=NOT_DESTRUCTIVE,
)
async def resolve_ticket(call: Call, id: TicketId, body: ResolveIn = ResolveIn()) -> Ticket:
    """Resolve a ticket.

    The resolution counts for the owner; without an owner, for the agent in the request. A resolved ticket stays
    unchanged. An AI agent cannot resolve a ticket that a human agent has taken over.
    """
    return await tickets.resolve(call.db, call.company, id, body.agent_id)


@routes.post(
    "/{id}/merge",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, TicketResolved, DifferentCustomers],
)
async def merge_tickets(call: Call, id: TicketId, body: MergeIn) -> Ticket:
    """Merge another ticket of the same customer into this one.

    Its messages and notes move here, and it is resolved with the reason `merged`; its `mergedIntoId` and the event
    `merged` of this ticket say where they went. Replies go over this ticket's channel.
    """
    return await joining.merge(call.db, call.company, id, body.ticket_id)


@routes.put("/{id}/customer", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def link_ticket_customer(call: Call, id: TicketId, body: CustomerLinkIn) -> Ticket:
    """Link a ticket's contact, such as a visitor of your website, to a customer.

    All tickets of the contact get the customer, and so do the contact's later messages.
    """
    return await joining.link_customer(call.db, call.company, id, body.customer_id)


@routes.post(
    "/{id}/reopen",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, AnotherTicketActive],
    tool=NOT_DESTRUCTIVE,
)
async def reopen_ticket(call: Call, id: TicketId) -> Ticket:
    """Reopen a resolved ticket, as a new cycle."""
    return await tickets.reopen(call.db, call.company, id)
