"""Endpoints for SLA policies."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import NotFound
from sapa.http.query_string import PageQuery
from sapa.http.responses import Page, build_page
from sapa.support.sla import actions, queries
from sapa.support.sla.types import SlaPolicy, SlaPolicyExists, SlaPolicyIn
from sapa.support.types import SlaPolicyId

routes = Routes("/sla-policies", base=Base.MESSAGING, tag="Inbox", resource="sla_policies")


@routes.get("", scope=Scope.MESSAGES_READ)
async def list_sla_policies(call: Call, query: PageQuery) -> Page[SlaPolicy]:
    """List SLA policies, newest first."""
    found, total = await queries.list_sla_policies(call.db, call.company.id, {}, query.limit, query.offset)
    return build_page(found, query.page, query.limit, total)


@routes.post("", scope=Scope.MESSAGES_WRITE, raises=[SlaPolicyExists])
async def create_sla_policy(call: Call, body: SlaPolicyIn) -> SlaPolicy:
    """Create an SLA policy.

    The first policy that matches a ticket applies. Targets start with the first message of a cycle.
    """
    return await actions.create(call.db, call.company, body)


@routes.get("/{id}", scope=Scope.MESSAGES_READ, raises=[NotFound])
async def get_sla_policy(call: Call, id: SlaPolicyId) -> SlaPolicy:
    """Get one SLA policy."""
    return await queries.get_sla_policy(call.db, call.company.id, id)


@routes.put("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound, SlaPolicyExists])
async def update_sla_policy(call: Call, id: SlaPolicyId, body: SlaPolicyIn) -> SlaPolicy:
    """Replace an SLA policy."""
    return await actions.update(call.db, call.company, id, body)


@routes.delete("/{id}", scope=Scope.MESSAGES_WRITE, raises=[NotFound])
async def delete_sla_policy(call: Call, id: SlaPolicyId) -> None:
    """Delete an SLA policy. Tickets keep their current targets until their next change."""
    await actions.delete(call.db, call.company, id)
