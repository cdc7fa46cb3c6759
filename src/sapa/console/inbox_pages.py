"""The inbox: tickets by whose they are, and who answers them."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.company_clock import CompanyTime
from sapa.console.live import Watch
from sapa.console.routes import (
    EVERYBODY,
    PageRequest,
    console,
    go_to,
)
from sapa.http.endpoints import Base
from sapa.http.errors import Conflict, Invalid
from sapa.messaging.connections import actions as connections
from sapa.messaging.tickets import build_tickets_channel
from sapa.people import actions as people
from sapa.support.types import TICKET_ID

PAGE = 25
MOST_AGENTS = 1_000
MOST_PEOPLE = 10
"""Whose tickets a search shows."""
VIEWS = ("open", "mine", "others", "resolved")
STATUSES = {"open": "open", "mine": "assigned", "others": "assigned", "resolved": "resolved"}
FILTERS = ("view", "search", "channel", "page")

Json = dict[str, Any]


class NoAgent(Conflict):
    """Nobody answers customers under your name yet; choose a name to answer as first."""

    code = "NO_AGENT"


class Team(Struct, frozen=True):
    """The company's agents, and which of them is looking."""

    agents: list[Json]
    me: Json | None

    @property
    def names(self) -> dict[int, str]:
        return {agent["id"]: agent["name"] for agent in self.agents}

    @property
    def able(self) -> list[Json]:
        return [agent for agent in self.agents if agent["active"]]

    @property
    def my_id(self) -> int:
        if self.me is None:
            raise NoAgent
        return int(self.me["id"])


@console.get("/{environment}/inbox", roles=EVERYBODY)
async def list_tickets(visit: PageRequest) -> Response:
    search = visit.request.query_params.get("search", "").strip()
    if TICKET_ID.matches(search):
        return go_to(visit.path(f"/inbox/{search}"))
    shown = await _read_inbox(visit)
    template = "inbox_live.html" if visit.request.query_params.get("part") else "inbox.html"
    return visit.show(
        template,
        seen=build_word(shown),
        clock=await read_clock(visit),
        channels=list_channels(),
        views=VIEWS,
        given={"name": visit.given("name") or visit.session.name},
        **shown,
    )


