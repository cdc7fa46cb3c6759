"""The table of a shipment's statuses and the moves between them. Pure: no database.

The tests walk this table, and the manual prints it.
"""

from typing import Literal

Status = Literal[
    "draft", "awaiting", "booking", "booking_unknown", "booking_failed",
    "confirmed", "scheduled", "awaiting_dropoff", "finding_driver", "driver_assigned", "picking_up",
    "picked_up", "in_transit", "out_for_delivery", "on_hold", "delivery_failed",
    "delivered", "returning", "returned", "cancelling", "cancelled", "cancelled_by_business",
    "no_driver", "rejected", "lost",
]  # fmt: skip

Group = Literal["pending", "accepted", "in_delivery", "delivered", "returned", "cancelled", "failed"]

Who = Literal["A", "C", "R", "S", "L"]

WHO: dict[Who, str] = {
    "A": "somebody, through the API, the console or a command",
    "C": "the carrier, by a callback or when it is asked",
    "R": "the carrier, when it says that it looks for another driver",
    "S": "Sapa, with the outcome of a booking or a cancellation",
    "L": "somebody by hand, where no carrier's API stands behind it (custom, parcel_carrier)",
}

GROUPS: dict[Group, tuple[Status, ...]] = {
    "pending": ("draft", "awaiting", "booking", "booking_unknown", "booking_failed"),
    "accepted": ("confirmed", "scheduled", "awaiting_dropoff", "finding_driver", "driver_assigned", "picking_up"),
    "in_delivery": ("picked_up", "in_transit", "out_for_delivery", "on_hold", "delivery_failed"),
    "delivered": ("delivered",),
    "returned": ("returning", "returned"),
    "cancelled": ("cancelling", "cancelled", "cancelled_by_business"),
    "failed": ("no_driver", "rejected", "lost"),
}
GROUP_OF: dict[str, Group] = {status: group for group, members in GROUPS.items() for status in members}
STATUSES: tuple[str, ...] = tuple(GROUP_OF)

TERMINAL = frozenset({"delivered", "returned", "cancelled", "cancelled_by_business", "lost"})
"""No further event is expected; the table lists what a carrier may still send."""

REBOOKABLE = frozenset({"booking_failed", "no_driver", "rejected", "cancelled", "cancelled_by_business"})
"""A new booking may be made, under a new reference."""

BOOKABLE = frozenset({"draft", "awaiting"}) | REBOOKABLE
EDITABLE = frozenset({"draft", "awaiting", "booking_failed", "no_driver", "rejected"})
GONE = frozenset({"cancelled", "cancelled_by_business"})
ACCEPTED = frozenset(GROUPS["accepted"])
UNDER_WAY = frozenset({"picked_up", "in_transit", "out_for_delivery", "delivery_failed", "delivered"})
"""A shipment in one of these has been picked up."""

NOT_BOOKED_YET = frozenset({"booking", "booking_unknown", "booking_failed"})
TROUBLED = frozenset({"no_driver", "rejected", "lost"})

_ACCEPTED = " ".join(GROUPS["accepted"])
_IN_DELIVERY = " ".join(GROUPS["in_delivery"])
_RETURN = "returning returned lost"
_CARRIED = f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled no_driver rejected"
_NEW_DRIVER = "finding_driver driver_assigned picking_up"

