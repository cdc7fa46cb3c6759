"""Endpoints for views."""

from typing import Annotated

from msgspec import Meta

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.messaging.tickets import AgentInactive
from sapa.support.views import actions, queries
from sapa.support.views.types import View, ViewExists, ViewId, ViewIn

routes = Routes("/views", base=Base.MESSAGING, tag="Inbox", resource="views")


class ViewsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Whose views to list."""

    agent_id: (
        Annotated[int, Meta(ge=1, le=2**53 - 1, description="Only the views that this agent sees: shared and own.")]
        | None
    ) = None


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_views(call: Call, query: ViewsQuery) -> Page[View]:
    """List views, newest first."""
    filters = {} if query.agent_id is None else {"agent_id": query.agent_id}
    found, total = await queries.list_views(call.db, call.company.id, filters, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[ViewExists, AgentInactive])
async def create_view(call: Call, body: ViewIn) -> View:
    """Create a view.

    Its filters are those of `GET /tickets` except `customerId` and `exceptAgentId`, and `mine`. It is shared unless
    `agentId` names its owner.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_view(call: Call, id: ViewId) -> View:
    """Get one view."""
    return await queries.get_view(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, ViewExists, AgentInactive])
async def update_view(call: Call, id: ViewId, body: ViewIn) -> View:
    """Replace a view."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_view(call: Call, id: ViewId) -> None:
    """Delete a view."""
    await actions.delete(call.db, call.company, id)
