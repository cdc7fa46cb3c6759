"""The columns that orders are written to and read from.

An order of a version that stored no amounts besides the total lacks some of them until the worker has completed it.
"""

from sapa.db.write_columns import WriteColumns
from sapa.orders.document import NewOrder
from sapa.orders.pricing.arithmetic import PricedOrder
from sapa.orders.revision import OrderState, Revision
from sapa.orders.settlement.types import OrderBalance
from sapa.orders.types import Order

FIRST_NUMBER = 1001

ADJUSTMENTS = (
    "discounts", "shipping_lines", "fees", "tax_lines", "discount_total", "shipping_total", "fee_total", "tax_total",
)  # fmt: skip

WRITTEN = WriteColumns(NewOrder, without=["priced"])
PRICED = WriteColumns(PricedOrder)
PLAIN = WriteColumns(PricedOrder, without=ADJUSTMENTS)
"""What most orders have: the rest is empty, which is the default of its columns."""
STATE = WriteColumns(OrderState, "recorded_cell")
REVISED = WriteColumns(Revision, without=["state", "priced", "balance", "taken"])
BALANCE = WriteColumns(OrderBalance)

_LINES = """(SELECT ('[' || string_agg(
                      left(old.line::text, -1) || ',"discount":null,"total":' || old.total
                      || ',"discountAllocation":0,"tax":0,"charged":' || old.total || ',"fulfilledQuantity":'
                      || CASE WHEN r.fulfillment_status = 'fulfilled' THEN old.line ->> 'quantity' ELSE '0' END
                      || ',"refundedQuantity":0}', ',' ORDER BY old.place) || ']')::json
              FROM (SELECT line, place,
                           trim_scale((line ->> 'price')::numeric * (line ->> 'quantity')::integer)::text AS total
                      FROM json_array_elements(r.line_items) WITH ORDINALITY AS stored (line, place)) AS old)"""

COMPUTED = {
    "line_items": f"CASE WHEN r.subtotal IS NULL THEN coalesce({_LINES}, r.line_items) ELSE r.line_items END",
    "subtotal": "coalesce(r.subtotal, r.total)",
    "total_paid": "coalesce(r.total_paid, CASE WHEN r.financial_status = 'pending' THEN 0 ELSE r.total END)",
    "total_refunded": "coalesce(r.total_refunded, CASE WHEN r.financial_status = 'refunded' THEN r.total ELSE 0 END)",
    "outstanding": "coalesce(r.outstanding, CASE WHEN r.financial_status = 'pending' THEN r.total ELSE 0 END)",
}
"""The columns of `orders AS r` that such an order lacks."""

READ = ", ".join(f"{COMPUTED.get(name, f'r.{name}')} AS {name}" for name in Order.__struct_fields__)
"""The columns of any order, complete or not."""
