"""What reports read. Each statement scans an index over the window and returns few rows."""

from datetime import date, datetime

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.reports.types import (
    DayRange,
    EndpointHealth,
    MessageStep,
    OrderStep,
    ShipmentState,
)

MOST_ROWS = 5_000
MOST_ENDPOINTS = 50
MOST_ATTEMPTS = 1_000
MOST_WAITING = 10_000


NOW = sql("SELECT now() + clock_offset AS now FROM companies WHERE company_id = $1", row=datetime)

# By day first, with plain arithmetic; only those few sums are grouped into weeks and months.
_STEP = "to_char(date_trunc($4, day AT TIME ZONE 'UTC'), 'YYYY-MM-DD') AS at"
_DAY = "date_bin('1 day', created_at, '2000-01-01 00:00:00+00')"

MESSAGES = sql(
    f"""
    SELECT {_STEP}, sum(sent)::bigint AS sent, sum(delivered)::bigint AS delivered, sum(read)::bigint AS read,
           sum(replied)::bigint AS replied, sum(failed)::bigint AS failed
      FROM (SELECT {_DAY} AS day, count(sent_at) AS sent, count(delivered_at) AS delivered, count(read_at) AS read,
                   count(replied_at) AS replied, count(failed_at) AS failed
              FROM messages
             WHERE company_id = $1 AND direction = 'out' AND created_at >= $2 AND created_at < $3
             GROUP BY 1) AS days
     GROUP BY 1
     ORDER BY 1""",
    row=MessageStep,
)

ORDERS = sql(
    f"""
    SELECT {_STEP}, currency, sum(orders)::bigint AS orders, sum(cancelled)::bigint AS cancelled,
           sum(paid)::bigint AS paid, trim_scale(sum(revenue)) AS revenue
      FROM (SELECT {_DAY} AS day, currency, count(*) AS orders,
                   count(*) FILTER (WHERE status IN ('cancelled', 'refunded')) AS cancelled,
                   count(*) FILTER (WHERE financial_status = 'paid') AS paid,
                   coalesce(sum(total) FILTER (WHERE financial_status = 'paid'), 0) AS revenue
              FROM orders
             WHERE company_id = $1 AND created_at >= $2 AND created_at < $3
             GROUP BY 1, 2) AS days
     GROUP BY 1, 2
     ORDER BY 1, 2
     LIMIT $5""",
    row=OrderStep,
)

ENDPOINTS = sql(
    """
    SELECT e.id, e.url, e.status, a.attempts, a.delivered, a.failed, a.milliseconds, a.last_at, q.waiting
      FROM (SELECT id, url, status
              FROM webhook_endpoints
             WHERE company_id = $1
             ORDER BY id
             LIMIT $4) AS e
     CROSS JOIN LATERAL (
           SELECT count(*) AS attempts, count(*) FILTER (WHERE outcome = 'delivered') AS delivered,
                  count(*) FILTER (WHERE outcome IN ('retrying', 'failed')) AS failed,
                  round(avg(milliseconds))::integer AS milliseconds, max(started_at) AS last_at
             FROM (SELECT outcome, milliseconds, started_at
                     FROM webhook_attempts
                    WHERE company_id = $1 AND endpoint_id = e.id AND started_at >= $2 AND started_at < $3
                      AND NOT (is_probe AND outcome = 'retrying')
                    ORDER BY started_at DESC
                    LIMIT $5) AS latest) AS a
     CROSS JOIN LATERAL (
           SELECT count(*) AS waiting
             FROM (SELECT FROM webhook_queue WHERE company_id = $1 AND endpoint_id = e.id LIMIT $6) AS queued) AS q
     ORDER BY e.id""",
    row=EndpointHealth,
)

# Cell by cell, so that the window is a range of the index on (company_id, cell, created_at).
SHIPMENTS = sql(
    """
    WITH cells AS (
        SELECT cell FROM counter_cells WHERE company_id = $1 AND counter = 'shipments'
         UNION
        SELECT cell FROM counter_deltas WHERE company_id = $1 AND counter = 'shipments'
    )
    SELECT split_part(cells.cell, '/', 2) AS state, sum(found.number)::bigint AS shipments
      FROM cells
     CROSS JOIN LATERAL (
           SELECT count(*) AS number
             FROM shipments
            WHERE company_id = $1 AND cell = cells.cell AND created_at >= $2 AND created_at < $3) AS found
     GROUP BY 1
    HAVING sum(found.number) > 0
     ORDER BY 2 DESC, 1""",
    row=ShipmentState,
)


async def get_today(db: Connection, company_id: int) -> date:
    """The company's day, in UTC."""
    now = await NOW.find(db, company_id)
    if now is None:
        raise AssertionError("the company exists")
    return now.date()


async def list_messages(db: Connection, company_id: int, window: DayRange) -> list[MessageStep]:
    return await MESSAGES.all(db, company_id, window.start, window.end, window.step)


async def list_orders(db: Connection, company_id: int, window: DayRange) -> list[OrderStep]:
    return await ORDERS.all(db, company_id, window.start, window.end, window.step, MOST_ROWS)


async def list_endpoints(db: Connection, company_id: int, window: DayRange) -> list[EndpointHealth]:
    return await ENDPOINTS.all(db, company_id, window.start, window.end, MOST_ENDPOINTS, MOST_ATTEMPTS, MOST_WAITING)


async def list_shipments(db: Connection, company_id: int, window: DayRange) -> list[ShipmentState]:
    return await SHIPMENTS.all(db, company_id, window.start, window.end)
