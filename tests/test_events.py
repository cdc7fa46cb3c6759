import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.customers import actions
from sapa.customers.types import CustomerIn, CustomerPatch
from sapa.db.pool import Connection, Database
from sapa.values.company import Company
from sapa.values.json import MAX_EXACT, encode_values
from tests import depth
from tests.conftest import TLS, Installation
from tests.customers.test_api import EVERYTHING
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import Environments, make_customer, make_key
from tests.javascript import print_again

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ODD_KEYS = st.sampled_from(["__proto__", "01", "-0", "1.0", "4294967294", "4294967295"])
KEYS = TEXTS.filter(bool) | st.integers(0, 2**33).map(str) | ODD_KEYS
NUMBERS = st.integers(-MAX_EXACT, MAX_EXACT) | st.floats(-MAX_EXACT, MAX_EXACT)
VALUES = st.dictionaries(KEYS, TEXTS | NUMBERS, max_size=8)


async def events_of(database: Database, company_id: int) -> list[asyncpg.Record]:
    async with database.connection() as db:
        return await db.fetch(
            "SELECT id, kind, resource_id, body FROM events WHERE company_id = $1 ORDER BY created_at, id", company_id
        )


def data_of(answer: httpx.Response) -> bytes:
    """The bytes of the resource in an answer."""
    assert answer.status_code in {200, 201}, answer.text
    return answer.content.removeprefix(b'{"data":').removesuffix(b"}")


