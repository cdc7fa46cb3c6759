"""Endpoints that catch up, and how far each has come."""

from msgspec import Struct


class Progress(Struct):
    """How far catching up has come since the endpoint was resumed."""

    resumed_at: str
    until: str
    """Later events were queued as usual."""
    since: str
    """Time of the last event that was read, with its id below."""
    event_id: str = ""
    is_gathered: bool = False
    held_since: str = "-infinity"
    """Due time of the last held delivery that was read, with its id below."""
    held_id: str = ""
    is_sorted_out: bool = False


class Resumed(Struct):
    """A resumed endpoint that has to catch up."""

    company_id: int
    endpoint_id: str
    kinds: list[str]
    catch_up: str
    since: str
    resumed_at: str
    stored: str | None
    """Encoded progress, possibly of an earlier resumption."""


class Overtaken(Exception):
    """The endpoint was paused, deleted or resumed in another way meanwhile."""


class MissedEvent(Struct, frozen=True):
    id: str
    created_at: str
    number: int
    resource_id: str


class MissedDelivery(Struct, frozen=True):
    """A held delivery. One whose event is past its retention is never outdated."""

    id: str
    due_at: str
    is_outdated: bool
