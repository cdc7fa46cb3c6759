"""Changes presence, and finds the agents who are there."""

from sapa.db.pool import Connection, Tx
from sapa.support.agents import actions as agents
from sapa.support.presence import queries
from sapa.support.presence.types import AgentPresence, AgentPresenceIn
from sapa.support.rows import DueTicket
from sapa.values.company import Company


async def set_presence(tx: Tx, company: Company, agent_id: int, body: AgentPresenceIn) -> AgentPresence:
    """Raises NotFound for an unknown agent. An inactive one can be present, and gets no tickets."""
    await agents.get_agent(tx, company, agent_id)
    if body.status == "offline":
        await queries.clear_presence(tx, company.id, agent_id)
    else:
        await queries.set_presence(tx, company.id, agent_id, body.status, body.seconds)
    return await get_presence(tx, company, agent_id)


async def get_presence(db: Connection, company: Company, agent_id: int) -> AgentPresence:
    await agents.get_agent(db, company, agent_id)
    return await queries.find_presence(db, company.id, agent_id) or AgentPresence(agent_id, "offline", None)


async def list_unassigned(db: Connection, limit: int) -> list[DueTicket]:
    """Tickets of all companies that are assigned automatically, and for which an agent is there."""
    return await queries.list_unassigned(db, limit)


async def find_free_agent(db: Connection, company: Company, ticket_id: str) -> int | None:
    """Of the agents who are there and may have the ticket, the one with the fewest tickets."""
    return await queries.find_free_agent(db, company.id, ticket_id)
