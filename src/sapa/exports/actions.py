"""Exports: all of a company's rows of one resource, in one snapshot."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from msgspec import Struct

from sapa.customers import actions as customers
from sapa.customers.types import Customer
from sapa.db.counters import get_total
from sapa.db.pool import Tx
from sapa.exports import queries
from sapa.exports.spreadsheet import Format, write_header, write_rows
from sapa.orders import actions as orders
from sapa.orders.types import Order
from sapa.products import actions as products
from sapa.products.types import Product
from sapa.values.company import Company

Resource = Literal["customers", "products", "orders"]
Stream = Callable[[Tx, int], AsyncIterator[list[Any]]]

RESOURCES: dict[Resource, tuple[type[Struct], Stream]] = {
    "customers": (Customer, customers.stream_all),
    "products": (Product, products.stream_all),
    "orders": (Order, orders.stream_all),
}


class ExportSnapshot(Struct, frozen=True):
    row: type[Struct]
    total: int
    batches: AsyncIterator[list[Any]]


@asynccontextmanager
async def open_snapshot(
    opening: AbstractAsyncContextManager[Tx], company: Company, resource: Resource
) -> AsyncIterator[ExportSnapshot]:
    """Reads rows as you iterate, oldest first; later changes are not visible. `opening` is the `snapshot` of a database
    or of its long reads."""
    row, stream = RESOURCES[resource]
    async with opening as tx:
        await queries.disable_idle_timeout(tx)
        total = await get_total(tx, company.id, resource)
        yield ExportSnapshot(row, total, stream(tx, company.id))


async def write(snapshot: ExportSnapshot, format: Format) -> AsyncGenerator[bytes, None]:
    """The file, in chunks."""
    yield write_header(snapshot.row, format)
    async for batch in snapshot.batches:
        yield write_rows(batch, format)
