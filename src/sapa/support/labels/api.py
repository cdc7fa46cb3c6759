"""Endpoints for labels."""

from functools import partial

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.support.labels import actions, queries
from sapa.support.labels.types import Label, LabelExists, LabelIn
from sapa.support.types import LabelId

routes = Routes(
    "/labels",
    base=Base.MESSAGING,
    tag="Inbox",
    resource="labels",
    about="What agents work with: labels, teams, saved replies, views, macros, business hours, targets and ratings.",
)


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_labels(call: Call, query: PageQuery) -> Page[Label]:
    """List labels, newest first."""
    found, total = await queries.list_labels(call.db, call.company.id, {}, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[LabelExists])
async def create_label(call: Call, body: LabelIn) -> Label:
    """Create a label."""
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_label(call: Call, id: LabelId) -> Label:
    """Get one label."""
    return await queries.get_label(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, LabelExists])
async def update_label(call: Call, id: LabelId, body: LabelIn) -> Label:
    """Replace a label."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_label(call: OutboundCall, id: LabelId) -> None:
    """Delete a label.

    Tickets lose it, in parts if they are many: if the call is interrupted, repeat it.
    """
    await actions.remove_from_tickets(call.context.database, call.company, id)
    await call.commit(partial(actions.delete, company=call.company, id=id))
