"""Optional abilities of carriers."""

from typing import Protocol, runtime_checkable

from sapa.shipping.carriers.interface import BookingPayment, CarrierAccount


@runtime_checkable
class PaidBookings(Protocol):
    """A carrier that carries some bookings only after they are paid."""

    async def find_payment(self, connection: CarrierAccount, payment_id: str) -> BookingPayment | None:
        """None if the carrier has no such payment. Raises CarrierAway or BadCredentials."""
