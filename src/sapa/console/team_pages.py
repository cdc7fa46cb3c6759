"""Settings: the team. People of the console and the agents who answer customers are the same people; AI agents stand
apart."""

from typing import Any

from starlette.responses import Response

from sapa.console.inbox_queue import ask, read_all
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid
from sapa.people import actions as people
from sapa.people.types import Role


@console.get("/{environment}/settings/team", roles=DEVELOPERS)
async def show_team(page: PageRequest) -> Response:
    async with page.context.database.connection() as db:
        members = await people.list_members(db, page.session.organisation_id)
    agents = await read_all(page, "/agents")
    return page.show(
        "people.html",
        members=members,
        agents={agent["userId"]: agent for agent in agents if agent["userId"]},
        others=[agent for agent in agents if not agent["userId"]],
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
    if agent is not None:
        body: dict[str, Any] = {"name": name or agent["name"], "active": is_active}
        path, noted = f"/agents/{agent['id']}", ("agent.changed", agent["name"])
        await page.call("PUT", path, body=body, base=Base.MESSAGING, noted=noted)
    elif is_active:
        body = {"name": name, "type": "human", "userId": int(user)}
        await page.call("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(page.path("/settings/team"))
