"""The resources that can be imported, and how to store their rows."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from sapa.db.pool import Tx
from sapa.imports.attempts import Result, StoreContext
from sapa.imports.customer_rows import CustomerRow, list_customer_keys, store_customers
from sapa.imports.order_rows import OrderRow, store_orders
from sapa.imports.product_rows import ProductRow, store_products
from sapa.imports.rows import FileRow
from sapa.imports.types import Resource
from sapa.values.company import Company

Store = Callable[[Tx, StoreContext, Sequence[FileRow]], Awaitable[list[Result]]]
ListKeys = Callable[[Company, FileRow], tuple[str, list[str]]]


class Kind(msgspec.Struct, frozen=True):
    """How one resource is imported."""

    row: type[msgspec.Struct]
    batch: int
    """How many rows to read together."""
    store: Store
    is_single: bool
    """Each row has its own transaction, which locks in the same order as the API: products and customers, then the
    company's order number. With several rows in one transaction, the second would lock products after the first one's
    number, and deadlock with the API. Otherwise a batch has one transaction, and writers of the same rows wait."""
    list_keys: ListKeys | None = None
    """Which record a row is, and the unique values that it claims; a dry run compares the lines of a file."""


KINDS: dict[Resource, Kind] = {
    "customers": Kind(CustomerRow, 500, store_customers, False, list_customer_keys),
    "products": Kind(ProductRow, 100, store_products, True),
    "orders": Kind(OrderRow, 100, store_orders, True),
}
