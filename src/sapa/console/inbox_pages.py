"""The inbox: tickets by assignment."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from sapa.access import actions as access
from sapa.console.company_clock import CompanyTime
from sapa.console.live import Watch
from sapa.console.page_request import PageRequest
from sapa.console.roles import EVERYBODY
from sapa.console.routes import console, go_to
from sapa.http.endpoints import Base
from sapa.http.errors import Conflict, Invalid
from sapa.messaging.connections import actions as connections
from sapa.messaging.tickets import build_tickets_channel
from sapa.people import actions as people
from sapa.support.types import TICKET_ID

PAGE = 25
MOST_AGENTS = 1_000
MOST_PEOPLE = 10
"""How many customers a search covers."""
VIEWS = ("open", "mine", "others", "resolved")
STATUSES = {"open": "open", "mine": "assigned", "others": "assigned", "resolved": "resolved"}
FILTERS = ("view", "search", "channel", "page")

Json = dict[str, Any]


class NoAgent(Conflict):
    """You are not an agent yet; choose a name to answer customers with."""

    code = "NO_AGENT"
    fix = "Choose the name that customers see, in the inbox."


class Team(Struct, frozen=True):
    """The company's agents, and the one who is signed in."""

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
async def list_tickets(page: PageRequest) -> Response:
    search = page.request.query_params.get("search", "").strip()
    if TICKET_ID.matches(search):
        return go_to(page.path(f"/inbox/{search}"))
    page.keep_filters()
    listing = await _read_inbox(page)
    template = "inbox_live.html" if page.request.query_params.get("part") else "inbox.html"
    return page.show(
        template,
        seen=build_fingerprint(listing),
        clock=await read_clock(page),
        channels=list_channels(),
        views=VIEWS,
        given={"name": page.form_value("name") or page.session.name},
        **listing,
    )


@console.post("/{environment}/inbox/agent", roles=EVERYBODY, shown_by=list_tickets)
async def create_own_agent(page: PageRequest) -> Response:
    """Creates an agent for the person who is signed in."""
    name, ticket_id = page.form_value("name"), page.form_value("ticket")
    body = {"name": name, "type": "human", "userId": page.session.user_id}
    await page.call("POST", "/agents", body=body, base=Base.MESSAGING, noted=("agent.created", name))
    return go_to(page.path(f"/inbox/{ticket_id}" if TICKET_ID.matches(ticket_id) else "/inbox"))


@console.get("/{environment}/inbox/events", roles=EVERYBODY)
async def watch_inbox(page: PageRequest) -> Response:
    """A stream for the page's script; other visitors are redirected to the page."""

    async def read() -> Json:
        return await _read_inbox(page)

    return watch(page, read) if is_script(page) else go_to(page.path("/inbox"))


def is_script(page: PageRequest) -> bool:
    return "text/event-stream" in page.request.headers.get("accept", "")


def watch(page: PageRequest, read: Any) -> Response:
    """Sends an event when the content differs from the page's version, while its reader is signed in."""

    async def read_version() -> str | None:
        async with page.context.database.connection() as db:
            session = await people.find_session(db, page.secret)
        if session is None or (session.user_id, session.organisation_id) != _identify(page):
            return None
        page.signed_in = session
        return build_fingerprint(await read())

    version = page.request.query_params.get("seen", "")
    return page.live.open(Watch(page.session.user_id, build_tickets_channel(page.company_id), version, read_version))


def _identify(page: PageRequest) -> tuple[int, int]:
    return page.session.user_id, page.session.organisation_id


def build_fingerprint(listing: object) -> str:
    """Changes when the content changes."""
    return sha256(msgspec.json.encode(listing)).hexdigest()[:16]


async def read_team(page: PageRequest) -> Team:
    agents: list[Json] = []
    has_more, number = True, 1
    while has_more and len(agents) < MOST_AGENTS:
        found = await page.call("GET", "/agents", {"limit": "100", "page": str(number)}, base=Base.MESSAGING)
        agents += found["data"]
        has_more, number = found["meta"]["hasNextPage"], number + 1
    mine = (agent for agent in agents if agent["userId"] == page.session.user_id)
    return Team(sorted(agents, key=lambda agent: agent["name"].casefold()), next(mine, None))


async def read_clock(page: PageRequest) -> CompanyTime:
    async with page.context.database.connection() as db:
        return CompanyTime((await access.get_environment(db, page.company_id)).clock_offset_seconds)


def list_channels() -> dict[str, str]:
    """The channels and their labels."""
    return {str(channel.source): channel.label for channel in connections.list_channels()}


async def _read_inbox(page: PageRequest) -> Json:
    """Everything on the page that comes from the database."""
    params = page.request.query_params
    query = {name: params.get(name, "").strip() for name in FILTERS}
    if query["view"] not in VIEWS:
        query["view"] = "open"
    team = await read_team(page)
    try:
        counts = {view: await _count(page, view, team, query["channel"]) for view in VIEWS}
        listed = await (_search(page, query) if query["search"] else _list(page, query, team))
    except Invalid as error:
        page.error = error
        counts, listed = dict.fromkeys(VIEWS, 0), {"items": [], "meta": _build_meta(0), "has_more_people": False}
    return {"query": query, "counts": counts, "names": team.names, "me": team.me, **listed}


async def _list(page: PageRequest, query: dict[str, str], team: Team) -> Json:
    params = _build_query(query["view"], team, query["channel"])
    if params is None:
        return {"items": [], "meta": _build_meta(0), "has_more_people": False}
    params |= {"page": query["page"], "limit": str(PAGE), "sort": "lastMessageAt:desc"}
    found = await page.call("GET", "/tickets", params, base=Base.MESSAGING)
    return {"items": found["data"], "meta": found["meta"], "has_more_people": False}


async def _search(page: PageRequest, query: dict[str, str]) -> Json:
    """The tickets of matching customers, in any state."""
    people = await page.call("GET", "/customers", {"search": query["search"], "limit": str(MOST_PEOPLE)})
    tickets: list[Json] = []
    for person in people["data"]:
        params = {"customerId": person["id"], "channel": query["channel"], "limit": "10", "sort": "createdAt:desc"}
        tickets += (await page.call("GET", "/tickets", params, base=Base.MESSAGING))["data"]
    tickets.sort(key=lambda ticket: ticket["lastMessageAt"], reverse=True)
    return {"items": tickets, "meta": _build_meta(len(tickets)), "has_more_people": people["meta"]["hasNextPage"]}


async def _count(page: PageRequest, view: str, team: Team, channel: str) -> int:
    params = _build_query(view, team, channel)
    if params is None:
        return 0
    found = await page.call("GET", "/tickets", params | {"limit": "1"}, base=Base.MESSAGING)
    return int(found["meta"]["total"])


def _build_query(view: str, team: Team, channel: str) -> dict[str, str] | None:
    """None if there can be no ticket: the person is not an agent."""
    params = {"status": STATUSES[view], "channel": channel}
    if view == "mine":
        return params | {"agentId": str(team.me["id"])} if team.me else None
    if view == "others" and team.me:
        params["exceptAgentId"] = str(team.me["id"])
    return params


def _build_meta(total: int) -> Json:
    return {"page": 1, "limit": PAGE, "total": total, "hasNextPage": False}