@console.post("/{environment}/inbox/agent", roles=EVERYBODY, shown_by=list_tickets)
async def create_own_agent(visit: PageRequest) -> Response:
    """Whoever is looking answers under this name from now on."""
    name, ticket_id = visit.given("name"), visit.given("ticket")
    body = {"name": name, "type": "human", "userId": visit.session.user_id}
    await visit.ask("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(visit.path(f"/inbox/{ticket_id}" if TICKET_ID.matches(ticket_id) else "/inbox"))


@console.get("/{environment}/inbox/events", roles=EVERYBODY)
async def watch_inbox(visit: PageRequest) -> Response:
    """A stream for the page's script; whoever comes here otherwise gets the page."""

    async def read() -> Json:
        return await _read_inbox(visit)

    return watch(visit, read) if is_script(visit) else go_to(visit.path("/inbox"))


def is_script(visit: PageRequest) -> bool:
    return "text/event-stream" in visit.request.headers.get("accept", "")


def watch(visit: PageRequest, read: Any) -> Response:
    """Tells when what is read differs from what the page has seen, for as long as its reader is signed in."""

    async def look() -> str | None:
        async with visit.kit.database.connection() as db:
            known = await people.find_session(db, visit.secret)
        if known is None or (known.user_id, known.organisation_id) != _identify(visit):
            return None
        visit.known = known
        return build_word(await read())

    seen = visit.request.query_params.get("seen", "")
    return visit.live.open(Watch(visit.session.user_id, build_tickets_channel(visit.company_id), seen, look))


def _identify(visit: PageRequest) -> tuple[int, int]:
    return visit.session.user_id, visit.session.organisation_id


def build_word(shown: object) -> str:
    """A word that differs when what is shown does."""
    return sha256(msgspec.json.encode(shown)).hexdigest()[:16]


async def read_team(visit: PageRequest) -> Team:
    agents: list[Json] = []
    has_more, page = True, 1
    while has_more and len(agents) < MOST_AGENTS:
        found = await visit.ask("GET", "/agents", {"limit": "100", "page": str(page)}, base=Base.MESSAGING)
        agents += found["data"]
        has_more, page = found["meta"]["hasNextPage"], page + 1
    mine = (agent for agent in agents if agent["userId"] == visit.session.user_id)
    return Team(sorted(agents, key=lambda agent: agent["name"].casefold()), next(mine, None))


async def read_clock(visit: PageRequest) -> CompanyTime:
    async with visit.kit.database.connection() as db:
        return CompanyTime((await access.get_environment(db, visit.company_id)).clock_offset_seconds)


def list_channels() -> dict[str, str]:
    """The channels with what people call them."""
    return {str(channel.source): channel.label for channel in connections.list_channels()}


async def _read_inbox(visit: PageRequest) -> Json:
    """All that the page shows of the database."""
    asked = visit.request.query_params
    query = {name: asked.get(name, "").strip() for name in FILTERS}
    if query["view"] not in VIEWS:
        query["view"] = "open"
    team = await read_team(visit)
    try:
        counts = {view: await _count(visit, view, team, query["channel"]) for view in VIEWS}
        listed = await (_search(visit, query) if query["search"] else _list(visit, query, team))
    except Invalid as error:
        visit.error = error
        counts, listed = dict.fromkeys(VIEWS, 0), {"items": [], "meta": _build_meta(0), "has_more_people": False}
    return {"query": query, "counts": counts, "names": team.names, "me": team.me, **listed}


async def _list(visit: PageRequest, query: dict[str, str], team: Team) -> Json:
    asked = _build_query(query["view"], team, query["channel"])
    if asked is None:
        return {"items": [], "meta": _build_meta(0), "has_more_people": False}
    asked |= {"page": query["page"], "limit": str(PAGE), "sort": "lastMessageAt:desc"}
    found = await visit.ask("GET", "/tickets", asked, base=Base.MESSAGING)
    return {"items": found["data"], "meta": found["meta"], "has_more_people": False}


async def _search(visit: PageRequest, query: dict[str, str]) -> Json:
    """The tickets of the customers who are called so, whatever their state."""
    people = await visit.ask("GET", "/customers", {"search": query["search"], "limit": str(MOST_PEOPLE)})
    tickets: list[Json] = []
    for person in people["data"]:
        asked = {"customerId": person["id"], "channel": query["channel"], "limit": "10", "sort": "createdAt:desc"}
        tickets += (await visit.ask("GET", "/tickets", asked, base=Base.MESSAGING))["data"]
    tickets.sort(key=lambda ticket: ticket["lastMessageAt"], reverse=True)
    return {"items": tickets, "meta": _build_meta(len(tickets)), "has_more_people": people["meta"]["hasNextPage"]}


async def _count(visit: PageRequest, view: str, team: Team, channel: str) -> int:
    asked = _build_query(view, team, channel)
    if asked is None:
        return 0
    found = await visit.ask("GET", "/tickets", asked | {"limit": "1"}, base=Base.MESSAGING)
    return int(found["meta"]["total"])


def _build_query(view: str, team: Team, channel: str) -> dict[str, str] | None:
    """None where there can be no ticket: those of an agent who is not there."""
    asked = {"status": STATUSES[view], "channel": channel}
    if view == "mine":
        return asked | {"agentId": str(team.me["id"])} if team.me else None
    if view == "others" and team.me:
        asked["exceptAgentId"] = str(team.me["id"])
    return asked


def _build_meta(total: int) -> Json:
    return {"page": 1, "limit": PAGE, "total": total, "hasNextPage": False}
