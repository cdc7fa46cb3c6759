"""Random redeeming, ending and waiting, held against the rules in memory; after every step all must agree."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
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
from tests.loyalty.model import FOREVER, Wallet

WHO = st.integers(0, 1)
CODES = st.none() | st.sampled_from(["lebaran", "LEBARAN", "kopi-1"])
VALID = {"NO_EXPIRATION": None, "SEVEN_DAYS": 7, "THIRTY_DAYS": 30, "NINETY_DAYS": 90}


@dataclass
class Taken:
    """A redemption, as the rules have it."""

    customer: str
    shown: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.shown["status"])


class Redeeming(RuleBasedStateMachine):
    api: httpx.Client
    set_offset: Callable[[timedelta], None]
    rewards = Bundle("rewards")
    redemptions = Bundle("redemptions")
    keys = Bundle("keys")

    @initialize()
    def start(self) -> None:
        self.offset = timedelta(0)
        type(self).set_offset(self.offset)
        made = [self.send("POST", "/customers", {"email": f"{uuid4().hex}@example.com"}) for _ in range(2)]
        self.customers = [answer.json()["data"]["id"] for answer in made]
        self.wallets = {id: Wallet() for id in self.customers}
        self.offered: dict[str, dict[str, Any]] = {}
        self.taken: dict[str, Taken] = {}
        self.mark = uuid4().hex[:8]
        """Before every code: the codes of an earlier run are still taken."""
        for customer in self.customers:
            self.add(customer, 50)

    def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.api.request(method, path, json=body)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def add(self, customer: str, points: int) -> None:
        body = {"direction": "add", "points": points}
        assert self.send("POST", f"/loyalty/customers/{customer}/points/adjust", body).status_code == 200
        self.settle()
        self.wallets[customer].add(points, FOREVER)

    def settle(self) -> None:
        now = self.now()
        for one in self.taken.values():
            if one.status == "reserved" and datetime.fromisoformat(one.shown["reservedUntil"]) <= now:
                one.shown["status"] = "expired"
        for wallet in self.wallets.values():
            wallet.settle(now)

    @rule(who=WHO, points=st.integers(1, 40))
    def earn(self, who: int, points: int) -> None:
        self.add(self.customers[who], points)

    @rule(target=rewards, cost=st.integers(1, 40), preset=st.sampled_from(sorted(VALID)))
    def offer(self, cost: int, preset: str) -> str:
        body = {"rewardName": f"R{cost}", "costToRedeem": cost, "discountType": "free_shipping"}
        made = self.send("POST", "/loyalty/reward-options", {**body, "expirationPreset": preset}).json()["data"]
        self.offered[made["id"]] = made
        return str(made["id"])

    @rule(id=rewards, cost=st.integers(1, 40), preset=st.sampled_from(sorted(VALID)))
    def change_offer(self, id: str, cost: int, preset: str) -> None:
        change = {"costToRedeem": cost, "rewardName": f"R{cost}", "expirationPreset": preset}
        answer = self.send("PUT", f"/loyalty/reward-options/{id}", change)
        assert answer.status_code == (200 if id in self.offered else 404)
        if id in self.offered:
            self.offered[id] = answer.json()["data"]

    @rule(id=rewards)
    def withdraw(self, id: str) -> None:
        answer = self.send("DELETE", f"/loyalty/reward-options/{id}")
        assert answer.status_code == (204 if self.offered.pop(id, None) else 404)

    @rule(targets=(redemptions, keys), who=WHO, id=rewards, code=CODES, error=st.sampled_from([0, 0, 0, 1]))
    def redeem(self, who: int, id: str, code: str | None, error: int) -> Any:
        customer, offered = self.customers[who], self.offered.get(id)
        cost = int(offered["costToRedeem"]) + error if offered else 1
        body: dict[str, Any] = {
            "rewardOptionId": id,
            "rewardName": offered["rewardName"] if offered else "R",
            "pointsCost": cost,
            "voucherCode": code and f"{self.mark}-{code}",
            "idempotencyKey": uuid4().hex,
        }
        answer = self.send("POST", f"/loyalty/customers/{customer}/redeem", body)
        self.settle()
        refusal = self.refusal(customer, offered, cost, error, body["voucherCode"])
        if refusal is not None:
            assert answer.json()["error"]["code"] == refusal
            return multiple()
        data = answer.json()["data"]
        made = data["redemption"]
        self.wallets[customer].hold(made["id"], cost, datetime.fromisoformat(made["reservedUntil"]))
        assert data["ledger"]["availableAfter"] == str(self.wallets[customer].available())
        self.taken[made["id"]] = Taken(customer, made)
        return customer, body, made["id"]

    def refusal(
        self, customer: str, offered: dict[str, Any] | None, cost: int, error: int, code: str | None
    ) -> str | None:
        if offered is None or error:
            return "VALIDATION_ERROR"
        if self.wallets[customer].available() < cost:
            return "INSUFFICIENT_POINTS"
        taken = [one.shown["voucherCode"].lower() for one in self.taken.values() if one.status in LIVE]
        return "VOUCHER_TAKEN" if code and code.lower() in taken else None

    @rule(known=keys)
    def repeat(self, known: tuple[str, dict[str, Any], str]) -> None:
        customer, body, id = known
        answer = self.send("POST", f"/loyalty/customers/{customer}/redeem", body)
        self.settle()
        assert answer.json()["data"]["redemption"]["id"] == id
        assert answer.json()["data"]["redemption"]["status"] == self.taken[id].status

    @rule(which=redemptions, verb=st.sampled_from(["commit", "release"]))
    def end(self, which: tuple[str, dict[str, Any], str], verb: str) -> None:
        customer, _, id = which
        answer = self.send("POST", f"/loyalty/redemptions/{id}/{verb}")
        self.settle()
        one = self.taken[id]
        if one.status != "reserved":
            assert answer.json()["error"]["code"] == "RESERVATION_CLOSED"
            assert one.status in answer.json()["error"]["message"]
            return
        ended = answer.json()["data"]
        if verb == "commit":
            self.wallets[customer].spend(id)
            at, days = datetime.fromisoformat(ended["committedAt"]), VALID[ended["expirationPreset"]]
            until = ended["expiresAt"] and datetime.fromisoformat(ended["expiresAt"])
            assert until == (None if days is None else at + timedelta(days=days))
        else:
            self.wallets[customer].give_back(id)
        own = ("status", "committedAt", "expiresAt", "updatedAt")
        assert ended == {**one.shown, **{name: ended[name] for name in own}}, "the rest is as it was redeemed"
        assert ended["status"] == {"commit": "committed", "release": "released"}[verb]
        one.shown = ended

    @rule(minutes=st.sampled_from([1, 10, 16, 600]))
    def wait(self, minutes: int) -> None:
        self.offset += timedelta(minutes=minutes)
        type(self).set_offset(self.offset)

    @invariant()
    def every_redemption_is_what_the_rules_say(self) -> None:
        for customer in getattr(self, "customers", []):
            answer = self.send("GET", f"/loyalty/customers/{customer}/redemptions?limit=100")
            self.settle()
            own = [one.shown for one in self.taken.values() if one.customer == customer]
            assert [(one["id"], one["status"]) for one in answer.json()["data"]] == [
                (one["id"], one["status"]) for one in reversed(own)
            ]

    @invariant()
    def every_summary_and_wallet_adds_up(self) -> None:
        for customer, wallet in getattr(self, "wallets", {}).items():
            summary = self.send("GET", f"/loyalty/customers/{customer}/redemptions/summary").json()["data"]
            shown = self.send("GET", f"/loyalty/customers/{customer}/wallet").json()["data"]
            self.settle()
            own = [one.shown for one in self.taken.values() if one.customer == customer]
            for status in ("reserved", "committed", "released", "expired", "failed"):
                points = [int(one["pointsCost"]) for one in own if one["status"] == status]
                assert summary[status] == {"count": len(points), "points": str(sum(points))}
            assert (int(shown["availablePoints"]), int(shown["reservedPoints"])) == wallet.numbers(self.now())[:2]
            assert shown["reservedPoints"] == summary["reserved"]["points"]

    @invariant()
    def the_ledger_does_not_contradict_itself(self) -> None:
        assert self.send("GET", "/loyalty/reconciliation").json()["data"]["drift"] == []

    @invariant()
    def redeemers_are_those_who_hold_or_spent(self) -> None:
        for id in getattr(self, "offered", {}):
            found = self.send("GET", f"/loyalty/rewards/{id}/redeemers").json()["data"]
            self.settle()
            live = [one for one in self.taken.values() if one.shown["rewardOptionId"] == id and one.status in LIVE]
            for redeemer in found:
                own = [one.shown for one in live if one.customer == redeemer["customerId"]]
                assert redeemer["redemptions"] == len(own)
                assert redeemer["points"] == str(sum(int(one["pointsCost"]) for one in own))
            assert {one["customerId"] for one in found} == {one.customer for one in live}


LIVE = {"reserved", "committed"}


@pytest.fixture
async def key(database: Database, company: Environments) -> str:
    return (await make_key(database, company.test)).raw


@pytest.fixture
def client(installation: Installation, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=installation.customer_base, headers={"x-api-key": key}, timeout=30) as opened:
        yield opened


def test_redemptions_behave_like_their_rules(
    client: httpx.Client, installation: Installation, company: Environments
) -> None:
    def move(offset: timedelta) -> None:
        asyncio.run(set_offset(installation.server.owner_url, company.test, offset))

    class OverHttp(Redeeming):
        api = client
        set_offset = staticmethod(move)

    run_state_machine_as_test(
        OverHttp,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def set_offset(url: str, company_id: int, offset: timedelta) -> None:
    async with connect(url) as owner:
        await owner.execute("UPDATE companies SET clock_offset = $2 WHERE company_id = $1", company_id, offset)
