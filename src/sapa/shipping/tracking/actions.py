"""Tracking: what the carrier says now, put to what is known already; without it, what is known."""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from sapa.db.pool import Connection
from sapa.http.responses import StoredJson, Timestamp
from sapa.shipping.carriers.interface import BadCredentials, CarrierAway, Tracked
from sapa.shipping.connections.actions import Opened
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.document import build_shipped
from sapa.shipping.shipments.queries import ShipmentEvent
from sapa.shipping.states import GONE, GROUP_OF, Group, Status
from sapa.shipping.types import LOCAL, Provider, ShipmentId, ShownDriver, StoredShipment

SECONDS = 10.0
NO_NUMBER = "The carrier has told no number yet that it could be asked by."
UNTRACKED = GONE | {"draft", "awaiting", "booking", "booking_unknown", "booking_failed", "returned", "lost"}


class TrackingEvent(Struct, frozen=True, rename="camel"):
    """Something that happened on the way."""

    status: Annotated[str | None, Meta(examples=["picked_up"], description="Null for a word that we do not know.")]
    status_code: int | None
    text: Annotated[str, Meta(examples=["picked"], description="The carrier's own words.")]
    reason: str | None
    receiver: str | None
    proof: list[str]
    occurred_at: Timestamp
    received_at: Timestamp
    source: Annotated[str, Meta(examples=["carrier_webhook"])]
    applied: Annotated[bool, Meta(description="False for what came late or could not be: it moved nothing.")]


class TrackingProof(Struct, frozen=True, rename="camel"):
    """What shows that it arrived."""

    receiver: str | None
    images: list[str]


class TrackingError(Struct, frozen=True, rename="camel"):
    """Why the carrier's own word is missing."""

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
    stale: Annotated[bool, Meta(description="Whether the carrier should have been asked and could not be.")]
    fetched_at: Timestamp
    error: TrackingError | None


def is_tracked(kept: StoredShipment) -> bool:
    """Whether there is a carrier to ask."""
    return kept.provider not in LOCAL and kept.shipping_status not in UNTRACKED and kept.reference is not None


async def ask_carrier(opened: Opened | None, kept: StoredShipment) -> Tracked | str:
    """What the carrier says, or why it says nothing."""
    if opened is None or opened.carrier.name != kept.adapter:
        return "The carrier that has it is not connected any more."
    try:
        async with asyncio.timeout(SECONDS):
            return await opened.carrier.track(opened.connection, build_shipped(kept))
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "There was no answer in time."


async def get_known(db: Connection, company_id: int, id: str) -> Tracking:
    """Where it was last known to be, without asking the carrier."""
    return await build_tracking(db, await shipments.get_kept(db, company_id, id), company_id, None)


async def build_tracking(db: Connection, kept: StoredShipment, company_id: int, told: Tracked | str | None) -> Tracking:
    """`told` is what came of asking the carrier; None when there was nobody to ask."""
    history = await shipments.list_events(db, company_id, kept.id)
    clock = await shipments.get_clock(db, company_id)
    missing = NO_NUMBER if isinstance(told, Tracked) and not told.was_asked else told
    applied = [event.text for event in history if event.applied]
    return Tracking(
        shipment_id=kept.id,
        provider=kept.provider,
        awb=kept.awb,
        order_no=kept.order_no,
        shipping_status=kept.shipping_status,
        status_group=GROUP_OF[kept.shipping_status],
        status_code=kept.status_code,
        status_text=applied[-1] if applied else None,
        event_timestamp=kept.event_timestamp,
        tracking_url=kept.tracking_url,
        distance=kept.distance,
        driver=kept.driver,
        proof=_build_proof(history),
        history=[_build_event(event) for event in merge_history(history)],
        live=isinstance(missing, Tracked),
        stale=isinstance(missing, str),
        fetched_at=clock.now,
        error=TrackingError("CARRIER_UNAVAILABLE", missing) if isinstance(missing, str) else None,
    )


def merge_history(events: Sequence[ShipmentEvent]) -> list[ShipmentEvent]:
    """What a carrier called back with, and told again when it was asked, happened once."""
    merged: dict[tuple[str | None, ...], ShipmentEvent] = {}
    for n, event in enumerate(events):
        place = (event.status, event.occurred_at[: len("2026-01-31T09:30:00")]) if event.status else (None, str(n))
        known = merged.get(place)
        if known is None:
            merged[place] = event
        elif known.source == event.source:
            merged[*place, str(n)] = event
        else:
            merged[place] = _merge(known, event)
    return list(merged.values())


def _merge(one: ShipmentEvent, other: ShipmentEvent) -> ShipmentEvent:
    shown, rest = (other, one) if other.applied and not one.applied else (one, other)
    return msgspec.structs.replace(
        shown,
        reason=shown.reason or rest.reason,
        receiver=shown.receiver or rest.receiver,
        proof=list(dict.fromkeys([*shown.proof, *rest.proof])),
    )


def _build_event(event: ShipmentEvent) -> TrackingEvent:
    return TrackingEvent(*(getattr(event, name) for name in TrackingEvent.__struct_fields__))


def _build_proof(history: Sequence[ShipmentEvent]) -> TrackingProof:
    receivers = [event.receiver for event in history if event.receiver]
    images = dict.fromkeys(image for event in history for image in event.proof)
    return TrackingProof(receivers[-1] if receivers else None, list(images))
