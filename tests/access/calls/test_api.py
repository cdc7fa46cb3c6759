"""The log of API calls: every call of the company, no other, and no secret."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sapa.access.calls import actions, queries
from sapa.access.calls.queries import CallRow
from sapa.access.calls.types import ApiCallsQuery
from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, MadeKey, make_company, make_customer, make_key
from tests.http.wire import eventually

START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
KEYS = ["key_a", "key_b"]
ROUTES = ["/customer/v1/orders", "/customer/v1/orders/{id}", "/customer/v1/customers"]
METHODS = ["GET", "POST"]
STATUSES = [(200, None), (200, None), (201, None), (404, "NOT_FOUND"), (409, "CUSTOMER_EXISTS"), (503, "UNAVAILABLE")]
ADDRESSES = ["203.0.113.7", "2001:db8::1"]


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


@pytest.fixture
async def caller(installation: Installation, key: MadeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(installation, key.raw) as client:
        yield client


async def find_call(client: httpx.AsyncClient, response: httpx.Response) -> dict[str, Any]:
    """The entry of one call; calls are stored in batches, so it may take a moment."""
    id = response.headers["x-request-id"]

    async def look() -> dict[str, Any] | None:
        found = (await client.get("/api-calls", params={"requestId": id})).json()["data"]
        return found[0] if found else None

    return await eventually(look)


async def list_all(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    """Page by page."""
    found: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    while True:
        page = (await client.get("/api-calls", params={**query, **before})).json()
        found += page["data"]
        if not page["pagination"]["hasMore"]:
            return found
        before = {"before": page["pagination"]["nextBefore"]}


@pytest.mark.smoke
async def test_a_call_is_listed_with_its_outcome(caller: httpx.AsyncClient, key: MadeKey) -> None:
    customer = await make_customer(caller)
    response = await caller.get(f"/customers/{customer['id']}")
    found = await find_call(caller, response)
    assert found.pop("milliseconds") > 0
    assert abs(datetime.fromisoformat(found.pop("calledAt")) - datetime.now(UTC)) < timedelta(minutes=5)
    assert found == {
        "requestId": response.headers["x-request-id"],
        "keyId": key.id,
        "method": "GET",
        "route": "/customer/v1/customers/{id}",
        "status": 200,
        "code": None,
        "address": "127.0.0.1",
    }


@pytest.mark.usefixtures("early_in_a_minute")
async def test_refused_calls_are_listed_with_their_code(
    installation: Installation, database: Database, company: Environments, caller: httpx.AsyncClient
) -> None:
    reader = await make_key(database, company.live, scopes=["orders:READ"], rate_limit=2)
    outsider = await make_key(database, company.live, allow_list=["192.0.2.7"])
    async with connect(installation, reader.raw) as client:
        responses = [await client.get("/customers"), await client.get("/nowhere"), await client.get("/orders")]
    async with connect(installation, outsider.raw) as client:
        responses.append(await client.get("/orders"))
    entries = [await find_call(caller, response) for response in responses]
    assert [(entry["status"], entry["code"], entry["route"]) for entry in entries] == [
        (403, "INSUFFICIENT_SCOPE", "/customer/v1/customers"),
        (404, "NOT_FOUND", "unknown"),
        (429, "RATE_LIMIT_EXCEEDED", "/customer/v1/orders"),
        (403, "IP_NOT_ALLOWED", "/customer/v1/orders"),
    ]


async def test_each_filter_finds_its_own(
    installation: Installation, database: Database, company: Environments, caller: httpx.AsyncClient, key: MadeKey
) -> None:
    other = await make_key(database, company.live)
    async with connect(installation, other.raw) as client:
        theirs = await client.get("/products")
    missing = await caller.get("/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k")
    created = await caller.post("/customers", json={"email": "sari@example.com"})
    calls = {name: await find_call(caller, one) for name, one in
             (("theirs", theirs), ("missing", missing), ("created", created))}  # fmt: skip
    ids = {call["requestId"]: name for name, call in calls.items()}

    async def find(**query: str) -> set[str]:
        return {ids[call["requestId"]] for call in await list_all(caller, **query) if call["requestId"] in ids}

    assert await find() == {"theirs", "missing", "created"}
    assert await find(keyId=other.id) == {"theirs"}
    assert await find(keyId=key.id) == {"missing", "created"}
    assert await find(method="post") == {"created"}
    assert await find(route="/customer/v1/customers/{id}") == {"missing"}
    assert await find(status="404") == await find(status="4xx") == await find(code="NOT_FOUND") == {"missing"}
    assert await find(status="2xx") == {"theirs", "created"}
    assert await find(status="201", keyId=key.id, method="POST") == {"created"}
    assert await find(address="127.0.0.1") == {"theirs", "missing", "created"}
    assert await find(address="127.0.0.2") == set()
    assert await find(requestId=calls["created"]["requestId"]) == {"created"}
    assert await find(requestId=calls["created"]["requestId"], status="4xx") == set()
    at = calls["missing"]["calledAt"]
    assert "missing" in await find(calledFrom=at, calledTo=at)
    assert await find(calledTo="2026-01-31T00:00:00Z") == set()


async def test_another_companys_calls_are_never_listed(
    installation: Installation, database: Database, company: Environments, caller: httpx.AsyncClient
) -> None:
    for other in (company.test, (await make_company(database)).live):
        async with connect(installation, (await make_key(database, other)).raw) as client:
            response = await client.get("/orders")
            entry = await find_call(client, response)
        assert (await caller.get("/api-calls", params={"requestId": entry["requestId"]})).json()["data"] == []
        assert entry["requestId"] not in str(await list_all(caller))


async def test_secrets_bodies_and_ids_are_not_logged(caller: httpx.AsyncClient) -> None:
    secret = "hush-hush"
    responses = [
        await caller.post("/customers", json={"email": f"{secret}@example.com"}, headers={"user-agent": secret}),
        await caller.get(f"/customers?search={secret}"),
        await caller.put(f"/customers/by-external-id/{secret}", json={"email": "sari@example.com"}),
    ]
    for response in responses:
        await find_call(caller, response)
    text = str(await list_all(caller))
    assert secret not in text
    assert caller.headers["x-api-key"] not in text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"before": "x"}, "before"),
        ({"before": "eA"}, "before"),
        ({"status": "600"}, "status"),
        ({"status": "4x"}, "status"),
        ({"calledFrom": "yesterday"}, "calledFrom"),
        ({"calledFrom": "2026-01-31T00:00:00Z", "calledTo": "2026-01-30T00:00:00Z"}, "calledFrom"),
        ({"limit": "101"}, "limit"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_an_invalid_query_is_refused_with_its_parameter(
    api: httpx.AsyncClient, query: dict[str, str], field: str
) -> None:
    refused = await api.get("/api-calls", params=query)
    assert refused.status_code == 400
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == [field]


def build_rows(count: int, companies: tuple[int, int] = (1, 2)) -> list[CallRow]:
    """Of two companies, several in each millisecond; every combination occurs sooner or later."""
    return [
        (
            companies[n % 3 // 2],
            START + timedelta(milliseconds=n // 4),
            f"req_{(n * 7919) % 100_003:024d}",
            KEYS[n * 5 // 7 % 2],
            METHODS[n // 3 % 2],
            ROUTES[n * 3 // 5 % 3],
            *STATUSES[n * 11 // 13 % 6],
            ADDRESSES[n // 17 % 2],
            n,
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module")
async def stored(database: Database) -> list[CallRow]:
    """The rows of a company in the order of the list; the log has those of another one between them."""
    own, other = await make_company(database), await make_company(database)
    rows = build_rows(600, (own.live, other.live))
    async with database.transaction() as tx:
        await queries.insert_calls(tx, rows)
    return sorted((row for row in rows if row[0] == own.live), key=lambda row: (row[1], row[2]), reverse=True)


_instants = st.integers(-2, 152).map(lambda n: START + timedelta(milliseconds=n))
_queries = st.builds(
    ApiCallsQuery,
    limit=st.integers(1, 40),
    key_id=st.none() | st.sampled_from([*KEYS, "key_c"]),
    method=st.none() | st.sampled_from(METHODS),
    route=st.none() | st.sampled_from([*ROUTES, "/customer/v1/orders/"]),
    status=st.none() | st.sampled_from(["200", "2xx", "4xx", "409", "5xx", "1xx"]),
    code=st.none() | st.sampled_from(["NOT_FOUND", "NO_SUCH_CODE"]),
    address=st.none() | st.sampled_from(ADDRESSES),
    request_id=st.none() | st.sampled_from([row[2] for row in build_rows(5)]),
    called_from=st.none() | _instants,
    called_to=st.none() | _instants,
)


def fits(query: ApiCallsQuery, row: CallRow) -> bool:
    _, at, request_id, key_id, method, route, status, code, address, _ = row
    wanted = (query.key_id, query.method, query.route, query.code, query.address, query.request_id)
    has = (key_id, method, route, code, address, request_id)
    status_fits = query.status is None or str(status)[0] + "xx" == query.status or str(status) == query.status
    is_within = (query.called_from is None or at >= query.called_from) and (
        query.called_to is None or at <= query.called_to
    )
    return status_fits and is_within and all(one in {None, other} for one, other in zip(wanted, has, strict=True))


@given(query=_queries, slices=st.lists(st.integers(5, 300), min_size=1, max_size=20))
async def test_the_pages_of_any_filter_hold_every_call_that_fits_once_and_in_order(
    database: Database, stored: list[CallRow], query: ApiCallsQuery, slices: list[int]
) -> None:
    company_id = stored[0][0]
    found: list[str] = []
    before: str | None = None
    async with database.connection() as db:
        while True:
            asked = replace(query, before=before)
            page = await actions.list_page(db, company_id, asked, slices)
            assert len(page.data) <= query.limit
            found += [call.request_id for call in page.data]
            assert page.pagination.has_more == (page.pagination.next_before is not None)
            if not page.pagination.has_more:
                break
            assert page.pagination.next_before != before, "each page goes on"
            before = page.pagination.next_before
    assert found == [row[2] for row in stored if fits(query, row)]


async def test_calls_of_many_callers_at_once_are_each_logged_once(caller: httpx.AsyncClient) -> None:
    responses = await asyncio.gather(*(caller.get("/orders") for _ in range(80)))
    ids = {response.headers["x-request-id"] for response in responses}

    async def are_all_there() -> bool | None:
        found = [call["requestId"] for call in await list_all(caller, route="/customer/v1/orders", limit="100")]
        assert len(found) == len(set(found))
        return ids == set(found) or None

    await eventually(are_all_there)
