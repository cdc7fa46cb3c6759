"""Random orders and changes over HTTP, compared with a small model: states, totals, stock, lists and events agree."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import product
from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

from sapa.db.pool import open_database
from tests import depth
from tests.conftest import TLS, Installation
from tests.factories import make_company, make_key

Order = dict[str, Any]
FIELDS = {
    "status": ["active", "archived", "cancelled", "refunded"],
    "fulfillmentStatus": ["unfulfilled", "fulfilled"],
    "financialStatus": ["pending", "paid", "refunded"],
}
MOVING = {"updatedAt", "lineItems", "payments", "refunds", "fulfillments", "totalPaid", "totalRefunded", "outstanding"}
"""What follows the statuses; another model knows how."""
PRICES = st.sampled_from(["0.1", "0.25", "19.99", "150000", "1999999.99"])
MOVES = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()})


class StoredModel(msgspec.Struct):
    """An order of the model."""

    body: Order
    units: int
    before_archive: str | None = None
    restocked: bool = False


def move(stored: StoredModel, patch: Order) -> Order | None:
    """The three statuses after a change, or None when it must be refused; written from the rules, one by one."""
    now: dict[str, str] = {name: stored.body[name] for name in FIELDS}
    names = ["fulfillmentStatus", "financialStatus", "status"] if now["status"] == "active" else list(FIELDS)
    for name in names:
        target = patch.get(name, now[name])
        if target == now[name]:
            continue
        if name == "financialStatus" and target == patch.get("status") == "refunded":
            continue
        if not is_allowed(now, name, target, stored.before_archive):
            return None
        now[name] = target
        if (name, target) == ("status", "refunded"):
            now["financialStatus"] = "refunded"
    return now if all(now[name] == value for name, value in patch.items()) else None


def is_allowed(now: dict[str, str], name: str, target: str, before_archive: str | None) -> bool:
    if name == "fulfillmentStatus":
        return now["status"] == "active"
    if name == "financialStatus":
        return (now[name], target) in {("pending", "paid"), ("paid", "pending"), ("paid", "refunded")}
    match now["status"], target:
        case "active", "cancelled":
            return now["fulfillmentStatus"] == "unfulfilled"
        case "active", _:
            return True
        case "cancelled", "refunded":
            return now["financialStatus"] != "pending"
        case (("cancelled" | "refunded"), "archived"):
            return True
        case "archived", _:
            return target == before_archive or (before_archive, target) == ("active", "refunded")
    return False


class Orders(RuleBasedStateMachine):
    installation: Installation
    existing = Bundle("existing")

    @initialize(stock=st.integers(0, 12))
    def open_shop(self, stock: int) -> None:
        self.company_id, key = run(self._open())
        self.api = httpx.Client(
            base_url=self.installation.customer_base, headers={"x-api-key": key}, timeout=120, verify=TLS
        )
        self.model: dict[str, StoredModel] = {}
        self.stock = stock
        self.events: Counter[tuple[str, str]] = Counter()
        variants = [{"title": "M", "price": 75000.5, "inventoryQuantity": stock}]
        response = self.api.post("/products", json={"name": "Kopi", "variants": variants})
        self.product = response.json()["data"]
        self.events["product.created", self.product["id"]] += 1

    async def _open(self) -> tuple[int, str]:
        async with open_database(self.installation.server.app_url) as database:
            company = await make_company(database)
            return company.live, (await make_key(database, company.live)).raw

    @rule(target=existing, units=st.integers(0, 4), price=PRICES, quantity=st.integers(1, 3))
    def place(self, units: int, price: str, quantity: int) -> Any:
        lines: list[Order] = [{"title": "Gula", "price": float(price), "quantity": quantity}]
        if units:
            lines.append({"productVariantId": self.product["variants"][0]["id"], "quantity": units})
        response = self.api.post("/orders", json={"lineItems": lines})
        if units > self.stock:
            assert (response.status_code, response.json()["error"]["code"]) == (409, "INSUFFICIENT_STOCK")
            return multiple()
        assert response.status_code == 201, response.text
        made = response.json()["data"]
        total = Decimal(price) * quantity + Decimal("75000.5") * units
        assert msgspec.json.decode(response.content, type=Envelope).data.total == total
        assert made["orderNumber"] == str(1001 + len(self.model))
        self.model[made["id"]] = StoredModel(made, units)
        self._stock(-units)
        self.events["order.created", made["id"]] += 1
        return made["id"]

    def _stock(self, change: int) -> None:
        self.stock += change
        self.events["product.updated", self.product["id"]] += bool(change)

    @rule(id=existing, patch=MOVES)
    def change(self, id: str, patch: Order) -> None:
        stored = self.model[id]
        response = self.api.put(f"/orders/{id}", json=patch)
        now = move(stored, patch)
        if now is None:
            assert (response.status_code, response.json()["error"]["code"]) == (409, "INVALID_TRANSITION"), (
                stored,
                patch,
            )
            return
        assert response.status_code == 200, (stored, patch, response.text)
        changed = response.json()["data"]
        assert {name: changed[name] for name in stored.body if name not in MOVING} == {
            name: value for name, value in {**stored.body, **now}.items() if name not in MOVING
        }
        if changed == stored.body:
            return
        self.events["order.updated", id] += 1
        if now["status"] != stored.body["status"]:
            stored.before_archive = stored.body["status"] if now["status"] == "archived" else None
        if now["status"] in {"cancelled", "refunded"} and not stored.restocked:
            self._stock(stored.units)
            stored.restocked = True
        stored.body = changed

    @rule(id=existing, notes=st.sampled_from(["a", "b", None]))
    def note(self, id: str, notes: str | None) -> None:
        stored = self.model[id]
        changed = self.api.put(f"/orders/{id}", json={"notes": notes}).json()["data"]
        assert changed == {**stored.body, "notes": notes, "updatedAt": changed["updatedAt"]}
        self.events["order.updated", id] += notes != stored.body["notes"]
        stored.body = changed

    @rule()
    def look_at_the_shelf(self) -> None:
        variants = self.api.get(f"/products/{self.product['id']}").json()["data"]["variants"]
        assert variants[0]["inventoryQuantity"] == self.stock

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        try:
            self.look_at_the_shelf()
            self._compare_lists()
            self._compare_events()
        finally:
            self.api.close()

    def _compare_lists(self) -> None:
        orders = sorted(
            (stored.body for stored in self.model.values()),
            key=lambda order: (order["createdAt"], order["id"]),
            reverse=True,
        )
        for values in product(*([None, *choices] for choices in FIELDS.values())):
            query = {name: value for name, value in zip(FIELDS, values, strict=True) if value}
            page = self.api.get("/orders", params={**query, "limit": 100}).json()
            fitting = [order for order in orders if query.items() <= order.items()]
            assert (page["meta"]["total"], page["data"]) == (len(fitting), fitting), query

    def _compare_events(self) -> None:
        recorded = run(self._read_events())
        assert Counter((kind, resource) for kind, resource, _ in recorded) == +self.events
        last = {resource: msgspec.json.decode(body) for _, resource, body in recorded}
        assert {id: last[id] for id in self.model} == {id: stored.body for id, stored in self.model.items()}
        assert last[self.product["id"]]["variants"][0]["inventoryQuantity"] == self.stock

    async def _read_events(self) -> list[tuple[str, str, bytes]]:
        async with open_database(self.installation.server.app_url) as database, database.connection() as db:
            rows = await db.fetch(
                "SELECT kind, resource_id, body FROM events WHERE company_id = $1 ORDER BY number", self.company_id
            )
        return [tuple(row) for row in rows]


class Money(msgspec.Struct):
    total: Decimal


class Envelope(msgspec.Struct):
    data: Money


def run(work: Any) -> Any:
    """Runs a coroutine from a synchronous test."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def test_orders_behave_like_their_model(installation: Installation) -> None:
    class OverHttp(Orders):
        pass

    OverHttp.installation = installation
    run_state_machine_as_test(
        OverHttp,
        settings=settings(
            max_examples=depth.examples(15),
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
