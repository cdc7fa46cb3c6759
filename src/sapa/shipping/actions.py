"""Creating, editing and booking shipments."""

from datetime import datetime

import msgspec
from msgspec import UNSET

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.events import emit
from sapa.http.errors import Invalid
from sapa.orders import actions as orders
from sapa.shipping.areas import actions as areas
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.types import BookingContext, BookingStart
from sapa.shipping.connections.actions import find_adapter, get_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.providers import PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.validation import ShipmentFacts, build_shipment, list_changed_ends, revise_shipment
from sapa.shipping.states import GONE, is_allowed, list_next
from sapa.shipping.stores import actions as stores
from sapa.shipping.types import (
    BookingInProgress,
    InvalidMove,
    NotBookable,
    ShipmentBooked,
    ShipmentChange,
    ShipmentCreated,
    ShipmentIn,
    ShipmentPatch,
    StoredShipment,
)
from sapa.values.company import Company

DAY_SECONDS = 86_400


async def prepare(
    context: AppContext, company: Company, provider: str, is_booking: bool, names_city: bool
) -> tuple[ConnectedCarrier | None, BookingContext]:
    """Loads what create and update need before their transaction, because carriers may be called for it.

    Raises when the provider must be booked with and is not connected or not reachable.
    """
    traits = PROVIDERS[provider]
    books = is_booking and not traits.is_local and not traits.is_booked_by_people
    needs_cities = traits.has_pickup_cities and names_city
    if not books and not needs_cities:
        return None, BookingContext()
    async with context.database.connection() as db:
        connected = await get_carrier(context, db, company, provider) if books else None
        if connected is not None:
            connected.check_reachable()
        cities = await areas.list_pickup_cities(context, db, company, provider) if needs_cities else ()
    return connected, BookingContext(cities, connected.carrier.name if connected else None)


async def create(tx: Tx, company: Company, body: ShipmentIn, context: BookingContext) -> BookingStart:
    """Creates the shipment and, if asked to, the intent to book it."""
    facts = await _look_up(tx, company, body.provider, None, body, context)
    shipment = build_shipment(company, body, facts)
    await areas.check_ends(tx, company, facts.adapter, list_changed_ends(shipment, None))
    traits = PROVIDERS[shipment.provider]
    if body.auto_book and traits.is_local:
        shipment = msgspec.structs.replace(shipment, shipping_status="confirmed")
    elif body.auto_book and traits.is_booked_by_people:
        shipment = msgspec.structs.replace(shipment, shipping_status="awaiting")
    stored, attempt = await shipments.insert_shipment(tx, company.id, shipment), None
    if body.auto_book and context.adapter is not None:
        start = await bookings.intend(tx, company, stored, context.adapter)
        stored, attempt = await shipments.save_shipment(tx, company.id, start.stored, True), start.attempt
    await emit(tx, company, ShipmentCreated(stored.shipment))
    if stored.shipping_status == "confirmed":
        await emit(tx, company, ShipmentBooked(stored.shipment))
        await shipments.record_step(tx, company, stored)
    return BookingStart(stored, attempt)


async def update(tx: Tx, company: Company, id: str, body: ShipmentChange, context: BookingContext) -> BookingStart:
    """Applies the edits, then the requested action; both or neither."""
    if body.resolve_booking is not None and body.trigger_booking:
        raise Invalid.field("triggerBooking", "is given besides resolveBooking; send one of them")
    before = await shipments.lock_shipment(tx, company.id, id)
    facts = await _look_up(tx, company, before.provider, before, body, context)
    after = revise_shipment(company, before, body, facts)
    await areas.check_ends(tx, company, facts.adapter, list_changed_ends(after, before))
    if body.shipping_status is not UNSET:
        after = _move_by_hand(after, body.shipping_status)
    if body.needs_action is not UNSET:
        after = _acknowledge(after, body.needs_action)
    stored = await shipments.store(tx, company, before, after)
    if body.resolve_booking is not None:
        return BookingStart(await bookings.resolve(tx, company, stored, body.resolve_booking), None)
    if body.trigger_booking:
        return await _book(tx, company, stored, context)
    return BookingStart(stored, None)


