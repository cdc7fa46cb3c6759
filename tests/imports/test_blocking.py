"""Imports beside writers of the same rows: no writer waits for a whole file, and no deadlock ends an import."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from sapa.db.pool import Connection
from tests.conftest import Installation
from tests.factories import Environments, make_product
from tests.imports.files import list_all, run_import, write, write_ndjson

PATIENCE = 120.0

NUMBER = "SELECT last FROM order_numbers WHERE company_id = $1 FOR UPDATE"
PRODUCTS = "SELECT id FROM products WHERE company_id = $1 FOR UPDATE"
WAITS = """
    SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sapa command' AND wait_event_type = 'Lock'"""


@pytest.fixture
async def other(installation: Installation) -> AsyncIterator[Connection]:
    """A connection that is never the victim of a deadlock."""
    server = installation.server
    url = server.owner_url.replace(f"sapa_owner:{server.secrets.owner}", f"postgres:{server.secrets.superuser}")
    connection = await asyncpg.connect(url, server_settings={"deadlock_timeout": "60s"})
    yield connection
    await connection.close()


async def wait_until_it_waits(other: Connection) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await other.fetchval(WAITS):
        await other.execute("SELECT pg_stat_clear_snapshot()")
        assert time.monotonic() < deadline, "the import waits for nobody"


@asynccontextmanager
async def importing(installation: Installation, company: int, path: Path, resource: str) -> AsyncIterator[list[Any]]:
    """Runs an import beside the block, and yields its outcome."""
    done: list[Any] = []
    task = asyncio.create_task(asyncio.to_thread(run_import, installation, company, path, resource))
    try:
        yield done
    finally:
        done.append(await task)


def build_orders(path: Path, variant: str) -> Path:
    lines: list[dict[str, Any]] = [
        {"title": "Kopi", "price": 5, "quantity": 1},
        {"productVariantId": variant, "quantity": 1},
    ]
    return write_ndjson(path, [{"orderId": f"o{n}", "lineItems": [line]} for n, line in enumerate(lines)])


async def test_an_order_that_waits_for_a_product_does_not_block_order_numbers(
    installation: Installation, company: Environments, api: httpx.AsyncClient, other: Connection, tmp_path: Path
) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 5, "inventoryQuantity": 9}])
    path = build_orders(tmp_path / "orders.ndjson", product["variants"][0]["id"])
    async with importing(installation, company.live, path, "orders") as done, other.transaction():
        await other.fetch(PRODUCTS, company.live)
        await wait_until_it_waits(other)
        assert await other.fetchval(f"{NUMBER} NOWAIT", company.live)
    assert done[0].counts == (2, 0, 0, 0)
    [stored] = (await list_all(api, "products"))[0]["variants"]
    assert stored["inventoryQuantity"] == 8


async def test_an_order_is_retried_after_any_number_of_deadlocks(
    installation: Installation, company: Environments, api: httpx.AsyncClient, other: Connection, tmp_path: Path
) -> None:
    product = await make_product(api, variants=[{"title": "M", "price": 5, "inventoryQuantity": 9}])
    await api.post("/orders", json={"lineItems": [{"title": "Teh", "price": 5, "quantity": 1}]})
    path = build_orders(tmp_path / "orders.ndjson", product["variants"][0]["id"])
    write(path, path.read_bytes().splitlines(keepends=True)[1])
    async with importing(installation, company.live, path, "orders") as done, other.transaction():
        await other.fetchval(NUMBER, company.live)
        for _ in range(4):
            await wait_until_it_waits(other)
            undo = other.transaction()
            await undo.start()
            await other.fetch(PRODUCTS, company.live)
            await undo.rollback()
    assert done[0].counts == (1, 0, 0, 0)
    assert len(await list_all(api, "orders")) == 2


async def test_customers_of_a_deadlocked_batch_are_stored_one_by_one(
    installation: Installation, company: Environments, api: httpx.AsyncClient, other: Connection, tmp_path: Path
) -> None:
    path = write(tmp_path / "customers.csv", "externalId,email\na,a@example.com\nb,b@example.com\n")
    run_import(installation, company.live, path, "customers")
    write(path, "externalId,firstName\na,Ayu\n,nobody\nb,Budi\n\nc\n")
    lock = "SELECT id FROM customers WHERE company_id = $1 AND external_id = $2 FOR UPDATE"
    async with importing(installation, company.live, path, "customers") as done, other.transaction():
        await other.fetch(lock, company.live, "b")
        await wait_until_it_waits(other)
        await other.fetch(lock, company.live, "a")
    assert done[0].counts == (0, 2, 0, 2)
    assert [line for line, _, _ in done[0].errors] == [3, 6]
    assert {one["firstName"] for one in await list_all(api, "customers")} == {"Ayu", "Budi"}
