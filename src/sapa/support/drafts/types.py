"""Drafts of replies and notes, kept for each agent and ticket."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.responses import Timestamp
from sapa.support.types import AgentId, TicketId, Words


class ReplyDraft(Struct, frozen=True, rename="camel"):
    """A reply that an agent has typed and not sent."""

    ticket_id: TicketId
    agent_id: AgentId
    body: Annotated[str, Meta(examples=["Pesanan Kakak kami kirim hari ini."])]
    updated_at: Timestamp


class ReplyDraftIn(Struct, frozen=True, forbid_unknown_fields=True):
    """The text of a draft."""

    body: Words


class TypedTexts(Struct, frozen=True):
    """What an agent has typed in the console and not sent."""

    body: str
    """Of the reply."""
    note: str
    updated_at: datetime
    """When the reply's was changed."""


class TypingAgent(Struct, frozen=True):
    """An agent who is writing a reply at this moment."""

    id: int
    name: str
