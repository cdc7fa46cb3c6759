"""What an order costs, what is paid of it and what it does to stock and points, written a second time: from the rules,
with fractions and whole cents, and with nothing of the product."""

from fractions import Fraction
from math import floor
from typing import Any

from msgspec import Struct, field

Adjustment = tuple[str, str]
"""`("amount", "12.50")` or `("percentage", "10")`."""

TIERS = [(Fraction(10), 1), (Fraction(50), 7), (Fraction(200), 31)]
"""Points for each time that the amount fits; the highest that is reached applies."""


class Refused(Exception):
    """The step must be refused with this code."""


class ModelLine(Struct):
    price: int
    quantity: int
    is_variant: bool
    discount: Adjustment | None = None
    discount_cents: int = 0
    share: int = 0
    charged: int = 0
    fulfilled: int = 0
    refunded: int = 0
    id: str = ""

    @property
    def open(self) -> int:
        return max(0, self.quantity - self.fulfilled - self.refunded)

    @property
    def gone(self) -> int:
        """What its refunded units are charged."""
        return floor(Fraction(self.charged * self.refunded, self.quantity))

    def may_have(self, quantity: int) -> bool:
        if quantity > self.quantity:
            return self.fulfilled + self.refunded <= self.quantity
        return quantity >= self.quantity - self.open


class ModelOrder(Struct):
    """Cents throughout."""

    lines: list[ModelLine]
    discounts: list[Adjustment] = field(default_factory=list)
    shipping: list[tuple[str, Adjustment | None]] = field(default_factory=list)
    fees: list[str] = field(default_factory=list)
    taxes: list[tuple[str, str, bool]] = field(default_factory=list)
    total: int = 0
    subtotal: int = 0
    discount_total: int = 0
    shipping_total: int = 0
    shipping_charged: int = 0
    tax_total: int = 0
    payments: list[tuple[int, bool]] = field(default_factory=list)
    """Amount, and whether it was made by setting the status."""
    refunds: list[int] = field(default_factory=list)
    shipping_refunded: int = 0
    removed: int = 0
    taken: int = 0
    status: str = "active"
    by_hand: str = "pending"
    before_archive: str | None = None

    @property
    def paid(self) -> int:
        return sum(amount for amount, _ in self.payments)

    @property
    def refunded(self) -> int:
        return sum(self.refunds)

    @property
    def shipping_left(self) -> int:
        return max(0, self.shipping_charged - self.shipping_refunded)

    @property
    def owed(self) -> int:
        """Without what refunds took off it."""
        return self.total - self.removed

    @property
    def outstanding(self) -> int:
        return self.owed - (self.paid - self.refunded)

    @property
    def financial_status(self) -> str:
        if self.status_is("refunded") and not self.paid:
            return "refunded"
        if not self.paid:
            return self.by_hand if not self.owed else "pending"
        if self.refunded == self.paid:
            return "refunded"
        if self.refunded:
            return "partially_refunded"
        return "paid" if self.paid >= self.owed else "partially_paid"

    @property
    def fulfillment_status(self) -> str:
        done = any(line.fulfilled for line in self.lines) and not any(line.open for line in self.lines)
        return "fulfilled" if done else "unfulfilled"

    def status_is(self, status: str) -> bool:
        return (self.before_archive or self.status) == status

    @property
    def points(self) -> int:
        """Earned by what is paid and not refunded."""
        if self.status_is("cancelled") or self.status_is("refunded") or self.financial_status == "refunded":
            return 0
        amount = Fraction(self.paid - self.refunded, 100)
        reached = [(each, points) for each, points in TIERS if each <= amount]
        return floor(amount / reached[-1][0]) * reached[-1][1] if reached else 0


def cents(text: str) -> int:
    return int(Fraction(text) * 100)


def half_up(amount: Fraction) -> int:
    return floor(amount + Fraction(1, 2))


def part(adjustment: Adjustment, of: int) -> int:
    kind, text = adjustment
    return cents(text) if kind == "amount" else half_up(of * Fraction(text) / 100)


def by_largest_remainder(amount: int, weights: list[int]) -> list[int]:
    if not sum(weights):
        weights = [1] * len(weights)
    exact = [Fraction(amount * weight, sum(weights)) for weight in weights]
    parts = [floor(one) for one in exact]
    while sum(parts) < amount:
        gaps = [one - given for one, given in zip(exact, parts, strict=True)]
        parts[gaps.index(max(gaps))] += 1
    return parts


