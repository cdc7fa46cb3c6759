"""The table of a shipment's statuses and the moves between them. Pure: no database.

The tests walk this table, and the manual prints it.
"""

from typing import Annotated, Literal

from sapa.values.enum_names import EnumName

Status = Annotated[
    Literal[
        "draft", "awaiting", "booking", "booking_unknown", "booking_failed",
        "confirmed", "scheduled", "awaiting_dropoff", "finding_driver", "driver_assigned", "picking_up",
        "picked_up", "in_transit", "out_for_delivery", "on_hold", "delivery_failed",
        "delivered", "returning", "returned", "cancelling", "cancelled", "cancelled_by_business",
        "no_driver", "rejected", "lost",
    ],
    EnumName("ShippingStatus"),
]  # fmt: skip

Group = Annotated[
    Literal["pending", "accepted", "in_delivery", "delivered", "returned", "cancelled", "failed"],
    EnumName("ShippingStatusGroup"),
]

Actor = Literal["caller", "carrier", "reassignment", "sapa", "manual"]

ACTORS: dict[Actor, str] = {
    "caller": "a caller, through the API, the console or a command",
    "carrier": "the carrier, by a callback or a poll",
    "reassignment": "the carrier, when it assigns another driver",
    "sapa": "Sapa, with the outcome of a booking or a cancellation",
    "manual": "a person, for providers without a carrier API",
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
CANCELLED = frozenset({"cancelled", "cancelled_by_business"})
ACCEPTED = frozenset(GROUPS["accepted"])
UNDER_WAY = frozenset({"picked_up", "in_transit", "out_for_delivery", "delivery_failed", "delivered"})
"""A shipment in one of these has been picked up."""

WITHOUT_CASH = frozenset({*GROUPS["returned"], *GROUPS["cancelled"], "lost"})
"""No cash is collected from its receiver any more."""

NOT_BOOKED_YET = frozenset({"booking", "booking_unknown", "booking_failed"})
FAILED = frozenset(GROUPS["failed"])

_ACCEPTED = " ".join(GROUPS["accepted"])
_IN_DELIVERY = " ".join(GROUPS["in_delivery"])
_RETURN = "returning returned lost"
_CARRIED = f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled no_driver rejected"
_NEW_DRIVER = "finding_driver driver_assigned picking_up"

# A carrier that reports only its present status may be polled at any point, so intermediate statuses, failures
# included, may be missing.
ROWS: dict[Status, dict[Actor, str]] = {
    "draft": {
        "caller": "awaiting booking cancelled",
        "manual": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "awaiting": {"caller": "booking cancelled"},
    "booking": {"sapa": f"{_CARRIED} booking_failed booking_unknown", "carrier": _CARRIED},
    "booking_unknown": {
        "sapa": f"{_CARRIED} booking_failed",
        "carrier": _CARRIED,
        "caller": "confirmed booking_failed cancelled",
    },
    "booking_failed": {"caller": "awaiting booking cancelled", "sapa": _CARRIED, "carrier": _CARRIED},
    "confirmed": {
        "carrier": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "caller": "cancelling",
        "manual": f"{_ACCEPTED} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "scheduled": {
        "carrier": f"finding_driver driver_assigned picking_up {_IN_DELIVERY} delivered {_RETURN} no_driver rejected"
        " cancelled",
        "caller": "cancelling",
        "manual": "",
    },
    "awaiting_dropoff": {
        "carrier": f"{_IN_DELIVERY} delivered {_RETURN} rejected cancelled",
        "caller": "cancelling",
        "manual": "",
    },
    "finding_driver": {
        "carrier": f"driver_assigned picking_up {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "caller": "cancelling",
        "manual": "",
    },
    "driver_assigned": {
        "carrier": f"picking_up finding_driver {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "caller": "cancelling",
        "manual": "",
    },
    "picking_up": {
        "carrier": f"driver_assigned finding_driver {_IN_DELIVERY} delivered {_RETURN} no_driver rejected cancelled",
        "caller": "cancelling",
        "manual": "",
    },
    "picked_up": {
        "carrier": f"in_transit out_for_delivery on_hold delivery_failed delivered {_RETURN} cancelled",
        "reassignment": _NEW_DRIVER,
        "manual": "",
    },
    "in_transit": {
        "carrier": f"out_for_delivery on_hold delivery_failed delivered {_RETURN} cancelled",
        "reassignment": _NEW_DRIVER,
        "manual": "",
    },
    "out_for_delivery": {
        "carrier": f"in_transit on_hold delivery_failed delivered {_RETURN} cancelled",
        "reassignment": _NEW_DRIVER,
        "manual": "",
    },
    "on_hold": {
        "carrier": f"picked_up in_transit out_for_delivery delivery_failed delivered {_RETURN} cancelled {_NEW_DRIVER}"
        " no_driver rejected",
        "caller": "cancelling",
        "manual": "",
    },
    "delivery_failed": {"carrier": f"out_for_delivery in_transit on_hold delivered {_RETURN} cancelled", "manual": ""},
    "delivered": {"carrier": "returning", "manual": ""},
    # Some carriers never report the arrival of a return; the person who receives it does.
    "returning": {"carrier": "returned on_hold delivered lost", "caller": "returned", "manual": ""},
    "cancelling": {
        "sapa": f"cancelled cancelled_by_business {_ACCEPTED} on_hold no_driver rejected",
        "carrier": "cancelled cancelled_by_business picked_up in_transit out_for_delivery on_hold delivery_failed"
        f" delivered {_RETURN} no_driver rejected",
    },
    "cancelled": {"caller": "awaiting booking", "carrier": "picked_up in_transit out_for_delivery delivered"},
    "cancelled_by_business": {
        "caller": "awaiting booking",
        "carrier": "picked_up in_transit out_for_delivery delivered",
    },
    "no_driver": {
        "caller": "awaiting booking cancelling cancelled",
        "carrier": f"{_NEW_DRIVER} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "rejected": {
        "caller": "awaiting booking cancelling cancelled",
        "carrier": f"{_NEW_DRIVER} {_IN_DELIVERY} delivered {_RETURN} cancelled",
    },
    "returned": {},
    "lost": {},
}
"""The statuses that each actor may move a shipment to. An empty `manual` allows what `carrier` allows."""

MOVES: dict[str, dict[Actor, frozenset[str]]] = {
    status: {
        actor: frozenset((targets or (row["carrier"] if actor == "manual" else "")).split()) - {status}
        for actor, targets in row.items()
    }
    for status, row in ROWS.items()
}


def is_allowed(status: str, to: str, actor: Actor) -> bool:
    """A reassignment also allows everything that the carrier may do."""
    row = MOVES[status]
    return to in row.get(actor, ()) or (actor == "reassignment" and to in row.get("carrier", ()))


def list_next(status: str, actor: Actor) -> list[str]:
    """In the usual order of a shipment's life."""
    return [to for to in STATUSES if is_allowed(status, to, actor)]


def print_table() -> str:
    """The table as Markdown, for the manual."""
    lines = ["| from | group | to |", "|---|---|---|"]
    for status in STATUSES:
        moves = [f"{actor}: {', '.join(list_next(status, actor))}" for actor in ACTORS if MOVES[status].get(actor)]
        lines.append(f"| `{status}` | {GROUP_OF[status]} | {'<br>'.join(moves) or '–'} |")
    return "\n".join(lines)
