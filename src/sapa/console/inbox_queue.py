"""The inbox's queue: which conversations it shows, in which order, and whose they are."""

from asyncio import gather
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from sapa.console.page_request import PageRequest
from sapa.console.translations import translate
from sapa.customers import actions as customers
from sapa.http.endpoints import Base
from sapa.http.errors import Conflict, Invalid
from sapa.messaging.channels.abilities import Embeddable
from sapa.messaging.channels.registry import CHANNELS
from sapa.messaging.widget import visits
from sapa.support.inbox import actions as inbox
from sapa.support.inbox.types import InboxChoices
from sapa.support.search import actions as ticket_search
from sapa.values.json import encode

VIEWS = ("mine", "unassigned", "all", "snoozed", "resolved")
FILTERS = ("channel", "labelId", "teamId", "agentId", "priority")
QUERY = ("view", "saved", "search", *FILTERS, "page")
PRIORITIES = ("urgent", "high", "normal", "low")
STATUSES = {"mine": "assigned", "unassigned": "open", "all": "active"}
LATER = {"snoozed": {"snoozed": "true"}, "resolved": {"status": "resolved"}}
"""Views of conversations that nobody works on now."""
LONGEST, NEWEST = "waitingSince:asc", "lastMessageAt:desc"
WORDLESS = ("image", "video", "audio", "document", "sticker", "location", "contacts", "unsupported")
"""Types of messages that stand for the words that they do not have."""
GROUP = 50
"""How many conversations of a group are shown at first."""
MAX_SHOWN = 100
MAX_LISTED = 1_000
"""Of agents, labels and the like."""
SHORTEST_SEARCH = 3
EMBEDDABLE = frozenset(str(source) for source, channel in CHANNELS.items() if isinstance(channel, Embeddable))
"""Channels that show who is typing."""

Json = dict[str, Any]


class NoAgent(Conflict):
    """You are not an agent yet; choose a name to answer customers with."""

    code = "NO_AGENT"
    fix = "Choose the name that customers see, in the inbox."


class QueueQuery(dict[str, str]):
    """What the address says about the queue; empty for the rest."""

    def __missing__(self, name: str) -> str:
        return ""


class Team(Struct, frozen=True):
    """The company's agents, the one who is signed in, and what they can give tickets."""

    choices: InboxChoices
    me: Json | None

    @property
    def agents(self) -> list[Json]:
        return self.choices.agents

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


async def ask(page: PageRequest, path: str, query: dict[str, str] | None = None) -> Any:
    return await page.call("GET", path, query, base=Base.MESSAGING)


async def read_all(page: PageRequest, path: str, query: dict[str, str] | None = None) -> list[Json]:
    """Every page of a short list, by name."""
    found: list[Json] = []
    has_more, number = True, 1
    while has_more and len(found) < MAX_LISTED:
        listed = await ask(page, path, {"limit": "100", "page": str(number), **(query or {})})
        found += listed["data"]
        has_more, number = listed["meta"]["hasNextPage"], number + 1
    return sorted(found, key=lambda one: str(one.get("name") or one.get("shortcut")).casefold())


async def read_team(page: PageRequest, *, with_replies: bool = False) -> Team:
    user_id = page.session.user_id
    async with page.context.database.connection() as db:
        choices = await inbox.get_choices(db, page.company_id, user_id, with_replies=with_replies)
    return Team(choices, next((agent for agent in choices.agents if agent["userId"] == user_id), None))


def read_query(page: PageRequest) -> dict[str, str]:
    """What the address says about the queue, without what is empty."""
    params = page.request.query_params
    return {name: text for name in QUERY if (text := params.get(name, "").strip())}


async def read_queue(page: PageRequest, team: Team) -> Json:
    """Everything in the queue that comes from the database."""
    query = read_query(page)
    if query.get("saved") not in {view["id"] for view in team.choices.views}:
        query.pop("saved", None)  # somebody has deleted it
    mine = {"agentId": str(team.me["id"])} if team.me else {}
    counts = (await ask(page, "/tickets/counts", mine))["data"]
    if query.get("view") not in VIEWS:
        query["view"] = "mine" if counts["mine"] else "unassigned"
    groups: list[Json] = []
    try:
        groups = await _read_groups(page, query, team)
    except Invalid as error:
        page.error = error
    tickets = [ticket for group in groups for ticket in group["items"]]
    return {
        "query": query,
        "counts": counts,
        "views": team.choices.views,
        "groups": groups,
        "labels": {label["id"]: label for label in team.choices.labels},
        "teams": team.choices.teams,
        "people": await read_people(page, tickets),
        "typing": await list_typing(page, tickets),
        "mentions": team.choices.mentions,
    }


