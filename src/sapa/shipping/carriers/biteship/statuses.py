"""Biteship's statuses in ours. An unknown status is recorded without effect."""

import re

BY_WORD = {
    "confirmed": "confirmed",
    "scheduled": "scheduled",
    "allocated": "driver_assigned",
    "picking_up": "picking_up",
    "picked": "picked_up",
    "dropping_off": "out_for_delivery",
    "on_hold": "on_hold",
    "delivered": "delivered",
    "rejected": "rejected",
    "courier_not_found": "no_driver",
    "cancelled": "cancelled",
    "return_in_transit": "returning",
    "returned": "returned",
    "disposed": "lost",
}

_find_capitals = re.compile(r"(?<=[a-z])(?=[A-Z])")


def find_status(word: str | None) -> str | None:
    """Its documentation of orders writes `picking_up`, that of tracking writes `pickingUp`."""
    return BY_WORD.get(_find_capitals.sub("_", word or "").lower())
