"""Tracking: applies carriers' events to shipments, and shows them with the history."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec

from sapa.access import actions as access
from sapa.access.actions import read_clock
from sapa.access.types import CompanyClock
from sapa.context import AppContext
from sapa.db.pool import Connection, Tx
from sapa.db.wakeups import DueQueue
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings import payment
from sapa.shipping.carriers.interface import (
    BadCredentials,
    CarrierAway,
    CarrierEvent,
    TrackingResult,
)
from sapa.shipping.connections.actions import find_carrier, record_health
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.environment import get_environment
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.requests import build_booked
from sapa.shipping.shipments.types import POLLED, DueShipment
from sapa.shipping.states import CANCELLED, GROUP_OF, NOT_BOOKED_YET
from sapa.shipping.tracking import queries
from sapa.shipping.tracking.status_changes import (
    build_change,
    cap_to_now,
    date_event,
    is_from_the_future,
    resolve_status,
)
from sapa.shipping.tracking.types import ShipmentEvent, Tracking, TrackingError, TrackingEvent, TrackingProof
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company
from sapa.values.instants import format_instant

SECONDS = 10.0
LEASE_SECONDS = 60.0
QUEUE = DueQueue("tracking", queries.NEXT_POLLS.text)
NO_NUMBER = "The carrier has not assigned a number to track the shipment by yet."
UNTRACKED = CANCELLED | {"draft", "awaiting", "booking", "booking_unknown", "booking_failed", "returned", "lost"}


async def apply_events(
    tx: Tx, company: Company, before: StoredShipment, events: Sequence[CarrierEvent], source: str
) -> StoredShipment:
    """Applies each event once, oldest first; late or impossible ones are recorded without effect.

    `before` is the shipment as it was when the carrier was asked: if it was booked again since, the events are ignored.
    """
    shipment = await shipments.lock_shipment(tx, company.id, before.id)
    if shipment.reference != before.reference:
        return shipment
    clock = await read_clock(tx, company.id)
    for event in [date_event(shipment, before, event) for event in events]:
        shipment = await _apply(tx, company, shipment, event, source, clock)
    if source == POLLED:
        after = msgspec.structs.replace(shipment, poll_at=shipments.build_poll_at(shipment, clock, source))
        shipment = await shipments.store(tx, company, shipment, after)
    return shipment


async def _apply(
    tx: Tx, company: Company, shipment: StoredShipment, event: CarrierEvent, source: str, clock: CompanyClock
) -> StoredShipment:
    event = resolve_status(shipment, cap_to_now(event, clock.now))
    is_turned_back = get_environment(company).has_movable_clock and is_from_the_future(shipment, event, clock.now)
    dated = msgspec.structs.replace(shipment, event_timestamp=None) if is_turned_back else shipment
    change = build_change(dated, event, source)
    if not await shipments.record_event(tx, company, shipment.id, event, source, applied=change.is_applied):
        return shipment
    after = change.shipment
    if not change.is_applied:
        after = msgspec.structs.replace(after, event_timestamp=shipment.event_timestamp)
    if shipment.shipping_status in NOT_BOOKED_YET and after.shipping_status not in NOT_BOOKED_YET:
        await bookings.settle_by_event(tx, company, shipment.reference, source)
    after = msgspec.structs.replace(after, poll_at=shipments.build_poll_at(after, clock, source))
    return await shipments.store(tx, company, shipment, after)


async def list_due(context: AppContext, most: int) -> list[DueShipment]:
    """Shipments without a recent event; with more than `most`, companies take turns."""
    async with context.database.connection() as db:
        return await queries.list_untracked(db, most)


async def poll(context: AppContext, due: DueShipment) -> None:
    """Polls the carrier of one due shipment, unless another worker holds it."""
    async with context.database.connection() as db:
        if not await queries.lease_untracked(db, due, LEASE_SECONDS):
            return
        company = await access.get_company(db, due.company_id)
        shipment = await shipments.get_stored(db, company.id, due.id)
        connected = await find_carrier(context, db, company, shipment.provider)
    response = await ask_carrier(connected, shipment)
    async with context.database.transaction() as tx:
        events = response.events if isinstance(response, TrackingResult) else ()
        await apply_events(tx, company, shipment, events, POLLED)
    await payment.poll(context, company, connected, shipment)
    if connected is not None:
        error = response if isinstance(response, str) else None
        async with context.database.connection() as db:
            await record_health(db, connected.connection.company.id, connected.connection.id, error)


def is_tracked(shipment: StoredShipment) -> bool:
    """Whether there is a carrier to ask."""
    return (
        not PROVIDERS[shipment.provider].is_local
        and shipment.shipping_status not in UNTRACKED
        and shipment.reference is not None
    )


async def ask_carrier(connected: ConnectedCarrier | None, shipment: StoredShipment) -> TrackingResult | str:
    """The carrier's events, or why there are none."""
    if connected is None or connected.carrier.name != shipment.adapter:
        return "The carrier that has the shipment is no longer connected."
    try:
        async with asyncio.timeout(SECONDS):
            return await connected.carrier.track(connected.connection, build_booked(shipment))
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "The carrier did not respond in time."