def price(order: ModelOrder) -> None:
    """Raises Refused when a discount is more than what it is taken from."""
    nets = []
    for line in order.lines:
        gross = line.price * line.quantity
        line.discount_cents = part(line.discount, gross) if line.discount else 0
        if line.discount_cents > gross:
            raise Refused("VALIDATION_ERROR")
        nets.append(gross - line.discount_cents)
    discount = sum(part(one, sum(nets)) for one in order.discounts)
    if discount > sum(nets):
        raise Refused("VALIDATION_ERROR")
    goods = []
    for line, net, share in zip(order.lines, nets, by_largest_remainder(discount, nets), strict=True):
        line.share = share
        goods.append(net - share)
    shipping = []
    for text, reduction in order.shipping:
        reduced = part(reduction, cents(text)) if reduction else 0
        if reduced > cents(text):
            raise Refused("VALIDATION_ERROR")
        shipping.append(cents(text) - reduced)
    added, order.tax_total = _tax(order, goods + shipping)
    for line, good, tax in zip(order.lines, goods, added, strict=False):
        line.charged = good + tax
    order.subtotal = sum(line.price * line.quantity for line in order.lines)
    order.discount_total = order.subtotal - sum(goods)
    order.shipping_total = sum(shipping)
    order.shipping_charged = sum(shipping) + sum(added[len(goods) :])
    order.total = sum(goods) + sum(shipping) + sum(map(cents, order.fees)) + sum(added)


def _tax(order: ModelOrder, bases: list[int]) -> tuple[list[int], int]:
    """What each line and shipping line is charged on top, and all taxes together."""
    rates = sum(Fraction(text) for kind, text, included in order.taxes if kind == "rate" and included)
    added, total = [0] * len(bases), 0
    for kind, text, included in order.taxes:
        if kind == "amount":
            if included and cents(text) > sum(bases):
                raise Refused("VALIDATION_ERROR")
            parts = by_largest_remainder(cents(text), bases)
        else:
            rate = Fraction(text)
            parts = [half_up(base * rate / (100 + rates) if included else base * rate / 100) for base in bases]
        total += sum(parts)
        if not included:
            added = [one + more for one, more in zip(added, parts, strict=True)]
    return added, total


def pay(order: ModelOrder, amount: int) -> None:
    if order.status_is("refunded"):
        raise Refused("INVALID_TRANSITION")
    if amount > order.outstanding:
        raise Refused("PAYMENT_EXCEEDS_OUTSTANDING")
    order.payments.append((amount, False))


def refund(order: ModelOrder, units: dict[int, int], restock: bool, shipping: int | None, amount: int | None) -> int:
    """Returns how many units went back to the shelf."""
    computed = 0
    for place, quantity in units.items():
        line = order.lines[place]
        if quantity > line.quantity - line.refunded:
            raise Refused("INVALID_TRANSITION")
        reached = floor(Fraction(line.charged * (line.refunded + quantity), line.quantity))
        computed += reached - floor(Fraction(line.charged * line.refunded, line.quantity))
    if shipping is not None:
        if shipping > order.shipping_left:
            raise Refused("INVALID_TRANSITION")
        computed += shipping
    sum_back = computed if amount is None else amount
    if not sum_back and not units:
        raise Refused("VALIDATION_ERROR")
    if sum_back > order.paid - order.refunded:
        raise Refused("REFUND_EXCEEDS_PAID")
    _give_back(order, sum_back)
    order.shipping_refunded += shipping or 0
    back = 0
    for place, quantity in units.items():
        order.lines[place].refunded += quantity
        if order.lines[place].is_variant:
            gone = min(quantity, order.taken)
            order.taken -= gone
            back += gone if restock else 0
    return back


def _give_back(order: ModelOrder, amount: int) -> None:
    order.removed += max(0, amount - max(0, -order.outstanding))
    order.refunds.append(amount)


def fulfil(order: ModelOrder, units: dict[int, int] | None) -> None:
    if order.status != "active":
        raise Refused("INVALID_TRANSITION")
    if units is None:
        units = {place: line.open for place, line in enumerate(order.lines) if line.open}
        if not units:
            raise Refused("INVALID_TRANSITION")
    if any(quantity > order.lines[place].open for place, quantity in units.items()):
        raise Refused("INVALID_TRANSITION")
    for place, quantity in units.items():
        order.lines[place].fulfilled += quantity


