"""What random tests of the ledger have in common: two customers, a clock, calls one by one or at once, and the rules in
memory beside the real API; after every step all must agree."""

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import permutations, product
from typing import Any
from uuid import uuid4

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.conftest import TLS
from tests.loyalty.model import Step, Wallet, World, add_months, code_of, data_of

WHO = st.integers(0, 1)
POINTS = st.integers(1, 60) | st.just(10)
MONTHS = st.sampled_from([None, 1, 2])
WAITS = st.sampled_from([timedelta(minutes=16)] + [timedelta(hours=n) for n in (1, 24 * 12, 24 * 25, 24 * 31, 24 * 40)])

ENTRIES = {
    "reserved": {"redeem_reserve"},
    "committed": {"redeem_commit"},
    "released": {"redeem_release"},
    "failed": {"redeem_release", "redeem_reversal"},
}
"""The entry type of each final status of a reservation or a redemption."""


class Machine(RuleBasedStateMachine):
    api: httpx.Client
    set_offset: Callable[[timedelta], None]
    world: World

    @initialize()
    def start(self) -> None:
        self.offset = timedelta(0)
        type(self).set_offset(self.offset)
        made = [self.send("POST", "/customers", {"email": f"{uuid4().hex}@example.com"}) for _ in range(2)]
        self.customers = [data_of(response)["id"] for response in made]
        self.world = World({id: Wallet() for id in self.customers})
        self.program: dict[str, Any] = {"enabled": True, "earnOn": "paid", "rounding": "floor", "expiryMonths": None}
        self.send("PUT", "/loyalty/settings", self.program)
        self.prepare()
        for who, months in product((0, 1), (None, 2, 1)):
            self.add(who, 20, months)

    def prepare(self) -> None:
        """Prepares more before the first step."""

    def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.api.request(method, path, json=body)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def perform(self, step: Step) -> Any:
        response = self.send("POST", step.path, step.body)
        self.world.settle(self.now())
        return step.replay(self.world, response)

    def perform_together(self, steps: Sequence[Step]) -> None:
        """Concurrently: some sequence of them must explain all responses and the ledger."""
        responses = asyncio.run(self.send_together(steps))
        instants = [self.instant_of(step, response) for step, response in zip(steps, responses, strict=True)]
        problems: list[str] = []
        for order in permutations(range(len(steps))):
            if not all(self.is_in_order(customer, order, steps, instants) for customer in self.customers):
                continue
            world = deepcopy(self.world)
            world.settle(self.now())
            try:
                for index in order:
                    steps[index].replay(world, responses[index])
            except AssertionError as error:
                problems.append(str(error))
                continue
            self.world = world
            return
        raise AssertionError(f"no order explains {[response.text for response in responses]}: {problems}")

    async def send_together(self, steps: Sequence[Step]) -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=self.api.base_url, headers=self.api.headers, timeout=120, verify=TLS
        ) as api:
            return list(await asyncio.gather(*(api.post(step.path, json=step.body) for step in steps)))

    def instant_of(self, step: Step, response: httpx.Response) -> str | None:
        """The instant of the call's entry; None for a call that was refused."""
        assert not response.is_server_error, response.text
        if response.is_error:
            return None
        data = data_of(response)
        if "ledger" in data:
            return str(data["ledger"]["occurredAt"])
        entries = self.send("GET", f"/loyalty/customers/{step.customer}/history?limit=100").json()["data"]
        found = [
            entry["occurredAt"]
            for entry in entries
            if entry["referenceId"] == data["id"] and entry["entryType"] in ENTRIES[data["status"]]
        ]
        assert len(found) == 1, f"{data} has {len(found)} entries"
        return str(found[0])

    def is_in_order(
        self, customer: str, order: Sequence[int], steps: Sequence[Step], instants: Sequence[str | None]
    ) -> bool:
        own = [instant for index in order if steps[index].customer == customer and (instant := instants[index])]
        return own == sorted(own)

    def change_program(self, change: dict[str, Any]) -> None:
        self.program |= change
        response = self.send("PUT", "/loyalty/settings", change)
        assert data_of(response) == {**self.program, "reservationTtlSeconds": 900}

    def add(self, who: int, points: int, months: int | None) -> Any:
        """Points of every age beside each other, so that it matters which are spent."""
        self.change_program({"expiryMonths": months})
        return self.perform(self.adjusting(who, points, "add"))

    def adjusting(self, who: int, points: int, direction: str) -> Step:
        customer = self.customers[who]
        body = {"direction": direction, "points": points, "idempotencyKey": uuid4().hex}

        def replay(world: World, response: httpx.Response) -> Any:
            wallet = world.wallets[customer]
            if not self.program["enabled"]:
                assert code_of(response) == "LOYALTY_DISABLED"
                return None
            if direction == "deduct" and wallet.available() < points:
                assert code_of(response) == "INSUFFICIENT_POINTS"
                assert f"has {wallet.available()} points available" in response.text
                return None
            entry = data_of(response)["ledger"]
            if direction == "add":
                wallet.add(points, self.expiry_of(entry))
            else:
                wallet.pick(points)
                wallet.burned += points
            assert entry["availableAfter"] == str(wallet.available())
            assert entry["reservedAfter"] == str(wallet.reserved())
            return customer, body, entry

        return Step(customer, f"/loyalty/customers/{customer}/points/adjust", body, replay)

    def expiry_of(self, entry: dict[str, Any]) -> datetime:
        return add_months(datetime.fromisoformat(entry["createdAt"]), self.program["expiryMonths"])

    @rule(by=WAITS)
    def wait(self, by: timedelta) -> None:
        self.move(by)

    @rule(by=WAITS)
    def turn_back(self, by: timedelta) -> None:
        """What is overdue is settled first: otherwise it would depend on the worker whether it was."""
        for who in (0, 1):
            self.perform(self.adjusting(who, 1, "add"))
        self.move(-min(by, self.offset))

    def move(self, by: timedelta) -> None:
        self.offset = min(self.offset + by, timedelta(days=3600))
        type(self).set_offset(self.offset)

    @invariant()
    def every_wallet_is_what_the_rules_say(self) -> None:
        for customer in getattr(self, "customers", []):
            shown = data_of(self.send("GET", f"/loyalty/customers/{customer}/wallet"))
            names = ("availablePoints", "reservedPoints", "lifetimeEarnedPoints", "lifetimeBurnedPoints")
            assert tuple(int(shown[name]) for name in names) == self.world.wallets[customer].numbers(self.now())

    @invariant()
    def the_ledger_does_not_contradict_itself(self) -> None:
        assert data_of(self.send("GET", "/loyalty/reconciliation"))["drift"] == []

    def teardown(self) -> None:
        """Advances the clock: which points expire shows which ones were spent."""
        if not hasattr(self, "world"):
            return
        for customer in self.customers:
            self.read_back(customer)
        for _ in range(3):
            self.move(timedelta(days=25))
            self.every_wallet_is_what_the_rules_say()

    def read_back(self, customer: str) -> None:
        """The whole ledger: each entry continues from the one before it."""
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
