"""Shipments as the worker and the history see them."""

from msgspec import Struct

CALLED, POLLED = "carrier_webhook", "carrier_poll"
"""How an event came to us."""

LONGEST_CANCEL = 3_600
LONGEST_POLL = {"parcel": 21_600, "ride": 300}
"""Seconds: nothing is put off for longer. What is, was put off before a test clock was turned back."""


class DueShipment(Struct, frozen=True):
    """A shipment that the worker has to act on now."""

    company_id: int
    id: str


class CompanyClock(Struct, frozen=True):
    """The company's time, now and some seconds from now, and the time that no test clock moves."""

    now: str
    later: str
    real: str


class ShipmentEvent(Struct, frozen=True):
    """Something that happened to a shipment, as its history keeps it."""

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
