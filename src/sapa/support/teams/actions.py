"""Changes teams."""

from collections.abc import Sequence
from functools import partial

from sapa.db.pool import Connection, Database, Tx, notify_after_commit
from sapa.http.errors import Invalid
from sapa.messaging.tickets import build_tickets_channel
from sapa.support.agents import actions as agents
from sapa.support.names import clean_name
from sapa.support.teams import queries
from sapa.support.teams.types import AgentTeam, AgentTeamIn
from sapa.support.types import TEAM_ID
from sapa.values.company import Company

BATCH = 500
"""How many tickets a deleted team leaves in one transaction."""


async def create(tx: Tx, company: Company, body: AgentTeamIn) -> AgentTeam:
    members = await _check_members(tx, company, body.agent_ids)
    return await queries.insert_team(tx, company.id, TEAM_ID.new(), clean_name(body.name), members, body.auto_assign)


async def update(tx: Tx, company: Company, id: str, body: AgentTeamIn) -> AgentTeam:
    members = await _check_members(tx, company, body.agent_ids)
    return await queries.update_team(tx, company.id, id, clean_name(body.name), members, body.auto_assign)


async def remove_from_tickets(database: Database, company: Company, id: str) -> None:
    """Ahead of `delete`: the team may have many tickets."""
    remove = partial(queries.remove_from_tickets, company_id=company.id, id=id, most=BATCH)
    await database.transact_in_batches(remove, BATCH)


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_team(tx, company.id, id)
    while await queries.remove_from_tickets(tx, company.id, id, BATCH):
        pass
    notify_after_commit(tx, build_tickets_channel(company.id))


async def lock_team(tx: Tx, company: Company, id: str, field: str = "teamId") -> AgentTeam:
    """Keeps the team from deletion until the transaction ends. Raises Invalid if there is none."""
    team = await queries.find_locked_team(tx, company.id, id)
    if team is None:
        raise Invalid.field(field, f"must be the id of a team; {id} is not. GET /teams lists them")
    return team


async def _check_members(db: Connection, company: Company, ids: Sequence[int]) -> list[int]:
    members = list(dict.fromkeys(ids))
    existing = await agents.list_existing(db, company, members)
    if unknown := [id for id in members if id not in existing]:
        raise Invalid.field("agentIds", f"must be ids of agents; {unknown[0]} is not. GET /agents lists them")
    return members
