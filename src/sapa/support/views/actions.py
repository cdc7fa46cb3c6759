"""Changes views."""

from sapa.db.pool import Tx
from sapa.support.agents import actions as agents
from sapa.support.names import clean_name
from sapa.support.views import queries
from sapa.support.views.types import VIEW_ID, View, ViewIn
from sapa.values.company import Company
from sapa.values.json import encode


async def create(tx: Tx, company: Company, body: ViewIn) -> View:
    await _check_owner(tx, company, body.agent_id)
    columns = (clean_name(body.name), body.agent_id, encode(body.filters))
    return await queries.insert_view(tx, company.id, VIEW_ID.new(), *columns)


async def update(tx: Tx, company: Company, id: str, body: ViewIn) -> View:
    await _check_owner(tx, company, body.agent_id)
    return await queries.update_view(tx, company.id, id, clean_name(body.name), body.agent_id, encode(body.filters))


async def delete(tx: Tx, company: Company, id: str) -> None:
    await queries.delete_view(tx, company.id, id)


async def _check_owner(tx: Tx, company: Company, agent_id: int | None) -> None:
    if agent_id is not None:
        await agents.get_active_agent(tx, company, agent_id)
