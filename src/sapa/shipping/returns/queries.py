"""SQL of returns."""

from sapa.db.pool import Connection, Tx
from sapa.db.sql import sql
from sapa.shipping.states import TERMINAL

NEXT_NUMBER = sql(
    """
    INSERT INTO return_numbers (company_id, last) VALUES ($1, 1001)
    ON CONFLICT ON CONSTRAINT return_numbers_pkey DO UPDATE SET last = return_numbers.last + 1
    RETURNING last"""
)

FIND_OPEN = sql(
    """
    SELECT return_number
      FROM shipments
     WHERE company_id = $1 AND return_of = $2 AND shipping_status <> ALL ($3)
     LIMIT 1"""
)


async def build_number(tx: Tx, company_id: int) -> str:
    """The next number of the company's returns: R1001, R1002 …"""
    return f"R{await NEXT_NUMBER.value(tx, company_id)}"


async def find_open_number(db: Connection, company_id: int, shipment_id: str) -> str | None:
    """The number of a return that has not ended."""
    found: str | None = await FIND_OPEN.value(db, company_id, shipment_id, sorted(TERMINAL))
    return found
