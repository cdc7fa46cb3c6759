"""Attempts to book a shipment with a carrier, and their outcomes."""

from msgspec import Struct

from sapa.shipping.carriers.interface import Booked, BookingNotFound, Rejected
from sapa.shipping.connections.types import ConnectedCarrier
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


class BookingStart(Struct, frozen=True):
    """A shipment, and if it is to be booked, the attempt to send and the carrier to send it to."""

    stored: StoredShipment
    attempt: BookingAttempt | None = None
    connected: ConnectedCarrier | None = None


class Unsure(Struct, frozen=True):
    """The carrier may or may not have accepted the booking."""

    reason: str


Outcome = Booked | Rejected | BookingNotFound | Unsure
