"""The resources that can be imported, and how the rows of each are stored."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from sapa.db.pool import Tx
from sapa.imports.attempts import Result
from sapa.imports.customer_rows import CustomerRow, list_customer_keys, store_customers
from sapa.imports.order_rows import OrderRow, store_orders
from sapa.imports.product_rows import ProductRow, store_products
from sapa.imports.rows import FileRow
from sapa.imports.types import Resource
from sapa.values.company import Company

Store = Callable[[Tx, Company, Sequence[FileRow]], Awaitable[list[Result]]]
ListKeys = Callable[[Company, FileRow], tuple[str, list[str]]]


class Kind(msgspec.Struct, frozen=True):
    """How one resource is imported."""

    row: type[msgspec.Struct]
    batch: int
    """Rows that are read together."""
    store: Store
    is_single: bool
    """Each row has its own transaction, which locks in the sequence that the API's do: products and customers, then the
    company's order number. With several rows in one, the second would lock products behind the first one's number, and
    meet the API in a deadlock. Otherwise the rows of a batch have one, and whoever wants the same rows waits for it."""
    list_keys: ListKeys | None = None
    """Whose a row is, and what no other row may have; a dry run holds the lines of a file against each other."""


KINDS: dict[Resource, Kind] = {
    "customers": Kind(CustomerRow, 500, store_customers, False, list_customer_keys),
    "products": Kind(ProductRow, 100, store_products, True),
    "orders": Kind(OrderRow, 100, store_orders, True),
}
