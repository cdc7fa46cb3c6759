"""Settings: the team. People of the console and the agents who answer customers are the same people; AI agents stand
apart."""

from typing import Any

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.inbox_queue import ask, read_all
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid
from sapa.people import actions as people
from sapa.people.types import Role
from sapa.support import members


@console.get("/{environment}/settings/team", roles=DEVELOPERS)
async def show_team(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        joined = await people.list_members(db, page.session.organisation_id)
    agents = await read_all(page, "/agents")
    ids = {member.id for member in joined}
    return page.show(
        "people.html",
        members=joined,
        agents={agent["userId"]: agent for agent in agents if agent["userId"]},
        others=[agent for agent in agents if agent["userId"] not in ids],
        roles=list(Role),
        given={name: page.form_value(name) for name in ("email", "name", "role")},
    )


@console.post("/{environment}/settings/team/agents", roles=DEVELOPERS, shown_by=show_team, says="Saved")
async def change_member_agent(page: PageRequest) -> Response:
    """Whether a person takes conversations, and the name that customers see."""
    user, name = page.form_value("userId"), page.form_value("agentName")
    if not (user.isascii() and user.isdigit() and len(user) < 16):
        raise Invalid.field("userId", "must be a person of this company")
    is_active = bool(page.form_value("active"))
    found = (await ask(page, "/agents", {"userId": user}))["data"]
    agent = found[0] if found else None
    if agent is not None and agent["active"] and not is_active:
        await _deactivate(page, int(user))
    if agent is not None:
        body: dict[str, Any] = {"name": name or agent["name"], "active": is_active}
        path, noted = f"/agents/{agent['id']}", ("agent.changed", agent["name"])
        await page.call("PUT", path, body=body, base=Base.MESSAGING, noted=noted)
    elif is_active:
        body = {"name": name, "type": "human", "userId": int(user)}
        await page.call("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(page.path("/settings/team"))


async def _deactivate(page: PageRequest, user_id: int) -> None:
    """The person's open conversations go back to the queue."""
    async with page.context.database.transaction() as tx:
        company = await access.get_company(tx, page.company_id)
        agent = await members.deactivate(tx, company, user_id)
        if agent is not None:
            await page.record(tx, "agent.deactivated", agent.name)
