"""Pays an order with the cash that its parcel collected."""

from decimal import Decimal

from sapa.access.actions import read_clock
from sapa.db.pool import Tx
from sapa.http.errors import Conflict
from sapa.orders import actions as orders
from sapa.orders.settlement.types import PaymentIn
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company

METHOD = "cod"


async def pay_order(tx: Tx, company: Company, shipment: StoredShipment, collected: Decimal) -> Decimal:
    """Records what the order owes, at most what was collected, and returns it. An order that takes no payment any more
    gets none.

    The order is locked: the delivery has fulfilled it just before.
    """
    order = None if shipment.order_id is None else await orders.find(tx, company, shipment.order_id)
    if order is None or order.currency != shipment.currency or order.outstanding <= 0:
        return Decimal(0)
    real, collected_at = (await read_clock(tx, company.id)).real, shipment.cod_collected_at
    body = PaymentIn(
        amount=min(collected, order.outstanding),
        method=METHOD,
        reference=shipment.id,
        paid_at=None if collected_at is None else min(collected_at, real),  # a test clock may be ahead
    )
    try:
        payment, _ = await orders.record_payment(tx, company, order.id, body)
    except Conflict:
        return Decimal(0)
    return payment.amount