# A carrier that reports only its present status may be polled at any point, so intermediate statuses, failures
# included, may be missing.
ROWS: dict[Status, dict[Who, str]] = {
    "draft": {"A": "awaiting booking cancelled", "L": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled"},
    "awaiting": {"A": "booking cancelled"},
    "booking": {"S": f"{_CARRIED} booking_failed booking_unknown", "C": _CARRIED},
    "booking_unknown": {"S": f"{_CARRIED} booking_failed", "C": _CARRIED, "A": "confirmed booking_failed cancelled"},
    "booking_failed": {"A": "awaiting booking cancelled", "S": _CARRIED, "C": _CARRIED},
    "confirmed": {
        "C": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "A": "cancelling",
        "L": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "scheduled": {
        "C": f"finding_driver driver_assigned picking_up {_IN_DELIVERY} delivered {_RETURN} no_driver rejected"
        " cancelled",
        "A": "cancelling",
        "L": "",
    },
    "awaiting_dropoff": {
        "C": f"{_IN_DELIVERY} delivered {_RETURN} rejected cancelled",
        "A": "cancelling",
        "L": "",
    },
    "finding_driver": {
        "C": f"driver_assigned picking_up {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "A": "cancelling",
        "L": "",
    },
    "driver_assigned": {
        "C": f"picking_up finding_driver {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "A": "cancelling",
        "L": "",
    },
    "picking_up": {
        "C": f"driver_assigned finding_driver {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "A": "cancelling",
        "L": "",
    },
    "picked_up": {
        "C": f"in_transit out_for_delivery on_hold delivery_failed delivered {_RETURN} cancelled",
        "R": _NEW_DRIVER,
        "L": "",
    },
    "in_transit": {
        "C": f"out_for_delivery on_hold delivery_failed delivered {_RETURN} cancelled",
        "R": _NEW_DRIVER,
        "L": "",
    },
    "out_for_delivery": {
        "C": f"in_transit on_hold delivery_failed delivered {_RETURN} cancelled",
        "R": _NEW_DRIVER,
        "L": "",
    },
    "on_hold": {
        "C": f"picked_up in_transit out_for_delivery delivery_failed delivered {_RETURN} cancelled {_NEW_DRIVER}"
        " no_driver rejected",
        "A": "cancelling",
        "L": "",
    },
    "delivery_failed": {"C": f"out_for_delivery in_transit on_hold delivered {_RETURN} cancelled", "L": ""},
    "delivered": {"C": "returning", "L": ""},
    # Some carriers never report the arrival of a return; the person who receives it does.
    "returning": {"C": "returned on_hold delivered lost", "A": "returned", "L": ""},
    "cancelling": {
        "S": f"cancelled cancelled_by_business {_ACCEPTED} on_hold no_driver rejected",
        "C": f"cancelled cancelled_by_business picked_up in_transit out_for_delivery on_hold delivery_failed delivered"
        f" {_RETURN} no_driver rejected",
    },
    "cancelled": {"A": "awaiting booking", "C": "picked_up in_transit out_for_delivery delivered"},
    "cancelled_by_business": {"A": "awaiting booking", "C": "picked_up in_transit out_for_delivery delivered"},
    "no_driver": {
        "A": "awaiting booking cancelling cancelled",
        "C": f"{_NEW_DRIVER} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "rejected": {
        "A": "awaiting booking cancelling cancelled",
        "C": f"{_NEW_DRIVER} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "returned": {},
    "lost": {},
}
"""The statuses that each actor may move a shipment to. An empty L allows what C allows."""

MOVES: dict[str, dict[Who, frozenset[str]]] = {
    status: {
        who: frozenset((targets or (row["C"] if who == "L" else "")).split()) - {status} for who, targets in row.items()
    }
    for status, row in ROWS.items()
}


def is_allowed(status: str, to: str, who: Who) -> bool:
    """A reassignment ("R") also allows everything that the carrier ("C") may do."""
    row = MOVES[status]
    return to in row.get(who, ()) or (who == "R" and to in row.get("C", ()))


def list_next(status: str, who: Who) -> list[str]:
    """In the usual order of a shipment's life."""
    return [to for to in STATUSES if is_allowed(status, to, who)]


def print_table() -> str:
    """The table as Markdown, for the manual."""
    lines = ["| from | group | to |", "|---|---|---|"]
    for status in STATUSES:
        moves = [f"{who}: {', '.join(list_next(status, who))}" for who in WHO if MOVES[status].get(who)]
        lines.append(f"| `{status}` | {GROUP_OF[status]} | {'<br>'.join(moves) or '–'} |")
    return "\n".join(lines)
