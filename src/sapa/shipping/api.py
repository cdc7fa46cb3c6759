"""How shipments are created, changed and booked."""

from collections.abc import Awaitable, Callable

from msgspec import UNSET

from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping import actions
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.types import BookingStart
from sapa.shipping.connections.types import ConnectedCarrier, ProviderNotConnected
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.states import BOOKABLE
from sapa.shipping.types import (
    BookingInProgress,
    CarrierUnavailable,
    InvalidMove,
    NotBookable,
    NotEditable,
    Shipment,
    ShipmentChange,
    ShipmentId,
    ShipmentIn,
    ShipmentNotFound,
)

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


@routes.post("/shipments", scope=Scope.ORDERS_WRITE, raises=[ProviderNotConnected, CarrierUnavailable])
async def create_shipment(call: OutboundCall, body: ShipmentIn) -> Shipment | Accepted[Shipment]:
    """Create a shipment.

    With `autoBook` the pick-up is requested at once: the answer shows what the carrier made of it, or is a 202 with
    `booking_unknown` when the carrier's answer did not come; that is settled by itself, and the booking is never sent
    twice. `instant_carrier` shipments become `awaiting` instead, without a call to the carrier. Without `autoBook` the
    shipment is a `draft`. `storeLocationId` fills `sender`; fields of `sender` itself win.
    """
    connected, context = await actions.prepare(call.context, call.company, body.provider, body.auto_book, True)
    return await _execute(call, connected, lambda tx: actions.create(tx, call.company, body, context))


@routes.patch(
    "/shipments/{id}",
    scope=Scope.ORDERS_WRITE,
    raises=[
        ShipmentNotFound, NotEditable, BookingInProgress, NotBookable, InvalidMove, ProviderNotConnected,
        CarrierUnavailable,
    ],
)  # fmt: skip
async def update_shipment(call: OutboundCall, id: ShipmentId, body: ShipmentChange) -> Shipment | Accepted[Shipment]:
    """Update a shipment, and book it.

    A field that is absent keeps its value, null clears it. A shipment can be edited until a carrier has it; one of
    `custom` or `parcel_carrier` until it has arrived, and its `shippingStatus` is set here. With `triggerBooking` the
    pick-up is requested, after the edits, as `autoBook` does on creation; what is booked already stays as it is. What
    a person found out about a `booking_unknown` shipment is told with `resolveBooking`.
    """
    async with call.context.database.connection() as db:
        stored = await shipments.get_shipment(db, call.company.id, id)
    is_booking = body.trigger_booking and stored.shipping_status in BOOKABLE
    names_city = body.pickup_city is not UNSET
    connected, context = await actions.prepare(call.context, call.company, stored.provider, is_booking, names_city)
    return await _execute(call, connected, lambda tx: actions.update(tx, call.company, id, body, context))


async def _execute(
    call: OutboundCall, connected: ConnectedCarrier | None, work: Callable[[Tx], Awaitable[BookingStart]]
) -> Shipment | Accepted[Shipment]:
    """The intent, the call to the carrier where there is one, and the outcome."""
    start = await call.intend(work, present=lambda start: start.stored.shipment)
    attempt = start.attempt
    if attempt is None or connected is None:
        return await call.conclude(lambda tx: _same(start.stored.shipment))
    outcome = await bookings.send(call.context, connected, start.stored, attempt)

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        stored = await bookings.settle(tx, call.company, attempt.shipment_id, attempt.number, outcome, "api")
        is_open = stored.shipping_status in {"booking", "booking_unknown"}
        return Accepted(stored.shipment) if is_open else stored.shipment

    return await call.conclude(conclude)


async def _same(shipment: Shipment) -> Shipment:
    return shipment
