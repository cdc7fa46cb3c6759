"""What the overview says, as plain aggregates on one connection. The API has no such call."""

import time

from bench.loyalty.owner import Connection

DAYS = 30

_WINDOW = """company_id = $1 AND created_at >= date_trunc('day', now(), 'UTC') - $2 * interval '1 day'
       AND created_at < date_trunc('day', now(), 'UTC') + interval '1 day'"""

STATEMENTS = (
    f"""
    SELECT date_trunc('day', created_at, 'UTC'), currency, count(*),
           count(*) FILTER (WHERE status IN ('cancelled', 'refunded')),
           count(*) FILTER (WHERE financial_status = 'paid'), sum(total) FILTER (WHERE financial_status = 'paid')
      FROM orders WHERE {_WINDOW} GROUP BY 1, 2""",
    f"""
    SELECT date_trunc('day', created_at, 'UTC'), count(sent_at), count(delivered_at), count(read_at),
           count(replied_at), count(failed_at)
      FROM messages WHERE {_WINDOW} AND direction = 'out' GROUP BY 1""",
    f"SELECT shipping_status, count(*) FROM shipments WHERE {_WINDOW} GROUP BY 1",
)


async def add_up(db: Connection, company_id: int) -> float:
    """Milliseconds that all of them took."""
    started = time.monotonic()
    for statement in STATEMENTS:
        await db.fetch(statement, company_id, DAYS - 1)
    return (time.monotonic() - started) * 1000
