"""All of a company's rows of one resource, as they are at one instant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from msgspec import Struct

from sapa.customers import bulk as customers
from sapa.customers.types import Customer
from sapa.db.connection import translate_errors
from sapa.db.counters import get_total
from sapa.db.pool import Connection, Database
from sapa.db.sql import Statement, sql
from sapa.exports.spreadsheet import Format, write_header, write_rows
from sapa.orders import bulk as orders
from sapa.orders.types import Order
from sapa.products import bulk as products
from sapa.products.types import Product
from sapa.values.company import Company

PREFETCH = 500

Resource = Literal["customers", "products", "orders"]

ALL: dict[Resource, tuple[type[Struct], Statement[Any]]] = {
    "customers": (Customer, customers.ALL),
    "products": (Product, products.ALL),
    "orders": (Order, orders.ALL),
}

# Whoever reads the export may take a rest: a pager that waits for a key must not end the snapshot.
BE_PATIENT = sql("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")


class ExportSnapshot(Struct, frozen=True):
    """One resource at one instant."""

    row: type[Struct]
    total: int
    batches: AsyncIterator[list[Any]]


@asynccontextmanager
async def open_snapshot(database: Database, company: Company, resource: Resource) -> AsyncIterator[ExportSnapshot]:
    """Rows are read from the server as they are asked for, oldest first; what changes meanwhile is not seen."""
    row, statement = ALL[resource]
    async with database.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
        await BE_PATIENT.value(db)
        total = await get_total(db, company.id, resource)
        yield ExportSnapshot(row, total, _batches(db, company, row, statement))


async def write(snapshot: ExportSnapshot, format: Format) -> AsyncIterator[bytes]:
    """The whole of it as a file, piece by piece."""
    yield write_header(snapshot.row, format)
    async for batch in snapshot.batches:
        yield write_rows(batch, format)


async def _batches(
    db: Connection, company: Company, row: type[Struct], statement: Statement[Any]
) -> AsyncIterator[list[Any]]:
    with translate_errors(db):
        cursor = await db.cursor(statement.text, company.id)
        while records := await cursor.fetch(PREFETCH):
            yield [row(*record) for record in records]
