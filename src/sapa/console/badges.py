"""A status as a badge: its word, and the tone that says how it stands."""

from functools import cache

from markupsafe import Markup

from sapa.console.translations import translate

TONES = {
    "good": ("paid", "fulfilled", "delivered", "resolved", "active", "approved", "completed"),
    "todo": ("pending", "unfulfilled", "partially_paid", "awaiting"),
    "waiting": ("booking", "booking_unknown", "on_hold", "returning", "cancelling", "held", "retrying", "paused"),
    "bad": (
        "booking_failed", "delivery_failed", "no_driver", "rejected", "returned", "lost", "failed", "suspended",
        "revoked",
    ),
    "info": (
        "confirmed", "scheduled", "awaiting_dropoff", "finding_driver", "driver_assigned", "picking_up", "picked_up",
        "in_transit", "out_for_delivery",
    ),
}  # fmt: skip
"""What is in none of them is over: cancelled, refunded, archived, expired, draft."""
TONE_OF = {status: tone for tone, statuses in TONES.items() for status in statuses}


@cache
def build_badge(language: str, status: str, of: str = "") -> Markup:
    """`of` says whose status it is, where its word is another than elsewhere."""
    words = translate(language, f"{of} {status}" if of else status).replace("_", " ")
    tone = TONE_OF.get(status, "over")
    return Markup('<span class="state {}">{}</span>').format(tone, words[:1].upper() + words[1:])
