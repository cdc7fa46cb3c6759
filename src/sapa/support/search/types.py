"""Search over tickets: what it finds."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.http.responses import Envelope
from sapa.support.types import Ticket


class TicketMatch(Struct, frozen=True, rename="camel"):
    """A ticket that a search found."""

    ticket: Ticket
    text: Annotated[
        str | None,
        Meta(examples=["Apakah kopi Gayo masih ada?"], description="The message that has the words; null for others."),
    ]


class TicketSearchMeta(Struct, frozen=True, rename="camel"):
    """How far a search looked."""

    newest_only: Annotated[
        bool,
        Meta(
            examples=[False],
            description="True if so many people or messages match that older tickets were not all looked through.",
        ),
    ] = False


class TicketSearch(Envelope, frozen=True):
    """What a search found, and whether it ended before it saw all."""

    data: list[TicketMatch]
    meta: TicketSearchMeta


class MessageMatch(Struct, frozen=True):
    """The newest message of a ticket that has the words."""

    ticket_id: str
    text: str


class GatheredMessage(Struct, frozen=True):
    """As a match, with the number of messages that were gathered."""

    ticket_id: str
    text: str
    gathered: int
