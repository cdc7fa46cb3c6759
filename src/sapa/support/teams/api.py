"""Endpoints for teams."""

from functools import partial

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.outbound_call import OutboundCall
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.support.teams import actions, queries
from sapa.support.teams.types import AgentTeam, AgentTeamIn, TeamExists
from sapa.support.types import TeamId

routes = Routes("/teams", base=Base.MESSAGING, tag="Inbox", resource="teams")


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_teams(call: Call, query: PageQuery) -> Page[AgentTeam]:
    """List teams, newest first."""
    found, total = await queries.list_teams(call.db, call.company.id, {}, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[TeamExists])
async def create_team(call: Call, body: AgentTeamIn) -> AgentTeam:
    """Create a team."""
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_team(call: Call, id: TeamId) -> AgentTeam:
    """Get one team."""
    return await queries.get_team(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, TeamExists])
async def update_team(call: Call, id: TeamId, body: AgentTeamIn) -> AgentTeam:
    """Replace a team."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_team(call: OutboundCall, id: TeamId) -> None:
    """Delete a team.

    Its tickets stay with their owners. They leave the team in parts if they are many: if the call is interrupted,
    repeat it.
    """
    await actions.remove_from_tickets(call.context.database, call.company, id)
    await call.commit(partial(actions.delete, company=call.company, id=id))
