"""Ratings (CSAT): what customers say about a resolved ticket."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sapa.events import Event
from sapa.http.errors import Conflict
from sapa.http.responses import Timestamp
from sapa.messaging.messages.types import Source
from sapa.support.types import TicketId
from sapa.values.api_base import Base
from sapa.values.enum_names import EnumName
from sapa.values.ids import CustomerId, IdKind

RATING_ID = IdKind("rtg_")
RatingId = Annotated[str, RATING_ID]
Score = Annotated[int, Meta(ge=1, le=5, examples=[5], description="From 1, bad, to 5, very good.")]
RatingStatus = Annotated[Literal["queued", "asked", "failed", "rated"], EnumName("RatingStatus")]


class Rating(Struct, frozen=True, rename="camel"):
    """A question to the customer about a resolved ticket, and their answer."""

    id: RatingId
    ticket_id: TicketId
    cycle: Annotated[int, Meta(examples=[1])]
    agent_id: Annotated[int | None, Meta(examples=[12], description="The owner of the ticket when it was resolved.")]
    customer_id: CustomerId | None
    source: Source
    status: Annotated[
        RatingStatus, Meta(description="queued: not asked yet. failed: the channel refused the question.")
    ]
    score: Annotated[int | None, Meta(examples=[5])]
    comment: Annotated[str | None, Meta(examples=["Cepat sekali!"])]
    created_at: Timestamp
    rated_at: Timestamp | None


class RatingIn(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The customer's answer."""

    score: Score
    comment: Annotated[str, Meta(max_length=2_000, examples=["Cepat sekali!"])] | None = None


class DueRating(Struct, frozen=True):
    """A question that the worker sends."""

    company_id: int
    id: str


class RatingQuestion(Struct, frozen=True):
    """Whom to ask, and the token of the page with the answer."""

    token: str
    source: str
    connection_id: str
    identity: str
    tries: int


class AlreadyRated(Conflict):
    """The customer has rated this already. A rating does not change."""

    code = "ALREADY_RATED"
    fix = "Keep the first rating."


class RatingReceived(Event):
    """A customer rated a resolved ticket."""

    kind = "rating.received"
    base = Base.MESSAGING
    resource_type = Rating
