"""The menu of the console: its pages in ten entries, and how much work waits behind some of them."""

import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sapa.console.execute import InProcessApi
from sapa.console.roles import DEVELOPERS, EVERYBODY
from sapa.db.pool import Database
from sapa.http.endpoints import Base
from sapa.people.types import Role
from sapa.webhooks.endpoints import actions as webhooks
from sapa.webhooks.types import StoredEndpoint

COUNT_SECONDS = 10.0
"""How long counts are cached: every page shows them."""


class MenuEntry(Struct, frozen=True):
    """A page, or a group of pages."""

    path: str
    """From the environment on."""
    label: str
    icon: str = ""
    roles: Sequence[Role] = EVERYBODY
    entries: Sequence["MenuEntry"] = ()
    others: Sequence[str] = ()
    """Paths of pages that belong to it and are not in the menu."""
    is_outside: bool = False
    """Not a page of an environment."""
    key: str = ""
    """Opens it, after g."""

    def covers(self, here: str) -> bool:
        """Whether the path is its page, a page below it, or one of its group."""
        if not self.path:
            return here == self.path
        paths = (self.path, *self.others)
        return any(here == path or here.startswith(f"{path}/") for path in paths) or any(
            entry.covers(here) for entry in self.entries
        )


MENU = [
    MenuEntry("", "Home", "home", key="h"),
    MenuEntry("/inbox", "Inbox", "inbox", key="i"),
    MenuEntry("/customers", "Customers", "people", key="c"),
    MenuEntry("/orders", "Orders", "bag", others=["/draft-orders"], key="o"),
    MenuEntry("/products", "Products", "price", key="p"),
    MenuEntry(
        "/shipments",
        "Shipments",
        "truck",
        others=["/settlements", "/cod-differences", "/scorecards", "/labels"],
        key="s",
    ),
    MenuEntry("/loyalty", "Loyalty", "gift", others=["/rewards"]),
    MenuEntry("/reports", "Reports", "chart", DEVELOPERS),
    MenuEntry(
        "/keys",
        "Developers",
        "code",
        DEVELOPERS,
        [
            MenuEntry("/keys", "API keys"),
            MenuEntry("/webhooks", "Webhooks", others=["/deliveries"]),
            MenuEntry("/events", "Events"),
            MenuEntry("/calls", "API calls"),
            MenuEntry("/requests", "Message requests"),
            MenuEntry("/customer/v1/docs", "Customer API reference", is_outside=True),
            MenuEntry("/messaging/v1/docs", "Messaging API reference", is_outside=True),
        ],
    ),
    MenuEntry(
        "/settings/company",
        "Settings",
        "gear",
        DEVELOPERS,
        [
            MenuEntry("/settings/company", "Company"),
            MenuEntry("/settings/team", "Team", others=["/people", "/settings/agents"]),
            MenuEntry("/channels", "Channels"),
            MenuEntry("/templates", "Templates"),
            MenuEntry("/carriers", "Carriers"),
            MenuEntry("/stores", "Store locations"),
            MenuEntry("/settings/tracking", "Tracking page"),
            MenuEntry("/settings/loyalty", "Loyalty rules"),
            MenuEntry(
                "/settings/support",
                "Conversations",
                others=[f"/settings/{name}" for name in ("labels", "teams", "macros", "views", "targets", "hours")],
            ),
            MenuEntry("/settings/saved-replies", "Saved replies"),
            MenuEntry("/settings/consent", "Consent"),
            MenuEntry("/imports", "Import and export"),
            MenuEntry("/audit", "Audit log"),
        ],
    ),
]


def name_section(here: str) -> str:
    """The part of a path that tells which entries cover it: they name one step or two."""
    steps = here.split("/", 3)
    section = "/".join(steps[:3])
    return section if section in _SECTIONS else "/".join(steps[:2])


def _list_paths(entries: Sequence[MenuEntry]) -> Iterator[str]:
    for entry in entries:
        yield from (entry.path, *entry.others)
        yield from _list_paths(entry.entries)


_SECTIONS = frozenset(_list_paths(MENU))


class MenuCount(Struct, frozen=True):
    """How much waits behind an entry."""

    number: int
    is_urgent: bool
    """Somebody waits."""


class MenuCounts:
    """One per process."""

    def __init__(self, api: InProcessApi) -> None:
        self._api = api
        self._cached: dict[int, tuple[dict[str, MenuCount], float]] = {}
        self._none_suspended_until: dict[int, float] = {}

    async def read(self, company_id: int) -> dict[str, MenuCount]:
        """By the entry's path, without those where nothing waits."""
        counts, until = self._cached.get(company_id, ({}, 0.0))
        now = time.monotonic()
        if now < until:
            return counts
        to_ship = {"status": "active", "financialStatus": "paid", "fulfillmentStatus": "unfulfilled"}
        numbers = [
            ("/inbox", True, await self._count_waiting(company_id)),
            ("/orders", False, await self._count(company_id, "/orders", to_ship)),
            ("/shipments", True, await self._count(company_id, "/shipping/shipments", {"needsAction": "true"})),
        ]
        counts = {path: MenuCount(number, is_urgent) for path, is_urgent, number in numbers if number}
        self._cached[company_id] = (counts, now + COUNT_SECONDS)
        return counts

    async def list_suspended(self, database: Database, company_id: int) -> list[StoredEndpoint]:
        """Webhook endpoints. That there are none is cached: one that was resumed is gone from all pages at once."""
        now = time.monotonic()
        if now < self._none_suspended_until.get(company_id, 0.0):
            return []
        async with database.connection() as db:
            suspended = await webhooks.list_suspended(db, company_id)
        if not suspended:
            self._none_suspended_until[company_id] = now + COUNT_SECONDS
        return suspended

    async def _count_waiting(self, company_id: int) -> int:
        """Conversations that nobody has taken, and whose customer waits."""
        counts = await self._api.call(company_id, Role.AGENT, "GET", "/tickets/counts", base=Base.MESSAGING)
        return int(counts["data"]["unassignedWaiting"])

    async def _count(self, company_id: int, path: str, query: dict[str, str]) -> int:
        found = await self._api.call(company_id, Role.AGENT, "GET", path, query | {"limit": "1"})
        return int(found["meta"]["total"])
