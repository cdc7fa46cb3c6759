"""What orders ask about shipments, which are above them."""

from typing import Protocol

from sapa.db.pool import Tx
from sapa.ports import Port
from sapa.values.company import Company


class Shipments(Protocol):
    """Implemented by `sapa.shipping.shipments.actions`."""

    async def find_order_id(self, tx: Tx, company: Company, shipment_id: str) -> str | None:
        """The order that a shipment carries; None for a shipment without an order, and for an unknown one."""


SHIPMENTS: Port[Shipments] = Port("shipments")
