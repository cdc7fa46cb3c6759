"""Only a lost database is a 503: what goes wrong in a handler is a 500, and its traceback is in the log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.http.endpoints import Base, Call, Routes
from tests.conftest import Installation
from tests.db.scratch import connect
from tests.factories import Environments, make_key
from tests.http.probe import Thing, open_app

NOWHERE = Path("/nowhere/at/all")


def build_faults() -> Routes:
    routes = Routes("/faults", base=Base.CUSTOMER, tag="Faults")

    @routes.get("/missing-file", scope=Scope.ORDERS_READ)
    async def read_missing_file(call: Call) -> Thing:
        """Read a file that does not exist."""
        return Thing(await asyncio.to_thread(NOWHERE.read_text))

    @routes.get("/missing-argument", scope=Scope.ORDERS_READ)
    async def pass_too_few_arguments(call: Call) -> Thing:
        """Run a statement without its argument."""
        return Thing(await call.db.fetchval("SELECT $1::text"))

    @routes.post("/missing-argument", scope=Scope.ORDERS_WRITE)
    async def write_with_too_few_arguments(call: Call) -> Thing:
        """Run a statement without its argument, in a transaction."""
        return Thing(await call.db.fetchval("SELECT $1::text"))

    @routes.get("/timeout", scope=Scope.ORDERS_READ)
    async def run_out_of_time(call: Call) -> Thing:
        """Run into a time limit of the handler's own."""
        async with asyncio.timeout(0):
            await asyncio.sleep(5)
        return Thing("never")

    @routes.get("/slow-statement", scope=Scope.ORDERS_READ)
    async def wait_for_the_database(call: Call) -> Thing:
        """Wait for a statement that the database does not answer in time."""
        return Thing(str(await call.db.fetchval("SELECT pg_sleep(5)", timeout=0.05)))

    @routes.get("/lost-connection", scope=Scope.ORDERS_READ)
    async def lose_the_connection(call: Call) -> Thing:
        """Lose the connection between two statements."""
        await cut(call)
        return Thing(await call.db.fetchval("SELECT 'never'"))

    @routes.post("/lost-connection", scope=Scope.ORDERS_WRITE)
    async def lose_the_transaction(call: Call) -> Thing:
        """Lose the connection before the commit."""
        await cut(call)
        return Thing("never")

    return routes


async def cut(call: Call) -> None:
    number = await call.db.fetchval("SELECT pg_backend_pid()")
    async with connect(call.context.database.url) as other:
        await other.execute("SELECT pg_terminate_backend($1)", number)


@pytest.fixture
async def client(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, company.live)
    async with open_app(installation, [build_faults()]) as opened:
        opened.headers["x-api-key"] = key.raw
        yield opened


@pytest.mark.parametrize(
    ("method", "path", "cause"),
    [
        ("GET", "missing-file", "FileNotFoundError"),
        ("GET", "missing-argument", "InterfaceError"),
        ("POST", "missing-argument", "InterfaceError"),
        ("GET", "timeout", "TimeoutError"),
    ],
)
async def test_a_fault_of_the_handler_is_a_500_with_its_traceback_in_the_log(
    client: httpx.AsyncClient, method: str, path: str, cause: str
) -> None:
    with capture_logs() as lines:
        response = await client.request(method, f"/faults/{path}")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    (line,) = [line for line in lines if line["event"] == "internal error"]
    assert line["request_id"] == response.headers["x-request-id"]
    assert type(line["exc_info"]).__name__ == cause


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "slow-statement"), ("GET", "lost-connection"), ("POST", "lost-connection")]
)
async def test_a_lost_database_is_a_503_and_the_next_call_succeeds(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    for _ in range(2):
        response = await client.request(method, f"/faults/{path}")
        assert (response.status_code, response.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert (await client.get("/faults/missing-file")).status_code == 500
