"""How a shipment is tracked."""

from sapa.access.types import Scope
from sapa.http.endpoints import Base, Routes
from sapa.http.errors import Unauthorized
from sapa.http.outbound_call import OutboundCall
from sapa.shipping.carriers.interface import TrackingResult
from sapa.shipping.connections.actions import find_carrier
from sapa.shipping.errors import ShipmentNotFound
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.shipments.types import POLLED
from sapa.shipping.tracking import actions
from sapa.shipping.tracking.types import Tracking
from sapa.shipping.types import ShipmentId

routes = Routes("/shipping", base=Base.CUSTOMER, tag="Shipments", product="CRM", refusal=Unauthorized)


@routes.get("/shipments/{id}/tracking", scope=Scope.ORDERS_READ, raises=[ShipmentNotFound])
async def track_shipment(call: OutboundCall, id: ShipmentId) -> Tracking:
    """Track a shipment.

    Asks the carrier now and adds its events to the history. If the carrier is unavailable you get the last known state,
    with `stale` true and the reason in `error`.
    """
    company, context = call.company, call.context
    async with context.database.connection() as db:
        shipment = await shipments.get_stored(db, company.id, id)
        is_tracked = actions.is_tracked(shipment)
        connected = await find_carrier(context, db, company, shipment.provider) if is_tracked else None
    result = await actions.ask_carrier(connected, shipment) if is_tracked else None
    if isinstance(result, TrackingResult):
        events = result.events
        before = shipment
        shipment = await call.transact(lambda tx: actions.apply_events(tx, company, before, events, POLLED))
    async with context.database.connection() as db:
        return await actions.load_tracking(db, shipment, company.id, result)
