"""The main pages, each with the calls of the API that say the same."""

from urllib.parse import urlencode

from msgspec import Struct

from bench.api.data import Shop

ROWS = 25
FILTER = {"status": "active", "fulfillmentStatus": "unfulfilled"}
MONTH = ("2025-06-01", "2025-06-30")


class Page(Struct, frozen=True):
    title: str
    path: str
    """From the environment on."""
    calls: list[str]
    """Asked for one after the other, as a program would; none where the API says nothing of the kind."""

    @property
    def beside(self) -> str:
        return " + ".join(f"`{name_call(call)}`" for call in self.calls)


def build_pages(shop: Shop, turn: int) -> list[Page]:
    """The same pages at every turn, about somebody else."""
    order, customer = shop.order_ids[turn % len(shop.order_ids)], shop.customer_ids[turn % len(shop.customer_ids)]
    name = shop.names[turn % len(shop.names)]
    deep = shop.orders // ROWS // 10
    return [
        Page("home", "", [f"/customer/v1/orders/{order}"]),
        _list("orders", "/orders", {}),
        _list("orders, page 2", "/orders", {"page": "2"}),
        _list("orders, a tenth of the way down", "/orders", {"page": str(deep)}),
        _list("orders, filtered", "/orders", FILTER),
        _list("orders, a name searched for", "/orders", {"search": name}),
        Page("one order", f"/orders/{order}",
             [f"/customer/v1/orders/{order}", f"/customer/v1/shipping/shipments?orderId={order}&limit=10",
              f"/customer/v1/orders/{order}/history?limit=20"]),
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
    ]  # fmt: skip


OVERVIEW = Page("overview of 30 days", "/reports?days=30", [])


def _list(title: str, page: str, query: dict[str, str], call: str = "") -> Page:
    asked = f"?{urlencode(query)}" if query else ""
    return Page(title, page + asked, [f"/customer/v1{call or page}?{urlencode(query | {'limit': str(ROWS)})}"])


def name_call(call: str) -> str:
    """A call without its base, its ids and its query."""
    path = call.partition("?")[0].split("/")[3:]
    return "/" + "/".join("{id}" if "_01" in step else step for step in path)
