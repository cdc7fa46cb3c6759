"""Biteship's statuses in ours. An unknown status is recorded without effect."""

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
