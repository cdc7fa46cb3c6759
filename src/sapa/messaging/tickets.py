"""The port for tickets: which ticket a message belongs to, and who may write in it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Conflict
from sapa.messaging.channels.interface import Source
from sapa.ports import Port
from sapa.values.company import Company


class AgentInactive(Conflict):
    """The agent is not active. Activate it with PUT /agents/{id} and active true."""

    code = "AGENT_INACTIVE"
    fix = "Activate the agent, or name another one."


class TakenOver(Conflict):
    """A human agent has taken over this ticket. Assign it to the AI agent to let it reply again."""

    code = "TAKEN_OVER"
    fix = "Leave the ticket to the person, or assign it to the AI agent again."


class InboundMessage(Struct, frozen=True, kw_only=True):
    """A received message."""

    message_id: str
    source: Source
    connection_id: str
    contact_id: str
    customer_id: str | None
    identity: str
    client_number: str
    connected_number: str
    body: str | None
    at: datetime
    choice_id: str | None = None
    """The id of the button or row that the customer chose."""


class TicketOpening(Struct, frozen=True, kw_only=True):
    """What a ticket needs that opens with a message to the customer."""

    source: Source
    customer_id: str | None
    identity: str
    client_number: str
    connected_number: str


class OutboundMessage(Struct, frozen=True, kw_only=True):
    """A message before it is sent."""

    message_id: str
    connection_id: str
    contact_id: str
    body: str | None
    agent_id: int | None = None
    ticket_id: str | None = None
    """The ticket of a reply."""
    is_handover: bool = False
    seen_sequence: int | None = None
    """Refuse the message if another agent wrote after this entry of the ticket, or this one the same."""
    opening: TicketOpening | None = None
    """Open a ticket if the chat has no active one."""
    at: datetime | None = None
    """When it was sent, if that was before now."""


class TicketLink(Struct, frozen=True):
    """The ticket of a message, and when the message was recorded there."""

    ticket_id: str
    at: datetime | None = None
    agent_id: int | None = None


class Tickets(Protocol):
    async def link_inbound(self, tx: Tx, company: Company, message: InboundMessage) -> TicketLink:
        """The ticket of a customer's message: the active one, the last one reopened, or a new one."""

    async def find_link(
        self, db: Connection, company: Company, connection_id: str, contact_id: str
    ) -> TicketLink | None:
        """The active ticket of a chat. Nothing is opened, and nobody waits for an answer."""

    async def link_echo(self, tx: Tx, company: Company, message: InboundMessage) -> TicketLink | None:
        """A message from the company's own phone counts as an agent's reply in the active ticket."""

    async def link_outbound(self, tx: Tx, company: Company, message: OutboundMessage) -> TicketLink | None:
        """The ticket of an outbound message. Raises AgentInactive or TakenOver for an agent who may not write there."""

    async def is_handled(self, db: Connection, company: Company, connection_id: str, contact_id: str) -> bool:
        """Whether an agent is handling the chat."""

    async def find_opening(self, db: Connection, company: Company, now: datetime) -> datetime | None:
        """When somebody is there to answer again, by the business hours; None if somebody is now."""

    async def check_agent(self, db: Connection, company: Company, agent_id: int) -> None:
        """Raises unless the agent may write."""

    async def settle(self, tx: Tx, company: Company, ticket_id: str, message_id: str) -> None:
        """An agent's message was dispatched, or its dispatch was reverted."""

    async def merge_contacts(self, tx: Tx, company: Company, contact_id: str, others: Sequence[str]) -> None:
        """Merges contacts into one person, who keeps one active ticket for each connection."""


TICKETS: Port[Tickets] = Port("tickets")


def build_tickets_channel(company_id: int) -> str:
    """The NOTIFY channel for changes in a company's tickets."""
    return f"sapa_tickets_{company_id}"
