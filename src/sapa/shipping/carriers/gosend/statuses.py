"""GoSend's statuses in ours. An unknown status is recorded without effect."""

BY_WORD = {
    "confirmed": "finding_driver",
    "allocated": "driver_assigned",
    "out_for_pickup": "picking_up",
    "picked": "picked_up",
    "out_for_delivery": "out_for_delivery",
    "on_hold": "on_hold",
    "delivered": "delivered",
    "cancelled": "cancelled",
    "rejected": "rejected",
    "no_driver": "no_driver",
}


def find_status(word: str, was_picked_up: bool, is_handed_over: bool = False) -> str | None:
    """Rejected after pickup means returning, and returned once it was handed over."""
    status = BY_WORD.get(word.lower())
    if status == "rejected" and was_picked_up:
        return "returned" if is_handed_over else "returning"
    return status
