"""Completes orders that code of earlier versions stored or changed."""

from sapa.db.pool import Tx
from sapa.orders.backfill import queries
from sapa.values.company import Company

BATCH = 500


async def complete(tx: Tx, company: Company, id: str) -> None:
    """Before the order changes."""
    await queries.complete_order(tx, company.id, id)


async def complete_batch(tx: Tx, company_id: int) -> None:
    """Some of the orders whose amounts were not computed yet."""
    await queries.complete_orders(tx, company_id, BATCH)


async def find_company_id(tx: Tx) -> int | None:
    """A company that has orders to complete."""
    return await queries.find_company(tx)


async def list_unrecorded(tx: Tx, company_id: int) -> list[str]:
    """The ids of some complete orders whose statuses were changed without a payment, refund or fulfilment."""
    return await queries.list_unrecorded(tx, company_id, BATCH)
