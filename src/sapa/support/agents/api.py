"""Endpoints for agents and support settings."""

from typing import Annotated, Literal

from msgspec import Meta

from sapa.access.types import Scope
from sapa.db.listing import contains
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery, SearchText
from sapa.http.responses import Page, build_page
from sapa.support import members
from sapa.support.agents import actions, queries
from sapa.support.types import (
    Agent,
    AgentIn,
    AgentPatch,
    AgentPathId,
    AgentType,
    BusinessAppIsHuman,
    SupportSettings,
    SupportSettingsPatch,
    UserTaken,
)
from sapa.values.text_folding import fold

routes = Routes(
    "/agents",
    base=Base.MESSAGING,
    tag="Agents",
    about="The people and AI agents who handle tickets.",
)
settings_routes = Routes("/support", base=Base.MESSAGING, tag="Tickets", resource="support")


class AgentsQuery(PageQuery, frozen=True, kw_only=True, rename="camel"):
    """Which agents to list."""

    type: Annotated[AgentType, Meta(description="Only agents of this type.")] | None = None
    active: (
        Annotated[Literal["true", "false"], Meta(description="Only active agents, or only inactive ones.")] | None
    ) = None
    search: Annotated[SearchText, Meta(description="Part of the name, in upper or lower case.")] | None = None
    user_id: (
        Annotated[int, Meta(ge=1, le=2**53 - 1, description="Only the agent of this user of the console.")] | None
    ) = None


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_agents(call: Call, query: AgentsQuery) -> Page[Agent]:
    """List agents, newest first."""
    filters = {
        "cells": _cells(query),
        "search": contains(fold(query.search)) if query.search else None,
        "user_id": query.user_id,
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    found, total = await queries.list_agents(call.db, call.company.id, chosen, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


def _cells(query: AgentsQuery) -> list[str] | None:
    if query.type is None and query.active is None:
        return None
    types: list[AgentType] = [query.type] if query.type else ["human", "ai"]
    states = [query.active == "true"] if query.active else [True, False]
    return [queries.build_cell(type, active) for type in types for active in states]


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[UserTaken])
async def create_agent(call: Call, body: AgentIn) -> Agent:
    """Create an agent, human or AI."""
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_agent(call: Call, id: AgentPathId) -> Agent:
    """Get one agent."""
    return await queries.get_agent(call.db, call.company.id, int(id))


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, UserTaken, BusinessAppIsHuman])
async def update_agent(call: Call, id: AgentPathId, body: AgentPatch) -> Agent:
    """Update an agent. Absent fields keep their values.

    Agents cannot be deleted, because their work is measured. An inactive agent gets no tickets and cannot reply; the
    tickets that it had go back to the queue.
    """
    return await members.update(call.db, call.company, int(id), body)


@settings_routes.get("/settings", scope=Scope.MESSAGES_READ)
async def get_support_settings(call: Call) -> SupportSettings:
    """Get the support settings."""
    return await actions.get_settings(call.db, call.company)


@settings_routes.put("/settings", scope=Scope.MESSAGES_WRITE)
async def update_support_settings(call: Call, body: SupportSettingsPatch) -> SupportSettings:
    """Update the support settings. Absent fields keep their values."""
    return await actions.change_settings(call.db, call.company, body)
