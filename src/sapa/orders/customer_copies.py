"""What orders show of their customer, kept current: a customer who is renamed is found by the new name."""

from sapa.customers.types import CustomerRef
from sapa.db.pool import Tx
from sapa.db.sql import sql
from sapa.values.company import Company
from sapa.values.json import encode
from sapa.values.text_folding import fold

MOST_ORDERS = 2_000
"""Of one customer, the newest; a customer with more of them keeps the old name on the rest."""

CARRY = sql(
    """
    UPDATE orders
       SET customer = $3, customer_text = $4
     WHERE company_id = $1
       AND id = ANY(ARRAY(SELECT id FROM orders
                           WHERE company_id = $1 AND customer_id = $2
                           ORDER BY created_at DESC, id DESC
                           LIMIT $5))"""
)


async def carry(tx: Tx, company: Company, customer: CustomerRef) -> None:
    """Under the customer's lock, in the transaction of its change. The orders themselves do not count as changed."""
    await CARRY.run(tx, company.id, customer.id, encode(customer), build_customer_text(customer), MOST_ORDERS)


def build_customer_text(customer: CustomerRef | None) -> str:
    """What a search for a name looks through."""
    return "" if customer is None else fold(f"{customer.first_name or ''} {customer.last_name or ''}")
