"""Drafts of replies, which the console keeps for each agent and ticket."""

from datetime import datetime

from msgspec import Struct


class ReplyDraft(Struct, frozen=True):
    """What an agent has typed and not sent."""

    body: str
    updated_at: datetime


class TypingAgent(Struct, frozen=True):
    """An agent who is writing a reply at this moment."""

    id: int
    name: str
