"""Endpoints for mentions."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.support import replies
from sapa.support.agents import actions as agents
from sapa.support.mentions import actions, queries
from sapa.support.mentions.types import TicketMention
from sapa.support.types import AgentPathId, TicketId

routes = Routes("/agents", base=Base.MESSAGING, tag="Agents")


@routes.get("/{id}/mentions", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def list_agent_mentions(call: Call, id: AgentPathId, query: PageQuery) -> Page[TicketMention]:
    """List the tickets whose notes mention an agent and that the agent has not opened since, newest first."""
    agent = await agents.get_agent(call.db, call.company, int(id))
    found = await queries.list_mentions(call.db, call.company.id, agent.id, query.limit, query.offset)
    return build_page(found, query.page, query.limit, await queries.count(call.db, call.company.id, agent.id))


@routes.delete("/{id}/mentions/{ticketId}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_agent_mention(call: Call, id: AgentPathId, ticket_id: TicketId) -> None:
    """Mark a mention as read."""
    agent = await agents.get_agent(call.db, call.company, int(id))
    await replies.require_ticket(call.db, call.company, ticket_id)
    await actions.mark_read(call.db, call.company.id, agent.id, ticket_id)
