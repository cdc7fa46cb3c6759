"""How a booked shipment is cancelled."""

from sapa.access.types import Scope
from sapa.db.pool import Tx
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping.bookings import cancel
from sapa.shipping.carriers.interface import CancelPending, CancelRefused, CarrierAway
from sapa.shipping.connections.actions import get_carrier
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import (
    BookingInProgress,
    CancelIn,
    CarrierUnavailable,
    NotBooked,
    NotCancellable,
    Shipment,
    ShipmentId,
    ShipmentNotFound,
)

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


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

    The carrier is told at once, where it has the shipment. `aggregator_carrier` and `ev_courier` need an awb;
    `instant_carrier` is cancelled at the carrier once it has an orderNo, and locally before; `custom` and
    `parcel_carrier` are cancelled locally. After the pick-up it is refused. When the carrier's answer does not come,
    the answer is a 502 and the shipment is `cancelling` until it is settled; when the carrier takes its time to decide,
    a 202. Cancelling again changes nothing.
    """
    company = call.company
    async with call.context.database.connection() as db:
        now = await shipments.get_stored(db, company.id, id)
        needs_carrier = cancel.choose_method(now) == "carrier"
        connected = await get_carrier(call.context, db, company, now.provider) if needs_carrier else None
    if connected is not None and connected.carrier.name != now.adapter:
        raise ProviderNotConnected(f"{now.provider} is served by another carrier now; {now.adapter} has this shipment.")
    shipment, method = await call.intend(
        lambda tx: cancel.begin_cancel(tx, company, id, body.reason, "api"), present=lambda begun: begun[0].shipment
    )
    if method != "carrier" or connected is None:
        return await call.conclude(lambda tx: _same(shipment.shipment))
    outcome = await cancel.ask_carrier(connected, shipment, is_first=now.shipping_status != "cancelling")
    if isinstance(outcome, CarrierAway | CancelRefused):
        await call.transact(lambda tx: cancel.settle_cancel(tx, company, shipment, outcome))
        if isinstance(outcome, CancelRefused):
            raise NotCancellable(f"The carrier refused the cancellation: {outcome.reason}")
        raise CarrierUnavailable(f"The carrier did not answer; the cancellation is being settled. {outcome}")

    async def conclude(tx: Tx) -> Shipment | Accepted[Shipment]:
        settled = await cancel.settle_cancel(tx, company, shipment, outcome)
        is_pending = isinstance(outcome, CancelPending) and settled.shipping_status == "cancelling"
        return Accepted(settled.shipment) if is_pending else settled.shipment

    return await call.conclude(conclude)


async def _same(shipment: Shipment) -> Shipment:
    return shipment
