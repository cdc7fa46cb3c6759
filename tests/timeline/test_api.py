"""The timeline, read in both directions and compared with a plain list."""

import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.timeline import actions, jobs, queries
from sapa.timeline.actions import NewTimelineEntry
from sapa.timeline.types import TYPES
from sapa.values.company import Company
from tests import depth
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key, make_order


@pytest.fixture
async def sandbox(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        yield client


@pytest.fixture
async def ayu(sandbox: httpx.AsyncClient) -> str:
    return str((await make_customer(sandbox))["id"])


async def record(database: Database, company: Environments, customer_id: str, types: list[str]) -> None:
    async with database.transaction() as tx:
        entries = [NewTimelineEntry(customer_id, type, edit_log=str(index)) for index, type in enumerate(types)]
        await actions.record_all(tx, Company(company.test, "test", "ID", "IDR"), entries)


async def move_clock(database: Database, company: Environments, by: timedelta) -> None:
    async with database.transaction() as tx:
        await access.move_clock(tx, company.test, by)


async def read(api: httpx.AsyncClient, customer_id: str, **query: Any) -> dict[str, Any]:
    response = await api.get(f"/loyalty/customers/{customer_id}/timeline", params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def types_of(api: httpx.AsyncClient, customer_id: str) -> list[str]:
    """Oldest first."""
    return [entry["type"] for entry in reversed((await read(api, customer_id, limit=100))["data"])]


async def walk(api: httpx.AsyncClient, customer_id: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Every page from the first to the last, and then back again, which gives the same entries."""
    pages = [await read(api, customer_id, **query)]
    while pages[-1]["meta"]["hasNextPage"]:
        pages.append(await read(api, customer_id, **query, after=pages[-1]["meta"]["endCursor"]))
    entries = [entry for page in pages for entry in page["data"]]
    assert [page["meta"]["hasPreviousPage"] for page in pages] == [False] + [True] * (len(pages) - 1)
    assert {page["meta"]["total"] for page in pages} == {len(entries)}
    back = [pages[-1]]
    while back[-1]["meta"]["hasPreviousPage"]:
        back.append(await read(api, customer_id, **query, before=back[-1]["meta"]["startCursor"]))
    assert [entry for page in reversed(back) for entry in page["data"]] == entries
    assert all(page["meta"]["hasNextPage"] for page in back[1:])
    return [page["data"] for page in pages]


@given(
    batches=st.lists(st.lists(st.sampled_from(sorted(TYPES)), max_size=6), max_size=5),
    limit=st.integers(1, 5),
    category=st.sampled_from(["system", "loyalty", "support", None]),
)
@settings(max_examples=depth.examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_both_directions_equal_a_plain_list(
    sandbox: httpx.AsyncClient,
    database: Database,
    company: Environments,
    batches: list[list[str]],
    limit: int,
    category: str | None,
) -> None:
    """Entries of one batch share their instant, so that cursors have ties to keep apart."""
    customer = (await make_customer(sandbox))["id"]
    for types in batches:
        await record(database, company, customer, types)
    expected = ["customer_created", *(type for types in batches for type in types)]
    expected = [type for type in reversed(expected) if category is None or TYPES[type][0] == category]
    query = {"limit": limit} | ({} if category is None else {"category": category})
    pages = await walk(sandbox, customer, **query)
    assert [entry["type"] for page in pages for entry in page] == expected
    assert all(len(page) == limit for page in pages[:-1])
    assert len({entry["id"] for page in pages for entry in page}) == len(expected)


async def test_a_cursor_keeps_its_position_while_entries_are_added(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    await record(database, company, ayu, ["points_earned"] * 5)
    first = await read(sandbox, ayu, limit=2)
    rest = await read(sandbox, ayu, after=first["meta"]["endCursor"])
    await record(database, company, ayu, ["points_expired"] * 3)
    later = await read(sandbox, ayu, after=first["meta"]["endCursor"])
    assert later["data"] == rest["data"]
    assert (rest["meta"]["total"], later["meta"]["total"]) == (6, 9)
    newer = await read(sandbox, ayu, before=first["meta"]["startCursor"])
    assert [entry["type"] for entry in newer["data"]] == ["points_expired"] * 3
    assert newer["meta"]["hasNextPage"]
    assert not newer["meta"]["hasPreviousPage"]


@pytest.mark.smoke
async def test_beyond_either_end_there_is_nothing(sandbox: httpx.AsyncClient, ayu: str) -> None:
    page = await read(sandbox, ayu)
    older = await read(sandbox, ayu, after=page["meta"]["endCursor"])
    newer = await read(sandbox, ayu, before=page["meta"]["startCursor"])
    assert older["data"] == newer["data"] == []
    assert older["meta"] == {
        "startCursor": None,
        "endCursor": None,
        "hasNextPage": False,
        "hasPreviousPage": True,
        "total": 1,
    }
    assert (newer["meta"]["hasNextPage"], newer["meta"]["hasPreviousPage"]) == (True, False)
    empty = await read(sandbox, ayu, category="support")
    assert empty["meta"] == {
        "startCursor": None,
        "endCursor": None,
        "hasNextPage": False,
        "hasPreviousPage": False,
        "total": 0,
    }


async def test_months_are_counted_back_from_the_companys_time(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    await record(database, company, ayu, ["points_earned"])
    for days in (20, 80):
        await move_clock(database, company, timedelta(days=days))
        await record(database, company, ayu, ["points_expired"])
    counts = {}
    for months in (1, 3, 4, 120):
        page = await read(sandbox, ayu, months=months)
        counts[months] = len(page["data"])
        assert page["meta"]["total"] == counts[months]
        assert not page["meta"]["hasNextPage"]
    assert counts == {1: 1, 3: 2, 4: 4, 120: 4}
    assert len(await walk(sandbox, ayu, months=3, limit=1)) == 2


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize(
    "value",
    ["", "x", "%", "é", "=" * 4, "a" * 201, cursor(""), cursor("2026-01-31T09:30:00.000Z"),
     cursor("2026-01-31T09:30:00.000Z evt_01jc9y3q5me8w92v7x4t6r0n1k"), cursor("now tl_01jc9y3q5me8w92v7x4t6r0n1k"),
     cursor("2026-13-31T09:30:00.000Z tl_01jc9y3q5me8w92v7x4t6r0n1k"), cursor("\0 \0")],
)  # fmt: skip
async def test_an_invalid_cursor_is_refused(sandbox: httpx.AsyncClient, ayu: str, name: str, value: str) -> None:
    response = await sandbox.get(f"/loyalty/customers/{ayu}/timeline", params={name: value})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == name


@pytest.mark.parametrize(
    "query", [{"category": "sales"}, {"limit": 0}, {"limit": 101}, {"months": 0}, {"months": 121}, {"page": 1}]
)
async def test_an_invalid_query_is_refused(sandbox: httpx.AsyncClient, ayu: str, query: dict[str, Any]) -> None:
    response = await sandbox.get(f"/loyalty/customers/{ayu}/timeline", params=query)
    assert response.json()["error"]["details"][0]["field"] == next(iter(query))


async def test_one_direction_at_a_time(sandbox: httpx.AsyncClient, ayu: str) -> None:
    mark = (await read(sandbox, ayu))["meta"]["startCursor"]
    response = await sandbox.get(f"/loyalty/customers/{ayu}/timeline", params={"after": mark, "before": mark})
    assert response.status_code == 400


async def test_another_companys_customer_is_not_found(
    api: httpx.AsyncClient, sandbox: httpx.AsyncClient, ayu: str
) -> None:
    assert (await api.get(f"/loyalty/customers/{ayu}/timeline")).status_code == 404


async def test_an_entry_shows_where_it_came_from_and_what_changed(sandbox: httpx.AsyncClient) -> None:
    customer = (await make_customer(sandbox, firstName="Ayu", tags=["vip"]))["id"]
    changes = {"firstName": "Ayu Putri", "lastName": "L", "tags": ["vip", "new"], "additionalData": {"a": 1}}
    await sandbox.put(f"/customers/{customer}", json=changes)
    await sandbox.put(f"/customers/{customer}", json={"lastName": None, "imageUrl": "https://x/" + "y" * 200})
    await sandbox.put(f"/customers/{customer}", json={"lastName": None})
    last, first, made = (await read(sandbox, customer))["data"]
    assert made == {
        "id": made["id"],
        "customerId": customer,
        "category": "system",
        "type": "customer_created",
        "source": "api",
        "edit_log": None,
        "notes": None,
        "actorName": None,
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
    }
    assert (
        first["edit_log"] == "firstName: Ayu → Ayu Putri; lastName: – → L; tags: vip → vip, new; additionalData changed"
    )
    assert last["edit_log"] == f"lastName: L → –; imageUrl: – → https://x/{'y' * 90}…"


async def test_every_change_of_an_order_is_recorded_once(sandbox: httpx.AsyncClient, ayu: str) -> None:
    order = await make_order(sandbox, customerId=ayu, notes="Ring twice")
    for change in (
        {"financialStatus": "paid"}, {"fulfillmentStatus": "fulfilled"}, {"notes": "x"}, {"status": "archived"},
        {"status": "active"}, {"status": "refunded"}, {"status": "archived"}, {"status": "refunded"},
    ):  # fmt: skip
        assert (await sandbox.put(f"/orders/{order['id']}", json=change)).status_code == 200
    other = await make_order(sandbox, customerId=ayu)
    for change in ({"status": "cancelled"}, {"status": "archived"}, {"status": "cancelled"}):
        assert (await sandbox.put(f"/orders/{other['id']}", json=change)).status_code == 200
    assert (await types_of(sandbox, ayu))[1:] == [
        "order_created", "order_paid", "order_fulfilled", "order_refunded", "order_created", "order_cancelled"
    ]  # fmt: skip
    placed = (await read(sandbox, ayu, limit=100))["data"][-2]
    assert placed["edit_log"] == f"order {order['orderNumber']}: 150000 IDR"
    assert placed["notes"] == "Ring twice"


async def test_an_order_that_creates_its_customer_records_both(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox, customer={"email": "new@example.com"})
    assert await types_of(sandbox, order["customer"]["id"]) == ["customer_created", "order_created"]


async def test_deleting_a_customer_deletes_their_timeline(
    sandbox: httpx.AsyncClient, database: Database, ayu: str
) -> None:
    order = await make_order(sandbox, customerId=ayu)
    assert (await sandbox.delete(f"/customers/{ayu}")).status_code == 204
    assert (await sandbox.put(f"/orders/{order['id']}", json={"financialStatus": "paid"})).status_code == 200
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM timeline_entries WHERE customer_id = $1", ayu) == 0


async def test_a_refused_change_has_no_entry(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await sandbox.put(f"/customers/{ayu}", json={"email": None})
    await sandbox.put(f"/customers/{ayu}", json={})
    order = await make_order(sandbox, customerId=ayu)
    await sandbox.put(f"/orders/{order['id']}", json={"status": "active"})
    assert await types_of(sandbox, ayu) == ["customer_created", "order_created"]


OF_AN_EARLIER_VERSION = """
    INSERT INTO timeline_entries (company_id, id, customer_id, category, type, source, created_at, updated_at)
    SELECT $1, 'tl_01jd' || lpad(n::text, 22, '0'), $2, 'support', 'ticket_opened', 'system', now(), now()
      FROM generate_series(1, $3::integer) AS n"""


async def count(api: httpx.AsyncClient, customer_id: str, **query: Any) -> int:
    return int((await read(api, customer_id, limit=1, **query))["meta"]["total"])


async def test_entries_of_an_earlier_version_count_before_and_after_the_worker_has_counted_them(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    async with database.transaction() as tx:
        await tx.execute(OF_AN_EARLIER_VERSION, company.test, ayu, 30)
    assert await count(sandbox, ayu) == 31
    assert await count(sandbox, ayu, category="support") == 30
    await jobs.backfill_counters(database)
    async with database.connection() as db:
        assert await db.fetchval("SELECT count(*) FROM timeline_entries WHERE NOT is_counted") == 0
    assert await count(sandbox, ayu) == 31
    assert await count(sandbox, ayu, category="support") == 30
    assert await count(sandbox, ayu, category="loyalty") == 0
    assert await count(sandbox, ayu, months=1) == 31


ROWS_READ = """
    SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'timeline_entries'"""


async def test_many_entries_are_counted_without_searching_for_each(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    async with database.transaction() as tx:
        await tx.execute(OF_AN_EARLIER_VERSION, company.test, ayu, 20_000)
        await queries.count_more(tx, company.test, 10_000)
        # Found once by the index; the rest goes by the rows' addresses.
        assert await tx.fetchval(ROWS_READ) <= 2 * 10_000
    await jobs.backfill_counters(database)
    assert await count(sandbox, ayu) == 20_001


@pytest.mark.parametrize("is_counted", [True, False])
async def test_a_deleted_timeline_is_taken_off_the_counter(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str, is_counted: bool
) -> None:
    async with database.transaction() as tx:
        await tx.execute(OF_AN_EARLIER_VERSION, company.test, ayu, 5)
        if is_counted:
            await queries.count_more(tx, company.test, 5)
        await actions.purge_customer(tx, Company(company.test, "test", "ID", "IDR"), ayu)
    assert await count(sandbox, ayu) == 0
    await record(database, company, ayu, ["points_earned"])
    assert await count(sandbox, ayu) == 1
