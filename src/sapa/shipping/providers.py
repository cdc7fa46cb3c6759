"""The providers that a shipment can name, and how they differ.

A provider is a kind of shipping as the API names it; `carriers/registry.py` lists the carriers that serve it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct


class ProviderTraits(Struct, frozen=True, kw_only=True):
    """How shipments of one provider are checked, booked, tracked and cancelled."""

    name: str
    label: str
    is_local: bool = False
    """There is no carrier API: people confirm the shipment and change its status."""
    is_booked_by_people: bool = False
    """Booked in the console or by a command, never through the API."""
    locates_by: Literal["areas", "coordinates"] | None = None
    """How its carriers locate both ends: by district and sub-district ids, or by coordinates."""
    needs_service: bool = False
    """Whether a shipment must name a service that calculate-fee offers."""
    refused_service_types: Mapping[str, str] = {}
    """Service types that it never offers, each with what to use instead."""
    has_pickup_cities: bool = False
    """It picks parcels up only in the cities that its carrier lists."""
    days_ahead: int = 7
    """How many days ahead a pickup can be scheduled."""
    pace: Literal["parcel", "ride"] = "ride"
    """Whether a shipment takes days or hours, which sets how often its carrier is polled."""
    cancel_needs_awb: bool = True
    """Whether a shipment without an awb cannot be cancelled."""
    cancels_by_awb_only: bool = False
    """Whether its carriers cancel by awb only, which they assign some time after the booking."""
    cancelled_status: str = "cancelled"
    """The status after a cancellation that we requested."""
    collects_cash: bool = False
    """Whether its parcels can be paid on delivery."""


_ALL = (
    ProviderTraits(
        name="instant_carrier",
        label="Instant carrier",
        is_booked_by_people=True,
        locates_by="coordinates",
        cancel_needs_awb=False,
    ),
    ProviderTraits(
        name="aggregator_carrier",
        label="Aggregator",
        locates_by="areas",
        needs_service=True,
        refused_service_types={"INSTANT": "use the provider instant_carrier for it"},
        pace="parcel",
        cancels_by_awb_only=True,
        collects_cash=True,
    ),
    ProviderTraits(
        name="ev_courier",
        label="Electric courier",
        locates_by="coordinates",
        has_pickup_cities=True,
        days_ahead=3,
        cancelled_status="cancelled_by_business",
    ),
    ProviderTraits(name="custom", label="Custom", is_local=True, collects_cash=True),
    ProviderTraits(name="parcel_carrier", label="Parcel carrier", is_local=True, collects_cash=True),
)

PROVIDERS: Mapping[str, ProviderTraits] = {provider.name: provider for provider in _ALL}
"""In the order in which the API lists them."""

LOCAL_PROVIDERS = " and ".join(provider.name for provider in _ALL if provider.is_local)
"""Their names, for messages."""

CASH_PROVIDERS = ", ".join(provider.name for provider in _ALL if provider.collects_cash)
"""Their names, for messages."""

LOCATED_BY_AREAS = next(provider.name for provider in _ALL if provider.locates_by == "areas")
"""The default provider of the coverage lists."""

if TYPE_CHECKING:
    Provider = str
else:
    Provider = Literal[tuple(PROVIDERS)]
