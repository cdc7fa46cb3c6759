"""All products of a company, as an export reads them."""

from sapa.db.sql import sql
from sapa.products.queries import COLUMNS
from sapa.products.types import Product

ALL = sql(f"SELECT {COLUMNS} FROM products AS r WHERE company_id = $1 ORDER BY created_at, id", row=Product)
