"""Random steps: adjust, reserve and earn points."""

from datetime import datetime
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, multiple, rule

from tests.loyalty.machine import MONTHS, POINTS, WHO, Machine
from tests.loyalty.model import Order, Step, World, code_of, data_of, message_of, worth_of

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
CLOSED = {"commit": "committed", "release": "released"}
VERBS = st.sampled_from(sorted(CLOSED))


class Ledger(Machine):
    reservations = Bundle("reservations")
    orders = Bundle("orders")
    keys = Bundle("keys")

    def prepare(self) -> None:
        super().prepare()
        self.put_tiers({10_000: 1})

    @rule(change=PROGRAMS)
    def change_rules(self, change: dict[str, Any]) -> None:
        self.change_program(change)

    @rule(which=reservations, id=orders, patch=PATCHES)
    def switch_off(self, which: tuple[str, str], id: str, patch: dict[str, str]) -> None:
        """And on again, after everything was tried."""
        self.change_program({"enabled": False})
        for step in (self.adjusting(0, 1, "add"), self.reserving(0, 1, 600), self.closing(which, "commit")):
            self.perform(step)
        self.change_order(id, patch)
        self.change_program({"enabled": True})

    @rule(tiers=TIERS)
    def change_tiers(self, tiers: dict[int, int]) -> None:
        self.put_tiers(tiers)

    def put_tiers(self, tiers: dict[int, int]) -> None:
        self.tiers = tiers
        body = {"tiers": [{"currencyAmount": amount, "points": points} for amount, points in tiers.items()]}
        assert data_of(self.send("POST", "/loyalty/point-conversion", body)) == body

    @rule(target=keys, who=WHO, points=POINTS, months=MONTHS)
    def add_points(self, who: int, points: int, months: int | None) -> Any:
        return self.add(who, points, months)

    @rule(target=keys, who=WHO, points=POINTS)
    def deduct(self, who: int, points: int) -> Any:
        return self.perform(self.adjusting(who, points, "deduct")) or multiple()

    @rule(request=keys)
    def repeat(self, request: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        customer, body, entry = request
        path = f"/loyalty/customers/{customer}/points/adjust"
        assert data_of(self.send("POST", path, body))["ledger"] == entry
        assert code_of(self.send("POST", path, {**body, "points": 99})) == "IDEMPOTENCY_KEY_REUSED"
        self.world.settle(self.now())

    @rule(target=reservations, who=WHO, points=POINTS, ttl=TTL)
    def reserve(self, who: int, points: int, ttl: int) -> Any:
        return self.perform(self.reserving(who, points, ttl)) or multiple()

    def reserving(self, who: int, points: int, ttl: int) -> Step:
        customer = self.customers[who]

        def replay(world: World, response: httpx.Response) -> Any:
            wallet = world.wallets[customer]
            if not self.program["enabled"] or wallet.available() < points:
                assert code_of(response) == ("INSUFFICIENT_POINTS" if self.program["enabled"] else "LOYALTY_DISABLED")
                return None
            made = data_of(response)
            wallet.hold(made["id"], points, datetime.fromisoformat(made["expiresAt"]))
            return customer, made["id"]

        return Step(
            customer, f"/loyalty/customers/{customer}/reservations", {"points": points, "ttlSeconds": ttl}, replay
        )

    @rule(which=reservations, verbs=st.lists(VERBS, min_size=1, max_size=3))
    def close_again_and_again(self, which: tuple[str, str], verbs: list[str]) -> None:
        for verb in verbs:
            self.perform(self.closing(which, verb))

    def closing(self, which: tuple[str, str], verb: str) -> Step:
        customer, id = which

        def replay(world: World, response: httpx.Response) -> None:
            wallet = world.wallets[customer]
            if id not in wallet.holds or not self.program["enabled"]:
                assert code_of(response) == ("LOYALTY_DISABLED" if id in wallet.holds else "RESERVATION_CLOSED")
                assert id in wallet.holds or (id in wallet.spent) == ("committed" in message_of(response))
                return
            assert data_of(response)["status"] == CLOSED[verb]
            if verb == "commit":
                wallet.spend(id)
            else:
                wallet.return_points(id)
                wallet.expire_lots(self.now())

        return Step(customer, f"/loyalty/reservations/{id}/{verb}", None, replay)

    @rule(
        which=reservations,
        verbs=st.lists(VERBS, min_size=1, max_size=2),
        adjusted=st.lists(st.tuples(st.sampled_from(["add", "deduct"]), POINTS), min_size=1, max_size=2),
        reserved=st.lists(POINTS, max_size=1),
    )
    def all_at_once(
        self, which: tuple[str, str], verbs: list[str], adjusted: list[tuple[str, int]], reserved: list[int]
    ) -> None:
        """On the wallet of one reservation: closed, perhaps both ways, while other calls add, take and hold."""
        who = self.customers.index(which[0])
        steps = [self.closing(which, verb) for verb in verbs]
        steps += [self.adjusting(who, points, direction) for direction, points in adjusted]
        steps += [self.reserving(who, points, 5400) for points in reserved]
        self.perform_together(steps)

    @rule(target=orders, who=WHO, total=TOTALS)
    def place(self, who: int, total: int) -> Any:
        line = {"title": "Kopi", "price": total, "quantity": 1}
        made = data_of(self.send("POST", "/orders", {"customerId": self.customers[who], "lineItems": [line]}))
        self.world.orders[made["id"]] = Order(self.customers[who], total, made)
        self.earn(made["id"])
        return made["id"]

    @rule(id=orders, patch=PATCHES)
    def move_order(self, id: str, patch: dict[str, str]) -> None:
        self.change_order(id, patch)

    @rule(id=orders, times=st.integers(1, 3), spends=st.booleans())
    def pay_and_take_back(self, id: str, times: int, spends: bool) -> None:
        """Again and again, and perhaps all points are spent whenever there are some."""
        who = self.customers.index(self.world.orders[id].customer)
        for status in ("paid", "pending") * times + ("paid",):
            self.change_order(id, {"financialStatus": status})
            self.world.settle(self.now())
            if spends and (left := self.world.wallets[self.customers[who]].available()):
                self.perform(self.adjusting(who, left, "deduct"))

    def change_order(self, id: str, patch: dict[str, str]) -> None:
        response = self.send("PUT", f"/orders/{id}", patch)
        assert response.status_code in {200, 409}
        order = self.world.orders[id]
        if response.status_code == 200 and data_of(response) != order.shown:
            order.take_over(data_of(response))
            self.earn(id)

    def earn(self, id: str) -> None:
        """What an order's change does to its customer's points."""
        order = self.world.orders[id]
        trigger, worth = order.trigger, order.worth
        if trigger is None:
            trigger, worth = self.program["earnOn"], worth_of(order.total, self.tiers, self.program["rounding"])
        target = worth if order.counts(trigger) else 0
        if not self.program["enabled"]:
            target = min(target, order.posted)
        if target == order.posted:
            return
        order.trigger, order.worth = trigger, worth
        self.world.settle(self.now())
        wallet = self.world.wallets[order.customer]
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

    @rule(which=consumes(reservations))
    def lose_sight(self, which: tuple[str, str]) -> None:
        """Of a reservation, which then only time closes."""
