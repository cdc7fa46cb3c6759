"""Completes an order of an earlier version before it changes."""

from sapa.db.pool import Tx
from sapa.orders.backfill import queries
from sapa.values.company import Company


async def complete(tx: Tx, company: Company, id: str) -> None:
    await queries.complete_order(tx, company.id, id)
