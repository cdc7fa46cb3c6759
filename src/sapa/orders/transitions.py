"""The transitions of an order's three statuses. Pure: no database."""

import msgspec
from msgspec import UNSET

from sapa.http.errors import Invalid
from sapa.orders.document import NewOrder
from sapa.orders.revision import OrderState, Revision
from sapa.orders.settlement.balance import (
    add_payment,
    add_refund,
    build_balance,
    build_status_payment,
    derive_financial_status,
    is_voidable,
    plan_rest,
    require_room,
    void_payments,
)
from sapa.orders.settlement.fulfilment import (
    build_fulfillment,
    cancel_fulfillments,
    derive_fulfillment_status,
    fulfil_lines,
    has_fulfilled,
    has_open,
    reopen_lines,
)
from sapa.orders.settlement.types import (
    FinancialStatus,
    Fulfillment,
    FulfillmentStatus,
    InvalidTransition,
    OrderBalance,
)
from sapa.orders.types import OrderPatch, Status

NEXT: dict[Status, tuple[Status, ...]] = {
    "active": ("archived", "cancelled", "refunded"),
    "cancelled": ("archived", "refunded"),
    "refunded": ("archived",),
}
"""The transitions of each status. An archived order returns to its previous status."""

NEXT_PAYMENT: dict[FinancialStatus, tuple[FinancialStatus, ...]] = {
    "pending": ("paid",),
    "partially_paid": ("paid", "pending", "refunded"),
    "paid": ("pending", "refunded"),
    "partially_refunded": ("refunded",),
    "refunded": (),
}

ROUTES = {"partially_paid": "POST /orders/{id}/payments", "partially_refunded": "POST /orders/{id}/refunds"}
"""Statuses that cannot be set, each with the endpoint that leads to it."""

RESTOCKS = {"cancelled", "refunded"}

NEW = OrderState("active", "unfulfilled", "pending", archived_from=None, restocked=False)
"""The state of a new order."""


def begin(new: NewOrder) -> Revision:
    """An order as it is when it is placed."""
    balance = build_balance(new.priced.total)
    return Revision(NEW, new.notes, new.shipping_address, new.tags, new.priced, balance, {})


def apply_statuses(revision: Revision, patch: OrderPatch, now: str) -> Revision:
    """The order after the patch's statuses; raises InvalidTransition when they are not possible.

    Fulfilment and payment of an active order change before its status, so that one call can pay and archive it;
    otherwise they change after it, so that one call can unarchive and fulfil it.
    """
    steps = [_fulfil, _pay, _change_status] if revision.state.status == "active" else [_change_status, _fulfil, _pay]
    for step in steps:
        revision = step(revision, patch, now)
    for name in ("status", "fulfillment_status", "financial_status"):
        if getattr(patch, name) not in {UNSET, getattr(revision.state, name)}:
            raise InvalidTransition(_contradiction(revision.state))
    return revision


def record_statuses(revision: Revision, now: str) -> Revision:
    """The order with the payments, refunds and fulfilments that its statuses say, if code of an earlier version set
    them and recorded none."""
    target = revision.state
    revision = derive_fulfilment(revision)
    is_possible = target.fulfillment_status == "unfulfilled" or has_open(revision.priced.line_items)
    if revision.state.fulfillment_status != target.fulfillment_status and is_possible:
        revision = _set_fulfilment(revision, target.fulfillment_status, now)
    if target.financial_status == "refunded":
        return _refund_rest(revision, now)
    if target.financial_status == "paid":
        return _pay_outstanding(revision, now)
    if target.financial_status == "pending" and is_voidable(revision.balance):
        return _with_payments(revision, void_payments(revision.balance, revision.priced.total, now), "pending")
    return with_balance(revision, revision.balance)


def list_next(revision: Revision) -> list[Status]:
    """The statuses that the order can move to now."""
    state = revision.state
    if state.status == "archived":
        before: Status = state.archived_from or "active"
        return [before, "refunded"] if before == "active" else [before]
    return [status for status in NEXT[state.status] if not _obstacle(revision, status)]


def with_balance(revision: Revision, balance: OrderBalance) -> Revision:
    """The order with another balance, and the financialStatus that follows from it. An order that was refunded without
    having been paid stays refunded."""
    status = revision.state.financial_status
    if balance.total_paid or revision.state.real_status != "refunded":
        status = derive_financial_status(revision.priced.total, balance, status)
    return msgspec.structs.replace(
        revision, balance=balance, state=msgspec.structs.replace(revision.state, financial_status=status)
    )


def with_fulfillment(revision: Revision, fulfillment: Fulfillment) -> Revision:
    """The order with units handed over, and the fulfillmentStatus that follows from them."""
    require_room(revision.balance.fulfillments)
    lines = fulfil_lines(revision.priced.line_items, fulfillment)
    fulfillments = [*revision.balance.fulfillments, fulfillment]
    return derive_fulfilment(
        msgspec.structs.replace(
            revision,
            priced=msgspec.structs.replace(revision.priced, line_items=lines),
            balance=msgspec.structs.replace(revision.balance, fulfillments=fulfillments),
        )
    )


