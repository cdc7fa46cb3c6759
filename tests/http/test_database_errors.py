"""Only a lost database is a 503: what goes wrong in a handler is a 500, and its traceback is in the log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from sapa.access.types import Scope
from sapa.console.routes import COOKIE
from sapa.db.pool import Database
from sapa.http.endpoints import Base, Call, Routes
from tests.conftest import Installation
from tests.db.scratch import connect, migrated_database
from tests.factories import Environments, make_key
from tests.http.probe import Thing, open_app

NOWHERE = Path("/nowhere/at/all")

LOCK_EVERYTHING = """
    DO $$
    DECLARE name text;
    BEGIN
        FOR name IN SELECT format('%I', relname) FROM pg_class
                     WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition
        LOOP
            EXECUTE 'LOCK TABLE ' || name || ' IN ACCESS EXCLUSIVE MODE';
        END LOOP;
    END $$"""
CANCEL_WAITING = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'probe'"""


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
        await other.execute("SELECT pg_terminate_backend($1::int)", number)


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"/hooks/channels/hook_1_{43 * 'a'}"),
        ("GET", "/console"),
        ("GET", "/listen"),
        ("POST", "/widget/v1/sessions"),
    ],
)
async def test_a_page_or_hook_whose_statement_is_cancelled_is_a_503(
    installation: Installation, method: str, path: str
) -> None:
    """It waits for a lock that is not freed in time; the test is not as patient as the time limit."""
    headers = {
        "cookie": f"{COOKIE}=stale",
        "authorization": f"Bearer dev_{40 * 'a'}",
        "x-widget-key": f"hook_1_{43 * 'a'}",
    }
    async with (
        migrated_database(installation.server) as scratch,
        open_app(installation, [], SAPA_DATABASE_URL=scratch.app_url) as client,
        connect(scratch.owner_url) as owner,
        connect(scratch.app_url) as other,
        owner.transaction(),
    ):
        await owner.execute(LOCK_EVERYTHING)
        responding = asyncio.create_task(client.request(method, f"http://probe{path}", headers=headers))
        while not responding.done():
            await other.fetch(CANCEL_WAITING)
            await asyncio.sleep(0.01)
        response = responding.result()
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
