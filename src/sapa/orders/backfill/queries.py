"""How orders that code of earlier versions stored or changed are found and completed."""

from sapa.db.planning import without_sorting
from sapa.db.pool import Tx
from sapa.db.sql import build_instant_text, sql
from sapa.orders.columns import COMPUTED

_AT = build_instant_text("updated_at")
_PAYMENT = """('[{"id":"pay_' || substr(r.id, 7) || '","amount":' || r.total
                || ',"method":null,"reference":null,"paidAt":"' || r.at
                || '","createdAt":"' || r.at || '","voidedAt":null}]')::json"""
_REFUND = """('[{"id":"rfd_' || substr(r.id, 7) || '","amount":' || r.total || ',"shipping":0,"adjustment":' || r.total
                || ',"lineItems":[],"reason":null,"createdAt":"' || r.at || '"}]')::json"""


# An order that was paid or refunded gets the payment and the refund that its status says, at the time of its last
# change: no other time is known.
def _build_completion(chosen: str) -> str:
    return f"""
    WITH incomplete AS (
        SELECT id, total, currency, updated_at, line_items, fulfillment_status, subtotal, {_AT} AS at,
               financial_status <> 'pending' AND total > 0 AS is_paid,
               financial_status = 'refunded' AND total > 0 AS is_refunded
          FROM orders
         WHERE company_id = $1 AND subtotal IS NULL AND {chosen}
           FOR UPDATE
    ), completed AS (
        UPDATE orders AS o
           SET subtotal = r.total, recorded_cell = o.cell, line_items = {COMPUTED["line_items"]},
               total_paid = CASE WHEN r.is_paid THEN r.total ELSE 0 END,
               total_refunded = CASE WHEN r.is_refunded THEN r.total ELSE 0 END,
               removed_goods = CASE WHEN r.is_refunded THEN r.total ELSE 0 END,
               outstanding = CASE WHEN r.is_paid THEN 0 ELSE r.total END,
               payments = CASE WHEN r.is_paid THEN {_PAYMENT} ELSE '[]' END,
               refunds = CASE WHEN r.is_refunded THEN {_REFUND} ELSE '[]' END
          FROM incomplete AS r
         WHERE o.company_id = $1 AND o.id = r.id
        RETURNING o.id
    ), transacted AS (
        INSERT INTO order_transactions (company_id, id, order_id, kind, amount, currency, occurred_at)
        SELECT $1, t.prefix || substr(r.id, 7), r.id, t.kind, r.total, r.currency, r.updated_at
          FROM incomplete AS r
          JOIN (VALUES ('pay_', 'payment'), ('rfd_', 'refund')) AS t (prefix, kind)
            ON CASE t.kind WHEN 'payment' THEN r.is_paid ELSE r.is_refunded END
    )
    SELECT count(*) FROM completed"""


COMPLETE = sql(_build_completion("id = $2"))

# The planner takes the condition of the index for one that most orders fulfil, and would rather read them all: only
# the index has them in this order.
COMPLETE_SOME = sql(_build_completion("recorded_cell IS DISTINCT FROM cell ORDER BY recorded_cell LIMIT $2"))

FIND_COMPANY = sql(
    """
    SELECT company_id FROM orders
     WHERE recorded_cell IS DISTINCT FROM cell
     ORDER BY company_id, recorded_cell
     LIMIT 1""",
    crosses="the worker looks for orders of earlier versions over all companies, then completes one company's",
)

LIST_UNRECORDED = sql(
    """
    SELECT id FROM orders
     WHERE company_id = $1 AND recorded_cell IS DISTINCT FROM cell AND subtotal IS NOT NULL
     ORDER BY recorded_cell
     LIMIT $2"""
)


async def complete_order(tx: Tx, company_id: int, id: str) -> None:
    await COMPLETE.value(tx, company_id, id)


async def complete_orders(tx: Tx, company_id: int, limit: int) -> None:
    async with without_sorting(tx):
        await COMPLETE_SOME.value(tx, company_id, limit)


async def list_unrecorded(tx: Tx, company_id: int, limit: int) -> list[str]:
    async with without_sorting(tx):
        return [row[0] for row in await tx.fetch(LIST_UNRECORDED.text, company_id, limit)]


async def find_company(tx: Tx) -> int | None:
    async with without_sorting(tx):
        company_id: int | None = await FIND_COMPANY.value(tx)
        return company_id
