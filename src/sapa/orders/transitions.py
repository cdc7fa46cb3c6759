"""The transitions of an order's three statuses. Pure: no database."""

import msgspec
from msgspec import UNSET, Struct

from sapa.orders.types import FinancialStatus, FulfillmentStatus, InvalidTransition, OrderPatch, Status

NEXT: dict[Status, tuple[Status, ...]] = {
    "active": ("archived", "cancelled", "refunded"),
    "cancelled": ("archived", "refunded"),
    "refunded": ("archived",),
}
"""The transitions of each status. An archived order returns to its previous status."""

NEXT_PAYMENT: dict[FinancialStatus, tuple[FinancialStatus, ...]] = {
    "pending": ("paid",),
    "paid": ("pending", "refunded"),
    "refunded": (),
}

RESTOCKS = {"cancelled", "refunded"}


class OrderState(Struct, frozen=True):
    """An order's statuses, and what later transitions depend on."""

    status: Status
    fulfillment_status: FulfillmentStatus
    financial_status: FinancialStatus
    archived_from: Status | None
    restocked: bool

    @property
    def real_status(self) -> Status:
        """The status, or the one before the order was archived."""
        return self.archived_from or self.status

    @property
    def cell(self) -> str:
        """The counter's cell, as the database computes it."""
        return f"{self.status}/{self.fulfillment_status}/{self.financial_status}"


NEW = OrderState("active", "unfulfilled", "pending", archived_from=None, restocked=False)
"""The state of a new order."""


def apply_patch(state: OrderState, patch: OrderPatch) -> OrderState:
    """The state after the patch; raises InvalidTransition when the patch is not possible.

    Fulfilment and payment of an active order change before its status, so that one call can pay and archive it;
    otherwise they change after it, so that one call can unarchive and fulfil it.
    """
    steps = [_fulfil, _pay, _change_status] if state.status == "active" else [_change_status, _fulfil, _pay]
    for step in steps:
        state = step(state, patch)
    for name in ("status", "fulfillment_status", "financial_status"):
        if getattr(patch, name) not in {UNSET, getattr(state, name)}:
            raise InvalidTransition(_contradiction(state))
    return state


def list_next(state: OrderState) -> list[Status]:
    """The statuses that the order can move to now."""
    if state.status == "archived":
        before: Status = state.archived_from or "active"
        return [before, "refunded"] if before == "active" else [before]
    return [status for status in NEXT[state.status] if not _obstacle(state, status)]


def _obstacle(state: OrderState, status: Status) -> str | None:
    """What you have to do first, if a transition is possible only then."""
    if status == "cancelled" and state.status == "active" and state.fulfillment_status == "fulfilled":
        return "it is fulfilled; refund it, or set fulfillmentStatus to unfulfilled first"
    if status == "refunded" and state.status == "cancelled" and state.financial_status == "pending":
        return "it was not paid"
    return None


def _change_status(state: OrderState, patch: OrderPatch) -> OrderState:
    status = patch.status
    if status is UNSET or status == state.status:
        return state
    if status not in list_next(state):
        raise InvalidTransition(_refusal(state, status))
    return OrderState(
        status=status,
        fulfillment_status=state.fulfillment_status,
        financial_status="refunded" if status == "refunded" else state.financial_status,
        archived_from=state.status if status == "archived" else None,
        restocked=state.restocked or status in RESTOCKS,
    )


def _fulfil(state: OrderState, patch: OrderPatch) -> OrderState:
    target = patch.fulfillment_status
    if target is UNSET or target == state.fulfillment_status:
        return state
    if state.status != "active":
        raise InvalidTransition(
            f"fulfillmentStatus changes only while the order is active; it is {state.status}"
            f" and {state.fulfillment_status}."
        )
    return msgspec.structs.replace(state, fulfillment_status=target)


def _pay(state: OrderState, patch: OrderPatch) -> OrderState:
    target = patch.financial_status
    if target is UNSET or target == state.financial_status:
        return state
    if target == "refunded" and patch.status == "refunded":
        return state  # set together with the status
    if target not in NEXT_PAYMENT[state.financial_status]:
        allowed = " or ".join(NEXT_PAYMENT[state.financial_status]) or "nothing else"
        raise InvalidTransition(
            f"financialStatus cannot change from {state.financial_status} to {target}; it can change to {allowed}."
        )
    return msgspec.structs.replace(state, financial_status=target)


def _refusal(state: OrderState, status: Status) -> str:
    obstacle = _obstacle(state, status)
    return (
        f"status cannot change from {state.status} to {status}{': ' + obstacle if obstacle else ''};"
        f" it can change to {' or '.join(list_next(state))}."
    )


def _contradiction(state: OrderState) -> str:
    return (
        "These changes contradict each other: together they make the order"
        f" {state.status}, {state.fulfillment_status} and {state.financial_status}."
    )
