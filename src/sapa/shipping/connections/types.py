"""A company's accounts with carriers: types and errors."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Raw, Struct

from sapa.http.errors import Conflict
from sapa.http.responses import SHOWN_ONCE, Timestamp
from sapa.shipping.carriers import circuit
from sapa.shipping.carriers.interface import Carrier, CarrierAccount
from sapa.shipping.errors import CarrierUnavailable
from sapa.values.ids import IdKind
from sapa.values.provider_accounts import AccountFieldEntry

CONNECTION_ID = IdKind("carr_")


class CachedCarrier(Struct, frozen=True):
    """The account that this process last saw. A statement that uses it checks it with the part ACCOUNT."""

    adapter: str
    id: str
    credentials: Mapping[str, str]


class ProviderNotConnected(Conflict):
    """The provider is not connected. Connect it in the console, on the page Carriers."""

    code = "PROVIDER_NOT_CONNECTED"
    fix = "Connect a carrier of this provider in the console or with `sapa carrier connect`."


class ConnectedCarrier(Struct, frozen=True):
    """A carrier, and the account to call it with."""

    carrier: Carrier
    connection: CarrierAccount
    has_error: bool = False
    """Whether the last call failed."""

    def check_reachable(self) -> None:
        """Raises while the circuit breaker is open, before anything is stored."""
        if reason := circuit.find_open_reason(self.connection):
            message = f"Nothing was booked. {self.carrier.label} is unavailable: {reason}."
            raise CarrierUnavailable(message)


class CarrierConnection(Struct, frozen=True, rename="camel"):
    """An account with a carrier as people see it: never a secret."""

    id: Annotated[str, Meta(examples=[CONNECTION_ID.example])]
    provider: Annotated[str, Meta(examples=["aggregator_carrier"])]
    adapter: str
    label: str
    status: Annotated[str, Meta(examples=["connected"], description="connected, or invalid if the carrier refuses it.")]
    is_sandbox: Annotated[bool, Meta(examples=[False])]
    public_fields: Annotated[dict[str, str], Meta(description="The fields that are not secret.")]
    verified_at: Timestamp | None
    last_error: str | None
    created_at: Timestamp | None


class CarrierAdapter(Struct, frozen=True, rename="camel"):
    """A carrier that can serve a provider, and the fields of an account with it."""

    adapter: str
    label: str
    fields: list[AccountFieldEntry]


class CarrierEntry(Struct, frozen=True, rename="camel"):
    """A provider that needs an account, the carriers that can serve it, and the company's account."""

    provider: Annotated[str, Meta(examples=["aggregator_carrier"])]
    label: Annotated[str, Meta(examples=["Aggregator"])]
    connected: Annotated[bool, Meta(examples=[True])]
    adapters: Annotated[list[CarrierAdapter], Meta(description="The first one is the default.")]
    connection: CarrierConnection | None


class CarrierConnectionIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account to connect."""

    adapter: (
        Annotated[str, Meta(max_length=100, description="The carrier, if several can serve the provider.")] | None
    ) = None
    fields: Annotated[
        dict[str, str], Meta(description="The fields of the account by name; GET /carriers lists them.")
    ] = {}
    verify: Annotated[bool, Meta(description="Whether the carrier is asked to verify the account first.")] = True


class ConnectedCarrierAccount(CarrierConnection, frozen=True, kw_only=True, rename="camel"):
    """A connected account with what is shown only once."""

    callback_url: Annotated[
        str | None,
        SHOWN_ONCE,
        Meta(
            examples=["https://sapa.example.com/hooks/carriers/…"],
            description="The callback address to give to the carrier. Null on a retry.",
        ),
    ]
    left_behind: Annotated[
        int,
        Meta(
            examples=[0],
            description="Shipments under way with the provider's former carrier, which is no longer asked.",
        ),
    ]


class NewCarrierConnection(Struct, frozen=True, rename="camel"):
    """An account, and the callback address to give to its carrier, which is shown only once."""

    connection: CarrierConnection
    callback_url: str
    left_behind: int = 0
    """Shipments under way with the provider's former carrier, which is no longer asked."""


class CarrierHealth(Struct, frozen=True, rename="camel"):
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
