"""Settings: the agents, people and AI, and how tickets are assigned and closed."""

from collections import defaultdict
from typing import Any

from starlette.responses import Response

from sapa.console.listing import read_list
from sapa.console.page_request import PageRequest
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console, go_to
from sapa.console.support_setting_pages import LISTS
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid
from sapa.people import actions as people

TYPES = ("human", "ai")
ASSIGNEES = ("previous", "queue")
HOURS = ("reopenWindowHours", "autoResolveHours")
SWITCHES = ("askRating", "autoAssign")
MAX_CHOICES = 50
"""With more people than this, they are listed for one agent at a time."""


@console.get("/{environment}/settings/agents", roles=DEVELOPERS)
async def list_agents(page: PageRequest) -> Response:
    listing = await read_list(page, "/agents", "type", "active", base=Base.MESSAGING)
    async with page.context.database.connection() as db:
        members = await people.list_members(db, page.session.organisation_id)
    values = {name: page.form_value(name) for name in ("name", "type", "userId")}
    changed = page.request.path_params.get("id")
    return page.show(
        "agents.html",
        members=members,
        names=defaultdict(str, {member.id: member.name for member in members}),
        max_choices=MAX_CHOICES,
        person=page.request.query_params.get("person", ""),
        types=TYPES,
        given=values,
        changed=changed,
        **listing,
    )


@console.post("/{environment}/settings/agents", roles=DEVELOPERS, shown_by=list_agents, says="Agent added")
async def create_agent(page: PageRequest) -> Response:
    name = page.form_value("name")
    body = {"name": name, "type": page.form_value("type"), "userId": _parse_user(page)}
    await page.call("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(page.path("/settings/agents"))


@console.post("/{environment}/settings/agents/{id}", roles=DEVELOPERS, shown_by=list_agents, says="Saved")
async def change_agent(page: PageRequest) -> Response:
    name, path = page.form_value("name"), f"/agents/{page.request.path_params['id']}"
    body: dict[str, Any] = {"name": name, "active": bool(page.form_value("active")), "userId": _parse_user(page)}
    await page.call("PUT", path, body=body, base=Base.MESSAGING, noted=("agent.changed", name))
    return go_to(page.path("/settings/agents"))


@console.get("/{environment}/settings/support", roles=DEVELOPERS)
async def show_support_settings(page: PageRequest) -> Response:
    stored = (await page.call("GET", "/support/settings", base=Base.MESSAGING))["data"]
    typed = {name: page.form_value(name) for name in (*HOURS, "reopenAssignee", *SWITCHES)}
    return page.show("support_settings.html", settings=typed if page.form else stored, assignees=ASSIGNEES, lists=LISTS)


@console.post("/{environment}/settings/support", roles=DEVELOPERS, shown_by=show_support_settings, says="Saved")
async def change_support_settings(page: PageRequest) -> Response:
    body: dict[str, Any] = {name: _parse_hours(name, page.form_value(name)) for name in HOURS}
    body["reopenAssignee"] = page.form_value("reopenAssignee")
    body |= {name: bool(page.form_value(name)) for name in SWITCHES}
    noted = ("settings.changed", "support")
    await page.call("PUT", "/support/settings", body=body, base=Base.MESSAGING, noted=noted)
    return go_to(page.path("/settings/support"))


def _parse_user(page: PageRequest) -> int | None:
    text = page.form_value("userId")
    if text and not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Invalid.field("userId", "must be a person of this company")
    return int(text) if text else None


def _parse_hours(field: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Invalid.field(field, "must be a whole number of hours")
    return int(text)
