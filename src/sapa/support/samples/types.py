"""The samples that measure support."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from sapa.messaging.channels.interface import Source

MICROSECONDS = 1_000_000


class Metric(StrEnum):
    """What a sample measures."""

    HANDLED = "handled"
    """The agent wrote to the customer, or owned the ticket when it was resolved. It has no duration."""
    FIRST_RESPONSE = "first_response"
    RESPONSE = "response"
    RESOLUTION = "resolution"


class Sample(Struct, frozen=True):
    """One action of an agent for a customer, and how long the customer waited for it."""

    agent_id: int
    ticket_id: str
    cycle: int
    source: Source
    metric: Metric
    seconds: float
    started_at: datetime
    at: datetime
    message_id: str | None

    @property
    def micros(self) -> int:
        """Whole microseconds: their sums are exact, in any order."""
        return round(self.seconds * MICROSECONDS)
