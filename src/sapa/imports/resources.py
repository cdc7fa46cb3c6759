"""The resources that can be imported, and how to store their rows."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from sapa.db.pool import Tx
from sapa.imports.attempts import Result, StoreContext
from sapa.imports.customer_rows import CustomerRow, list_customer_keys, prepare_customer, store_customers
from sapa.imports.order_rows import OrderRow, prepare_order, store_orders
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
    """How many rows to read together, at most."""
    store: Store
    is_single: bool = False
    """Each row has its own transaction. Otherwise a batch has one, and writers of the same rows wait."""
    list_keys: ListKeys | None = None
    """Which record a row is, and the unique values that it claims; a dry run compares the lines of a file."""
    prepare: Callable[[StoreContext, Any], msgspec.Struct] | None = None
    """What to compute of a row before it is stored."""
    batch_seconds: float | None = None
    """How long a transaction may take: batches grow and shrink to fit. None for batches of one size."""


KINDS: dict[Resource, Kind] = {
    "customers": Kind(CustomerRow, 500, store_customers, list_keys=list_customer_keys, prepare=prepare_customer),
    "products": Kind(ProductRow, 100, store_products, is_single=True),
    # New orders of the company wait for a batch, because it has their numbers from its insert to its commit: about half
    # of its transaction. They should wait for at most 200 ms, and a batch can be three times as slow as the one before.
    "orders": Kind(OrderRow, 400, store_orders, prepare=prepare_order, batch_seconds=0.08),
}