async def test_every_change_is_recorded_with_the_bytes_of_the_answer(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = await api.post("/customers", json=EVERYTHING)
    id = made.json()["data"]["id"]
    changed = await api.put(f"/customers/{id}", json={"firstName": "Budi \u2028 😀", "tags": ['"quoted"', "a\\b"]})
    assert (await api.delete(f"/customers/{id}")).status_code == 204
    events = await events_of(database, company.live)
    assert [(event["kind"], event["resource_id"]) for event in events] == [
        ("customer.created", id),
        ("customer.updated", id),
        ("customer.deleted", id),
    ]
    assert [event["body"] for event in events] == [data_of(made), data_of(changed), data_of(changed)]
    assert all(event["id"].startswith("evt_") and len(event["id"]) == 30 for event in events)
    assert len({event["id"] for event in events}) == 3


async def test_a_refused_change_is_not_recorded(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = await make_customer(api, email="ayu@example.com")
    other = await make_customer(api)
    for answer in (
        await api.post("/customers", json={"email": "AYU@example.com"}),
        await api.put(f"/customers/{other['id']}", json={"email": "ayu@example.com"}),
        await api.put(f"/customers/{made['id']}", json={"email": None}),
        await api.delete("/customers/cust_01jc9y3q5me8w92v7x4t6r0n1k"),
    ):
        assert answer.status_code in {400, 404, 409}
    assert len(await events_of(database, company.live)) == 2


async def test_a_replayed_answer_is_not_recorded_again(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    once = {"Idempotency-Key": "one"}
    answers = [await api.post("/customers", json={"email": "a@example.com"}, headers=once) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    (event,) = await events_of(database, company.live)
    assert {event["body"]} == {data_of(answer) for answer in answers}


async def change_and_fail(database: Database, company: Company) -> None:
    async with database.transaction() as tx:
        made = await actions.create(tx, company, CustomerIn(email="a@example.com"))
        await actions.update(tx, company, made.id, CustomerPatch(first_name="Ayu"))
        assert await tx.fetchval("SELECT count(*) FROM events WHERE company_id = $1", company.id) == 2
        raise ZeroDivisionError


async def test_a_transaction_that_is_undone_leaves_neither_change_nor_event(
    database: Database, company: Environments
) -> None:
    with pytest.raises(ZeroDivisionError):
        await change_and_fail(database, Company(company.live, "live", "ID", "IDR"))
    assert await events_of(database, company.live) == []
    async with database.connection() as db:
        for table in ("customers", "counter_deltas"):
            assert await db.fetchval(f"SELECT count(*) FROM {table} WHERE company_id = $1", company.live) == 0


@given(values=VALUES)
@settings(max_examples=depth.examples(500), deadline=None)
def test_stored_values_are_printed_as_javascript_would_print_them_again(values: dict[str, Any]) -> None:
    text = encode_values(values).decode()
    assert print_again(text) == text
    assert json.loads(text) == values


@given(
    values=VALUES, name=TEXTS, tags=st.lists(TEXTS.filter(lambda text: text.strip() and "," not in text), max_size=3)
)
@settings(max_examples=depth.examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_receiver_that_prints_a_body_again_gets_the_same_bytes(
    api: httpx.AsyncClient,
    database: Database,
    company: Environments,
    values: dict[str, Any],
    name: str,
    tags: list[str],
) -> None:
    place = {"address1": f"a{name}", "city": name}
    made = await make_customer(api, firstName=name, tags=tags, additionalData=values, addresses=[place])
    async with database.connection() as db:
        body: bytes = await db.fetchval(
            "SELECT body FROM events WHERE company_id = $1 AND resource_id = $2", company.live, made["id"]
        )
    assert print_again(body.decode()) == body.decode()
    assert json.loads(body)["additionalData"] == values


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'x'",
        "DELETE FROM events",
        "TRUNCATE events",
        "SELECT id FROM events FOR UPDATE",
        "DROP TABLE events",
        "ALTER TABLE events ADD note text",
        "SELECT id FROM events_default",
        "UPDATE events_default SET kind = 'x'",
        "DELETE FROM events_default",
        "INSERT INTO events_default (company_id, id, kind, resource_id, body) VALUES (1, 'a', 'a', 'a', '')",
        "CREATE TABLE mine (id int)",
        "SET ROLE sapa_owner",
        "DELETE FROM schema_migrations",
        "INSERT INTO schema_migrations (number, name, checksum) VALUES (99, 'x', 'x')",
    ],
)
async def test_the_product_cannot_change_what_was_announced(database: Database, statement: str) -> None:
    async with database.connection() as db:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await db.execute(statement)


async def test_the_product_reaches_no_partition_by_its_own_name(database: Database) -> None:
    async with database.connection() as db:
        rows = await db.fetch("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'events'::regclass")
        names = [row[0] for row in rows]
        assert len(names) > 7
        for name in names:
            for statement in (f"SELECT id FROM {name}", f"UPDATE {name} SET kind = ''", f"DELETE FROM {name}"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await db.execute(statement)


YESTERDAYS = "SELECT 'events_' || to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')"


@pytest.fixture(scope="module")
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    """With the partitions of today: the template may have been made before midnight."""
    async with migrated_database(installation.server) as database, connect(database.owner_url) as owner:
        for name in await owner.fetchrow(YESTERDAYS) or ():
            await owner.execute(f"DROP TABLE IF EXISTS {name}")
        await owner.execute("SELECT keep_day_partitions('events', 7, 30)")
        yield database


@pytest.fixture
async def app(scratch: Scratch) -> AsyncIterator[Connection]:
    async with connect(scratch.app_url) as connection:
        yield connection


@pytest.fixture
async def owner(scratch: Scratch) -> AsyncIterator[Connection]:
    async with connect(scratch.owner_url) as connection:
        yield connection


async def days(db: Connection) -> list[int]:
    """The partitions' days, counted from today."""
    rows = await db.fetch(
        """
        SELECT to_date(right(c.relname, 8), 'YYYYMMDD') - (now() AT TIME ZONE 'UTC')::date
          FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'events'::regclass AND c.relname ~ '^events_\\d{8}$' ORDER BY 1"""
    )
    return [row[0] for row in rows]


async def add_partition(owner: Connection, day: int) -> None:
    """A partition for the day so many days from today."""
    name, start, end = await owner.fetchrow(
        """
        SELECT to_char(d, 'YYYYMMDD'), d::text, (d + 1)::text
          FROM (SELECT (now() AT TIME ZONE 'UTC')::date + $1::int AS d) AS one""",
        day,
    ) or ("", "", "")
    await owner.execute(
        f"CREATE TABLE events_{name} PARTITION OF events FOR VALUES FROM ('{start} 00:00+00') TO ('{end} 00:00+00')"
    )


async def add_event(app: Connection, id: str, day: int) -> None:
    await app.execute(
        """
        INSERT INTO events (company_id, id, kind, resource_id, body, created_at)
        VALUES (1, $1, 'k', 'r', '', now() + make_interval(days => $2))""",
        id, day,
    )  # fmt: skip


async def where(owner: Connection, id: str) -> str | None:
    found: str | None = await owner.fetchval("SELECT tableoid::regclass::text FROM events WHERE id = $1", id)
    return found


async def test_the_coming_days_have_partitions_and_events_go_into_todays(app: Connection, owner: Connection) -> None:
    assert await days(app) == list(range(8))
    await app.execute("SELECT keep_day_partitions('events', 9, 30)")
    await app.execute("SELECT keep_day_partitions('events', 7, 30)")
    assert await days(app) == list(range(10))
    await add_event(app, "today", 0)
    today = await owner.fetchval("SELECT 'events_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    assert await where(owner, "today") == today


async def test_days_past_their_time_are_dropped_whole_and_no_other(app: Connection, owner: Connection) -> None:
    for day in (-400, -31, -30, -29):
        await add_partition(owner, day)
        await add_event(app, f"old {day}", day)
    await app.execute("SELECT keep_day_partitions('events', 7, 30)")
    assert [day for day in await days(app) if day < 0] == [-30, -29]
    kept = [row[0] for row in await owner.fetch("SELECT id FROM events WHERE id LIKE 'old%' ORDER BY created_at")]
    assert kept == ["old -30", "old -29"]


async def test_the_product_cannot_have_kept_events_dropped(app: Connection, owner: Connection) -> None:
    before = await days(app)
    await add_event(app, "kept", 1)
    await app.execute("SELECT keep_day_partitions('events', -5, -10000)")
    assert await where(owner, "kept") is not None
    assert await days(app) == before


async def test_rows_that_missed_their_partition_stay_until_their_time_is_over(
    app: Connection, owner: Connection
) -> None:
    for day in (-40, -20, 15):
        await add_event(app, f"stray {day}", day)
    await app.execute("SELECT keep_day_partitions('events', 20, 30)")
    assert [day for day in await days(app) if day > 10] == [11, 12, 13, 14, 16, 17, 18, 19, 20]
    assert await where(owner, "stray -40") is None
    assert await where(owner, "stray -20") == await where(owner, "stray 15") == "events_default"
    await owner.execute("DELETE FROM events WHERE id LIKE 'stray%'")
    await app.execute("SELECT keep_day_partitions('events', 20, 30)")
    assert 15 in await days(app)


async def test_two_workers_may_make_the_same_partitions_at_once(scratch: Scratch, app: Connection) -> None:
    make = "SELECT keep_day_partitions('events', 40, 30)"
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query = $1"
    async with connect(scratch.app_url) as other, connect(scratch.app_url) as onlooker:
        async with app.transaction():
            await app.execute(make)
            second = asyncio.create_task(other.execute(make))
            while not await onlooker.fetchval(waiting, make):
                assert not second.done()
        await second
    assert max(await days(app)) == 40


async def test_a_writer_of_every_company_is_recorded_under_its_own(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    await make_customer(api)
    async with httpx.AsyncClient(
        base_url=installation.customer_base, headers={"x-api-key": key.raw}, verify=TLS
    ) as test_api:
        await make_customer(test_api)
    assert len(await events_of(database, company.live)) == len(await events_of(database, company.test)) == 1
