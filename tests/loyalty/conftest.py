"""A test environment, whose clock can be moved."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import httpx
import pytest

from sapa.access import actions
from sapa.db.pool import Connection, Database
from tests.conftest import Installation, connect
from tests.db import scratch
from tests.factories import Environments, add_points, make_customer, make_key
from tests.loyalty.ledger_steps import drift_of

MoveClock = Callable[[timedelta], Awaitable[None]]


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """The company's test environment over HTTP."""
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        yield client


@pytest.fixture
async def owner(installation: Installation) -> AsyncIterator[Connection]:
    """A connection that may change rows outside the app."""
    async with scratch.connect(installation.server.owner_url) as connection:
        yield connection


@pytest.fixture
def move_clock(database: Database, company: Environments) -> MoveClock:
    """Moves the test environment's clock, back as well."""

    async def move(by: timedelta) -> None:
        async with database.transaction() as tx:
            await actions.move_clock(tx, company.test, by)

    return move


@pytest.fixture
async def ayu(sandbox: httpx.AsyncClient) -> str:
    """A customer of the test environment."""
    return str((await make_customer(sandbox, firstName="Ayu"))["id"])


@pytest.fixture
async def rich(sandbox: httpx.AsyncClient, ayu: str) -> str:
    """A customer with a thousand points."""
    await add_points(sandbox, ayu, 1_000)
    return ayu


@pytest.fixture
async def whole(sandbox: httpx.AsyncClient) -> AsyncIterator[None]:
    """After every test the ledger has no drift."""
    yield
    assert await drift_of(sandbox) == []
