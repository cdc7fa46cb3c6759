"""The inbox: one screen with the queue, a conversation and its customer. Without a script each link opens it again."""

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.company_clock import CompanyTime, find_due
from sapa.console.inbox_queue import (
    FILTERS,
    LATER,
    PRIORITIES,
    STATUSES,
    VIEWS,
    WORDLESS,
    QueueQuery,
    Team,
    build_fingerprint,
    read_query,
    read_queue,
    read_team,
)
from sapa.console.live import Watch
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.http.endpoints import Base
from sapa.http.errors import Invalid
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.messaging.connections import actions as connections
from sapa.messaging.tickets import build_tickets_channel
from sapa.people import actions as people
from sapa.support.types import TICKET_ID

PRESENCE_SECONDS = 60
"""How long an agent stays online after the inbox was last seen open. Its stream looks every 15 seconds."""
BULK: dict[str, dict[str, Any]] = {
    "resolve": {"resolve": True},
    "unassign": {"unassign": True},
    "snooze": {"snoozeMinutes": 60},
}

Json = dict[str, Any]


@console.get("/{environment}/inbox", roles=EVERYBODY)
async def list_tickets(page: PageRequest) -> Response:
    search = page.request.query_params.get("search", "").strip()
    if TICKET_ID.matches(search):
        return go_to(page.path(f"/inbox/{search}"))
    team = await read_team(page)
    context = await read_screen(page, team)
    context["seen"] = build_fingerprint([context["queue"], team.names])
    return page.show("inbox_live.html" if page.request.query_params.get("part") else "inbox.html", **context)


async def read_screen(page: PageRequest, team: Team) -> Json:
    """What the screen shows whether or not a conversation is open."""
    queue = await read_queue(page, team)
    return {
        "queue": queue,
        "query": QueueQuery(queue["query"]),
        "filters": QueueQuery(queue["query"] | _read_filters(page)),
        "screen": page.path("/inbox"),
        "suffix": f"?{urlencode(queue['query'])}",
        "kept": {name: queue["query"][name] for name in FILTERS if name in queue["query"]},
        "team": team,
        "ticket": None,
        "pane": "",
        "clock": CompanyTime(team.choices.clock_offset_seconds),
        "channels": list_channels(),
        "channel_names": list(CHANNEL_NAMES),
        "tabs": VIEWS,
        "wordless": WORDLESS,
        "priorities": PRIORITIES,
        "find_due": find_due,
        "given": {"name": page.form_value("name") or page.session.name},
    }


def _read_filters(page: PageRequest) -> dict[str, str]:
    """What is chosen in the form that saves a view."""
    is_saved = page.request.url.path.endswith("/inbox/views")
    return {name: page.form_value(name) for name in FILTERS if name in page.form} if is_saved else {}


def path_of(page: PageRequest, id: str = "", place: str = "") -> str:
    """The address of the screen with this conversation, and the queue as it is."""
    query = read_query(page)
    path = page.path(f"/inbox/{id}" if id else "/inbox")
    return f"{path}?{urlencode(query)}{place}" if query else f"{path}{place}"


