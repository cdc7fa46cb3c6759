"""What was paid and refunded of an order, and what is still to be paid. Pure: no database.

`outstanding` = total − removed − (paid − refunded). A refund first settles a negative outstanding amount; the rest of
it is taken off the total (removed).
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.http.errors import Invalid
from sapa.orders.pricing.arithmetic import MinorUnit, PricedOrder, build_unit_share
from sapa.orders.pricing.types import LineItem
from sapa.orders.settlement.types import (
    PAYMENT_ID,
    REFUND_ID,
    FinancialStatus,
    InvalidTransition,
    OrderBalance,
    OrderFull,
    Payment,
    PaymentExceedsOutstanding,
    PaymentIn,
    PaymentReferenceUsed,
    Refund,
    RefundExceedsPaid,
    RefundIn,
    RefundLine,
    RefundLineIn,
)
from sapa.values.money import BadMoney, parse_amount, shorten

MAX_PARTS = 500
"""Payments, refunds or fulfilments of one order; its row holds all of them."""

NOTHING = Decimal(0)
PARTS = ("goods", "shipping", "fees", "tax")
"""The parts of a total, in the order in which a refund without lines takes them off."""


class PlannedRefund(Struct, frozen=True):
    """A checked refund, and the parts of the total that it is for."""

    refund: Refund
    preferred: dict[str, Decimal]


def build_balance(total: Decimal) -> OrderBalance:
    """The balance of a new order."""
    return OrderBalance([], [], [], NOTHING, NOTHING, total, NOTHING, NOTHING, NOTHING, NOTHING)


def derive_financial_status(total: Decimal, balance: OrderBalance, current: FinancialStatus) -> FinancialStatus:
    """An order of which nothing was ever owed or paid keeps the status that it was given."""
    paid, refunded, owed = balance.total_paid, balance.total_refunded, total - balance.removed
    if not paid:
        return "pending" if owed else current
    if refunded:
        return "refunded" if refunded == paid else "partially_refunded"
    return "paid" if paid >= owed else "partially_paid"


def find_same_payment(balance: OrderBalance, body: PaymentIn) -> Payment | None:
    """The payment that was recorded with the same reference; raises PaymentReferenceUsed if it is another one."""
    for payment in balance.payments:
        if body.reference is not None and payment.reference == body.reference:
            if (payment.amount, payment.method) == (body.amount, body.method):
                return payment
            raise PaymentReferenceUsed(
                f"The order has the payment {payment.id} with the reference {body.reference!r}:"
                f" {payment.amount} by {payment.method}. Use another reference for another payment."
            )
    return None


def require_names(body: PaymentIn) -> None:
    for name in ("method", "reference"):
        text = getattr(body, name)
        if text is not None and not text.strip():
            raise Invalid.field(name, "must not be blank")


def build_payment(currency: str, body: PaymentIn, paid_at: str, now: str) -> Payment:
    amount = _parse_positive("amount", body.amount, currency)
    return Payment(PAYMENT_ID.new(), amount, body.method, body.reference, paid_at, now, None)


def require_outstanding(balance: OrderBalance, amount: Decimal) -> None:
    if amount > balance.outstanding:
        raise PaymentExceedsOutstanding(
            f"The payment is {amount}; the outstanding amount of the order is {max(balance.outstanding, NOTHING)}."
        )


def build_status_payment(balance: OrderBalance, now: str) -> Payment:
    """The payment of the outstanding amount, when somebody sets an order to paid."""
    return Payment(PAYMENT_ID.new(), balance.outstanding, None, None, now, now, None)


def add_payment(balance: OrderBalance, total: Decimal, payment: Payment) -> OrderBalance:
    require_room(balance.payments)
    return _settle(balance, total, payments=[*balance.payments, payment])


def is_voidable(balance: OrderBalance) -> bool:
    """Whether every payment was recorded by setting the status, and none of them was refunded."""
    return not balance.refunds and all(payment.method is None for payment in list_valid(balance.payments))


def void_payments(balance: OrderBalance, total: Decimal, now: str) -> OrderBalance:
    voided = [
        payment if payment.voided_at else msgspec.structs.replace(payment, voided_at=now)
        for payment in balance.payments
    ]
    return _settle(balance, total, payments=voided)


def plan_refund(currency: str, priced: PricedOrder, balance: OrderBalance, body: RefundIn, now: str) -> PlannedRefund:
    """Computes what the units were charged; raises RefundExceedsPaid, Invalid or InvalidTransition."""
    unit = MinorUnit(currency)
    lines = [_plan_line(unit, n, line, priced.line_items) for n, line in enumerate(body.line_items or ())]
    _refuse_repeated([line.id for line in body.line_items or ()])
    shipping = _plan_shipping(currency, priced, balance, body.shipping)
    computed = sum((line.amount for line, _ in lines), shipping)
    amount = computed if body.amount is None else _parse("amount", body.amount, currency)
    if not amount and not lines:
        raise Invalid.field("amount", "must be more than 0, unless lineItems has units to refund")
    if amount > balance.refundable:
        raise RefundExceedsPaid(
            f"The refund is {shorten(amount)}; {balance.refundable} was paid and not refunded yet."
            " Send an amount that is not more than that."
        )
    refund = Refund(
        id=REFUND_ID.new(),
        amount=shorten(amount),
        shipping=shipping,
        adjustment=shorten(amount - computed),
        line_items=[line for line, _ in lines],
        reason=body.reason,
        created_at=now,
    )
    shipping_tax = max(NOTHING, shipping - (priced.shipping_total - balance.removed_shipping))
    tax = sum((tax for _, tax in lines), shipping_tax)
    return PlannedRefund(refund, {"shipping": shipping, "tax": tax})


def plan_rest(balance: OrderBalance, now: str) -> PlannedRefund:
    """The refund of all that was paid and not refunded yet, when somebody sets an order to refunded."""
    rest = balance.refundable
    refund = Refund(REFUND_ID.new(), rest, NOTHING, rest, [], None, now)
    return PlannedRefund(refund, {})


def add_refund(balance: OrderBalance, priced: PricedOrder, planned: PlannedRefund) -> OrderBalance:
    require_room(balance.refunds)
    settled = max(NOTHING, -balance.outstanding)
    removed = _list_removed(balance)
    taken = _take_off(list_parts(priced), removed, max(NOTHING, planned.refund.amount - settled), planned.preferred)
    parts = {f"removed_{name}": shorten(removed[name] + taken[name]) for name in PARTS}
    return _settle(balance, priced.total, refunds=[*balance.refunds, planned.refund], **parts)


def fit_to(balance: OrderBalance, currency: str, before: PricedOrder, priced: PricedOrder) -> OrderBalance:
    """The balance of an order whose price changed; raises InvalidTransition when refunds took off more than that.

    Refunded units are gone: what they cost now is taken off, so that the customer owes or gets back only what the
    other units cost more or less than before.
    """
    goods, tax = _reprice_refunded(currency, before, priced)
    removed = max(NOTHING, balance.removed + goods + tax)
    if removed > priced.total:
        raise InvalidTransition(
            f"The order cannot cost {priced.total}: {shorten(removed)} of it was refunded. It must cost at least that."
        )
    parts, moved = list_parts(priced), {"goods": goods, "tax": tax}
    wanted = {name: amount + moved.get(name, NOTHING) for name, amount in _list_removed(balance).items()}
    fitting, left = {}, removed
    for name in PARTS:
        fitting[name] = max(NOTHING, min(wanted[name], parts[name], left))
        left -= fitting[name]
    rest = _take_off(parts, fitting, left, {})
    changes = {f"removed_{name}": shorten(fitting[name] + rest[name]) for name in PARTS}
    return _settle(balance, priced.total, **changes)


def _reprice_refunded(currency: str, before: PricedOrder, priced: PricedOrder) -> tuple[Decimal, Decimal]:
    """How much more the refunded units cost than before: the goods, and the taxes that prices do not include."""
    unit = MinorUnit(currency)
    lines = {line.id: line for line in before.line_items}
    goods = charged = 0
    for after in priced.line_items:
        if after.refunded_quantity:
            for line, sign in ((after, 1), (lines[after.id], -1)):
                units = line.quantity, 0, line.refunded_quantity
                goods += sign * build_unit_share(unit.count(line.total - line.discount_allocation), *units)
                charged += sign * build_unit_share(unit.count(line.charged), *units)
    return unit.amount(goods), unit.amount(charged - goods)


def list_parts(priced: PricedOrder) -> dict[str, Decimal]:
    return {
        "goods": priced.goods,
        "shipping": priced.shipping_total,
        "fees": priced.fee_total,
        "tax": priced.added_tax,
    }


def list_valid(payments: Sequence[Payment]) -> list[Payment]:
    return [payment for payment in payments if payment.voided_at is None]


def _settle(balance: OrderBalance, total: Decimal, **changes: object) -> OrderBalance:
    """The balance with the changes, and the amounts that follow from them."""
    changed: OrderBalance = msgspec.structs.replace(balance, **changes)
    paid = sum((payment.amount for payment in list_valid(changed.payments)), NOTHING)
    refunded = sum((refund.amount for refund in changed.refunds), NOTHING)
    return msgspec.structs.replace(
        changed,
        total_paid=shorten(paid),
        total_refunded=shorten(refunded),
        outstanding=shorten(total - changed.removed - (paid - refunded)),
    )


def _list_removed(balance: OrderBalance) -> dict[str, Decimal]:
    return {name: getattr(balance, f"removed_{name}") for name in PARTS}


def _take_off(
    parts: Mapping[str, Decimal], removed: Mapping[str, Decimal], amount: Decimal, preferred: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    """The amount over the parts of the total, none of them beyond what is left of it; preferred parts come first."""
    left = {name: max(NOTHING, parts[name] - removed[name]) for name in PARTS}
    taken = dict.fromkeys(PARTS, NOTHING)
    for name, most in [*preferred.items(), *left.items()]:
        part = min(amount, most, left[name] - taken[name])
        taken[name] += part
        amount -= part
    return taken


def _plan_line(
    unit: MinorUnit, index: int, body: RefundLineIn, lines: Sequence[LineItem]
) -> tuple[RefundLine, Decimal]:
    """The line, and the part of its amount that is a tax which the price does not include."""
    line = next((line for line in lines if line.id == body.id), None)
    if line is None:
        raise Invalid.field(f"lineItems[{index}].id", "is not the id of a line of this order")
    before, left = line.refunded_quantity, line.quantity - line.refunded_quantity
    if body.quantity > left:
        raise InvalidTransition(
            f"The line {line.id} has {left} units that are not refunded yet; {body.quantity} cannot be refunded."
        )
    charged = build_unit_share(unit.count(line.charged), line.quantity, before, body.quantity)
    goods = unit.count(line.total - line.discount_allocation)
    tax = charged - build_unit_share(goods, line.quantity, before, body.quantity)
    return RefundLine(line.id, body.quantity, unit.amount(charged), 0), unit.amount(max(0, tax))


def _plan_shipping(currency: str, priced: PricedOrder, balance: OrderBalance, amount: Decimal | None) -> Decimal:
    if amount is None:
        return NOTHING
    shipping = _parse("shipping", amount, currency)
    charged = sum((line.charged for line in priced.shipping_lines), NOTHING)
    refunded = sum((refund.shipping for refund in balance.refunds), NOTHING)
    left = max(NOTHING, shorten(charged - refunded))  # an edit may have lowered the charge since
    if shipping > left:
        raise InvalidTransition(f"{left} of the shipping is not refunded yet; {shipping} cannot be refunded.")
    return shipping


def _refuse_repeated(ids: Sequence[str]) -> None:
    for index, id in enumerate(ids):
        if id in ids[:index]:
            raise Invalid.field(f"lineItems[{index}].id", "is given twice; send each line once")


def require_room(parts: Sequence[Struct]) -> None:
    if len(parts) >= MAX_PARTS:
        raise OrderFull


def _parse_positive(field: str, amount: Decimal, currency: str) -> Decimal:
    parsed = _parse(field, amount, currency)
    if not parsed:
        raise Invalid.field(field, "must be more than 0")
    return parsed


def _parse(field: str, amount: Decimal, currency: str) -> Decimal:
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
