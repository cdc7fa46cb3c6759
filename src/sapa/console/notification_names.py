"""How pages name a parcel's steps, and what became of a notification."""

from sapa.notifications.types import NotificationStatus, Step

STEP_NAMES: dict[Step, str] = {
    "booked": "Courier booked",
    "picked_up": "Picked up",
    "out_for_delivery": "Out for delivery",
    "on_hold": "On hold",
    "delivery_failed": "Delivery failed",
    "delivered": "Delivered",
    "returning": "Going back",
    "returned": "Returned",
}
STATUS_NAMES: dict[NotificationStatus, str] = {
    "queued": "waiting to be sent",
    "sending": "being sent",
    "sent": "sent",
    "skipped": "not sent",
    "failed": "failed",
    "unknown": "not certain",
}
