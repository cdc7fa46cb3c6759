"""Readers that fall asleep or leave hold no connection of the API and no memory, and leave no traceback."""

import time
from collections.abc import Iterator

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import TLS, Installation
from tests.console.people import make_person, open_browser
from tests.factories import Environments, make_key
from tests.faults.api_servers import ApiServer, run_api
from tests.faults.slow_readers import ask, asleep, read_status

POOL = 2
READERS = 6
CUSTOMERS = 20_000
"""About 20 MB: more than sockets hold."""
PATH = "/console/live/exports/customers.csv"
DOCUMENT = "/customer/v1/openapi.json"
STRANGERS = 30
AT_ONCE = 8
"""Requests whose responses are more than a socket holds: about 1 MB each."""
MAX_GROWTH = 20 * 1_048_576
FILL = """
    INSERT INTO customers (company_id, id, first_name, phone_number, tags, addresses, additional_data,
                           subscription_status, search_text)
    SELECT $1, 'cust_' || lpad(n::text, 26, '0'), 'Ayu', '+62812' || n, '{}', '[]',
           json_build_object('notes', repeat('x', 1000)), '[]', 'ayu'
      FROM generate_series(1, $2::integer) AS n"""


@pytest.fixture(scope="module")
def server(installation: Installation) -> Iterator[ApiServer]:
    with run_api(installation, SAPA_DATABASE_POOL=str(POOL)) as running:
        yield running
        log = running.log.read_text()
    assert "Traceback" not in log
    assert "internal error" not in log


async def fill(installation: Installation, database: Database, company: Environments) -> str:
    """A company with many customers; returns its owner's cookie."""
    async with database.connection() as db:
        await db.execute(FILL, company.live, CUSTOMERS)
    async with open_browser(installation, await make_person(database, company)) as owner:
        return f"sapa_session={owner.cookies['sapa_session']}"


@pytest.mark.long
async def test_readers_that_fall_asleep_hold_no_connection_of_the_api(
    installation: Installation, database: Database, company: Environments, server: ApiServer
) -> None:
    key = (await make_key(database, company.live)).raw
    cookie = await fill(installation, database, company)
    async with httpx.AsyncClient(headers={"x-api-key": key}, verify=TLS, timeout=120) as caller:
        with asleep(server.port, PATH, cookie, READERS) as statuses:
            assert sorted(statuses) == [200, 200] + [429] * (READERS - 2)
            for _ in range(5 * POOL):
                assert (await caller.get(f"{server.address}/customer/v1/customers")).status_code == 200


def test_strangers_that_fall_asleep_over_a_document_do_not_fill_the_memory(server: ApiServer) -> None:
    with asleep(server.port, DOCUMENT, "", AT_ONCE):  # what a process keeps from its first requests
        pass
    (process,) = server.workers
    before = process.memory_info().rss
    with asleep(server.port, DOCUMENT, "", STRANGERS, AT_ONCE) as statuses:
        assert statuses == [200] * STRANGERS
        time.sleep(3)
        growth = process.memory_info().rss - before
    assert growth < MAX_GROWTH


@pytest.mark.long
async def test_readers_that_leave_free_their_turn_and_leave_no_traceback(
    installation: Installation, database: Database, company: Environments, server: ApiServer
) -> None:
    cookie = await fill(installation, database, company)
    for _ in range(10):
        reader = ask(server.port, PATH, cookie)
        assert read_status(reader) == 200
        reader.close()
    async with httpx.AsyncClient(headers={"cookie": cookie}, verify=TLS, timeout=120) as reader_that_stays:
        whole = await reader_that_stays.get(f"{server.address}{PATH}")
    assert whole.status_code == 200
    assert whole.text.count("Ayu") == CUSTOMERS
