"""Payments that bookings wait for: a carrier without credit of the company carries a parcel only once it is paid."""

import asyncio

import msgspec

from sapa.access.actions import read_clock
from sapa.context import AppContext
from sapa.db.pool import Tx
from sapa.http.outbound_call import OutboundCall
from sapa.shipping.bookings.types import ShipmentPayment
from sapa.shipping.carriers.abilities import PaidBookings
from sapa.shipping.carriers.interface import BadCredentials, BookingPayment, CarrierAway
from sapa.shipping.connections.actions import find_carrier
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.shipping.shipments import actions as shipments
from sapa.shipping.types import StoredShipment, choose_payment_status
from sapa.values.company import Company

SECONDS = 10.0


async def refresh(call: OutboundCall, id: str) -> ShipmentPayment:
    """Asks the carrier about the payment of a shipment, unless it is settled, and stores the answer."""
    async with call.context.database.connection() as db:
        shipment = await shipments.get_stored(db, call.company.id, id)
        connected = await find_carrier(call.context, db, call.company, shipment.provider)
    answer = await ask_carrier(connected, shipment)
    amount = answer.amount if isinstance(answer, BookingPayment) else None
    if isinstance(answer, BookingPayment):
        payment, before = answer, shipment
        shipment = await call.transact(lambda tx: apply_payment(tx, call.company, before, payment))
    return ShipmentPayment(
        shipment_id=shipment.id,
        payment_id=shipment.payment_id,
        status=shipment.payment_status,
        qr=shipment.payment_qr,
        amount=amount,
        live=isinstance(answer, BookingPayment),
        error=answer if isinstance(answer, str) else None,
    )


async def poll(
    context: AppContext, company: Company, connected: ConnectedCarrier | None, before: StoredShipment
) -> None:
    """Like refresh, for the worker."""
    answer = await ask_carrier(connected, before)
    if isinstance(answer, BookingPayment):
        async with context.database.transaction() as tx:
            await apply_payment(tx, company, before, answer)


async def ask_carrier(connected: ConnectedCarrier | None, shipment: StoredShipment) -> BookingPayment | str | None:
    """The carrier's answer, or why there is none; None if there is nothing to ask."""
    if shipment.payment_status != "pending" or shipment.payment_id is None or shipment.adapter is None:
        return None
    if connected is None or connected.carrier.name != shipment.adapter:
        return "The carrier that has the shipment is no longer connected."
    if not isinstance(connected.carrier, PaidBookings):
        return None
    try:
        async with asyncio.timeout(SECONDS):
            found = await connected.carrier.find_payment(connected.connection, shipment.payment_id)
    except (CarrierAway, BadCredentials, TimeoutError) as error:
        return str(error) or "The carrier did not respond in time."
    return found or "The carrier has no such payment."


async def apply_payment(tx: Tx, company: Company, before: StoredShipment, payment: BookingPayment) -> StoredShipment:
    """A settled payment has no code any more. If the shipment was booked again since, the answer is ignored."""
    shipment = await shipments.lock_shipment(tx, company.id, before.id)
    if shipment.reference != before.reference:
        return shipment
    status = choose_payment_status(shipment.payment_status, payment.status)
    qr = (payment.qr or shipment.payment_qr) if status == "pending" else None
    after = msgspec.structs.replace(shipment, payment_status=status, payment_qr=qr)
    if status != shipment.payment_status:  # the awb follows soon
        after = msgspec.structs.replace(after, poll_at=shipments.build_poll_at(after, await read_clock(tx, company.id)))
    return await shipments.store(tx, company, shipment, after)