async def _look_up(
    tx: Tx, company: Company, provider: str, before: StoredShipment | None, body: ShipmentPatch, context: BookingContext
) -> ShipmentFacts:
    """Loads what the body refers to."""
    traits = PROVIDERS[provider]
    lacks_sender = (before is None or before.sender is None) and body.sender is UNSET and not traits.is_local
    sender = await stores.find_sender(tx, company, body.store_location_id, or_default=lacks_sender)
    names_order = isinstance(body.order_id, str) and (before is None or body.order_id != before.order_id)
    order = await orders.find(tx, company, str(body.order_id)) if names_order else None
    clock = None
    if isinstance(body.pickup_schedule, datetime):
        clock = await shipments.get_clock(tx, company.id, traits.days_ahead * DAY_SECONDS)
    names_end = before is None or sender is not None or body.sender is not UNSET or body.delivery is not UNSET
    adapter = await find_adapter(tx, company, provider) if traits.locates_by == "areas" and names_end else None
    return ShipmentFacts(sender, order, clock, context.pickup_cities, adapter)


def _move_by_hand(shipment: StoredShipment, to: str) -> StoredShipment:
    is_back = to == "returned" and shipment.shipping_status in {"returning", "returned"}
    if not PROVIDERS[shipment.provider].is_local and not is_back:
        raise Invalid.field(
            "shippingStatus",
            "is the carrier's to tell; by hand go custom and parcel_carrier, and what is returning to returned",
        )
    if to == shipment.shipping_status:
        return shipment
    if not is_allowed(shipment.shipping_status, to, "A" if is_back else "L"):
        allowed = ", ".join(list_next(shipment.shipping_status, "L")) or "nothing else"
        raise InvalidMove(f"shippingStatus cannot change from {shipment.shipping_status} to {to}; it can be {allowed}.")
    gone = {"cancelled_by": "user", "cancelled_source": "api"} if to in GONE else {}
    poll_at = None if is_back else shipment.poll_at
    return msgspec.structs.replace(shipment, shipping_status=to, poll_at=poll_at, **gone)


def _acknowledge(shipment: StoredShipment, needs_action: bool) -> StoredShipment:
    """Clears the flag; the description of the problem stays."""
    if needs_action:
        raise Invalid.field("needsAction", "can be set to false only, which says that a person has looked at it")
    if shipment.needs_action and shipment.shipping_status == "booking_unknown":
        raise InvalidMove("It is still open whether the carrier took the booking; tell it with resolveBooking.")
    return msgspec.structs.replace(shipment, needs_action=False)


async def _book(tx: Tx, company: Company, stored: StoredShipment, context: BookingContext) -> BookingStart:
    """A booked shipment stays as it is; one that people book waits for a person."""
    if bookings.is_booked(stored):
        return BookingStart(stored, None)
    if context.adapter is not None:
        return await bookings.begin(tx, company, stored, context.adapter)
    if stored.shipping_status == "awaiting":
        return BookingStart(stored, None)
    bookings.check_bookable(stored)
    traits = PROVIDERS[stored.provider]
    if traits.is_local:
        if not is_allowed(stored.shipping_status, "confirmed", "L"):
            raise NotBookable(f"The shipment is {stored.shipping_status} and cannot be booked; make a new one.")
        after = msgspec.structs.replace(stored, shipping_status="confirmed")
        return BookingStart(await shipments.store(tx, company, stored, after), None)
    if not traits.is_booked_by_people:
        raise BookingInProgress("A booking of this shipment ended just now; look at it, then try again.")
    return BookingStart(await bookings.return_to_awaiting(tx, company, stored), None)
