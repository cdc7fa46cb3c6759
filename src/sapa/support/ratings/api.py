"""Endpoints for ratings."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery, check_period
from sapa.http.responses import Page, build_page
from sapa.support.ratings import actions, queries
from sapa.support.ratings.types import AlreadyRated, Rating, RatingId, RatingIn, RatingStatus
from sapa.support.types import TICKET_ID

routes = Routes("/ratings", base=Base.MESSAGING, tag="Inbox", resource="ratings")


class RatingsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Which ratings to list."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1, description="Only ratings of this agent's tickets.")] | None = (
        None
    )
    ticket_id: Annotated[str, Meta(pattern=TICKET_ID.pattern, description="Only ratings of this ticket.")] | None = None
    score: Annotated[int, Meta(ge=1, le=5, description="Only ratings with this score.")] | None = None
    status: Annotated[RatingStatus, Meta(description="Only ratings with this status.")] | None = None
    rated_from: Annotated[datetime, Meta(description="Rated at this instant or later.")] | None = None
    rated_to: Annotated[datetime, Meta(description="Rated at this instant or earlier.")] | None = None


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_ratings(call: Call, query: RatingsQuery) -> Page[Rating]:
    """List ratings, newest first. Those that customers have not given yet have no score."""
    check_period("ratedFrom", query.rated_from, "ratedTo", query.rated_to)
    filters = {
        "agent_id": query.agent_id,
        "ticket_id": query.ticket_id,
        "score": query.score,
        "status": query.status,
        "rated_from": query.rated_from,
        "rated_to": query.rated_to,
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_ratings(call.db, call.company.id, chosen, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_rating(call: Call, id: RatingId) -> Rating:
    """Get one rating."""
    return await queries.get_rating(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, AlreadyRated])
async def submit_rating(call: Call, id: RatingId, body: RatingIn) -> Rating:
    """Record the customer's rating, once.

    For your own pages and chat windows. Customers who open the link in the question rate without this call.
    """
    return await actions.rate(call.db, call.company, id, body)
