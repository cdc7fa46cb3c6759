"""All orders of a company, as an export reads them."""

from sapa.db.sql import sql
from sapa.orders.queries import COLUMNS
from sapa.orders.types import Order

ALL = sql(f"SELECT {COLUMNS} FROM orders WHERE company_id = $1 ORDER BY created_at, id", row=Order)
