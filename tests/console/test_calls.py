"""The log of API calls at the console: listed, filtered, turned over, and only the company's own."""

import re
from collections.abc import AsyncIterator
from html import unescape

import httpx
import pytest

from sapa.access.calls.queries import COLUMNS
from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser
from tests.factories import Environments, MadeKey, make_company, make_key
from tests.http.wire import eventually

FILL = f"""
    INSERT INTO api_calls ({", ".join(COLUMNS)})
    SELECT $1, now() - n * interval '1 second', 'req_' || n, $2, 'GET', '/customer/v1/orders', 200, NULL, '::1', 100
      FROM generate_series(1, 60) n"""


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def wait_for(owner: httpx.AsyncClient, response: httpx.Response) -> str:
    """The page that has the call."""

    async def look() -> str | None:
        page = (await owner.get("/live/calls")).text
        return page if response.headers["x-request-id"] in page else None

    return await eventually(look)


async def test_calls_are_listed_and_filtered(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient, key: MadeKey
) -> None:
    assert "No calls yet" in (await owner.get("/live/calls")).text
    async with connect(installation, key.raw) as client:
        good = await client.get("/orders")
        bad = await client.get("/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k")
    page = await wait_for(owner, bad)
    assert "NOT_FOUND" in page
    assert "/customer/v1/customers/{id}" in page
    assert "test key" in page
    assert key.raw not in page

    async def find(**query: str) -> set[str]:
        text = (await owner.get("/live/calls", params=query)).text
        return {name for name, call in (("good", good), ("bad", bad)) if call.headers["x-request-id"] in text}

    assert await find() == await find(keyId=key.id) == {"good", "bad"}
    assert await find(status="4xx") == await find(code="NOT_FOUND") == {"bad"}
    assert await find(route="/customer/v1/orders") == {"good"}
    assert await find(calledTo="2026-01-31T09:30") == set()
    wrong = await owner.get("/live/calls", params={"status": "many"})
    assert 'aria-describedby="status-problem"' in wrong.text
    assert "No matching calls" in (await owner.get("/live/calls", params={"address": "192.0.2.1"})).text


async def test_a_time_before_all_times_is_explained(owner: httpx.AsyncClient) -> None:
    page = await owner.get("/test/calls", params={"calledFrom": "0001-01-01T00:00"})
    assert (page.status_code, 'id="calledFrom-problem"' in page.text) == (200, True), page.text


async def test_older_calls_are_on_the_next_page(
    database: Database, company: Environments, owner: httpx.AsyncClient, key: MadeKey
) -> None:
    async with database.connection() as db:
        await db.execute(FILL, company.live, key.id)
    first = (await owner.get("/live/calls?route=/customer/v1/orders")).text
    older = re.search(r'rel="next" href="([^"]+)"', first)
    assert older is not None
    second = (await owner.get("/live/calls" + unescape(older[1]))).text
    shown = [re.findall(r"<code>req_(\d+)</code>", page) for page in (first, second)]
    assert [int(number) for page in shown for number in page] == list(range(1, 61))
    assert 'rel="next"' not in second


async def test_another_companys_calls_are_out_of_reach(
    installation: Installation, database: Database, company: Environments, owner: httpx.AsyncClient
) -> None:
    for other in (company.test, (await make_company(database)).live):
        async with connect(installation, (await make_key(database, other)).raw) as client:
            response = await client.get("/orders")
            id = response.headers["x-request-id"]

            async def is_stored(client: httpx.AsyncClient = client, id: str = id) -> bool | None:
                return bool((await client.get("/api-calls", params={"requestId": id})).json()["data"]) or None

            await eventually(is_stored)
        assert id not in (await owner.get("/live/calls")).text
        assert f"<code>{id}" not in (await owner.get("/live/calls", params={"requestId": id})).text


async def test_the_ends_of_the_calendar_are_shown_and_filtered_by(
    owner: httpx.AsyncClient, api: httpx.AsyncClient
) -> None:
    """In the company's time zone they are of no year."""
    body = {"name": "for ever", "scopes": ["orders:READ"], "expiresAt": "9999-12-31T23:59:59Z"}
    assert (await api.post("/api-keys", json=body)).status_code == 201
    assert "31 Dec 9999, 23:59 WIB" in (await owner.get("/live/keys")).text
    for path in ("/live/calls?calledFrom=0001-01-01T00:00", "/live/orders?createdFrom=0001-01-01T00:00"):
        assert (await owner.get(path)).status_code == 200
