"""Shipments as the worker and the tracking history see them."""

from msgspec import Struct

CALLED, POLLED = "carrier_webhook", "carrier_poll"
"""The sources of an event."""

LONGEST_CANCEL = 3_600
LONGEST_POLL = {"parcel": 21_600, "ride": 300}
"""Seconds: the longest postponements. Anything later was postponed before a test clock was set back."""


class DueShipment(Struct, frozen=True):
    """A shipment that the worker has to process now."""

    company_id: int
    id: str


class CompanyClock(Struct, frozen=True):
    """The company's time, now and some seconds later, and the real time."""

    now: str
    later: str
    real: str


class ShipmentEvent(Struct, frozen=True):
    """An event of a shipment's tracking history."""

    occurred_at: str
    received_at: str
    status: str | None
    status_code: int | None
    text: str
    reason: str | None
    receiver: str | None
    proof: list[str]
    source: str
    applied: bool
