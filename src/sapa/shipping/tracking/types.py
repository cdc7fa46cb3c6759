"""Tracking: where a shipment is, and what carriers call back with."""

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from sapa.http.responses import StoredJson, Timestamp
from sapa.shipping.providers import Provider
from sapa.shipping.states import Group, Status
from sapa.shipping.types import ShipmentId, ShownDriver
from sapa.values.enum_names import EnumName

EventSource = Annotated[Literal["api", "carrier_webhook", "carrier_poll"], EnumName("TrackingEventSource")]


class TrackingEvent(Struct, frozen=True, rename="camel"):
    """An event of the delivery."""

    status: Annotated[str | None, Meta(examples=["picked_up"], description="Null if the carrier's status is unknown.")]
    status_code: int | None
    text: Annotated[str, Meta(examples=["picked"], description="The carrier's own words.")]
    reason: str | None
    receiver: str | None
    proof: list[str]
    occurred_at: Timestamp
    received_at: Timestamp
    source: Annotated[EventSource, Meta(examples=["carrier_webhook"])]
    applied: Annotated[bool, Meta(description="False if it came late or was impossible, and changed nothing.")]


class TrackingProof(Struct, frozen=True, rename="camel"):
    """The proof of delivery."""

    receiver: str | None
    images: list[str]


class TrackingError(Struct, frozen=True, rename="camel"):
    """Why there is no response from the carrier."""

    code: str
    message: str


class Tracking(Struct, frozen=True, rename="camel"):
    """Where a shipment is."""

    shipment_id: ShipmentId
    provider: Provider
    awb: str | None
    order_no: str | None
    shipping_status: Status
    status_group: Group
    status_code: int | None
    status_text: Annotated[str | None, Meta(description="The carrier's own words for it.")]
    event_timestamp: Timestamp | None
    tracking_url: str | None
    distance: Annotated[Decimal | None, Meta(description="In kilometres.")]
    driver: Annotated[Raw | None, StoredJson(ShownDriver | None)]
    proof: TrackingProof
    history: list[TrackingEvent]
    live: Annotated[bool, Meta(description="Whether the carrier was asked just now.")]
    stale: Annotated[bool, Meta(description="Whether the carrier could not be asked.")]
    fetched_at: Timestamp
    error: TrackingError | None


class ShipmentEvent(Struct, frozen=True):
    """An event of a shipment's tracking history."""

    occurred_at: str
    received_at: str
    status: str | None
    status_code: int | None
    text: str
    reason: str | None
    receiver: str | None
    proof: list[str]
    source: str
    applied: bool


class DueCallback(Struct, frozen=True):
    """A callback that the worker has to apply now."""

    company_id: int
    id: int


class StoredCarrierCallback(Struct, frozen=True):
    """What a carrier called back with, as its adapter read it."""

    adapter: str
    events: Raw
    tries: int
