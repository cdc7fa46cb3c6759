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

COMPUTED = {
    # A function, because a statement that has its query would prepare that for every order that is read.
    "line_items": "CASE WHEN r.subtotal IS NULL THEN complete_line_items(r.line_items, r.fulfillment_status)"
    " ELSE r.line_items END",
    "subtotal": "coalesce(r.subtotal, r.total)",
    "total_paid": "coalesce(r.total_paid, CASE WHEN r.financial_status = 'pending' THEN 0 ELSE r.total END)",
    "total_refunded": "coalesce(r.total_refunded, CASE WHEN r.financial_status = 'refunded' THEN r.total ELSE 0 END)",
    "outstanding": "coalesce(r.outstanding, CASE WHEN r.financial_status = 'pending' THEN r.total ELSE 0 END)",
}
"""The columns of `orders AS r` that such an order lacks."""

READ = ", ".join(f"{COMPUTED.get(name, f'r.{name}')} AS {name}" for name in Order.__struct_fields__)
"""The columns of any order, complete or not."""
