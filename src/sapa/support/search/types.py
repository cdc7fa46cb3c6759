"""Search over tickets: what it finds."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.support.types import Ticket


class TicketMatch(Struct, frozen=True, rename="camel"):
    """A ticket that a search found."""

    ticket: Ticket
    text: Annotated[
        str | None,
        Meta(examples=["Apakah kopi Gayo masih ada?"], description="The message that has the words; null for others."),
    ]


class TicketSearch(Struct, frozen=True):
    """What a search found, and whether it ended before it saw all."""

    matches: list[TicketMatch]
    is_newest_only: bool = False
    """Older tickets may have the words, too: they are too common to be looked for everywhere."""


class MessageMatch(Struct, frozen=True):
    """The newest message of a ticket that has the words."""

    ticket_id: str
    text: str


class GatheredMessage(Struct, frozen=True):
    """As a match, with the number of messages that were gathered."""

    ticket_id: str
    text: str
    gathered: int


class FoundPeople(Struct, frozen=True):
    """The newest tickets of people, and how many of them the longest list has."""

    ticket_ids: list[str]
    people: int
