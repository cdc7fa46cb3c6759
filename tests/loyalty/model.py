"""The ledger's rules in memory, to compare the real ledger with."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

FOREVER = datetime.max.replace(tzinfo=UTC)


def add_months(instant: datetime, months: int | None) -> datetime:
    if months is None:
        return FOREVER
    year, month = divmod(instant.month - 1 + months, 12)
    year, month = instant.year + year, month + 1
    day = min(instant.day, calendar.monthrange(year, month)[1])
    return instant.replace(year=year, month=month, day=day)


@dataclass
class Lot:
    number: int
    remaining: int
    expires: datetime
    order: str | None
    held: int = 0


@dataclass
class Hold:
    expires: datetime
    parts: list[tuple[Lot, int]]


@dataclass
class Wallet:
    lots: list[Lot] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    spent: dict[str, Hold] = field(default_factory=dict)
    earned: int = 0
    burned: int = 0

    def available(self) -> int:
        return sum(lot.remaining for lot in self.lots)

    def reserved(self) -> int:
        return sum(lot.held for lot in self.lots)

    def numbers(self, now: datetime) -> tuple[int, int, int, int]:
        """As after a settlement now."""
        available = reserved = 0
        late = {id for id, hold in self.holds.items() if hold.expires <= now}
        for lot in self.lots:
            due = sum(n for id in late for part, n in self.holds[id].parts if part is lot)
            available += lot.remaining + due if lot.expires > now else 0
            reserved += lot.held - due
        return available, reserved, self.earned, self.earned - available - reserved

    def settle(self, now: datetime) -> None:
        for id in [id for id, hold in self.holds.items() if hold.expires <= now]:
            self.return_points(id)
        self.expire_lots(now)

    def expire_lots(self, now: datetime) -> None:
        for lot in self.lots:
            if lot.expires <= now:
                self.burned += lot.remaining
                lot.remaining = 0

    def add(self, points: int, expires: datetime, order: str | None = None) -> None:
        self.lots.append(Lot(len(self.lots), points, expires, order))
        self.earned += points

    def pick(self, points: int, order: str | None = None) -> list[tuple[Lot, int]]:
        parts = []
        queue = [lot for lot in self.lots if lot.remaining]
        queue.sort(key=lambda lot: (order is None or lot.order != order, lot.expires, lot.number))
        for lot in queue:
            part = min(lot.remaining, points)
            if part:
                parts.append((lot, part))
                lot.remaining -= part
                points -= part
        assert points == 0
        return parts

    def hold(self, id: str, points: int, expires: datetime) -> None:
        parts = self.pick(points)
        for lot, part in parts:
            lot.held += part
        self.holds[id] = Hold(expires, parts)

    def return_points(self, id: str) -> None:
        for lot, part in self.holds.pop(id).parts:
            lot.held -= part
            lot.remaining += part

    def spend(self, id: str) -> None:
        self.spent[id] = self.holds.pop(id)
        for lot, part in self.spent[id].parts:
            lot.held -= part
            self.burned += part

    def unspend(self, id: str) -> None:
        for lot, part in self.spent.pop(id).parts:
            lot.remaining += part
            self.burned -= part


@dataclass
class Order:
    customer: str
    total: int
    shown: dict[str, Any]
    real_status: str = "active"
    payment: str = "pending"
    fulfilment: str = "unfulfilled"
    trigger: str | None = None
    worth: int = 0
    posted: int = 0

    def take_over(self, response: dict[str, Any]) -> None:
        self.shown = response
        if response["status"] != "archived":
            self.real_status = response["status"]
        self.payment, self.fulfilment = response["financialStatus"], response["fulfillmentStatus"]

    def counts(self, trigger: str) -> bool:
        if self.real_status in {"cancelled", "refunded"} or self.payment == "refunded":
            return False
        return {"created": True, "paid": self.payment == "paid", "fulfilled": self.fulfilment == "fulfilled"}[trigger]


def worth_of(total: int, tiers: dict[int, int], rounding: str) -> int:
    reached = [amount for amount in tiers if amount <= total]
    if not reached:
        return 0
    amount = max(reached)
    whole, rest = divmod(total, amount)
    up = {"floor": False, "ceil": rest > 0, "round": 2 * rest >= amount}[rounding]
    return (whole + up) * tiers[amount]


@dataclass
class World:
    """The state of the model: two wallets and what belongs to them."""

    wallets: dict[str, Wallet]
    orders: dict[str, Order] = field(default_factory=dict)
    offered: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Redemptions as last returned."""

    def settle(self, now: datetime) -> None:
        for one in self.taken.values():
            if one["status"] == "reserved" and datetime.fromisoformat(one["reservedUntil"]) <= now:
                one["status"] = "expired"
        for wallet in self.wallets.values():
            wallet.settle(now)


@dataclass
class Step:
    """One call; applies its response to the model, or raises when the rules forbid it."""

    customer: str
    path: str
    body: Any
    replay: Callable[[World, httpx.Response], Any]


def data_of(response: httpx.Response) -> dict[str, Any]:
    assert response.is_success, response.text
    data: dict[str, Any] = response.json()["data"]
    return data


def code_of(response: httpx.Response) -> str:
    assert response.is_client_error, response.text
    return str(response.json()["error"]["code"])


def message_of(response: httpx.Response) -> str:
    return str(response.json()["error"]["message"])
