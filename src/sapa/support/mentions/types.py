"""Mentions in notes."""

from msgspec import Struct


class MentionedAgent(Struct, frozen=True):
    """A person whom a note may mention."""

    id: int
    name: str
