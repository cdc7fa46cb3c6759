"""What is asked of each server."""

from itertools import count

from msgspec import Struct

from bench.api.data import Data, Shop
from bench.api.load import Load
from bench.ground import SeededCompany
from bench.servers import Server

FILTER = "?status=active&fulfillmentStatus=unfulfilled"
FREQUENT_PAIR = "su"
"""Starts a word of one name in ten."""

_loads = count(1)


class Request(Struct, frozen=True):
    path: str
    """From the resource's name on."""
    method: str = "GET"
    body: str = ""
    """@ stands for the number of the load, # for that of the request in it."""


class Scenario(Struct, frozen=True):
    name: str
    title: str
    shop: Shop
    requests: list[Request]
    """Sent in turn."""
    seconds: int
    is_read: bool = True
    for_one_caller_only: bool = False

    @property
    def company(self) -> SeededCompany:
        return self.shop.company

    def load(self, server: Server, seconds: int | None = None, connections: int = 16) -> Load:
        return Load(
            key=self.company.key,
            requests=build_lines(server, self.company, self.requests, next(_loads)),
            seconds=seconds or self.seconds,
            connections=connections,
        )


def build_scenarios(data: Data) -> list[Scenario]:
    many, few, busy = data.many, data.few, data.busy
    deep = many.orders // 20 // 10
    orders, customers = f"{many.orders:,}", f"{many.customers:,}"
    return [
        Scenario("get", "get one order", few, [Request(f"/orders/{id}") for id in few.order_ids], 1),
        Scenario("list", f"list 20 of {few.orders:,} orders", few, [Request("/orders")], 1),
        Scenario("list_many", f"list 20 of {orders} orders", many, [Request("/orders")], 1),
        Scenario("filter", f"list 20 of {few.orders:,} orders, filtered", few, [Request(f"/orders{FILTER}")], 1,
                 for_one_caller_only=True),
        Scenario("filter_many", f"list 20 of {orders} orders, filtered", many, [Request(f"/orders{FILTER}")], 1),
        Scenario("search", f"search a name in {orders} orders", many, _searches(many, "orders"), 1),
        Scenario("search_pair", f"search two letters in {orders} orders", many,
                 [Request(f"/orders?search={name[:2]}") for name in many.names], 1, for_one_caller_only=True),
        Scenario("search_frequent_pair", f"search the most frequent two letters in {orders} orders", many,
                 [Request(f"/orders?search={FREQUENT_PAIR}")], 1, for_one_caller_only=True),
        Scenario("deep", f"page {deep:,} of {orders} orders", many, [Request(f"/orders?page={deep}")], 1),
        Scenario("create", "create an order", busy, [_create(id) for id in busy.customer_ids], 2, is_read=False),
        Scenario("update", "update an order", busy, [_update(id) for id in busy.order_ids], 2, is_read=False),
        Scenario("customer_get", "get one customer", few, [Request(f"/customers/{id}") for id in few.customer_ids], 1),
        Scenario("customer_list", f"list 20 of {few.customers:,} customers", few, [Request("/customers")], 1),
        Scenario("customer_search", f"search a name in {customers} customers", many, _searches(many, "customers"), 1),
    ]  # fmt: skip


def build_lines(server: Server, company: SeededCompany, requests: list[Request], load: int) -> list[str]:
    """As wrk's script reads them. The ceiling knows no keys, so its paths name the company."""
    base = f"/{company.id}" if server.name == "ceiling" else "/customer/v1"
    return [f"{one.method} {base}{one.path} {one.body.replace('@', str(load))}" for one in requests]


def _searches(shop: Shop, resource: str) -> list[Request]:
    return [Request(f"/{resource}?search={name.replace(' ', '+')}") for name in shop.names]


def _create(customer_id: str) -> Request:
    line = '{"title":"Kopi Gayo 250 g","price":125000,"quantity":2}'
    return Request("/orders", "POST", f'{{"customerId":"{customer_id}","lineItems":[{line}]}}')


def _update(order_id: str) -> Request:
    return Request(f"/orders/{order_id}", "PUT", '{"notes":"Change # of load @."}')
