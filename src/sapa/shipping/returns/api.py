"""How returns are reached."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping.connections.types import ProviderNotConnected
from sapa.shipping.errors import CarrierUnavailable, ShipmentNotFound
from sapa.shipping.returns import actions
from sapa.shipping.returns.types import NotReturnable, ReturnExists, ReturnIn
from sapa.shipping.types import Shipment, ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)


@routes.post(
    "/shipments/{id}/return",
    scope=Scope.ORDERS_WRITE,
    raises=[ShipmentNotFound, NotReturnable, ReturnExists, ProviderNotConnected, CarrierUnavailable],
)
async def return_shipment(
    call: OutboundCall, id: ShipmentId, body: ReturnIn = ReturnIn()
) -> Shipment | Accepted[Shipment]:
    """Return a delivered shipment.

    Creates a shipment from the receiver back to the sender, with the same package and service unless you send others.
    It has a `returnNumber` of its own and names the shipment in `returnOf`; `refundId` links it to a refund of the
    order, also later with PATCH. It fulfils no order and collects no cash. With `autoBook` the pickup is requested at
    once, as for a new shipment.
    """
    return await actions.create(call, id, body)
