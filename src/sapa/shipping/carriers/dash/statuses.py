"""Dash Electric's statuses in ours. An unknown status is recorded without effect."""

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
"""The status that a delivery returns to when another driver takes over, however far it was."""


def find_status(word: str, was_picked_up: bool) -> str | None:
    """A failure after pickup is a return to the sender."""
    status = BY_WORD.get(word.upper())
    return "returning" if status == "rejected" and was_picked_up else status
