"""What reports read. Each statement scans an index over the window and returns few rows."""

from collections.abc import Sequence
from datetime import date, datetime

from sapa.db.pool import Connection
from sapa.db.sql import sql
from sapa.reports.types import (
    AgentRating,
    ArticleOrder,
    CarrierShipments,
    ChannelMessages,
    DaySales,
    EndpointHealth,
    EndpointHour,
    MessageStep,
    MoneyStep,
    OrderTransaction,
    ProductSales,
    ReportConversation,
    ReportWindow,
    SalesStep,
    SalesSum,
    ShipmentState,
)

MAX_ROWS = 5_000
MAX_ENDPOINTS = 50
MAX_ATTEMPTS = 1_000
MAX_HOURLY = 20_000
MAX_WAITING = 10_000


TODAY = sql("SELECT ((now() + clock_offset) AT TIME ZONE time_zone)::date FROM companies WHERE company_id = $1")

LIST_MIDNIGHTS = sql(
    """
    SELECT d.day::timestamp AT TIME ZONE c.time_zone AS at
      FROM companies c
     CROSS JOIN unnest($2::date[]) WITH ORDINALITY AS d (day, place)
     WHERE c.company_id = $1
     ORDER BY d.place""",
    row=datetime,
)

# Step by step, so that nothing has to be sorted: each is a range of an index.
_STEPS = """(SELECT step, starts_at, lead(starts_at) OVER (ORDER BY step) AS ends_at
              FROM unnest($2::timestamptz[]) WITH ORDINALITY AS instants (starts_at, step)) AS w"""

MESSAGES = sql(
    f"""
    SELECT w.step, m.sent, m.delivered, m.read, m.replied, m.failed
      FROM {_STEPS}
     CROSS JOIN LATERAL (
           SELECT count(sent_at) AS sent, count(delivered_at) AS delivered, count(read_at) AS read,
                  count(replied_at) AS replied, count(failed_at) AS failed
             FROM messages
            WHERE company_id = $1 AND direction = 'out' AND created_at >= w.starts_at AND created_at < w.ends_at) AS m
     WHERE w.ends_at IS NOT NULL
     ORDER BY w.step""",
    row=MessageStep,
)

COUNT_SENT = sql(
    """
    SELECT count(sent_at)
      FROM messages
     WHERE company_id = $1 AND direction = 'out' AND created_at >= $2 AND created_at < $3"""
)

# An order that is cancelled or refunded as a whole sold nothing: what was not refunded of it counts as cancelled.
SALES = sql(
    f"""
    SELECT w.step, s.currency, s.orders, s.cancelled_orders, s.gross, s.discounts, s.cancelled, s.refunded, s.shipping,
           s.fees, s.tax
      FROM {_STEPS}
     CROSS JOIN LATERAL (
           SELECT currency, count(*) AS orders, count(*) FILTER (WHERE is_off) AS cancelled_orders,
                  trim_scale(sum(subtotal)) AS gross, trim_scale(sum(discount_total)) AS discounts,
                  trim_scale(coalesce(sum(subtotal - discount_total - removed_goods) FILTER (WHERE is_off), 0))
                  AS cancelled,
                  trim_scale(sum(removed_goods)) AS refunded,
                  trim_scale(coalesce(sum(shipping_total - removed_shipping) FILTER (WHERE NOT is_off), 0)) AS shipping,
                  trim_scale(coalesce(sum(fee_total - removed_fees) FILTER (WHERE NOT is_off), 0)) AS fees,
                  trim_scale(coalesce(
                      sum(total - (subtotal - discount_total + shipping_total + fee_total) - removed_tax)
                      FILTER (WHERE NOT is_off), 0)) AS tax
             FROM (SELECT currency, total, coalesce(archived_from, status) IN ('cancelled', 'refunded') AS is_off,
                          coalesce(subtotal, total) AS subtotal, discount_total, shipping_total, fee_total,
                          removed_goods, removed_shipping, removed_fees, removed_tax
                     FROM orders
                    WHERE company_id = $1 AND created_at >= w.starts_at AND created_at < w.ends_at) AS placed
            GROUP BY currency) AS s
     ORDER BY w.step, s.currency
     LIMIT $3""",
    row=SalesStep,
)

