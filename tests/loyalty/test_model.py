"""Random earning, spending, holding and waiting, held against the rules in memory; after every step all must agree."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_key
from tests.loyalty.model import Order, Wallet, add_months, worth_of

POINTS = st.integers(1, 60) | st.just(10)
HOURS = st.sampled_from([1, 24 * 12, 24 * 25, 24 * 31, 24 * 40])
TTL = st.sampled_from([600, 5400, 2_000_000])
TOTALS = st.sampled_from([5_000, 10_000, 25_000, 99_000, 100_000, 250_000])
TIERS = st.sampled_from([{}, {10_000: 1}, {10_000: 1, 100_000: 15}, {2_500: 3}, {30_000: 7}])
PATCHES = st.sampled_from(
    [{"financialStatus": "paid"}, {"financialStatus": "paid"}, {"financialStatus": "pending"},
     {"financialStatus": "refunded"}, {"fulfillmentStatus": "fulfilled"}, {"fulfillmentStatus": "unfulfilled"},
     {"status": "cancelled"}, {"status": "refunded"}, {"status": "archived"}, {"status": "active"},
     {"financialStatus": "paid", "status": "archived"}, {"notes": "x"}, {"notes": "y"}]
)  # fmt: skip
PROGRAMS = st.fixed_dictionaries(
    {},
    optional={
        "earnOn": st.sampled_from(["paid", "fulfilled", "created"]),
        "rounding": st.sampled_from(["floor", "round", "ceil"]),
    },
)
WHO = st.integers(0, 1)

SetOffset = Callable[[timedelta], None]


class Ledger(RuleBasedStateMachine):
    api: httpx.Client
    set_offset: Callable[[timedelta], None]
    reservations = Bundle("reservations")
    orders = Bundle("orders")
    keys = Bundle("keys")

    @initialize()
    def start(self) -> None:
        self.offset = timedelta(0)
        type(self).set_offset(self.offset)
        made = [self.send("POST", "/customers", {"email": f"{uuid4().hex}@example.com"}) for _ in range(2)]
        self.customers = [answer.json()["data"]["id"] for answer in made]
        self.wallets = {id: Wallet() for id in self.customers}
        self.placed: dict[str, Order] = {}
        self.program: dict[str, Any] = {"enabled": True, "earnOn": "paid", "rounding": "floor", "expiryMonths": None}
        self.send("PUT", "/loyalty/settings", self.program)
        self.tiers: dict[int, int] = {10_000: 1}
        self.put_tiers(self.tiers)
        for who, months in product((0, 1), (None, 2, 1)):
            self.add(who, 20, months)

    def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.api.request(method, path, json=body)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def settled(self, customer: str) -> Wallet:
        wallet = self.wallets[customer]
        wallet.settle(self.now())
        return wallet

    @rule(change=PROGRAMS)
    def change_rules(self, change: dict[str, Any]) -> None:
        self.change_program(change)

    def change_program(self, change: dict[str, Any]) -> None:
        self.program |= change
        answer = self.send("PUT", "/loyalty/settings", change)
        assert answer.json()["data"] == {**self.program, "reservationTtlSeconds": 900}

    @rule(which=reservations, id=orders, patch=PATCHES)
    def switch_off(self, which: tuple[str, str], id: str, patch: dict[str, str]) -> None:
        """And on again, after everything was tried."""
        self.change_program({"enabled": False})
        self.adjust(0, 1, "add")
        self.reserve_points(0, 1, 600)
        self.close(which, "commit")
        self.change_order(id, patch)
        self.change_program({"enabled": True})

    @rule(tiers=TIERS)
    def change_tiers(self, tiers: dict[int, int]) -> None:
        self.tiers = tiers
        self.put_tiers(tiers)

    def put_tiers(self, tiers: dict[int, int]) -> None:
        body = {"tiers": [{"currencyAmount": amount, "points": points} for amount, points in tiers.items()]}
        assert self.send("POST", "/loyalty/point-conversion", body).json()["data"] == body

    @rule(target=keys, who=WHO, points=POINTS, months=st.sampled_from([None, 1, 2]))
    def add_points(self, who: int, points: int, months: int | None) -> Any:
        """Points of every age beside each other, so that it matters which are spent."""
        return self.add(who, points, months)

    def add(self, who: int, points: int, months: int | None) -> Any:
        self.change_program({"expiryMonths": months})
        return self.adjust(who, points, "add")

    @rule(target=keys, who=WHO, points=POINTS)
    def deduct(self, who: int, points: int) -> Any:
        return self.adjust(who, points, "deduct")

    def adjust(self, who: int, points: int, direction: str) -> Any:
        customer = self.customers[who]
        body = {"direction": direction, "points": points, "idempotencyKey": uuid4().hex}
        answer = self.send("POST", f"/loyalty/customers/{customer}/points/adjust", body)
        wallet = self.settled(customer)
        if not self.program["enabled"]:
            assert answer.json()["error"]["code"] == "LOYALTY_DISABLED"
            return multiple()
        if direction == "deduct" and wallet.available() < points:
            assert answer.json()["error"]["code"] == "INSUFFICIENT_POINTS"
            assert f"and {wallet.available()} are" in answer.json()["error"]["message"]
            return multiple()
        entry = answer.json()["data"]["ledger"]
        if direction == "add":
            wallet.add(points, self.expiry_of(entry))
        else:
            wallet.pick(points)
            wallet.burned += points
        assert entry["availableAfter"] == str(wallet.available())
        return customer, body, entry

    def expiry_of(self, entry: dict[str, Any]) -> datetime:
        return add_months(datetime.fromisoformat(entry["createdAt"]), self.program["expiryMonths"])

    @rule(known=keys)
    def repeat(self, known: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        customer, body, entry = known
        answer = self.send("POST", f"/loyalty/customers/{customer}/points/adjust", body)
        assert answer.json()["data"]["ledger"] == entry
        other = self.send("POST", f"/loyalty/customers/{customer}/points/adjust", {**body, "points": 99})
        assert other.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
        self.settled(customer)

    @rule(target=reservations, who=WHO, points=POINTS, ttl=TTL)
    def reserve(self, who: int, points: int, ttl: int) -> Any:
        return self.reserve_points(who, points, ttl)

    def reserve_points(self, who: int, points: int, ttl: int) -> Any:
        customer = self.customers[who]
        body = {"points": points, "ttlSeconds": ttl}
        answer = self.send("POST", f"/loyalty/customers/{customer}/reservations", body)
        wallet = self.settled(customer)
        if not self.program["enabled"] or wallet.available() < points:
            wanted = "INSUFFICIENT_POINTS" if self.program["enabled"] else "LOYALTY_DISABLED"
            assert answer.json()["error"]["code"] == wanted
            return multiple()
        made = answer.json()["data"]
        wallet.hold(made["id"], points, datetime.fromisoformat(made["expiresAt"]))
        return customer, made["id"]

    @rule(which=reservations, verbs=st.lists(st.sampled_from(["commit", "release"]), min_size=1, max_size=2))
    def close_once_or_twice(self, which: tuple[str, str], verbs: list[str]) -> None:
        for verb in verbs:
            self.close(which, verb)

    def close(self, which: tuple[str, str], verb: str) -> None:
        customer, id = which
        answer = self.send("POST", f"/loyalty/reservations/{id}/{verb}")
        wallet = self.settled(customer)
        if id not in wallet.holds or not self.program["enabled"]:
            wanted = "LOYALTY_DISABLED" if id in wallet.holds else "RESERVATION_CLOSED"
            assert answer.json()["error"]["code"] == wanted
            return
        assert answer.json()["data"]["status"] == {"commit": "committed", "release": "released"}[verb]
        if verb == "commit":
            wallet.spend(id)
        else:
            wallet.give_back(id)
            wallet.bury(self.now())

    @rule(target=orders, who=WHO, total=TOTALS)
    def place(self, who: int, total: int) -> Any:
        customer = self.customers[who]
        line = {"title": "Kopi", "price": total, "quantity": 1}
        made = self.send("POST", "/orders", {"customerId": customer, "lineItems": [line]}).json()["data"]
        self.placed[made["id"]] = Order(customer, total)
        self.earn(made["id"])
        return made["id"]

    @rule(id=orders, patch=PATCHES)
    def move_order(self, id: str, patch: dict[str, str]) -> None:
        self.change_order(id, patch)

    def change_order(self, id: str, patch: dict[str, str]) -> None:
        before = self.send("GET", f"/orders/{id}").json()["data"]
        answer = self.send("PUT", f"/orders/{id}", patch)
        assert answer.status_code in {200, 409}
        if answer.status_code == 200 and answer.json()["data"] != before:
            self.placed[id].take_over(answer.json()["data"])
            self.earn(id)

    def earn(self, id: str) -> None:
        """What an order's change does to its customer's points."""
        order = self.placed[id]
        trigger, worth = order.trigger, order.worth
        if trigger is None:
            trigger, worth = self.program["earnOn"], worth_of(order.total, self.tiers, self.program["rounding"])
        target = worth if order.counts(trigger) else 0
        if not self.program["enabled"]:
            target = min(target, order.posted)
        if target == order.posted:
            return
        order.trigger, order.worth = trigger, worth
        wallet = self.settled(order.customer)
        if target > order.posted:
            (entry,) = self.send("GET", f"/loyalty/customers/{order.customer}/history?limit=1").json()["data"]
            assert (entry["entryType"], entry["pointsDelta"]) == ("earn", str(target - order.posted))
            wallet.add(target - order.posted, self.expiry_of(entry), id)
            order.posted = target
        else:
            taken = min(order.posted - target, wallet.available())
            wallet.pick(taken, id)
            wallet.earned -= taken
            order.posted -= taken

    @rule(hours=HOURS)
    def wait(self, hours: int) -> None:
        self.move(timedelta(hours=hours))

    @rule(hours=HOURS)
    def turn_back(self, hours: int) -> None:
        """What is overdue is settled first: otherwise it would depend on the worker whether it was."""
        for customer in self.customers:
            body = {"direction": "add", "points": 1}
            entry = self.send("POST", f"/loyalty/customers/{customer}/points/adjust", body).json()["data"]["ledger"]
            self.settled(customer).add(1, self.expiry_of(entry))
        self.move(-min(timedelta(hours=hours), self.offset))

    def move(self, by: timedelta) -> None:
        self.offset = min(self.offset + by, timedelta(days=3600))
        type(self).set_offset(self.offset)

    @rule(which=consumes(reservations))
    def lose_sight(self, which: tuple[str, str]) -> None:
        """Of a reservation, which then only time closes."""

    @invariant()
    def every_wallet_is_what_the_rules_say(self) -> None:
        for customer, wallet in getattr(self, "wallets", {}).items():
            shown = self.send("GET", f"/loyalty/customers/{customer}/wallet").json()["data"]
            names = ("availablePoints", "reservedPoints", "lifetimeEarnedPoints", "lifetimeBurnedPoints")
            assert tuple(int(shown[name]) for name in names) == wallet.numbers(self.now())

    @invariant()
    def the_ledger_does_not_contradict_itself(self) -> None:
        assert self.send("GET", "/loyalty/reconciliation").json()["data"]["drift"] == []

    def teardown(self) -> None:
        """Time goes by, and shows which points were spent: those that are left expire by and by."""
        for customer in getattr(self, "customers", []):
            self.read_back(customer)
        for _ in range(3 if hasattr(self, "wallets") else 0):
            self.move(timedelta(days=25))
            self.every_wallet_is_what_the_rules_say()

    def read_back(self, customer: str) -> None:
        """The whole book: each entry goes on where the one before it ended."""
        entries: list[dict[str, Any]] = []
        before: str | None = ""
        while before is not None:
            query = f"?limit=9&before={before}" if before else "?limit=9"
            page = self.send("GET", f"/loyalty/customers/{customer}/history{query}").json()
            entries += page["data"]
            before = page["pagination"]["nextBefore"]
        entries.reverse()
        instants = [entry["occurredAt"] for entry in entries]
        assert instants == sorted(set(instants))
        total = 0
        for entry in entries:
            total += int(entry["pointsDelta"])
            assert int(entry["availableAfter"]) + int(entry["reservedAfter"]) == total


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.test)).raw


@pytest.fixture
def client(installation: Installation, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=installation.customer_base, headers={"x-api-key": key}, timeout=30) as opened:
        yield opened


def test_the_ledger_behaves_like_its_rules(
    client: httpx.Client, installation: Installation, company: Environments
) -> None:
    def move(offset: timedelta) -> None:
        asyncio.run(set_offset(installation.server.owner_url, company.test, offset))

    class OverHttp(Ledger):
        api = client
        set_offset = staticmethod(move)

    run_state_machine_as_test(
        OverHttp,
        settings=settings(
            max_examples=15,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def set_offset(url: str, company_id: int, offset: timedelta) -> None:
    """As the database's owner, in either direction."""
    async with connect(url) as owner:
        await owner.execute("UPDATE companies SET clock_offset = $2 WHERE company_id = $1", company_id, offset)
