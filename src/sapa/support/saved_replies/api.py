"""Endpoints for saved replies."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.support.saved_replies import actions, queries
from sapa.support.saved_replies.types import FilledReply, SavedReply, SavedReplyExists, SavedReplyId, SavedReplyIn
from sapa.support.types import TicketId

ticket_routes = Routes("/tickets", base=Base.MESSAGING, tag="Tickets", resource="saved_replies")
routes = Routes("/saved-replies", base=Base.MESSAGING, tag="Inbox", resource="saved_replies")


class FillQuery(Struct, frozen=True, kw_only=True, rename="camel"):
    """Who uses the saved reply."""

    agent_id: Annotated[int, Meta(ge=1, le=2**53 - 1, description="The agent that {agen} stands for.")] | None = None


@ticket_routes.get("/{id}/saved-replies/{savedReplyId}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def fill_saved_reply(call: Call, id: TicketId, saved_reply_id: SavedReplyId, query: FillQuery) -> FilledReply:
    """Get a saved reply with its placeholders filled in for a ticket.

    {nama} is the customer's first name, {pesanan} the number of their newest order, {resi} their newest waybill number
    and {agen} the agent's name. Placeholders without a value stay in the text and are listed in `missing`.
    """
    saved = await queries.get_saved_reply(call.db, call.company.id, saved_reply_id)
    return await actions.fill_for_ticket(call.db, call.company, id, saved.text, query.agent_id)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_saved_replies(call: Call, query: PageQuery) -> Page[SavedReply]:
    """List saved replies, newest first."""
    found, total = await queries.list_saved_replies(call.db, call.company.id, {}, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[SavedReplyExists])
async def create_saved_reply(call: Call, body: SavedReplyIn) -> SavedReply:
    """Create a saved reply.

    The text may have placeholders: {nama} or {name}, {pesanan} or {order}, {resi} or {tracking}, {agen} or {agent}.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_saved_reply(call: Call, id: SavedReplyId) -> SavedReply:
    """Get one saved reply."""
    return await queries.get_saved_reply(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, SavedReplyExists])
async def update_saved_reply(call: Call, id: SavedReplyId, body: SavedReplyIn) -> SavedReply:
    """Replace a saved reply."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_saved_reply(call: Call, id: SavedReplyId) -> None:
    """Delete a saved reply."""
    await actions.delete(call.db, call.company, id)
