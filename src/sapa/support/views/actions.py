"""Changes views."""

from sapa.db.pool import Tx
from sapa.support.agents import actions as agents
from sapa.support.labels import actions as labels
from sapa.support.names import clean_name
from sapa.support.teams import actions as teams
from sapa.support.views import queries
from sapa.support.views.types import VIEW_ID, View, ViewIn
from sapa.values.company import Company
from sapa.values.json import encode


async def create(tx: Tx, company: Company, body: ViewIn) -> View:
    return await queries.insert_view(tx, company.id, VIEW_ID.new(), *await _check(tx, company, body))


async def update(tx: Tx, company: Company, id: str, body: ViewIn) -> View:
    return await queries.update_view(tx, company.id, id, *await _check(tx, company, body))


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_view(tx, company.id, id)


async def _check(tx: Tx, company: Company, body: ViewIn) -> tuple[str, int | None, bytes]:
    """The columns of the view."""
    if body.agent_id is not None:
        await agents.get_active_agent(tx, company, body.agent_id)
    if body.filters.label_id is not None:
        await labels.lock_labels(tx, company, [body.filters.label_id], "filters.labelId")
    if body.filters.team_id is not None:
        await teams.lock_team(tx, company, body.filters.team_id, "filters.teamId")
    return clean_name(body.name), body.agent_id, encode(body.filters)
