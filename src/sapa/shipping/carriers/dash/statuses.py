"""Dash Electric's words in ours. What is not here is kept and moves nothing."""

BY_WORD = {
    "QUEUEING": "scheduled",
    "ALLOCATING": "finding_driver",
    "PENDING_PICKUP": "driver_assigned",
    "PICKING_UP": "picking_up",
    "PENDING_DELIVERY": "picked_up",
    "IN_DELIVERY": "out_for_delivery",
    "COMPLETED": "delivered",
    "CANCELLED": "cancelled",
    "FAILED": "rejected",
    "IN_RETURN": "returning",
    "RETURNED": "returned",
}

REASSIGNED = "PENDING_PICKUP"
"""Where a delivery goes back to whenever another driver takes it over, however far it had come."""


def find_status(word: str, was_picked_up: bool) -> str | None:
    """What fails after the pick-up is on its way back to the sender."""
    status = BY_WORD.get(word.upper())
    return "returning" if status == "rejected" and was_picked_up else status
