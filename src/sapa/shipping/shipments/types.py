"""Shipments as the worker sees them."""

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


class ShipmentKey(Struct, frozen=True):
    """A shipment and its company."""

    company_id: int
    id: str


class ParcelMatch(Struct, frozen=True):
    """A shipment that has a number of a carrier's statement."""

    id: str
    number: str
