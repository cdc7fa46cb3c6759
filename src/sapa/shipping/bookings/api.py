"""How a booked shipment is cancelled, and paid."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping.bookings import cancel, payment
from sapa.shipping.bookings.types import ShipmentPayment
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.errors import BookingInProgress, CarrierUnavailable, NotBooked, NotCancellable, ShipmentNotFound
from sapa.shipping.types import CancelIn, Shipment, ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)


@routes.post(
    "/shipments/{id}/cancel",
    scope=Scope.ORDERS_WRITE,
    status=200,
    raises=[
        ShipmentNotFound, NotBooked, NotCancellable, BookingInProgress, ProviderNotConnected, CarrierUnavailable,
    ],
)  # fmt: skip
async def cancel_shipment(
    call: OutboundCall, id: ShipmentId, body: CancelIn = CancelIn()
) -> Shipment | Accepted[Shipment]:
    """Cancel a shipment.

    If the carrier has the shipment, it is asked to cancel at once. `aggregator_carrier` and `ev_courier` need an awb;
    `instant_carrier` is cancelled at the carrier once it has an orderNo, and locally before; `custom` and
    `parcel_carrier` are cancelled locally. After pickup the cancellation is refused. If the carrier does not respond,
    you get a 502 and the shipment stays `cancelling` until the carrier confirms or refuses; if the carrier decides
    later, you get a 202. Cancelling again changes nothing.
    """
    return await cancel.cancel(call, id, body.reason)


@routes.get("/shipments/{id}/payment", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def get_shipment_payment(call: OutboundCall, id: ShipmentId) -> ShipmentPayment:
    """Get the payment that a booking waits for.

    Some accounts pay each booking before the carrier picks the parcel up. Show `qr` as a QRIS code; the carrier is
    asked now whether it was paid. Without a payment, `paymentId` is null.
    """
    return await payment.refresh(call, id)
