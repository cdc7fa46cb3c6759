"""The timeline entries of an order's changes. Pure: no database."""

from datetime import datetime
from operator import attrgetter

from sapa.orders.revision import OrderState
from sapa.orders.types import Order
from sapa.timeline.actions import NewTimelineEntry


def build_entries(
    order: Order, before: OrderState | None, after: OrderState, at: datetime | None = None
) -> list[NewTimelineEntry]:
    """None for an order without a customer. Archiving an order is internal and makes no entry. `at` is when it happened
    if that was before now."""
    customer_id = order.customer_id
    if customer_id is None:
        return []
    types = ["order_created"] if before is None else _list_types(before, after)
    log = f"order {order.order_number}: {order.total} {order.currency}"
    return [
        NewTimelineEntry(customer_id, type, edit_log=log, notes=order.notes if before is None else None, at=at)
        for type in types
    ]


_REACHED = [
    ("order_paid", attrgetter("financial_status"), "paid"),
    ("order_fulfilled", attrgetter("fulfillment_status"), "fulfilled"),
    ("order_cancelled", attrgetter("real_status"), "cancelled"),
    ("order_refunded", attrgetter("financial_status"), "refunded"),
]


def _list_types(before: OrderState, after: OrderState) -> list[str]:
    return [type for type, get, goal in _REACHED if get(after) == goal and get(before) != goal]
