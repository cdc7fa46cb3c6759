"""Endpoints for drafts of replies."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.support import replies
from sapa.support.agents import actions as agents
from sapa.support.drafts import actions, queries
from sapa.support.drafts.types import ReplyDraft, ReplyDraftIn
from sapa.support.types import AgentPathId, TicketId

routes = Routes("/tickets", base=Base.MESSAGING, tag="Tickets", resource="reply_drafts")


@routes.get("/{id}/drafts", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def list_reply_drafts(call: Call, id: TicketId) -> list[ReplyDraft]:
    """List what agents have typed in a ticket and not sent, the newest first."""
    await replies.require_ticket(call.db, call.company, id)
    return await queries.list_drafts(call.db, call.company.id, id)


@routes.put("/{id}/drafts/{agentId}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def set_reply_draft(call: Call, id: TicketId, agent_id: AgentPathId, body: ReplyDraftIn) -> ReplyDraft:
    """Set an agent's draft of a reply, for example to suggest one.

    The console shows it in the reply box when the agent opens the ticket. It takes the place of what the agent had
    typed there.
    """
    await replies.require_ticket(call.db, call.company, id)
    agent = await agents.get_agent(call.db, call.company, int(agent_id))
    return await actions.set_draft(call.db, call.company, id, agent.id, body.body)


@routes.delete("/{id}/drafts/{agentId}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_reply_draft(call: Call, id: TicketId, agent_id: AgentPathId) -> None:
    """Delete an agent's draft of a reply, if there is one."""
    await replies.require_ticket(call.db, call.company, id)
    agent = await agents.get_agent(call.db, call.company, int(agent_id))
    await actions.delete_draft(call.db, call.company, id, agent.id)
