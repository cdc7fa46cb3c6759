"""Bookings: what is known of each attempt to book a shipment with a carrier, and what can come of it."""

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
    """One try to book a shipment with a carrier."""

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


# By the real time first, in one index: no company's clock is behind it. statement_timestamp() can be searched for.


class BookingContext(Struct, frozen=True):
    """What was found out before the transaction began, since carriers may have been asked for it."""

    pickup_cities: Sequence[CarrierArea] = ()
    """Of a provider that fetches parcels in some cities only."""
    adapter: str | None = None
    """Of the carrier that is to be booked with."""


class BookingStart(Struct, frozen=True):
    """A shipment, and the booking that is about to be sent for it, if any."""

    stored: StoredShipment
    attempt: BookingAttempt | None


class Unsure(Struct, frozen=True):
    """Nobody can tell whether the carrier took it."""

    reason: str


Outcome = Booked | Rejected | BookingNotFound | Unsure
