"""Agents who start or stop taking tickets, such as those of people who join the company's console or leave it."""

from sapa.db.pool import Tx
from sapa.support import queries
from sapa.support.agents import actions as agents
from sapa.support.tickets import assign
from sapa.support.types import Agent, AgentIn, AgentPatch
from sapa.values.company import Company


async def activate(tx: Tx, company: Company, user_id: int, name: str) -> Agent:
    """The person can be assigned tickets. Who was here before gets the same agent again."""
    existing = await agents.find_agent_of(tx, company, user_id)
    if existing is None:
        return await agents.create(tx, company, AgentIn(name=name, user_id=user_id))
    return await update(tx, company, existing.id, AgentPatch(active=True))


async def deactivate(tx: Tx, company: Company, user_id: int) -> Agent | None:
    """None if the person has no agent."""
    agent = await agents.find_agent_of(tx, company, user_id)
    return None if agent is None else await update(tx, company, agent.id, AgentPatch(active=False))


async def update(tx: Tx, company: Company, id: int, patch: AgentPatch) -> Agent:
    """The tickets of an agent who is not active go back to the queue."""
    agent = await agents.update(tx, company, id, patch)
    if not agent.active:
        for ticket_id in await queries.lock_assigned_to(tx, company.id, agent.id):
            await assign(tx, company, ticket_id, None)
    return agent