@console.post("/{environment}/inbox/agent", roles=EVERYBODY, shown_by=list_tickets)
async def create_own_agent(page: PageRequest) -> Response:
    """Creates an agent for the person who is signed in."""
    name, ticket_id = page.form_value("name"), page.form_value("ticket")
    body = {"name": name, "type": "human", "userId": page.session.user_id}
    await page.call("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(path_of(page, ticket_id if TICKET_ID.matches(ticket_id) else ""))


@console.post("/{environment}/inbox/bulk", roles=EVERYBODY, shown_by=list_tickets)
async def change_many(page: PageRequest) -> Response:
    """One action on the chosen conversations. Those that refuse it are counted."""
    actions = await _read_bulk_actions(page, page.form_value("change"))
    body = {"ids": page.form_values("ids"), "actions": actions, "actorId": (await read_team(page)).my_id}
    outcomes = (await page.call("POST", "/tickets/bulk", body=body, base=Base.MESSAGING))["data"]
    done = sum(outcome["error"] is None for outcome in outcomes)
    if refused := len(outcomes) - done:
        page.say("{n} conversations changed, {refused} refused", n=done, refused=refused)
    else:
        page.say("{n} conversations changed", n=done)
    return go_to(path_of(page, page.form_value("open")))


async def _read_bulk_actions(page: PageRequest, chosen: str) -> Json:
    """The choices of the list: a word, or a kind and an id."""
    kind, _, id = chosen.partition(":")
    if kind == "assign":
        return {"assignTo": (await read_team(page)).my_id if id == "me" else parse_agent(id)}
    if kind == "label":
        return {"addLabelIds": [id]}
    if kind == "team":
        return {"teamId": id}
    if kind == "priority":
        return {"priority": id}
    if kind not in BULK:
        raise Invalid.field("change", "is required")
    return BULK[kind]


def parse_agent(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Invalid.field("agentId", "must be an agent of this company")
    return int(text)


@console.post("/{environment}/inbox/views", roles=EVERYBODY, shown_by=list_tickets, says="View saved")
async def save_view(page: PageRequest) -> Response:
    """The filters that are chosen in the form, else the present ones, under a name, for oneself or for all."""
    query, team = read_query(page), await read_team(page)
    query |= _read_filters(page)
    filters: Json = {name: query[name] for name in FILTERS if query.get(name)}
    if "agentId" in filters:
        filters["agentId"] = parse_agent(filters["agentId"])
    view = query.get("view", "")
    filters |= {"status": status} if (status := STATUSES.get(view) or LATER.get(view, {}).get("status")) else {}
    filters |= {"snoozed": view == "snoozed"} if view != "resolved" else {}
    filters |= {"mine": True} if view == "mine" else {}
    body = {
        "name": page.form_value("name"),
        "filters": filters,
        "agentId": None if page.form_value("shared") else team.my_id,
    }
    view = (await page.call("POST", "/views", body=body, base=Base.MESSAGING))["data"]
    return go_to(page.path(f"/inbox?saved={view['id']}"))


@console.get("/{environment}/inbox/events", roles=EVERYBODY, is_background=True)
async def watch_inbox(page: PageRequest) -> Response:
    """A stream for the page's script; other visitors are redirected to the page."""

    async def read() -> object:
        team = await read_team(page)
        return [await read_queue(page, team), team.names]

    return await watch(page, read) if is_script(page) else go_to(page.path("/inbox"))


def is_script(page: PageRequest) -> bool:
    return "text/event-stream" in page.request.headers.get("accept", "")


async def watch(page: PageRequest, read: Callable[[], Awaitable[object]]) -> Response:
    """Sends an event when the content differs from the page's version, while its reader is signed in. Meanwhile the
    reader's agent is online."""
    me = (await read_team(page)).me
    online_at = -math.inf

    async def read_version() -> str | None:
        nonlocal online_at
        async with page.context.database.connection() as db:
            session = await people.find_session(db, page.secret)
        if session is None or (session.user_id, session.organisation_id) != _identify(page):
            return None
        page.signed_in = session
        if me is not None and time.monotonic() - online_at > PRESENCE_SECONDS / 3:
            online_at = time.monotonic()
            body = {"status": "online", "seconds": PRESENCE_SECONDS}
            await page.call("PUT", f"/agents/{me['id']}/presence", body=body, base=Base.MESSAGING)
        return build_fingerprint(await read())

    version = page.request.query_params.get("seen", "")
    return page.live.open(Watch(page.session.user_id, build_tickets_channel(page.company_id), version, read_version))


def _identify(page: PageRequest) -> tuple[int, int]:
    return page.session.user_id, page.session.organisation_id


async def read_clock(page: PageRequest) -> CompanyTime:
    """Only the clocks of test environments are moved."""
    if page.environment == "live":
        return CompanyTime(0)
    async with page.context.database.connection() as db:
        return CompanyTime((await access.get_environment(db, page.company_id)).clock_offset_seconds)


def list_channels() -> dict[str, str]:
    """The channels and their labels."""
    return {str(channel.source): channel.label for channel in connections.list_channels()}
