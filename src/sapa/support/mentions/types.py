"""Mentions in notes."""

from msgspec import Struct

from sapa.http.responses import Timestamp
from sapa.support.types import AgentId, TicketId


class TicketMention(Struct, frozen=True, rename="camel"):
    """A ticket with a note that mentions the agent, who has not opened it since."""

    ticket_id: TicketId
    agent_id: AgentId
    created_at: Timestamp


class MentionedAgent(Struct, frozen=True):
    """A person whom a note may mention."""

    id: int
    name: str
