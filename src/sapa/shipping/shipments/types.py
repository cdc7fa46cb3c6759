"""Shipments as the worker and the statements see them."""

from datetime import datetime

from msgspec import Struct

CALLED, POLLED = "carrier_webhook", "carrier_poll"
"""The sources of an event."""

LONGEST_CANCEL = 3_600
LONGEST_POLL = {"parcel": 21_600, "ride": 300}
"""Seconds: the longest postponements. Anything later was postponed before a test clock was set back."""


class InsertedShipment(Struct, frozen=True):
    """What the database adds to a new shipment, and whether webhooks have to be delivered."""

    created_at: datetime
    updated_at: datetime
    cell: str
    has_deliveries: bool


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