async def get_last_known(db: Connection, company_id: int, id: str) -> Tracking:
    """The stored tracking, without asking the carrier."""
    return await load_tracking(db, await shipments.get_stored(db, company_id, id), company_id, None)


async def list_history(db: Connection, company_id: int, id: str) -> list[ShipmentEvent]:
    """Each event once, oldest first."""
    return merge_history(await queries.list_events(db, company_id, id))


async def load_tracking(
    db: Connection, shipment: StoredShipment, company_id: int, result: TrackingResult | str | None
) -> Tracking:
    """`result` is the carrier's response; None if there was no carrier to ask."""
    shown, history = shipment.shipment, await queries.list_events(db, company_id, shipment.id)
    clock = await read_clock(db, company_id)
    missing = NO_NUMBER if isinstance(result, TrackingResult) and not result.was_asked else result
    applied = [event.text for event in history if event.applied]
    return Tracking(
        shipment_id=shipment.id,
        provider=shipment.provider,
        awb=shipment.awb,
        order_no=shipment.order_no,
        shipping_status=shipment.shipping_status,
        status_group=GROUP_OF[shipment.shipping_status],
        status_code=shipment.status_code,
        status_text=applied[-1] if applied else None,
        event_timestamp=shown.event_timestamp,
        tracking_url=shipment.tracking_url,
        distance=shipment.distance,
        driver=shipment.driver,
        proof=_build_proof(history),
        history=[_build_event(event) for event in merge_history(history)],
        live=isinstance(missing, TrackingResult),
        stale=isinstance(missing, str),
        fetched_at=format_instant(clock.now),
        error=TrackingError("CARRIER_UNAVAILABLE", missing) if isinstance(missing, str) else None,
    )


def merge_history(events: Sequence[ShipmentEvent]) -> list[ShipmentEvent]:
    """An event that came both by callback and by polling is shown once."""
    merged: dict[tuple[object, ...], ShipmentEvent] = {}
    for n, event in enumerate(events):
        second = datetime.fromisoformat(event.occurred_at).replace(microsecond=0)
        key = (event.status, second) if event.status else (None, n)
        existing = merged.get(key)
        if existing is None:
            merged[key] = event
        elif existing.source == event.source:
            merged[*key, n] = event
        else:
            merged[key] = _merge(existing, event)
    return list(merged.values())


def _merge(one: ShipmentEvent, other: ShipmentEvent) -> ShipmentEvent:
    first, second = (other, one) if other.applied and not one.applied else (one, other)
    return msgspec.structs.replace(
        first,
        reason=first.reason or second.reason,
        receiver=first.receiver or second.receiver,
        proof=list(dict.fromkeys([*first.proof, *second.proof])),
    )


def _build_event(event: ShipmentEvent) -> TrackingEvent:
    return TrackingEvent(*(getattr(event, name) for name in TrackingEvent.__struct_fields__))


def _build_proof(history: Sequence[ShipmentEvent]) -> TrackingProof:
    receivers = [event.receiver for event in history if event.receiver]
    images = dict.fromkeys(image for event in history for image in event.proof)
    return TrackingProof(receivers[-1] if receivers else None, list(images))
