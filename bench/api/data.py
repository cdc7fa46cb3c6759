"""The data of a run: three companies in one fresh database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
from msgspec import Struct

from bench.api import seeding
from bench.ground import Ground, SeededCompany, make_company
from bench.names import CITIES, FIRST_NAMES, GOODS, LAST_NAMES, TAGS

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class Shop(Struct, frozen=True):
    """A company, how much it has, and some of it in no order."""

    company: SeededCompany
    orders: int
    customers: int
    order_ids: list[str]
    customer_ids: list[str]
    names: list[str]
    """Full names of customers who have ordered; each is borne by about one in thirteen thousand."""


class Data(Struct, frozen=True):
    many: Shop
    few: Shop
    busy: Shop
    """Where the run creates and changes orders, so that the other two stay as they are."""


async def seed(ground: Ground, many: int, few: int, customers_of_many: int) -> Data:
    companies = [await make_company(ground, name) for name in ("Many orders", "Few orders", "Changing orders")]
    sizes = [(many, customers_of_many), (few, few), (few, few)]
    connection = await asyncpg.connect(ground.server.owner_url)
    try:
        await connection.execute("SET maintenance_work_mem = '512MB'; SET work_mem = '256MB'")
        async with without_indexes(connection):
            for company, (orders, customers) in zip(companies, sizes, strict=True):
                await fill(connection, company, orders, customers)
        await connection.execute(seeding.BASELINE_LINES)
        for table in ("customers", "orders", "counter_cells", "baseline.line_items"):
            await connection.execute(f"VACUUM (ANALYZE) {table}")
        return Data(*[await find_shop(connection, *one) for one in zip(companies, sizes, strict=True)])
    finally:
        await connection.close()


async def fill(connection: Connection, company: SeededCompany, orders: int, customers: int) -> None:
    await connection.execute(seeding.CUSTOMERS, company.id, customers, FIRST_NAMES, LAST_NAMES, TAGS, CITIES)
    await connection.execute(seeding.CUSTOMER_CELL, company.id, customers)
    await connection.execute("ANALYZE customers")
    await connection.execute(seeding.ORDERS, company.id, orders, customers, CITIES, TAGS, GOODS)
    await connection.execute(seeding.ORDER_CELLS, company.id)
    await connection.execute(seeding.ORDER_NUMBER, company.id, orders)


async def find_shop(connection: Connection, company: SeededCompany, size: tuple[int, int]) -> Shop:
    order_ids = [id for (id,) in await connection.fetch(seeding.SOME_ORDERS, company.id)]
    customer_ids = [id for (id,) in await connection.fetch(seeding.SOME_CUSTOMERS, company.id)]
    names = [name for (name,) in await connection.fetch(seeding.NAMES_OF, company.id, order_ids)]
    return Shop(company, *size, order_ids, customer_ids, names)


@asynccontextmanager
async def without_indexes(connection: Connection) -> AsyncIterator[None]:
    """Building an index over a full table takes a quarter of the time of filling it row by row."""
    indexes = await connection.fetch(seeding.SECONDARY_INDEXES)
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    yield
    for index in indexes:
        await connection.execute(index["definition"])
