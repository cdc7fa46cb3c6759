"""Optional abilities of carriers."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sapa.shipping.carriers.interface import BookingPayment, CarrierAccount


@runtime_checkable
class PaidBookings(Protocol):
    """A carrier that carries some bookings only after they are paid."""

    async def find_payment(self, connection: CarrierAccount, payment_id: str) -> BookingPayment | None:
        """None if the carrier has no such payment. Raises CarrierAway or BadCredentials."""


@runtime_checkable
class LabelCarrier(Protocol):
    """A carrier that has labels of its own."""

    async def fetch_labels(self, connection: CarrierAccount, awbs: Sequence[str]) -> bytes:
        """One PDF with the labels of these parcels. Raises CarrierAway or BadCredentials."""
