"""Creating, editing and booking shipments: one transaction before the call to the carrier, one after it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.orders import actions as orders
from sapa.orders.settlement.types import Refund
from sapa.shipping.areas import actions as areas
from sapa.shipping.areas.types import AreaRequest
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.types import BookingStart
from sapa.shipping.carriers.interface import CarrierArea
from sapa.shipping.connections.actions import get_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.errors import InvalidMove, NotBookable
from sapa.shipping.providers import LOCAL_PROVIDERS, PROVIDERS
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.validation import ShipmentFacts, build_shipment, list_changed_ends, revise_shipment
from sapa.shipping.states import BOOKABLE, CANCELLED, is_allowed, list_next
from sapa.shipping.stores import actions as stores
from sapa.shipping.types import Party, ReturnOrigin, Shipment, ShipmentChange, ShipmentIn, ShipmentPatch, StoredShipment
from sapa.values.company import Company

_read_refunds = msgspec.json.Decoder(list[Refund]).decode


async def create(call: OutboundCall, body: ShipmentIn) -> Shipment | Accepted[Shipment]:
    """Creates a shipment and, with autoBook, books it."""
    cities = await list_pickup_cities(call.context, call.company, body.provider)

    async def begin(tx: Tx) -> BookingStart:
        return await begin_create(call.context, tx, call.company, body, cities)

    if body.auto_book:
        return await _intend_and_send(call, begin)
    return await call.commit(lambda tx: _present(begin(tx)), is_one_statement=True)


async def update(call: OutboundCall, id: str, body: ShipmentChange) -> Shipment | Accepted[Shipment]:
    """Edits a shipment and, with triggerBooking, books it."""
    cities: Sequence[CarrierArea] = ()
    if body.pickup_city is not UNSET:
        async with call.context.database.connection() as db:
            stored = await shipments.get_stored(db, call.company.id, id)
        cities = await list_pickup_cities(call.context, call.company, stored.provider)

    async def begin(tx: Tx) -> BookingStart:
        return await begin_update(call.context, tx, call.company, id, body, cities)

    if body.trigger_booking:
        return await _intend_and_send(call, begin)
    return await call.commit(lambda tx: _present(begin(tx)))


async def book(context: AppContext, company: Company, id: str) -> StoredShipment:
    """Books a shipment for a person, in the console or by a command. A booked shipment stays as it is."""
    start = await context.database.transact(lambda tx: _begin_for_person(context, tx, company, id))
    outcome = await bookings.send(context, start)
    attempt = start.attempt
    if attempt is None:
        return start.stored
    return await context.database.transact(lambda tx: bookings.settle(tx, company, attempt, outcome, "user"))


async def list_pickup_cities(context: AppContext, company: Company, provider: str) -> Sequence[CarrierArea]:
    """Call it before the transaction, because it may call the carrier."""
    if not PROVIDERS[provider].has_pickup_cities:
        return ()
    return await areas.list_coverage(context, company, AreaRequest(provider, "cities", None), None)


async def _intend_and_send(
    call: OutboundCall, begin: Callable[[Tx], Awaitable[BookingStart]]
) -> Shipment | Accepted[Shipment]:
    start = await call.intend(begin, present=lambda start: start.stored.shipment)
    return await bookings.send_and_settle(call, start)


async def _present(begun: Awaitable[BookingStart]) -> Shipment:
    """For a change that books nothing."""
    return (await begun).stored.shipment


async def begin_create(
    context: AppContext,
    tx: Tx,
    company: Company,
    body: ShipmentIn,
    pickup_cities: Sequence[CarrierArea] = (),
    *,
    origin: ReturnOrigin | None = None,
) -> BookingStart:
    """Creates the shipment, with the intent to book it if requested. `origin` is what a return sends back."""
    facts = await _look_up(context, tx, company, body.provider, None, body, body.auto_book, pickup_cities)
    shipment = build_shipment(company, body, facts, origin)
    await _check_refund(tx, company, shipment, None)
    shipment = await _locate(tx, company, shipment, list_changed_ends(shipment, None))
    if facts.connected is not None:
        return await bookings.begin(tx, company, shipment, facts.connected, is_new=True)
    if body.auto_book:
        status = "confirmed" if PROVIDERS[shipment.provider].is_local else "awaiting"
        shipment = msgspec.structs.replace(shipment, shipping_status=status)
    return BookingStart(await shipments.create(tx, company, shipment))


async def begin_update(
    context: AppContext,
    tx: Tx,
    company: Company,
    id: str,
    body: ShipmentChange,
    pickup_cities: Sequence[CarrierArea] = (),
) -> BookingStart:
    """Applies the edits, then the requested action; both or neither."""
    if body.resolve_booking is not None and body.trigger_booking:
        raise Invalid.field("triggerBooking", "cannot be combined with resolveBooking; send one of them")
    await stores.lock_named(tx, company, body.store_location_id)
    before = await shipments.lock_shipment(tx, company.id, id)
    is_booking = body.trigger_booking and before.shipping_status in BOOKABLE
    facts = await _look_up(context, tx, company, before.provider, before, body, is_booking, pickup_cities)
    after = revise_shipment(company, before, body, facts)
    await _check_refund(tx, company, after, before.refund_id)
    after = await _locate(tx, company, after, list_changed_ends(after, before))
    if body.shipping_status is not UNSET:
        after = _move_by_hand(after, body.shipping_status)
    if body.needs_action is not UNSET:
        after = _acknowledge(after, body.needs_action)
    stored = await shipments.store(tx, company, before, after)
    if body.resolve_booking is not None:
        return BookingStart(await bookings.resolve(tx, company, stored, body.resolve_booking))
    if body.trigger_booking:
        return await _begin_booking(tx, company, stored, facts.connected)
    return BookingStart(stored)


async def _look_up(
    context: AppContext,
    tx: Tx,
    company: Company,
    provider: str,
    before: StoredShipment | None,
    body: ShipmentPatch,
    is_booking: bool,
    pickup_cities: Sequence[CarrierArea],
) -> ShipmentFacts:
    """Loads what the body refers to. Raises if the provider to book with is not connected or not reachable."""
    traits = PROVIDERS[provider]
    connected = order = now = None
    if is_booking and not traits.is_local and not traits.is_booked_by_people:
        connected = await get_carrier(context, tx, company, provider)
        connected.check_reachable()
    lacks_sender = (before is None or before.sender is None) and body.sender is UNSET and not traits.is_local
    sender = await stores.find_sender(tx, company, body.store_location_id, or_default=lacks_sender)
    if isinstance(body.order_id, str) and (before is None or body.order_id != before.order_id):
        order = await orders.find(tx, company, body.order_id)
    if isinstance(body.pickup_schedule, datetime):
        now = (await read_clock(tx, company.id)).now
    return ShipmentFacts(sender, order, now, pickup_cities, connected)


async def _locate(tx: Tx, company: Company, shipment: StoredShipment, ends: Mapping[str, Party]) -> StoredShipment:
    """With the receiver's area, if that changed. Raises Invalid for an end that is not one of the carrier's areas."""
    if not ends:
        return shipment
    if PROVIDERS[shipment.provider].locates_by == "areas":
        return await areas.locate(tx, company, shipment, ends)
    return await areas.with_area(tx, company, shipment, None) if "delivery" in ends else shipment


async def _check_refund(tx: Tx, company: Company, shipment: StoredShipment, before: str | None) -> None:
    if shipment.refund_id is None or shipment.refund_id == before:
        return
    order = None if shipment.order_id is None else await orders.find(tx, company, shipment.order_id)
    refunds = [] if order is None else _read_refunds(order.refunds)
    if shipment.refund_id not in {refund.id for refund in refunds}:
        raise Invalid.field("refundId", "is not the id of a refund of the shipment's order")


def _move_by_hand(shipment: StoredShipment, to: str) -> StoredShipment:
    is_back = to == "returned" and shipment.shipping_status in {"returning", "returned"}
    if not PROVIDERS[shipment.provider].is_local and not is_back:
        raise Invalid.field(
            "shippingStatus",
            f"is set by the carrier. You can set it for {LOCAL_PROVIDERS}, and change returning to returned",
        )
    if to == shipment.shipping_status:
        return shipment
    if not is_allowed(shipment.shipping_status, to, "caller" if is_back else "manual"):
        allowed = ", ".join(list_next(shipment.shipping_status, "manual")) or "nothing else"
        raise InvalidMove(f"shippingStatus cannot change from {shipment.shipping_status} to {to}; it can be {allowed}.")
    cancellation = {"cancelled_by": "user", "cancelled_source": "api"} if to in CANCELLED else {}
    poll_at = None if is_back else shipment.poll_at
    return msgspec.structs.replace(shipment, shipping_status=to, poll_at=poll_at, **cancellation)


def _acknowledge(shipment: StoredShipment, needs_action: bool) -> StoredShipment:
    """Clears the flag; the description of the problem stays."""
    if needs_action:
        raise Invalid.field("needsAction", "can only be set to false, which means that a person has checked it")
    if shipment.needs_action and shipment.shipping_status == "booking_unknown":
        raise InvalidMove("The outcome of the booking is unknown. Check with the carrier, then send resolveBooking.")
    return msgspec.structs.replace(shipment, needs_action=False)


async def _begin_booking(
    tx: Tx, company: Company, stored: StoredShipment, connected: ConnectedCarrier | None
) -> BookingStart:
    """A booked shipment stays as it is; one that people book waits for a person."""
    if bookings.is_booked(stored):
        return BookingStart(stored)
    if connected is not None:
        return await bookings.begin(tx, company, stored, connected)
    if stored.shipping_status == "awaiting":
        return BookingStart(stored)
    bookings.check_bookable(stored)
    if not PROVIDERS[stored.provider].is_local:
        return BookingStart(await bookings.return_to_awaiting(tx, company, stored))
    if not is_allowed(stored.shipping_status, "confirmed", "manual"):
        raise NotBookable(f"The shipment is {stored.shipping_status} and cannot be booked. Create a new one.")
    after = msgspec.structs.replace(stored, shipping_status="confirmed")
    return BookingStart(await shipments.store(tx, company, stored, after))


async def _begin_for_person(context: AppContext, tx: Tx, company: Company, id: str) -> BookingStart:
    """People also book shipments that the API leaves to them."""
    stored = await shipments.lock_shipment(tx, company.id, id)
    if PROVIDERS[stored.provider].is_local:
        raise NotBookable(f"{stored.provider} has no carrier to book with. Confirm it with triggerBooking.")
    connected = await get_carrier(context, tx, company, stored.provider)
    if bookings.is_booked(stored):
        return BookingStart(stored)
    connected.check_reachable()
    return await bookings.begin(tx, company, stored, connected)
