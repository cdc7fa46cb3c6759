"""Endpoints for presence."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.support.presence import actions, queries
from sapa.support.presence.types import AgentPresence, AgentPresenceIn
from sapa.support.types import AgentPathId

routes = Routes("/agents", base=Base.MESSAGING, tag="Agents")


@routes.get("/presence", scope=Scope.MESSAGES_READ)
async def list_agent_presences(call: Call) -> list[AgentPresence]:
    """List the agents who are online or away. All others are offline."""
    return await queries.list_present(call.db, call.company.id)


@routes.get("/{id}/presence", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_agent_presence(call: Call, id: AgentPathId) -> AgentPresence:
    """Get whether an agent is online, away or offline."""
    return await actions.get_presence(call.db, call.company, int(id))


@routes.put("/{id}/presence", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def set_agent_presence(call: Call, id: AgentPathId, body: AgentPresenceIn) -> AgentPresence:
    """Set whether an agent is online, away or offline.

    It lasts for the given time, so repeat it while the agent is there. Only agents who are online are assigned tickets
    automatically.
    """
    return await actions.set_presence(call.db, call.company, int(id), body)
