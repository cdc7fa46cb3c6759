"""The providers that a shipment can name, and what differs between them. The API's list follows from it.

A provider is a kind of shipping in the API's words; `carriers/registry.py` lists the carriers that serve it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct


class ProviderTraits(Struct, frozen=True, kw_only=True):
    """How shipments of one provider are checked, booked, tracked and cancelled."""

    name: str
    label: str
    is_local: bool = False
    """No carrier's API stands behind it: shipments are confirmed and moved by hand."""
    is_booked_by_people: bool = False
    """Booked from the console or by a command, never by a call of the API."""
    locates_by: Literal["areas", "coordinates"] | None = None
    """How its carriers find the two ends: by ids of districts and sub-districts, or by coordinates."""
    needs_service: bool = False
    """A shipment has to name one of the services that calculate-fee offers."""
    refused_service_types: Mapping[str, str] = {}
    """Service types that it never has, each with what to do instead."""
    has_pickup_cities: bool = False
    """It fetches parcels in some cities only, which its carrier lists without a province."""
    days_ahead: int = 7
    """How far ahead a pick-up can be arranged."""
    pace: Literal["parcel", "ride"] = "ride"
    """Whether a shipment takes days or hours, and so how often its carrier is asked for it."""
    cancel_needs_awb: bool = True
    """A shipment without an awb is refused a cancellation, because its carrier knows of none."""
    cancels_by_awb_only: bool = False
    """Its carriers cancel by the awb, which they assign some time after the booking."""
    cancelled_status: str = "cancelled"
    """The state of a shipment that its carrier cancelled because we asked for it."""


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
    ),
    ProviderTraits(
        name="ev_courier",
        label="Electric courier",
        locates_by="coordinates",
        has_pickup_cities=True,
        days_ahead=3,
        cancelled_status="cancelled_by_business",
    ),
    ProviderTraits(name="custom", label="Custom", is_local=True),
    ProviderTraits(name="parcel_carrier", label="Parcel carrier", is_local=True),
)

PROVIDERS: Mapping[str, ProviderTraits] = {provider.name: provider for provider in _ALL}
"""In the order in which the API lists them."""

LOCATED_BY_AREAS = next(provider.name for provider in _ALL if provider.locates_by == "areas")
"""Whose places are listed unless another provider is named."""

if TYPE_CHECKING:
    Provider = str
else:
    Provider = Literal[tuple(PROVIDERS)]
