"""How an order's three statuses may move. Pure: no database."""

import msgspec
from msgspec import UNSET, Struct

from sapa.orders.types import FinancialStatus, FulfillmentStatus, InvalidTransition, OrderPatch, Status

NEXT: dict[Status, tuple[Status, ...]] = {
    "active": ("archived", "cancelled", "refunded"),
    "cancelled": ("archived", "refunded"),
    "refunded": ("archived",),
}
"""Where each status leads. An archived order goes back to where it came from."""

NEXT_PAYMENT: dict[FinancialStatus, tuple[FinancialStatus, ...]] = {
    "pending": ("paid",),
    "paid": ("pending", "refunded"),
    "refunded": (),
}

GIVES_STOCK_BACK = {"cancelled", "refunded"}


class OrderState(Struct, frozen=True):
    """Where an order stands, and what it has to remember for later moves."""

    status: Status
    fulfillment_status: FulfillmentStatus
    financial_status: FinancialStatus
    archived_from: Status | None
    restocked: bool

    @property
    def real_status(self) -> Status:
        """What it is, or was before it was archived."""
        return self.archived_from or self.status

    @property
    def cell(self) -> str:
        """The counter's cell, as the database computes it."""
        return f"{self.status}/{self.fulfillment_status}/{self.financial_status}"


NEW = OrderState("active", "unfulfilled", "pending", archived_from=None, restocked=False)
"""Where every order begins."""


def move(standing: OrderState, asked: OrderPatch) -> OrderState:
    """Where the order stands once all that was asked for is done; raises InvalidTransition when it cannot be done.

    Fulfilment and payment of an active order come before its status, so that it can be paid and archived at once;
    otherwise they come after it, so that it can be taken back from the archive and fulfilled at once.
    """
    steps = [_fulfil, _pay, _change_status] if standing.status == "active" else [_change_status, _fulfil, _pay]
    for step in steps:
        standing = step(standing, asked)
    for name in ("status", "fulfillment_status", "financial_status"):
        if getattr(asked, name) not in {UNSET, getattr(standing, name)}:
            raise InvalidTransition(_contradiction(standing))
    return standing


def list_next(standing: OrderState) -> list[Status]:
    """The statuses that the order can move to now."""
    if standing.status == "archived":
        before: Status = standing.archived_from or "active"
        return [before, "refunded"] if before == "active" else [before]
    return [status for status in NEXT[standing.status] if not _obstacle(standing, status)]


def _obstacle(standing: OrderState, status: Status) -> str | None:
    """What must be done before the order can take a status that it could take otherwise."""
    if status == "cancelled" and standing.status == "active" and standing.fulfillment_status == "fulfilled":
        return "it is fulfilled; refund it, or set fulfillmentStatus to unfulfilled first"
    if status == "refunded" and standing.status == "cancelled" and standing.financial_status == "pending":
        return "it was not paid"
    return None


def _change_status(standing: OrderState, asked: OrderPatch) -> OrderState:
    status = asked.status
    if status is UNSET or status == standing.status:
        return standing
    if status not in list_next(standing):
        raise InvalidTransition(_refusal(standing, status))
    return OrderState(
        status=status,
        fulfillment_status=standing.fulfillment_status,
        financial_status="refunded" if status == "refunded" else standing.financial_status,
        archived_from=standing.status if status == "archived" else None,
        restocked=standing.restocked or status in GIVES_STOCK_BACK,
    )


def _fulfil(standing: OrderState, asked: OrderPatch) -> OrderState:
    wanted = asked.fulfillment_status
    if wanted is UNSET or wanted == standing.fulfillment_status:
        return standing
    if standing.status != "active":
        raise InvalidTransition(
            f"fulfillmentStatus changes only while the order is active; it is {standing.status}"
            f" and {standing.fulfillment_status}."
        )
    return msgspec.structs.replace(standing, fulfillment_status=wanted)


def _pay(standing: OrderState, asked: OrderPatch) -> OrderState:
    wanted = asked.financial_status
    if wanted is UNSET or wanted == standing.financial_status:
        return standing
    if wanted == "refunded" and asked.status == "refunded":
        return standing  # comes with the status
    if wanted not in NEXT_PAYMENT[standing.financial_status]:
        allowed = " or ".join(NEXT_PAYMENT[standing.financial_status]) or "nothing else"
        raise InvalidTransition(
            f"financialStatus cannot change from {standing.financial_status} to {wanted}; it can change to {allowed}."
        )
    return msgspec.structs.replace(standing, financial_status=wanted)


def _refusal(standing: OrderState, status: Status) -> str:
    obstacle = _obstacle(standing, status)
    return (
        f"status cannot change from {standing.status} to {status}{': ' + obstacle if obstacle else ''};"
        f" it can change to {' or '.join(list_next(standing))}."
    )


def _contradiction(standing: OrderState) -> str:
    return (
        "What was asked for contradicts itself: together it makes the order"
        f" {standing.status}, {standing.fulfillment_status} and {standing.financial_status}."
    )
