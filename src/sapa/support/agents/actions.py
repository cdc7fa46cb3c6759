"""Changes agents and the company's support settings."""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct, structs

from sapa.db.pool import Connection, Tx
from sapa.http.errors import Invalid
from sapa.messaging.tickets import AgentInactive
from sapa.support.agents import queries
from sapa.support.agents.queries import AgentChanges
from sapa.support.types import (
    Agent,
    AgentIn,
    AgentPatch,
    SupportSettings,
    SupportSettingsPatch,
)
from sapa.values.company import Company

MAX_NAME_LENGTH = 100
DEFAULTS = SupportSettings(
    reopen_window_hours=24, auto_resolve_hours=72, reopen_assignee="previous", ask_rating=False, auto_assign=False
)


async def list_newest(db: Connection, company_id: int, limit: int) -> list[Agent]:
    agents, _ = await queries.list_agents(db, company_id, {}, limit, 0)
    return agents


async def create(tx: Tx, company: Company, body: AgentIn) -> Agent:
    changes = _clean(AgentChanges(body.name, body.type, body.active, body.user_id))
    await _check_user(tx, company, changes)
    return await queries.insert_agent(tx, company.id, changes)


async def update(tx: Tx, company: Company, id: int, patch: AgentPatch) -> Agent:
    """An agent whose user has left the console stays unchanged until it is updated."""
    agent = await queries.lock_agent(tx, company.id, id)
    before = AgentChanges(agent.name, agent.type, agent.active, agent.user_id)
    changes = _clean(structs.replace(before, **_list_changes(patch)))
    if (changes.type, changes.user_id) != (before.type, before.user_id):
        await _check_user(tx, company, changes)
    return agent if changes == before else await queries.update_agent(tx, company.id, id, changes, before.cell)


async def change_settings(tx: Tx, company: Company, patch: SupportSettingsPatch) -> SupportSettings:
    settings = structs.replace(await queries.find_locked_settings(tx, company.id) or DEFAULTS, **_list_changes(patch))
    await queries.update_settings(tx, company.id, settings)
    return settings


async def get_settings(db: Connection, company: Company) -> SupportSettings:
    return await queries.find_settings(db, company.id) or DEFAULTS


async def get_agent(db: Connection, company: Company, id: int) -> Agent:
    return await queries.get_agent(db, company.id, id)


async def find_agent(db: Connection, company: Company, id: int | None) -> Agent | None:
    return None if id is None else await queries.find_agent(db, company.id, id)


async def find_agent_of(db: Connection, company: Company, user_id: int) -> Agent | None:
    return await queries.find_agent_of(db, company.id, user_id)


async def list_existing(db: Connection, company: Company, ids: Sequence[int]) -> set[int]:
    """Those of the ids that are agents, active or not."""
    return await queries.list_existing(db, company.id, ids)


async def find_or_create_business_app(tx: Tx, company: Company) -> Agent:
    """The agent for replies from the company's own phone; created at the first reply."""
    return await queries.find_business_app(tx, company.id) or await queries.insert_business_app(tx, company.id)


async def get_active_agent(db: Connection, company: Company, id: int, field: str = "agentId") -> Agent:
    """The agent that a request names; raises if it does not exist or is not active."""
    return _check_active(await find_agent(db, company, id), id, field)


async def get_next_owner(tx: Tx, company: Company, id: int, field: str = "agentId") -> Agent:
    """Like `get_active_agent`, and the agent stays active until the end of the transaction: a ticket is never given to
    an agent whose tickets have just gone back to the queue."""
    return _check_active(await queries.find_share_locked_agent(tx, company.id, id), id, field)


def _check_active(agent: Agent | None, id: int, field: str) -> Agent:
    if agent is None:
        raise Invalid.field(field, f"must be the id of an agent; {id} is not. GET /agents lists them")
    if not agent.active:
        raise AgentInactive(f"The agent {agent.name} is not active. Activate it with PUT /agents/{id} and active true.")
    return agent


async def find_next_owner(tx: Tx, company: Company, id: int | None) -> Agent | None:
    """Like `get_next_owner`; None if the agent does not exist or is not active."""
    agent = None if id is None else await queries.find_share_locked_agent(tx, company.id, id)
    return agent if agent is not None and agent.active else None


def _clean(changes: AgentChanges) -> AgentChanges:
    name = " ".join(changes.name.split())
    if not name or "\0" in name or len(name) > MAX_NAME_LENGTH:
        raise Invalid.field(
            "name", f"must not be blank, contain a NUL character or have more than {MAX_NAME_LENGTH} characters"
        )
    return structs.replace(changes, name=name)


async def _check_user(db: Connection, company: Company, changes: AgentChanges) -> None:
    if changes.user_id is None:
        return
    if changes.type == "ai":
        raise Invalid.field("userId", "must be null for an AI agent")
    if not await queries.is_member(db, company.id, changes.user_id):
        raise Invalid.field("userId", "must be the id of a user of the company's console")


def _list_changes(patch: Struct) -> dict[str, Any]:
    return {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
