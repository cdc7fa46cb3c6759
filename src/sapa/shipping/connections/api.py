"""How a company sees its providers."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Unauthorized
from sapa.shipping.carriers.interface import Carrier
from sapa.shipping.carriers.registry import CARRIERS, list_adapters
from sapa.shipping.connections.actions import list_connected
from sapa.shipping.providers import PROVIDERS, Provider, ProviderTraits

routes = Routes(
    "/shipping",
    base=Base.CUSTOMER,
    tag="Shipping",
    about="Carriers, quotes, the areas that they cover, store locations, and what customers see of their parcels.",
    product="CRM",
    refusal=Unauthorized,
)


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
async def list_providers(call: Call) -> list[ProviderEntry]:
    """List the providers, and which of them are connected.

    custom and parcel_carrier have no carrier's API and need no connection. In the test environment the carriers are
    simulated, so all providers are connected.
    """
    connected = await list_connected(call.context, call.db, call.company)
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
