"""How a simulated shipment is advanced over HTTP. A live key is refused."""

from typing import Annotated

from msgspec import Meta, Struct

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Call, Routes
from sapa.http.errors import Unauthorized
from sapa.sandbox.carriers.advance import advance
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import NotBookable, Shipment, ShipmentId, ShipmentNotFound

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipping", product="CRM", refusal=Unauthorized)


class AdvanceIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far to advance the simulated carrier."""

    to: Annotated[str, Meta(max_length=50, description="The state to advance to; the next one if absent.")] | None = (
        None
    )


@routes.post(
    "/shipments/{id}/sandbox/advance", scope=Scope.ORDERS_WRITE, status=200, raises=[ShipmentNotFound, NotBookable]
)
async def advance_shipment(call: Call, id: ShipmentId, body: AdvanceIn = AdvanceIn()) -> Shipment:
    """Advance a simulated shipment.

    For test keys only. The simulated carrier goes to its next state, or to the one in `to`, at once and sends its
    callback. The shipment follows within a second or two.
    """
    shipment = await shipments.get_stored(call.db, call.company.id, id)
    if not call.company.is_test:
        raise NotBookable("Only shipments of a test environment can be advanced.")
    if shipment.adapter is None or shipment.reference is None:
        status = shipment.shipping_status
        raise NotBookable(f"The shipment is {status} and has no booking with a simulated carrier. Book it first.")
    await advance(call.context, call.db, call.company.id, shipment.adapter, shipment.reference, body.to)
    return shipment.shipment
