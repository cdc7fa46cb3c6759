"""How much waits for a person who is away."""

from datetime import datetime

from msgspec import Struct

from sapa.db.pool import Connection
from sapa.db.sql import sql


class WaitingWork(Struct, frozen=True):
    """How much began to wait; the fields are the kinds of alerts."""

    assigned: int
    unassigned: int
    mentioned: int
    order: int
    shipment: int


MAX_COUNTED = 1_000

COUNT_WAITING = sql(
    """
    SELECT count(*) FILTER (WHERE a.user_id = $2) AS assigned,
           count(*) FILTER (WHERE t.agent_id IS NULL) AS unassigned,
           (SELECT count(*)
              FROM ticket_mentions m
              JOIN agents mentioned ON mentioned.company_id = $1 AND mentioned.id = m.agent_id
             WHERE m.company_id = $1 AND m.created_at > $3 AND mentioned.user_id = $2) AS mentioned,
           (SELECT count(DISTINCT o.id)
              FROM (SELECT order_id
                      FROM order_transactions
                     WHERE company_id = $1 AND occurred_at > $3 AND kind = 'payment'
                     LIMIT $4) AS paid
              JOIN orders o ON o.company_id = $1 AND o.id = paid.order_id
             WHERE o.cell = 'active/unfulfilled/paid') AS "order",
           (SELECT count(*)
              FROM (SELECT
                      FROM shipments
                     WHERE company_id = $1 AND needs_action AND updated_at > $3
                     LIMIT $4) AS stuck) AS shipment
      FROM tickets t
      LEFT JOIN agents a ON a.company_id = $1 AND a.id = t.agent_id
     WHERE t.company_id = $1 AND t.waiting_since > $3 AND t.status <> 'resolved'""",
    row=WaitingWork,
)


async def count_waiting(db: Connection, company_id: int, user_id: int, since: datetime) -> WaitingWork:
    """Customers who have begun to wait since then, tickets that mention the person, orders that were paid, and parcels
    that need somebody."""
    return await COUNT_WAITING.find(db, company_id, user_id, since, MAX_COUNTED) or WaitingWork(0, 0, 0, 0, 0)
