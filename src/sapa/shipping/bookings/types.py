"""Attempts to book a shipment with a carrier, and their outcomes."""

from collections.abc import Sequence

from msgspec import Struct

from sapa.shipping.carriers.interface import (
    Booked,
    BookingNotFound,
    CarrierArea,
    Rejected,
)
from sapa.shipping.types import StoredShipment


class BookingAttempt(Struct, frozen=True):
    """One attempt to book a shipment with a carrier."""

    company_id: int
    shipment_id: str
    number: int
    reference: str
    adapter: str
    state: str
    order_no: str | None
    awb: str | None
    booking_id: str | None
    sends: int
    looks: int
    not_found: int
    age: float
    """Seconds since it was sent, by the company's clock."""


class DueAttempt(Struct, frozen=True):
    company_id: int
    shipment_id: str
    number: int


class BookingContext(Struct, frozen=True):
    """What was loaded before the transaction, because carriers may be called for it."""

    pickup_cities: Sequence[CarrierArea] = ()
    """If the provider picks up parcels in some cities only."""
    adapter: str | None = None
    """The carrier to book with."""


class BookingStart(Struct, frozen=True):
    """A shipment, and the attempt to send for it, if any."""

    stored: StoredShipment
    attempt: BookingAttempt | None


class Unsure(Struct, frozen=True):
    """The carrier may or may not have accepted the booking."""

    reason: str


Outcome = Booked | Rejected | BookingNotFound | Unsure
