"""Returns: a shipment that brings a delivered one back, from its receiver to its sender."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.outbound_call import OutboundCall
from sapa.http.responses import Accepted
from sapa.shipping import actions as shipping
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.bookings.types import BookingStart
from sapa.shipping.carriers.interface import CarrierArea
from sapa.shipping.returns import queries
from sapa.shipping.returns.types import NotReturnable, ReturnExists, ReturnIn
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import PackageIn, PartyIn, ReturnOrigin, Shipment, ShipmentIn, StoredShipment
from sapa.values.company import Company

AS_SENT = ("service_type", "service_name", "service_code", "pickup_city")
"""Fields of the shipment that its return takes over, as far as they are not sent with it."""


async def create(call: OutboundCall, id: str, body: ReturnIn) -> Shipment | Accepted[Shipment]:
    """Creates the return and, with autoBook, books it."""
    async with call.context.database.connection() as db:
        original = await shipments.get_stored(db, call.company.id, id)
    cities = await shipping.list_pickup_cities(call.context, call.company, body.provider or original.provider)
    start = await call.intend(
        lambda tx: begin(call.context, tx, call.company, id, body, cities), present=lambda start: start.stored.shipment
    )
    return await bookings.send_and_settle(call, start)


async def begin(
    context: AppContext, tx: Tx, company: Company, id: str, body: ReturnIn, pickup_cities: Sequence[CarrierArea]
) -> BookingStart:
    original = await shipments.lock_shipment(tx, company.id, id)
    if original.return_of is not None:
        raise NotReturnable("The shipment is itself a return. Create a new shipment to send it again.")
    if original.shipping_status != "delivered":
        raise NotReturnable(f"Only a delivered shipment can be returned; it is {original.shipping_status}.")
    if number := await queries.find_open_number(tx, company.id, id):
        raise ReturnExists(f"The return {number} of this shipment is under way. Cancel it first, or wait for its end.")
    origin = ReturnOrigin(id, original.order_id, await queries.build_number(tx, company.id))
    return await shipping.begin_create(context, tx, company, build_return(original, body), pickup_cities, origin=origin)


def build_return(original: StoredShipment, body: ReturnIn) -> ShipmentIn:
    """The body of the return shipment."""
    is_same_provider = body.provider in {None, original.provider}
    sent = {name: value for name in AS_SENT if (value := getattr(body, name)) is not UNSET}
    as_sent = {name: getattr(original, name) for name in AS_SENT} if is_same_provider else {}
    return ShipmentIn(
        provider=body.provider or original.provider,
        fee=body.fee,
        currency=original.currency,
        sender=_merge(PartyIn, original.delivery, body.sender),
        delivery=_merge(PartyIn, original.sender, body.delivery),
        package=_merge(PackageIn, original.package, body.package),
        package_handover=body.package_handover,
        pickup_schedule=body.pickup_schedule,
        insurance=body.insurance,
        refund_id=body.refund_id,
        auto_book=body.auto_book,
        **{**as_sent, **sent},
    )


def _merge(shape: Any, stored: Raw | None, changes: Any) -> Any:
    """The stored part as an input, with the changes."""
    before: Any = shape() if stored is None else msgspec.json.decode(stored, type=shape)
    if changes is None:
        return UNSET if stored is None else before
    sent = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not UNSET}
    return msgspec.structs.replace(before, **sent)
