"""Pays an order with the cash that its parcel collected."""

from contextlib import suppress
from decimal import Decimal

from sapa.db.pool import Tx
from sapa.orders import actions as orders
from sapa.orders.types import InvalidTransition, OrderPatch
from sapa.shipping.types import StoredShipment
from sapa.values.company import Company


async def pay_order(tx: Tx, company: Company, shipment: StoredShipment, collected: Decimal) -> Decimal:
    """Records what the order owes, at most what was collected, and returns it. The same shipment pays once."""
    order = None if shipment.order_id is None else await orders.find(tx, company, shipment.order_id)
    if order is None or order.currency != shipment.currency or order.financial_status != "pending":
        return Decimal(0)
    if collected < order.total:
        return Decimal(0)
    with suppress(InvalidTransition):
        await orders.update(tx, company, order.id, OrderPatch(financial_status="paid"))
        return order.total
    return Decimal(0)
