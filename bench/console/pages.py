"""The main pages, each with the calls of the API that say the same."""

from urllib.parse import urlencode

from msgspec import Struct

from bench.api.data import Shop

ROWS = 25
FILTER = {"status": "active", "fulfillmentStatus": "unfulfilled"}
MONTH = ("2025-06-01", "2025-06-30")
QUEUE = {"status": "open", "snoozed": "false", "limit": "50"}
WAITING = QUEUE | {"waiting": "true", "sort": "waitingSince:asc"}
ANSWERED = QUEUE | {"waiting": "false", "sort": "lastMessageAt:desc"}
RESOLVED = {"status": "resolved", "sort": "lastMessageAt:desc", "limit": "100"}
TICKETS = "/messaging/v1/tickets"
INBOX = [f"{TICKETS}/counts", *(f"/messaging/v1/{name}?limit=100" for name in ("agents", "views", "labels", "teams"))]
"""What every page of the inbox shows."""
HOME = [
    f"{TICKETS}/counts",
    f"{TICKETS}?{urlencode(WAITING | {'limit': '1'})}",
    *(f"/customer/v1/orders?{urlencode({'status': 'active', 'limit': '1', **query})}"
      for query in ({"financialStatus": "pending"}, {"financialStatus": "paid", "fulfillmentStatus": "unfulfilled"})),
    "/customer/v1/shipping/shipments?needsAction=true&limit=1",
]  # fmt: skip


class Page(Struct, frozen=True):
    title: str
    path: str
    """From the environment on."""
    calls: list[str]
    """Asked for one after the other, as a program would; none where the API says nothing of the kind."""
    max_ms: float | None = None
    """A budget of its own, where one is promised."""

    @property
    def beside(self) -> str:
        return " + ".join(f"`{name_call(call)}`" for call in self.calls)


class Talk(Struct, frozen=True):
    """Conversations of the shop."""

    ticket_ids: list[str]
    customer_ids: list[str]
    """Of the tickets."""
    words: list[str]
    """Of its messages, the common ones first."""


def build_pages(shop: Shop, talk: Talk, turn: int) -> list[Page]:
    """The same pages at every turn, about somebody else."""
    order, customer = shop.order_ids[turn % len(shop.order_ids)], shop.customer_ids[turn % len(shop.customer_ids)]
    name = shop.names[turn % len(shop.names)]
    deep = shop.orders // ROWS // 10
    return [
        Page("home", "", HOME, max_ms=30),
        _list("orders", "/orders", {}),
        _list("orders, page 2", "/orders", {"page": "2"}),
        _list("orders, a tenth of the way down", "/orders", {"page": str(deep)}),
        _list("orders, filtered", "/orders", FILTER),
        _list("orders, a name searched for", "/orders", {"search": name}),
        Page("one order", f"/orders/{order}",
             [f"/customer/v1/orders/{order}", f"/customer/v1/shipping/shipments?orderId={order}&limit=10"]),
        _list("customers", "/customers", {}),
        _list("customers, a name searched for", "/customers", {"search": name}),
        Page("one customer", f"/customers/{customer}",
             [f"/customer/v1/customers/{customer}", f"/customer/v1/orders?customerId={customer}&limit=10",
              f"/customer/v1/loyalty/customers/{customer}/wallet",
              f"/customer/v1/loyalty/customers/{customer}/timeline?limit=20"]),
        _list("products", "/products", {}),
        _list("shipments", "/shipments", {}, "/shipping/shipments"),
        _list("wallets", "/loyalty", {}, "/customers"),
        Page("agents of a month", f"/reports/agents?{urlencode({'from': MONTH[0], 'to': MONTH[1]})}", [
            f"/messaging/v1/analytics/agents?startAt={MONTH[0]}T00:00:00Z&endAt={MONTH[1]}T23:59:59.999999Z"]),
        *_list_inbox(talk, name, turn),
    ]  # fmt: skip


def _list_inbox(talk: Talk, name: str, turn: int) -> list[Page]:
    """The queue, a conversation, and searches."""
    queue = [*INBOX, _list_tickets(WAITING), _list_tickets(ANSWERED)]
    everybody = [_list_tickets(query | {"status": "active"}) for query in (WAITING, ANSWERED)]
    ticket, customer = talk.ticket_ids[turn % len(talk.ticket_ids)], talk.customer_ids[turn % len(talk.ticket_ids)]
    conversation = [
        f"{TICKETS}/{ticket}",
        *(f"/messaging/v1/{name}?limit=100" for name in ("macros", "saved-replies", "templates")),
        f"/customer/v1/customers/{customer}",
        f"/customer/v1/orders?customerId={customer}&limit=5",
        f"/customer/v1/loyalty/customers/{customer}/wallet",
        _list_tickets({"customerId": customer, "limit": "10"}),
    ]
    common, uncommon = talk.words[turn % 20], talk.words[-1 - turn % 40]
    searches = {
        "a name": name,
        "a common word": common,
        "an uncommon word": uncommon,
        "a number": f"inv-{100 + turn * 97}",
        "the end of a phone number": f"{10_000 + turn * 397:06d}",
        "several common words": f"{common} {talk.words[20 + turn % 20]}",
        "several uncommon words": f"{uncommon} {talk.words[-41 - turn % 40]}",
    }
    return [
        Page("inbox", "/inbox?view=unassigned", queue, max_ms=30),
        Page("inbox, all active", "/inbox?view=all", [*INBOX, *everybody], max_ms=30),
        Page("inbox, resolved", "/inbox?view=resolved", [*INBOX, _list_tickets(RESOLVED)]),
        Page("inbox, a conversation", f"/inbox/{ticket}?view=unassigned", [*queue, *conversation], max_ms=30),
        *(
            Page(f"inbox, {what} searched for", f"/inbox?{urlencode({'search': words})}",
                 [*INBOX, f"{TICKETS}/search?{urlencode({'query': words})}"], max_ms=50)
            for what, words in searches.items()
        ),
    ]  # fmt: skip


def _list_tickets(query: dict[str, str]) -> str:
    return f"{TICKETS}?{urlencode(query)}"


OVERVIEW = Page("overview of 30 days", "/reports?days=30", [])
BREAKDOWNS = [
    Page(f"{days} days by {group}", f"/reports/breakdown?{urlencode({'by': group, 'days': days})}", [])
    for days, group in ((30, "products"), (30, "channels"), (30, "carriers"), (365, "channels"), (365, "carriers"))
]
"""A year by products has too many orders."""


def _list(title: str, page: str, query: dict[str, str], call: str = "") -> Page:
    asked = f"?{urlencode(query)}" if query else ""
    return Page(title, page + asked, [f"/customer/v1{call or page}?{urlencode(query | {'limit': str(ROWS)})}"])


def name_call(call: str) -> str:
    """A call without its base, its ids and its query."""
    path = call.partition("?")[0].split("/")[3:]
    return "/" + "/".join("{id}" if "_01" in step else step for step in path)
