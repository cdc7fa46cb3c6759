"""Random steps: create, change and delete rewards; redeem and end redemptions."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, invariant, multiple, rule

from tests.loyalty.machine import MONTHS, POINTS, WHO, Machine
from tests.loyalty.model import Step, World, code_of, data_of, message_of

COSTS = st.integers(1, 40)
CODES = st.none() | st.sampled_from(["lebaran", "LEBARAN", "kopi-1"])
VALID = {"NO_EXPIRATION": None, "SEVEN_DAYS": 7, "THIRTY_DAYS": 30, "NINETY_DAYS": 90}
PRESETS = st.sampled_from(sorted(VALID))
ENDED = {"commit": "committed", "release": "released", "fail": "failed"}
VERBS = st.sampled_from(sorted(ENDED))
LIVE = {"reserved", "committed"}
OF_THE_END = ("status", "committedAt", "expiresAt", "updatedAt")


class Redeeming(Machine):
    rewards = Bundle("rewards")
    redemptions = Bundle("redemptions")

    def prepare(self) -> None:
        super().prepare()
        self.mark = uuid4().hex[:8]
        """Before every code: the codes of an earlier run are still taken."""

    @rule(who=WHO, points=POINTS, months=MONTHS)
    def collect(self, who: int, points: int, months: int | None) -> None:
        self.add(who, points, months)

    @rule(target=rewards, cost=COSTS, preset=PRESETS)
    def offer(self, cost: int, preset: str) -> str:
        body = {"rewardName": f"R{cost}", "costToRedeem": cost, "discountType": "free_shipping"}
        made = data_of(self.send("POST", "/loyalty/reward-options", {**body, "expirationPreset": preset}))
        self.world.offered[made["id"]] = made
        return str(made["id"])

    @rule(id=rewards, cost=COSTS, preset=PRESETS)
    def change_offer(self, id: str, cost: int, preset: str) -> None:
        change = {"costToRedeem": cost, "rewardName": f"R{cost}", "expirationPreset": preset}
        response = self.send("PUT", f"/loyalty/reward-options/{id}", change)
        assert response.status_code == (200 if id in self.world.offered else 404)
        if id in self.world.offered:
            self.world.offered[id] = data_of(response)

    @rule(id=rewards)
    def withdraw(self, id: str) -> None:
        response = self.send("DELETE", f"/loyalty/reward-options/{id}")
        assert response.status_code == (204 if self.world.offered.pop(id, None) else 404)

    @rule(target=redemptions, who=WHO, id=rewards, code=CODES, error=st.sampled_from([0, 0, 0, 1]))
    def redeem(self, who: int, id: str, code: str | None, error: int) -> Any:
        return self.perform(self.taking(who, id, code, error)) or multiple()

    def taking(self, who: int, id: str, code: str | None, error: int = 0) -> Step:
        customer, offered = self.customers[who], self.world.offered.get(id)
        cost = int(offered["costToRedeem"]) + error if offered else 1
        body: dict[str, Any] = {
            "rewardOptionId": id,
            "rewardName": offered["rewardName"] if offered else "R",
            "pointsCost": cost,
            "voucherCode": code and f"{self.mark}-{code}",
            "idempotencyKey": uuid4().hex,
        }

        def replay(world: World, response: httpx.Response) -> Any:
            wallet = world.wallets[customer]
            if offered is None or error:
                assert code_of(response) == "VALIDATION_ERROR"
                return None
            if refusal := refusal_of(world, customer, cost, body["voucherCode"], self.program["enabled"]):
                assert code_of(response) == refusal
                return None
            made, entry = data_of(response)["redemption"], data_of(response)["ledger"]
            wallet.hold(made["id"], cost, datetime.fromisoformat(made["reservedUntil"]))
            assert entry["availableAfter"] == str(wallet.available())
            assert entry["reservedAfter"] == str(wallet.reserved())
            world.taken[made["id"]] = made
            return customer, body, made["id"]

        return Step(customer, f"/loyalty/customers/{customer}/redeem", body, replay)

    @rule(request=redemptions)
    def redeem_again(self, request: tuple[str, dict[str, Any], str]) -> None:
        customer, body, id = request
        again = data_of(self.send("POST", f"/loyalty/customers/{customer}/redeem", body))["redemption"]
        self.world.settle(self.now())
        assert (again["id"], again["status"]) == (id, self.world.taken[id]["status"])

    @rule(which=redemptions, verbs=st.lists(VERBS, min_size=1, max_size=3))
    def end_again_and_again(self, which: tuple[str, Any, str], verbs: list[str]) -> None:
        for verb in verbs:
            self.perform(self.ending(which, verb))

    def ending(self, which: tuple[str, Any, str], verb: str) -> Step:
        customer, _, id = which

        def replay(world: World, response: httpx.Response) -> None:
            wallet, was = world.wallets[customer], world.taken[id]
            if was["status"] != "reserved" and (was["status"], verb) != ("committed", "fail"):
                assert code_of(response) == "RESERVATION_CLOSED"
                assert was["status"] in message_of(response)
                return
            ended = data_of(response)
            if verb == "commit":
                wallet.spend(id)
            elif was["status"] == "committed":
                wallet.unspend(id)
            else:
                wallet.return_points(id)
            wallet.expire_lots(self.now())
            assert ended == {**was, **{name: ended[name] for name in OF_THE_END}}, "the rest is as it was redeemed"
            assert ended["status"] == ENDED[verb]
            assert ended["expiresAt"] == valid_until(ended)
            world.taken[id] = ended

        return Step(customer, f"/loyalty/redemptions/{id}/{verb}", {"reason": "Sold out"}, replay)

    @rule(
        which=redemptions,
        verbs=st.lists(VERBS, min_size=1, max_size=2),
        id=rewards,
        takers=st.lists(st.tuples(WHO, CODES), min_size=1, max_size=2),
    )
    def all_take_and_end_at_once(
        self, which: tuple[str, Any, str], verbs: list[str], id: str, takers: list[tuple[int, str | None]]
    ) -> None:
        steps = [self.ending(which, verb) for verb in verbs]
        self.perform_together(steps + [self.taking(who, id, code) for who, code in takers])

    @invariant()
    def every_redemption_is_what_the_rules_say(self) -> None:
        for customer in getattr(self, "customers", []):
            response = self.send("GET", f"/loyalty/customers/{customer}/redemptions?limit=100")
            summary = data_of(self.send("GET", f"/loyalty/customers/{customer}/redemptions/summary"))
            self.world.settle(self.now())
            own = [one for one in self.world.taken.values() if one["customerId"] == customer]
            own.sort(key=lambda one: str(one["createdAt"]), reverse=True)
            assert [(one["id"], one["status"]) for one in response.json()["data"]] == [
                (one["id"], one["status"]) for one in own
            ]
            for status in ("reserved", "committed", "released", "expired", "failed"):
                points = [int(one["pointsCost"]) for one in own if one["status"] == status]
                assert summary[status] == {"count": len(points), "points": str(sum(points))}

    @invariant()
    def redeemers_are_those_who_hold_or_spent(self) -> None:
        for id in self.world.offered if hasattr(self, "world") else ():
            found = self.send("GET", f"/loyalty/rewards/{id}/redeemers").json()["data"]
            self.world.settle(self.now())
            live = [one for one in self.world.taken.values() if one["rewardOptionId"] == id and one["status"] in LIVE]
            for redeemer in found:
                own = [one for one in live if one["customerId"] == redeemer["customerId"]]
                assert redeemer["redemptions"] == len(own)
                assert redeemer["points"] == str(sum(int(one["pointsCost"]) for one in own))
            assert {one["customerId"] for one in found} == {one["customerId"] for one in live}


def refusal_of(world: World, customer: str, cost: int, code: str | None, is_enabled: bool) -> str | None:
    if not is_enabled:
        return "LOYALTY_DISABLED"
    if world.wallets[customer].available() < cost:
        return "INSUFFICIENT_POINTS"
    taken = [one["voucherCode"].lower() for one in world.taken.values() if one["status"] in LIVE]
    return "VOUCHER_TAKEN" if code and code.lower() in taken else None


def valid_until(redemption: dict[str, Any]) -> str | None:
    days = VALID[redemption["expirationPreset"]]
    if redemption["committedAt"] is None or days is None:
        return None
    until = datetime.fromisoformat(redemption["committedAt"]) + timedelta(days=days)
    return until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
