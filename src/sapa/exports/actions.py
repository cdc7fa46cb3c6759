"""Exports: all of a company's rows of one resource, in one snapshot."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from msgspec import Struct

from sapa.customers import actions as customers
from sapa.customers.types import Customer
from sapa.db.counters import get_total
from sapa.db.pool import Database, Tx
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
async def open_snapshot(database: Database, company: Company, resource: Resource) -> AsyncIterator[ExportSnapshot]:
    """Reads rows as you iterate, oldest first; later changes are not visible."""
    row, stream = RESOURCES[resource]
    async with database.connection() as tx, tx.transaction(isolation="repeatable_read", readonly=True):
        await queries.disable_idle_timeout(tx)
        total = await get_total(tx, company.id, resource)
        yield ExportSnapshot(row, total, stream(tx, company.id))


async def write(snapshot: ExportSnapshot, format: Format) -> AsyncIterator[bytes]:
    """The file, in chunks."""
    yield write_header(snapshot.row, format)
    async for batch in snapshot.batches:
        yield write_rows(batch, format)
