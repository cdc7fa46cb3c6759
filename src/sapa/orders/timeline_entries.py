"""The timeline entries of an order's changes. Pure: no database."""

from sapa.orders.revision import OrderState
from sapa.orders.types import Order
from sapa.timeline.actions import NewTimelineEntry


def build_entries(order: Order, before: OrderState | None, after: OrderState) -> list[NewTimelineEntry]:
    """None for an order without a customer. Archiving an order is internal and makes no entry."""
    customer_id = order.customer_id
    if customer_id is None:
        return []
    types = ["order_created"] if before is None else _list_types(before, after)
    log = f"order {order.order_number}: {order.total} {order.currency}"
    return [
        NewTimelineEntry(customer_id, type, edit_log=log, notes=order.notes if before is None else None)
        for type in types
    ]


def _list_types(before: OrderState, after: OrderState) -> list[str]:
    reached = {
        "order_paid": (before.financial_status, after.financial_status, "paid"),
        "order_fulfilled": (before.fulfillment_status, after.fulfillment_status, "fulfilled"),
        "order_cancelled": (before.real_status, after.real_status, "cancelled"),
        "order_refunded": (before.financial_status, after.financial_status, "refunded"),
    }
    return [type for type, (was, now, goal) in reached.items() if was != goal and now == goal]
