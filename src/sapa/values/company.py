"""The company a call or a job works for."""

from msgspec import Struct


class Company(Struct, frozen=True):
    """One environment of one company: the owner of its rows."""

    id: int
    environment: str
    region: str
    """ISO 3166 code of the country whose phone numbers may be written without a country code."""
    currency: str
    time_zone: str = "Asia/Jakarta"
    """Name in the IANA time zone database; reports follow it."""
    language: str = "id"
    cart_orders: bool = False
    """Whether a cart that a customer sends becomes an order."""

    @property
    def is_test(self) -> bool:
        return self.environment == "test"
