"""Attempts to book a shipment with a carrier, and their outcomes."""

from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from sapa.shipping.carriers.interface import Booked, BookingNotFound, Rejected
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.types import PaymentStatus, ShipmentId, StoredShipment


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


class ShipmentPayment(Struct, frozen=True, rename="camel"):
    """The payment that a booking waits for."""

    shipment_id: ShipmentId
    payment_id: Annotated[str | None, Meta(description="Null if there is nothing to pay.")]
    status: PaymentStatus | None
    qr: Annotated[str | None, Meta(description="The content of the QRIS code; null once it is paid.")]
    amount: Annotated[Decimal | None, Meta(description="In the carrier's currency, if it was asked just now.")]
    live: Annotated[bool, Meta(description="Whether the carrier was asked just now.")]
    error: Annotated[str | None, Meta(description="Why the carrier could not be asked.")]


class Unsure(Struct, frozen=True):
    """The carrier may or may not have accepted the booking."""

    reason: str


Outcome = Booked | Rejected | BookingNotFound | Unsure
