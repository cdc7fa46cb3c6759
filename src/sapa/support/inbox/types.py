"""What the console's inbox offers beside its tickets."""

from typing import Any

from msgspec import Struct

Choice = dict[str, Any]


class InboxChoices(Struct, frozen=True, rename="camel"):
    """Each list by name, with the fields that the inbox shows, named as in the API."""

    agents: list[Choice]
    labels: list[Choice]
    teams: list[Choice]
    views: list[Choice]
    macros: list[Choice]
    saved_replies: list[Choice]
    mentions: list[str]
    """The tickets that mention the person, the oldest mention first."""
    clock_offset_seconds: float
    """How far the company's clock is ahead."""
