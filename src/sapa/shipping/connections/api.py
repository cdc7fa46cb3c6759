"""How a company sees its providers, and manages its accounts with carriers."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from sapa.access import actions as access
from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Call, Routes, ToolTraits
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.registry import CARRIERS, list_adapters
from sapa.shipping.carriers.registry import list_providers as list_served_providers
from sapa.shipping.connections import actions
from sapa.shipping.connections.types import (
    CarrierAdapter,
    CarrierConnection,
    CarrierConnectionIn,
    CarrierEntry,
    CarrierHealth,
    ConnectedCarrierAccount,
    ProviderNotConnected,
)
from sapa.shipping.errors import CarrierUnavailable
from sapa.shipping.providers import PROVIDERS, Provider, ProviderTraits
from sapa.values.enum_names import EnumName
from sapa.values.provider_accounts import build_field_entries

routes = Routes(
    "/shipping",
    base=Base.CUSTOMER,
    tag="Shipping",
    about="Carriers, quotes, the areas that they cover, store locations, and what customers see of their parcels.",
    product="CRM",
    refusal=Unauthorized,
)
carrier_routes = Routes("/carriers", base=Base.CUSTOMER, tag="Connections", resource="carriers")

if TYPE_CHECKING:
    CarrierProvider = str
else:
    CarrierProvider = Annotated[
        Literal[tuple(list_served_providers())],
        EnumName("CarrierProvider"),
        Meta(description="The provider.", examples=["aggregator_carrier"]),
    ]


class ProviderCapabilities(Struct, frozen=True, rename="camel"):
    """What can be done with a provider's shipments."""

    quote: bool
    book: bool
    cancel: bool
    track: bool
    coverage: bool
    callbacks: Annotated[bool, Meta(description="Whether its carrier reports changes by callbacks.")]
    cod: Annotated[bool, Meta(description="Whether parcels can be paid on delivery.")]


class ProviderEntry(Struct, frozen=True, rename="camel"):
    """A way to ship, and whether the company can use it."""

    provider: Provider
    label: Annotated[str, Meta(examples=["Aggregator"])]
    connected: bool
    capabilities: ProviderCapabilities
    service_types: Annotated[list[str], Meta(examples=[["EXPRESS"]])]
    coverage_levels: Annotated[list[str], Meta(examples=[["provinces", "cities", "districts", "sub-districts"]])]
    adapter: Annotated[str | None, Meta(description="The carrier behind it.", examples=["kiriminaja"])]


@routes.get("/providers", scope=Scope.ORDERS_READ)
async def list_shipping_providers(call: Call) -> list[ProviderEntry]:
    """List the providers, and which of them are connected.

    custom and parcel_carrier have no carrier's API and need no connection. In the test environment the carriers are
    simulated, so all providers are connected.
    """
    connected = await actions.list_connected(call.context, call.db, call.company)
    return [build_entry(provider, connected.get(provider.name)) for provider in PROVIDERS.values()]


def build_entry(provider: ProviderTraits, adapter: str | None) -> ProviderEntry:
    """`adapter` is the connected one; without it, the capabilities are those of the default carrier."""
    carrier = CARRIERS[adapter] if adapter else next(iter(list_adapters(provider.name)), None)
    return ProviderEntry(
        provider=provider.name,
        label=provider.label,
        connected=provider.is_local or adapter is not None,
        capabilities=_build_capabilities(carrier, provider),
        service_types=list(carrier.service_types) if carrier else [],
        coverage_levels=list(carrier.levels) if carrier else [],
        adapter=adapter,
    )


def _build_capabilities(carrier: Carrier | None, provider: ProviderTraits) -> ProviderCapabilities:
    has_carrier, is_local = carrier is not None, provider.is_local
    return ProviderCapabilities(
        quote=has_carrier,
        book=has_carrier or is_local,
        cancel=has_carrier or is_local,
        track=has_carrier or is_local,
        coverage=has_carrier and bool(carrier and carrier.levels),
        callbacks=bool(carrier and carrier.calls_back),
        cod=provider.collects_cash,
    )


@carrier_routes.get("", scope=Scope.CONNECTIONS_READ)
async def list_carriers(call: Call) -> list[CarrierEntry]:
    """List the providers that need an account with a carrier.

    Each with the carriers that can serve it, the fields of an account with them, and the company's account. In the test
    environment every provider is connected to a simulator.
    """
    return await _list_carriers(call)


@carrier_routes.get("/{provider}", scope=Scope.CONNECTIONS_READ)
async def get_carrier(call: Call, provider: CarrierProvider) -> CarrierEntry:
    """Get one provider and the company's account with its carrier."""
    return next(entry for entry in await _list_carriers(call) if entry.provider == provider)


@carrier_routes.put(
    "/{provider}",
    scope=Scope.CONNECTIONS_WRITE,
    raises=[CarrierUnavailable],
    tool=ToolTraits(hidden="Its arguments are secrets, which a model must not read."),
)
async def connect_carrier(
    call: OutboundCall, provider: CarrierProvider, body: CarrierConnectionIn
) -> ConnectedCarrierAccount:
    """Connect an account with a carrier, in place of the provider's present one.

    The carrier is asked to verify the account; nothing changes if it refuses. The callback address is shown only in
    this response.
    """
    context, company = call.context, call.company
    draft = await actions.prepare(context, company, provider, body.adapter, body.fields, body.verify)

    async def store(tx: Tx) -> ConnectedCarrierAccount:
        new = await actions.store(context, tx, company, draft)
        subject = f"{PROVIDERS[provider].label}: {CARRIERS[new.connection.adapter].label}"
        await access.record_change(tx, call.key, call.address, "carrier.connected", subject)
        return ConnectedCarrierAccount(
            **asdict(new.connection), callback_url=new.callback_url, left_behind=new.left_behind
        )

    return await call.commit(store)


@carrier_routes.post(
    "/{provider}/test",
    scope=Scope.CONNECTIONS_WRITE,
    status=200,
    raises=[ProviderNotConnected],
    tool=ToolTraits(is_destructive=False),
)
async def test_carrier(call: OutboundCall, provider: CarrierProvider) -> CarrierHealth:
    """Ask the carrier to verify the account again. Nothing is booked."""
    return await actions.check(call.context, call.company, provider)


@carrier_routes.delete("/{provider}", scope=Scope.CONNECTIONS_DELETE, raises=[ProviderNotConnected])
async def disconnect_carrier(call: Call, provider: CarrierProvider) -> None:
    """Delete the account and its credentials."""
    await actions.disconnect(call.db, call.company, provider)
    await access.record_change(call.db, call.key, call.address, "carrier.disconnected", PROVIDERS[provider].label)


async def _list_carriers(call: Call) -> list[CarrierEntry]:
    accounts = {info.provider: info for info in await actions.list_connections(call.db, call.company)}
    return [_build_carrier(provider, accounts.get(provider)) for provider in list_served_providers()]


def _build_carrier(provider: str, connection: CarrierConnection | None) -> CarrierEntry:
    adapters = [
        CarrierAdapter(carrier.name, carrier.label, build_field_entries(carrier.fields))
        for carrier in list_adapters(provider)
    ]
    is_connected = connection is not None and connection.status == "connected"
    return CarrierEntry(provider, PROVIDERS[provider].label, is_connected, adapters, connection)