SUM_SALES = sql(
    """
    SELECT count(*) AS orders,
           trim_scale(coalesce(
               sum(coalesce(subtotal, total) - discount_total - removed_goods)
               FILTER (WHERE coalesce(archived_from, status) NOT IN ('cancelled', 'refunded')), 0)) AS net
      FROM orders
     WHERE company_id = $1 AND created_at >= $2 AND created_at < $3 AND currency = $4""",
    row=SalesSum,
)

# One statement, because the first page that everybody sees shows it.
RECENT_SALES = sql(
    """
    SELECT to_char(d.day, 'YYYY-MM-DD') AS day, c.currency, s.orders, s.net, s.orders_so_far, s.net_so_far, d.starts_at,
           d.ends_at, d.this_hour
      FROM (SELECT company_id, coalesce($4::text, currency) AS currency, time_zone, clock_offset FROM companies) AS c
     CROSS JOIN LATERAL (
           SELECT t.day, t.day::timestamp AT TIME ZONE c.time_zone AS starts_at,
                  (t.day + 1)::timestamp AT TIME ZONE c.time_zone AS ends_at,
                  (t.day + t.now::time) AT TIME ZONE c.time_zone AS this_hour
             FROM (SELECT l.now, l.now::date - ago AS day
                     FROM (SELECT (now() + c.clock_offset) AT TIME ZONE c.time_zone AS now) AS l
                    CROSS JOIN generate_series($3::integer, $2::integer - 1) AS ago) AS t
           OFFSET 0) AS d  -- computed once, not for each order
     CROSS JOIN LATERAL (
           SELECT count(*) AS orders, trim_scale(coalesce(sum(o.net), 0)) AS net,
                  count(*) FILTER (WHERE o.created_at <= d.this_hour) AS orders_so_far,
                  trim_scale(coalesce(sum(o.net) FILTER (WHERE o.created_at <= d.this_hour), 0)) AS net_so_far
             FROM (SELECT created_at,
                          CASE WHEN coalesce(archived_from, status) NOT IN ('cancelled', 'refunded')
                               THEN coalesce(subtotal, total) - discount_total - removed_goods END AS net
                     FROM orders
                    WHERE company_id = $1 AND created_at >= d.starts_at AND created_at < d.ends_at
                      AND currency = c.currency) AS o) AS s
     WHERE c.company_id = $1
     ORDER BY d.day DESC""",
    row=DaySales,
)

MONEY = sql(
    """
    SELECT width_bucket(occurred_at, $2::timestamptz[]) AS step, currency,
           count(*) FILTER (WHERE kind = 'payment') AS payments,
           trim_scale(coalesce(sum(amount) FILTER (WHERE kind = 'payment'), 0)) AS paid,
           count(*) FILTER (WHERE kind = 'refund') AS refunds,
           trim_scale(coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0)) AS refunded
      FROM order_transactions
     WHERE company_id = $1 AND occurred_at >= $3 AND occurred_at < $4
     GROUP BY 1, 2
     ORDER BY 1, 2
     LIMIT $5""",
    row=MoneyStep,
)

LIST_TRANSACTIONS = sql(
    """
    SELECT t.id, t.order_id, o.order_number, t.kind, t.amount, t.currency, t.method, t.occurred_at
      FROM (SELECT id, order_id, kind, amount, currency, method, occurred_at
              FROM order_transactions
             WHERE company_id = $1 AND occurred_at >= $2 AND occurred_at < $3 AND ($4::text IS NULL OR kind = $4)
               AND ($5::text IS NULL OR currency = $5)
             ORDER BY occurred_at DESC, id DESC
             LIMIT $6 OFFSET $7) AS t
      JOIN orders o ON o.company_id = $1 AND o.id = t.order_id
     ORDER BY t.occurred_at DESC, t.id DESC""",
    row=OrderTransaction,
)