def derive_fulfilment(revision: Revision) -> Revision:
    """The order with the fulfillmentStatus that follows from its lines."""
    status = derive_fulfillment_status(revision.priced.line_items)
    return msgspec.structs.replace(revision, state=msgspec.structs.replace(revision.state, fulfillment_status=status))


def _obstacle(revision: Revision, status: Status) -> str | None:
    """What you have to do first, if a transition is possible only then."""
    state = revision.state
    if status == "cancelled" and state.status == "active" and has_fulfilled(revision.priced.line_items):
        is_part = state.fulfillment_status == "unfulfilled"
        return (
            f"it is {'partly ' if is_part else ''}fulfilled; refund it, or set fulfillmentStatus to unfulfilled first"
        )
    if status == "refunded" and state.status == "cancelled" and state.financial_status == "pending":
        return "it was not paid"
    return None


def _change_status(revision: Revision, patch: OrderPatch, now: str) -> Revision:
    status, before = patch.status, revision.state
    if status is UNSET or status == before.status:
        return revision
    if status not in list_next(revision):
        raise InvalidTransition(_refusal(revision, status))
    if status == "refunded":
        revision = _refund_rest(revision, now)
    state = OrderState(
        status=status,
        fulfillment_status=revision.state.fulfillment_status,
        financial_status=revision.state.financial_status,
        archived_from=before.status if status == "archived" else None,
        restocked=before.restocked or status in RESTOCKS,
    )
    return msgspec.structs.replace(revision, state=state)


def _fulfil(revision: Revision, patch: OrderPatch, now: str) -> Revision:
    target, state = patch.fulfillment_status, revision.state
    is_partly = state.fulfillment_status == "unfulfilled" and has_fulfilled(revision.priced.line_items)
    if target is UNSET or (target == state.fulfillment_status and not (is_partly and state.status == "active")):
        return revision
    if state.status != "active":
        raise InvalidTransition(
            f"fulfillmentStatus changes only while the order is active; it is {state.status}"
            f" and {state.fulfillment_status}."
        )
    return _set_fulfilment(revision, target, now)


def _set_fulfilment(revision: Revision, target: FulfillmentStatus, now: str) -> Revision:
    """Fulfils all units of every line, or none."""
    lines, balance = revision.priced.line_items, revision.balance
    if target == "fulfilled":
        return with_fulfillment(revision, build_fulfillment(lines, None, None, now))
    fulfillments = cancel_fulfillments(balance.fulfillments, now)
    return derive_fulfilment(
        msgspec.structs.replace(
            revision,
            priced=msgspec.structs.replace(revision.priced, line_items=reopen_lines(lines)),
            balance=msgspec.structs.replace(balance, fulfillments=fulfillments),
        )
    )


def _pay(revision: Revision, patch: OrderPatch, now: str) -> Revision:
    target, current = patch.financial_status, revision.state.financial_status
    if target is UNSET or target == current:
        return revision
    if target == "refunded" and patch.status == "refunded":
        return revision  # set together with the status
    if route := ROUTES.get(target):
        raise Invalid.field("financialStatus", f"cannot be set to {target}; {route} records a part")
    allowed = [status for status in NEXT_PAYMENT[current] if status != "pending" or is_voidable(revision.balance)]
    if target not in allowed:
        raise InvalidTransition(
            f"financialStatus cannot change from {current} to {target}; it can change to"
            f" {' or '.join(allowed) or 'nothing else'}."
        )
    if target == "refunded":
        return _refund_rest(revision, now)
    if target == "pending":
        return _with_payments(revision, void_payments(revision.balance, revision.priced.total, now), target)
    return _pay_outstanding(revision, now)


def _pay_outstanding(revision: Revision, now: str) -> Revision:
    balance = revision.balance
    if balance.outstanding > 0:
        balance = add_payment(balance, revision.priced.total, build_status_payment(balance, now))
    return _with_payments(revision, balance, "paid")


def _refund_rest(revision: Revision, now: str) -> Revision:
    balance = revision.balance
    if balance.refundable:
        balance = add_refund(balance, revision.priced, plan_rest(balance, now))
    return _with_payments(revision, balance, "refunded")


def _with_payments(revision: Revision, balance: OrderBalance, status: FinancialStatus) -> Revision:
    """The order with a balance whose status was set: an order that owes nothing has no payments to derive it from."""
    return msgspec.structs.replace(
        revision, balance=balance, state=msgspec.structs.replace(revision.state, financial_status=status)
    )


def _refusal(revision: Revision, status: Status) -> str:
    obstacle = _obstacle(revision, status)
    return (
        f"status cannot change from {revision.state.status} to {status}{': ' + obstacle if obstacle else ''};"
        f" it can change to {' or '.join(list_next(revision))}."
    )


def _contradiction(state: OrderState) -> str:
    return (
        "These changes contradict each other: together they make the order"
        f" {state.status}, {state.fulfillment_status} and {state.financial_status}."
    )
