"""A company's accounts with carriers: types and errors."""

from msgspec import Raw, Struct

from sapa.http.errors import Conflict
from sapa.shipping.carriers import circuit
from sapa.shipping.carriers.interface import Carrier, CarrierAccount
from sapa.shipping.errors import CarrierUnavailable
from sapa.values.ids import IdKind

CONNECTION_ID = IdKind("carr_")


class ProviderNotConnected(Conflict):
    """The provider is not connected. Connect it in the console, on the page Carriers."""

    code = "PROVIDER_NOT_CONNECTED"


class ConnectedCarrier(Struct, frozen=True):
    """A carrier, and the account to call it with."""

    carrier: Carrier
    connection: CarrierAccount

    def check_reachable(self) -> None:
        """Raises while the circuit breaker is open, before anything is stored."""
        if reason := circuit.find_open_reason(self.connection):
            message = f"Nothing was booked. {self.carrier.label} is unavailable: {reason}."
            raise CarrierUnavailable(message)


class CarrierConnection(Struct, frozen=True, rename="camel"):
    """An account as people see it: never a secret."""

    id: str
    provider: str
    adapter: str
    label: str
    status: str
    is_sandbox: bool
    public_fields: dict[str, str]
    verified_at: str | None
    last_error: str | None
    created_at: str | None


class NewCarrierConnection(Struct, frozen=True, rename="camel"):
    """An account, and the callback address to give to its carrier, which is shown only once."""

    connection: CarrierConnection
    callback_url: str
    left_behind: int = 0
    """Shipments under way with the provider's former carrier, which is no longer asked."""


class Health(Struct, frozen=True, rename="camel"):
    """The result of a test."""

    provider: str
    adapter: str
    is_working: bool
    error: str | None


class StoredCarrierConnection(Struct, frozen=True):
    """A row of carrier_connections."""

    id: str
    provider: str
    adapter: str
    sealed: bytes
    public_fields: Raw
    status: str
    verified_at: str | None
    last_error: str | None
    created_at: str


class TokenOwner(Struct, frozen=True):
    """The connection that a callback token belongs to."""

    company_id: int
    environment: str
    region: str
    currency: str
    id: str
