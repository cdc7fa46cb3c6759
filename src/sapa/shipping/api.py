"""How shipments are created, changed and booked."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping import actions
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.errors import (
    BookingInProgress,
    CarrierUnavailable,
    InvalidMove,
    NotBookable,
    NotEditable,
    ShipmentNotFound,
)
from sapa.shipping.types import Shipment, ShipmentChange, ShipmentId, ShipmentIn

routes = Routes(
    "/shipping",
    base=Base.CUSTOMER,
    tag="Shipments",
    about="Parcels: their bookings, tracking, labels and returns.",
    product="CRM",
    refusal=Unauthorized,
    resource="shipments",
)


@routes.post("/shipments", scope=Scope.ORDERS_WRITE, raises=[ProviderNotConnected, CarrierUnavailable])
async def create_shipment(call: OutboundCall, body: ShipmentIn) -> Shipment | Accepted[Shipment]:
    """Create a shipment.

    With `autoBook` the pickup is requested at once and the response has the carrier's outcome. If the carrier does not
    respond, you get a 202 with `booking_unknown`; the outcome is looked up automatically, and the booking is never sent
    twice. `instant_carrier` shipments become `awaiting` instead, without a call to the carrier. Without `autoBook` the
    shipment is a `draft`. `storeLocationId` fills `sender`; fields that you send in `sender` take precedence.
    """
    return await actions.create(call, body)


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

    A field that is absent keeps its value, null clears it. You can edit a shipment until a carrier has it; one of
    `custom` or `parcel_carrier` until it has arrived, and you set its `shippingStatus` here. With `triggerBooking` the
    pickup is requested after the edits, as `autoBook` does on creation; a booked shipment stays as it is. If a shipment
    is `booking_unknown` and you learned the outcome from the carrier, send it in `resolveBooking`.
    """
    return await actions.update(call, id, body)