async def read_people(page: PageRequest, records: list[Json]) -> dict[str, str]:
    """The names of the customers of tickets or drafts, by id: the same in a list as on the page of one."""
    ids = sorted({record["customerId"] for record in records if record["customerId"]})
    if not ids:
        return {}
    async with page.context.database.connection() as db:
        return await customers.list_names(db, page.company_id, ids)


async def list_typing(page: PageRequest, tickets: list[Json]) -> list[str]:
    """The contacts who are writing now, where the channel shows it."""
    visitors = [one["clientNumber"] for one in tickets if one["source"] in EMBEDDABLE]
    if not visitors:
        return []
    async with page.context.database.connection() as db:
        return await visits.list_typing(db, page.company_id, visitors)


async def _read_groups(page: PageRequest, query: dict[str, str], team: Team) -> list[Json]:
    if text := query.get("search"):
        return [await _search(page, text)]
    filters = {name: query[name] for name in FILTERS if name in query}
    if view := next((one for one in team.choices.views if one["id"] == query.get("saved")), None):
        return [await _list(page, _build_view_query(view["filters"], team), MAX_SHOWN)]
    if query["view"] in LATER:
        return [await _list(page, {**LATER[query["view"]], "sort": NEWEST, **filters}, MAX_SHOWN)]
    if query["view"] == "mine":
        if team.me is None:
            return []
        filters["agentId"] = str(team.my_id)
    limit = MAX_SHOWN if query.get("page", "1") != "1" else GROUP
    wanted = {**filters, "status": STATUSES[query["view"]], "snoozed": "false"}
    waiting, answered = {**wanted, "waiting": "true", "sort": LONGEST}, {**wanted, "waiting": "false", "sort": NEWEST}
    lists = [_list(page, waiting, limit, "Waiting for you"), _list(page, answered, limit, "Answered")]
    return await gather(*lists)


async def _list(page: PageRequest, query: dict[str, str], limit: int, name: str = "") -> Json:
    found = await ask(page, "/tickets", {**query, "limit": str(limit)})
    return {"name": name, "items": found["data"], "total": found["meta"]["total"], "texts": {}}


async def _search(page: PageRequest, text: str) -> Json:
    """Over every contact and message, in any state; the newest first."""
    words = text[:200].removeprefix(translate(page.language, "Visitor {id}", id=""))
    if len(words) < SHORTEST_SEARCH:
        return {"name": "Type at least three letters", "items": [], "total": 0, "texts": {}}
    company = await page.api.get_company(page.company_id)
    async with page.calls, page.context.database.connection() as db:
        searched = await ticket_search.search(db, company, words)
    found = msgspec.json.decode(encode(searched.data))
    texts = {match["ticket"]["id"]: match["text"] for match in found if match["text"]}
    return {
        "name": "Search results: the newest; older ones may match, too"
        if searched.meta.newest_only
        else "Search results",
        "items": [match["ticket"] for match in found],
        "total": len(found),
        "texts": texts,
    }


def _build_view_query(filters: Json, team: Team) -> dict[str, str]:
    """The filters of a saved view as the query of the list."""
    query = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in filters.items()}
    if query.pop("mine", None) == "true" and team.me:
        query["agentId"] = str(team.my_id)
    return {"sort": LONGEST, **query}


def list_next(queue: Json, id: str, team: Team) -> list[Json]:
    """The conversations to open when this one is done: who waits longest, with nobody else."""
    waiting = [ticket for group in queue["groups"] for ticket in group["items"] if ticket["waitingSince"]]
    return [one for one in waiting if one["id"] != id and one["agentId"] in {None, team.me and team.me["id"]}]


def build_fingerprint(content: object) -> str:
    """Changes when the content changes."""
    return sha256(msgspec.json.encode(content)).hexdigest()[:16]