COUNT_TRANSACTIONS = sql(
    """
    SELECT count(*)
      FROM order_transactions
     WHERE company_id = $1 AND occurred_at >= $2 AND occurred_at < $3 AND ($4::text IS NULL OR kind = $4)
       AND ($5::text IS NULL OR currency = $5)"""
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

# Of an endpoint with very many attempts, the newest. The last row is the whole window.
ENDPOINT_HOURS = sql(
    """
    SELECT hour, count(*) FILTER (WHERE outcome = 'delivered') AS delivered,
           count(*) FILTER (WHERE outcome <> 'delivered') AS failed,
           round(percentile_cont(0.5) WITHIN GROUP (ORDER BY milliseconds))::integer AS median,
           round(percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds))::integer AS slow
      FROM (SELECT floor(extract(epoch FROM started_at - $3) / 3600)::integer AS hour, outcome, milliseconds
              FROM webhook_attempts
             WHERE company_id = $1 AND endpoint_id = $2 AND started_at >= $3 AND started_at < $4
               AND outcome <> 'skipped' AND NOT (is_probe AND outcome = 'retrying')
             ORDER BY started_at DESC
             LIMIT $5) AS latest
     GROUP BY GROUPING SETS ((hour), ())
     ORDER BY hour""",
    row=EndpointHour,
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


HAS_MORE_ORDERS = sql(
    """
    SELECT EXISTS (SELECT FROM orders WHERE company_id = $1 AND created_at >= $2 AND created_at < $3 OFFSET $4)"""
)

# Orders that were cancelled or refunded as a whole sold nothing. Lines are parsed once each: that is most of the work.
PRODUCTS = sql(
    """
    SELECT l.title AS name, count(DISTINCT o.id) AS orders, sum(l.quantity) AS units,
           sum(coalesce(l."refundedQuantity", 0)) AS refunded_units,
           trim_scale(sum(coalesce(l.charged, l.price * l.quantity))) AS charged
      FROM orders o
     CROSS JOIN LATERAL json_to_recordset(o.line_items)
                        AS l (title text, quantity bigint, "refundedQuantity" bigint, charged numeric, price numeric)
     WHERE o.company_id = $1 AND o.created_at >= $2 AND o.created_at < $3 AND o.currency = $4
       AND coalesce(o.archived_from, o.status) NOT IN ('cancelled', 'refunded')
     GROUP BY 1
     ORDER BY 5 DESC, 1
     LIMIT $5""",
    row=ProductSales,
)

ARTICLE_ORDERS = sql(
    """
    SELECT o.id, o.order_number, o.created_at, o.status, sum(l.quantity)::bigint AS units,
           sum(coalesce(l."refundedQuantity", 0))::bigint AS refunded_units,
           trim_scale(sum(coalesce(l.charged, l.price * l.quantity))) AS charged, count(*) OVER () AS total
      FROM orders o
     CROSS JOIN LATERAL json_to_recordset(o.line_items)
                        AS l (title text, quantity bigint, "refundedQuantity" bigint, charged numeric, price numeric)
     WHERE o.company_id = $1 AND o.created_at >= $2 AND o.created_at < $3 AND o.currency = $4
       AND coalesce(o.archived_from, o.status) NOT IN ('cancelled', 'refunded') AND l.title = $5
     GROUP BY o.id, o.order_number, o.created_at, o.status
     ORDER BY o.created_at DESC, o.id DESC
     LIMIT $6 OFFSET $7""",
    row=ArticleOrder,
)

_CONVERSATION = """
    SELECT t.id, t.customer_id,
           (SELECT c.name FROM contacts c WHERE c.company_id = $1 AND c.id = t.contact_id) AS client_name,
           t.client_number, t.source, t.status, found.messages, found.last_at, count(*) OVER () AS total
      FROM found
      JOIN tickets t ON t.company_id = $1 AND t.id = found.ticket_id
     ORDER BY found.last_at DESC, t.id DESC
"""

CHANNEL_CONVERSATIONS = sql(
    f"""
    WITH found AS (
        SELECT ticket_id, count(*) AS messages, max(created_at) AS last_at
          FROM messages
         WHERE company_id = $1 AND created_at >= $2 AND created_at < $3 AND source = $4 AND ticket_id IS NOT NULL
         GROUP BY ticket_id
    ) {_CONVERSATION} LIMIT $5 OFFSET $6""",
    row=ReportConversation,
)

AGENT_CONVERSATIONS = sql(
    f"""
    WITH found AS (
        SELECT ticket_id, count(*) AS messages, max(at) AS last_at
          FROM support_samples
         WHERE company_id = $1 AND at >= $2 AND at < $3 AND agent_id = $4 AND metric = 'handled'
           AND ($5::text[] IS NULL OR source = ANY($5))
         GROUP BY ticket_id
    ) {_CONVERSATION} LIMIT $6 OFFSET $7""",
    row=ReportConversation,
)

AGENT_RATINGS = sql(
    """
    SELECT t.id, t.customer_id,
           (SELECT c.name FROM contacts c WHERE c.company_id = $1 AND c.id = t.contact_id) AS client_name,
           t.client_number, t.source, r.score, r.comment, r.rated_at, count(*) OVER () AS total
      FROM ratings r
      JOIN tickets t ON t.company_id = $1 AND t.id = r.ticket_id
     WHERE r.company_id = $1 AND r.status = 'rated' AND r.rated_at >= $2 AND r.rated_at < $3 AND r.agent_id = $4
       AND ($5::text[] IS NULL OR r.source = ANY($5))
     ORDER BY r.rated_at DESC, r.id DESC
     LIMIT $6 OFFSET $7""",
    row=AgentRating,
)

# Of two periods that follow each other: reading the messages is most of the work, and one pass reads both.
CHANNELS = sql(
    """
    SELECT source, created_at < $3 AS is_earlier, count(*) FILTER (WHERE direction = 'in') AS received,
           count(sent_at) FILTER (WHERE direction = 'out') AS sent,
           count(delivered_at) FILTER (WHERE direction = 'out') AS delivered,
           count(read_at) FILTER (WHERE direction = 'out') AS read,
           count(failed_at) FILTER (WHERE direction = 'out') AS failed
      FROM messages
     WHERE company_id = $1 AND created_at >= $2 AND created_at < $4
     GROUP BY 1, 2
     ORDER BY 4 DESC, 1""",
    row=ChannelMessages,
)

CARRIERS = sql(
    """
    SELECT provider, max(provider_label) AS label, count(*) AS shipments,
           count(*) FILTER (WHERE shipping_status = 'delivered') AS delivered,
           count(*) FILTER (WHERE needs_action) AS problems,
           trim_scale(coalesce(sum(fee) FILTER (WHERE currency = $4), 0)) AS fees
      FROM shipments
     WHERE company_id = $1 AND created_at >= $2 AND created_at < $3
     GROUP BY 1
     ORDER BY 3 DESC, 1
     LIMIT $5""",
    row=CarrierShipments,
)


async def get_today(db: Connection, company_id: int) -> date:
    """The company's day, in its time zone."""
    today: date = await TODAY.value(db, company_id)
    return today


async def list_midnights(db: Connection, company_id: int, days: Sequence[date]) -> list[datetime]:
    """When these days begin in the company's time zone."""
    return await LIST_MIDNIGHTS.all(db, company_id, list(days))


async def list_messages(db: Connection, company_id: int, window: ReportWindow) -> list[MessageStep]:
    return await MESSAGES.all(db, company_id, window.instants)


async def list_sales(db: Connection, company_id: int, window: ReportWindow) -> list[SalesStep]:
    return await SALES.all(db, company_id, window.instants, MAX_ROWS)


async def sum_sales(db: Connection, company_id: int, window: ReportWindow, currency: str) -> SalesSum:
    [found] = await SUM_SALES.all(db, company_id, window.start, window.end, currency)
    return found


async def count_sent(db: Connection, company_id: int, window: ReportWindow) -> int:
    number: int = await COUNT_SENT.value(db, company_id, window.start, window.end)
    return number


async def list_recent_sales(
    db: Connection, company_id: int, days: int, newest: int, currency: str | None
) -> list[DaySales]:
    return await RECENT_SALES.all(db, company_id, days, newest, currency)


async def list_money(db: Connection, company_id: int, window: ReportWindow) -> list[MoneyStep]:
    return await MONEY.all(db, company_id, window.instants, window.start, window.end, MAX_ROWS)


async def list_endpoint_hours(
    db: Connection, company_id: int, endpoint_id: str, start: datetime, end: datetime
) -> list[EndpointHour]:
    return await ENDPOINT_HOURS.all(db, company_id, endpoint_id, start, end, MAX_HOURLY)


async def list_transactions(
    db: Connection,
    company_id: int,
    window: ReportWindow,
    kind: str | None,
    currency: str | None,
    limit: int,
    offset: int,
) -> tuple[list[OrderTransaction], int]:
    """One page, newest first, and the total."""
    total: int = await COUNT_TRANSACTIONS.value(db, company_id, window.start, window.end, kind, currency)
    found = await LIST_TRANSACTIONS.all(db, company_id, window.start, window.end, kind, currency, limit, offset)
    return found, total


async def list_endpoints(db: Connection, company_id: int, start: datetime, end: datetime) -> list[EndpointHealth]:
    return await ENDPOINTS.all(db, company_id, start, end, MAX_ENDPOINTS, MAX_ATTEMPTS, MAX_WAITING)


async def list_shipments(db: Connection, company_id: int, window: ReportWindow) -> list[ShipmentState]:
    return await SHIPMENTS.all(db, company_id, window.start, window.end)


async def has_more_orders(db: Connection, company_id: int, window: ReportWindow, number: int) -> bool:
    return bool(await HAS_MORE_ORDERS.value(db, company_id, window.start, window.end, number))


async def list_products(
    db: Connection, company_id: int, window: ReportWindow, currency: str, most: int
) -> list[ProductSales]:
    return await PRODUCTS.all(db, company_id, window.start, window.end, currency, most)


async def list_article_orders(
    db: Connection, company_id: int, window: ReportWindow, currency: str, article: str, limit: int, offset: int
) -> list[ArticleOrder]:
    return await ARTICLE_ORDERS.all(db, company_id, window.start, window.end, currency, article, limit, offset)


async def list_channel_conversations(
    db: Connection, company_id: int, window: ReportWindow, source: str, limit: int, offset: int
) -> list[ReportConversation]:
    return await CHANNEL_CONVERSATIONS.all(db, company_id, window.start, window.end, source, limit, offset)


async def list_agent_conversations(
    db: Connection,
    company_id: int,
    window: ReportWindow,
    agent_id: int,
    sources: Sequence[str] | None,
    limit: int,
    offset: int,
) -> list[ReportConversation]:
    return await AGENT_CONVERSATIONS.all(db, company_id, window.start, window.end, agent_id, sources, limit, offset)


async def list_agent_ratings(
    db: Connection,
    company_id: int,
    window: ReportWindow,
    agent_id: int,
    sources: Sequence[str] | None,
    limit: int,
    offset: int,
) -> list[AgentRating]:
    return await AGENT_RATINGS.all(db, company_id, window.start, window.end, agent_id, sources, limit, offset)


async def list_channels(
    db: Connection, company_id: int, start: datetime, middle: datetime, end: datetime
) -> list[ChannelMessages]:
    """Of the periods before and after the middle."""
    return await CHANNELS.all(db, company_id, start, middle, end)


async def list_carriers(
    db: Connection, company_id: int, window: ReportWindow, currency: str, most: int
) -> list[CarrierShipments]:
    return await CARRIERS.all(db, company_id, window.start, window.end, currency, most)