def edit(order: ModelOrder, quantities: list[int], more: list[ModelLine], shelf: int, **changes: Any) -> int:
    """A quantity of 0 removes the line. Returns the change of the shelf."""
    if order.status != "active":
        raise Refused("INVALID_TRANSITION")
    for line, quantity in zip(order.lines, quantities, strict=True):
        if not line.may_have(quantity):
            raise Refused("INVALID_TRANSITION")
    gone = sum(line.gone for line in order.lines)
    before = sum(line.quantity for line in order.lines if line.is_variant)
    for line, quantity in zip(order.lines, quantities, strict=True):
        if line.discount and line.discount[0] == "amount" and 0 < quantity < line.quantity:
            reduced = half_up(Fraction(cents(line.discount[1]) * quantity, line.quantity))
            line.discount = ("amount", str(Fraction(reduced, 100)))
        line.quantity = quantity
    order.lines = [line for line in order.lines if line.quantity] + more
    for name, value in changes.items():
        setattr(order, name, value)
    price(order)
    order.removed = max(0, order.removed + sum(line.gone for line in order.lines) - gone)
    if order.owed and not order.paid:
        order.by_hand = "pending"
    if order.removed > order.total:
        raise Refused("INVALID_TRANSITION")
    wanted = sum(line.quantity for line in order.lines if line.is_variant) - before
    if wanted > shelf:
        raise Refused("INSUFFICIENT_STOCK")
    moved = wanted if wanted > 0 else -min(-wanted, order.taken)
    order.taken += moved
    return -moved


def set_statuses(order: ModelOrder, patch: dict[str, str]) -> int:
    """Returns the change of the shelf."""
    steps = [_set_fulfilment, _set_payment, _set_status]
    if order.status != "active":
        steps = [_set_status, _set_fulfilment, _set_payment]
    back = sum(step(order, patch) for step in steps)
    now = {
        "status": order.status,
        "fulfillmentStatus": order.fulfillment_status,
        "financialStatus": order.financial_status,
    }
    if any(now[name] != value for name, value in patch.items()):
        raise Refused("INVALID_TRANSITION")
    return back


def _set_fulfilment(order: ModelOrder, patch: dict[str, str]) -> int:
    target = patch.get("fulfillmentStatus")
    is_partly = order.fulfillment_status == "unfulfilled" and any(line.fulfilled for line in order.lines)
    if target is None or (target == order.fulfillment_status and not (is_partly and order.status == "active")):
        return 0
    if order.status != "active":
        raise Refused("INVALID_TRANSITION")
    if target == "fulfilled":
        fulfil(order, None)
    else:
        for line in order.lines:
            line.fulfilled = 0
    return 0


def _set_payment(order: ModelOrder, patch: dict[str, str]) -> int:
    target, current = patch.get("financialStatus"), order.financial_status
    if target is None or target == current or target == patch.get("status") == "refunded":
        return 0
    is_voidable = not order.refunds and all(by_status for _, by_status in order.payments)
    allowed = {
        "pending": {"paid"},
        "partially_paid": {"paid", "refunded"} | ({"pending"} if is_voidable else set()),
        "paid": {"refunded"} | ({"pending"} if is_voidable else set()),
        "partially_refunded": {"refunded"},
        "refunded": set(),
    }
    if target not in allowed[current]:
        raise Refused("INVALID_TRANSITION")
    if target == "pending":
        order.payments.clear()
    elif target == "paid" and order.outstanding > 0:
        order.payments.append((order.outstanding, True))
    elif target == "refunded" and order.paid > order.refunded:
        _give_back(order, order.paid - order.refunded)
    order.by_hand = target
    return 0


def _set_status(order: ModelOrder, patch: dict[str, str]) -> int:
    target, now = patch.get("status"), order.status
    if target is None or target == now:
        return 0
    if not _is_allowed(order, target):
        raise Refused("INVALID_TRANSITION")
    if target == "refunded" and order.paid > order.refunded:
        _give_back(order, order.paid - order.refunded)
    order.before_archive = now if target == "archived" else None
    order.status = target
    back = 0
    if target in {"cancelled", "refunded"}:
        back, order.taken = order.taken, 0
    return back


def _is_allowed(order: ModelOrder, target: str) -> bool:
    match order.status, target:
        case "active", "cancelled":
            return not any(line.fulfilled for line in order.lines)
        case "active", _:
            return True
        case "cancelled", "refunded":
            return order.financial_status != "pending"
        case (("cancelled" | "refunded"), "archived"):
            return True
        case "archived", _:
            before = order.before_archive
            return target == before or (before, target) == ("active", "refunded")
    return False
