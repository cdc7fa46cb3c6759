"""Endpoints for macros."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.messaging.tickets import AgentInactive, TakenOver
from sapa.support.macros import actions, queries
from sapa.support.macros.types import AppliedMacro, Macro, MacroExists, MacroId, MacroIn, MacroUse
from sapa.support.types import TicketId, TicketResolved

ticket_routes = Routes("/tickets", base=Base.MESSAGING, tag="Tickets", resource="macros")
routes = Routes("/macros", base=Base.MESSAGING, tag="Inbox", resource="macros")


@ticket_routes.post(
    "/{id}/macros/{macroId}",
    scope=Scope.MESSAGES_WRITE,
    status=200,
    raises=[NotFound, TicketResolved, AgentInactive, TakenOver],
    tool=ToolTraits(is_destructive=False),
)
async def apply_macro(call: Call, id: TicketId, macro_id: MacroId, body: MacroUse) -> AppliedMacro:
    """Apply a macro to a ticket: all of its actions or none.

    The macro's text is returned with its placeholders filled in, and not sent: send it as a reply.
    """
    return await actions.apply(call.db, call.company, id, macro_id, body.agent_id)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_macros(call: Call, query: PageQuery) -> Page[Macro]:
    """List macros, newest first."""
    found, total = await queries.list_macros(call.db, call.company.id, {}, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[MacroExists, AgentInactive])
async def create_macro(call: Call, body: MacroIn) -> Macro:
    """Create a macro.

    It is several actions under one name, applied to a ticket with `POST /tickets/{id}/macros/{macroId}`.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_macro(call: Call, id: MacroId) -> Macro:
    """Get one macro."""
    return await queries.get_macro(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, MacroExists, AgentInactive])
async def update_macro(call: Call, id: MacroId, body: MacroIn) -> Macro:
    """Replace a macro."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_macro(call: Call, id: MacroId) -> None:
    """Delete a macro."""
    await actions.delete(call.db, call.company, id)
