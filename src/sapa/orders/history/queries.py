"""How the history of orders is read; it is written by the statement that changes the order."""

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.http.errors import NotFound
from sapa.orders.history.types import OrderHistoryEntry

# The first entry is the order itself: nothing more is written when it is placed.
LIST = sql(
    """
    SELECT id, action, actor, reference, changes, created_at
      FROM (SELECT number, id, action, actor, reference, changes, created_at
              FROM order_history
             WHERE company_id = $1 AND order_id = $2
             UNION ALL
            SELECT 0, 'hist_' || substr(id, 7), 'created', placed_by, NULL, '[]', created_at
              FROM orders
             WHERE company_id = $1 AND id = $2) AS entries
     ORDER BY number DESC
     LIMIT $3 OFFSET $4""",
    row=OrderHistoryEntry,
)

COUNT = sql(
    """
    SELECT (SELECT count(*) FROM order_history WHERE company_id = $1 AND order_id = $2)
         + (SELECT count(*) FROM orders WHERE company_id = $1 AND id = $2)"""
)


async def list_entries(
    db: Connection, company_id: int, order_id: str, limit: int, offset: int
) -> tuple[list[OrderHistoryEntry], int]:
    """One page, newest first, and the total; raises NotFound without such an order."""
    entries = await LIST.all(db, company_id, order_id, limit, offset)
    if offset == 0 and 0 < len(entries) < limit:
        return entries, len(entries)
    total: int = await COUNT.value(db, company_id, order_id)
    if not total:
        raise NotFound
    return entries, total
