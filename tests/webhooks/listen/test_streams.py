"""`/listen`: events as they happen; none lost, none of another company, and no stream that holds up the server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.customers import actions
from sapa.customers.types import CustomerIn
from sapa.db.pool import Database, open_database
from sapa.events import EVENT_ID
from sapa.values.company import Company
from sapa.values.ids import new_id
from sapa.webhooks.id_times import parse_time
from sapa.webhooks.listen import streams as listen
from sapa.webhooks.listen.streams import (
    POSITION,
    Listener,
    Listeners,
    StreamPosition,
    TooManyListeners,
    parse_position,
)
from sapa.webhooks.tokens import actions as tokens
from tests.conftest import TLS, Installation, connect, start_installation, stop_installation
from tests.factories import Environments, make_company, make_customer, make_key
from tests.http.wire import eventually
from tests.webhooks.stream import hearing


@pytest.fixture
async def token(database: Database, company: Environments) -> str:
    return await make_token(database, company.live)


async def make_token(database: Database, company_id: int) -> str:
    async with database.transaction() as tx:
        return (await tokens.create(tx, company_id)).token


async def events_of(database: Database, company_id: int) -> list[Any]:
    async with database.connection() as db:
        return await db.fetch(
            "SELECT id, kind, body, created_at FROM events WHERE company_id = $1 ORDER BY number", company_id
        )


async def test_events_are_received_as_they_were_recorded(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments, token: str
) -> None:
    await make_customer(api)
    async with hearing(installation.address, token) as ear:
        made = await make_customer(api, firstName="Ayu \u2028\r\n \n😀")
        await api.put(f"/customers/{made['id']}", json={"firstName": "Budi"})
        await api.delete(f"/customers/{made['id']}")
        received = await ear.hears(3)
        recorded = (await events_of(database, company.live))[1:]
    assert [(one["id"], one["kind"], one["body"].encode(), one["createdAt"]) for one in received] == [
        (row["id"], row["kind"], row["body"], row["created_at"]) for row in recorded
    ]
    assert [f"id: {one['id']}" in ear.lines and f"event: {one['kind']}" in ear.lines for one in received] == [True] * 3


async def test_only_the_company_s_own_environment_is_received(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments, token: str
) -> None:
    others = [company.test, (await make_company(database)).live]
    async with hearing(installation.address, token) as ear:
        for other in others:
            async with connect(installation, (await make_key(database, other)).raw) as theirs:
                await make_customer(theirs)
        own = await make_customer(api)
        await ear.hears(1)
        assert [own["id"] in event["body"] for event in ear.events] == [True]


async def test_kinds_can_be_chosen(
    installation: Installation, api: httpx.AsyncClient, database: Database, token: str
) -> None:
    async with hearing(installation.address, token, kinds="customer.updated,customer.deleted") as ear:
        made = await make_customer(api)
        await api.put(f"/customers/{made['id']}", json={"firstName": "Budi"})
        await api.delete(f"/customers/{made['id']}")
        received = await ear.hears(2)
    assert [event["kind"] for event in received] == ["customer.updated", "customer.deleted"]


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, "?kinds=customer.exploded"),
        ({}, "?kind=customer.created"),
        ({"last-event-id": "x"}, ""),
        ({"last-event-id": "é"}, ""),
    ],
)
async def test_what_cannot_be_listened_to_is_a_400(
    installation: Installation, token: str, headers: dict[str, str], query: str
) -> None:
    given_headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
        response = await client.get(
            f"{installation.address}/listen{query}",
            headers=[(b"authorization", f"Bearer {token}".encode()), *given_headers],
        )
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")


async def test_only_get_is_allowed(installation: Installation, token: str) -> None:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, verify=TLS, timeout=120) as client:
        assert [
            (await client.request(way, f"{installation.address}/listen")).status_code for way in ("HEAD", "POST")
        ] == [
            405,
            405,
        ]


async def test_a_listener_that_comes_back_hears_what_it_missed(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments, token: str
) -> None:
    async with hearing(installation.address, token) as ear:
        await make_customer(api)
        (first,) = await ear.hears(1)
    missed = [await make_customer(api) for _ in range(5)]
    async with hearing(installation.address, token, last_id=first["id"]) as ear:
        received = await ear.hears(6)
    assert received[0] == first, "a little before the last one, so that nothing late is lost"
    assert [customer["id"] in event["body"] for customer, event in zip(missed, received[1:], strict=True)] == [True] * 5


async def test_a_long_absence_is_made_up_for_in_order(
    installation: Installation, database: Database, company: Environments, token: str
) -> None:
    """More than one look takes, and further back than looks go by themselves."""
    async with database.connection() as db:
        await db.execute(
            """
            INSERT INTO events (company_id, id, kind, resource_id, body, created_at)
            SELECT $1, 'evt_' || lpad(n::text, 26, '0'), 'customer.created', 'r', '{}',
                   now() - interval '1 hour' + n * interval '1 second'
              FROM generate_series(1, 1000) n""",
            company.live,
        )
    long_ago = "evt_" + "0" * 26
    async with hearing(installation.address, token, last_id=long_ago) as ear:
        await ear.hears(1000)
    assert ear.ids == [f"evt_{n:026d}" for n in range(1, 1001)]


async def test_an_event_that_commits_late_is_received(
    installation: Installation, api: httpx.AsyncClient, database: Database, company: Environments, token: str
) -> None:
    """Its transaction stays open for three seconds, while later events come and go, and listeners come anew."""
    ours = Company(company.live, "live", "ID", "IDR")
    async with hearing(installation.address, token) as first:
        async with database.transaction() as tx:
            late = await actions.create(tx, ours, CustomerIn(email="late@example.com"))
            before = await make_customer(api)
            (seen,) = await first.hears(1)
            async with (
                hearing(installation.address, token) as second,
                hearing(installation.address, token, last_id=seen["id"]) as third,
            ):
                await asyncio.sleep(3)
                assert second.events == []
        async with (
            hearing(installation.address, token, last_id=seen["id"]) as fourth,
        ):
            received = await fourth.hears(2)
        await first.hears(2)
        assert sorted(first.ids) == sorted(one["id"] for one in received)
        assert late.id in first.events[1]["body"]
        assert before["id"] in first.events[0]["body"]
        assert third.ids == [seen["id"]]


async def test_a_late_event_reaches_a_listener_that_came_before_its_commit(
    installation: Installation, database: Database, company: Environments, token: str
) -> None:
    ours = Company(company.live, "live", "ID", "IDR")
    async with database.transaction() as tx:
        late = await actions.create(tx, ours, CustomerIn(email="late@example.com"))
        waiting = hearing(installation.address, token)
        ear = await waiting.__aenter__()
    try:
        (received,) = await ear.hears(1)
        assert late.id in received["body"]
    finally:
        await waiting.__aexit__(None, None, None)


async def test_no_event_is_sent_twice_on_one_stream(
    installation: Installation, api: httpx.AsyncClient, token: str
) -> None:
    async with hearing(installation.address, token) as ear:
        for _ in range(30):
            await make_customer(api)
        await ear.hears(30)
        await asyncio.sleep(3 * listen.POLL_SECONDS)
        assert len(ear.ids) == len(set(ear.ids)) == 30


async def test_a_stream_ends_with_its_token(installation: Installation, database: Database, token: str) -> None:
    async with hearing(installation.address, token) as ear:
        async with database.transaction() as tx:
            await tokens.revoke(tx, token)
        await ear.ends()
        assert ear.is_whole


async def test_the_streams_of_a_process_are_limited_and_become_free(
    database: Database, company: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "MAX_STREAMS", 3)
    listeners = Listeners(database, "https://sapa.example.com")
    streams = [await listeners.open(await make_token(database, company.live), [], None) for _ in range(3)]
    one_more = await make_token(database, company.live)
    with pytest.raises(TooManyListeners):
        await listeners.open(one_more, [], None)
    listeners.close(streams[0])
    await listeners.open(one_more, [], None)


async def test_one_token_gets_five_streams_and_the_others_keep_theirs(
    database: Database, company: Environments, token: str
) -> None:
    listeners = Listeners(database, "https://sapa.example.com")
    streams = [await listeners.open(token, [], None) for _ in range(5)]
    with pytest.raises(TooManyListeners, match="this token") as refusal:
        await listeners.open(token, [], None)
    assert (refusal.value.status, refusal.value.headers["retry-after"]) == (503, "30")
    await listeners.open(await make_token(database, company.live), [], None)
    listeners.close(streams[0])
    await listeners.open(token, [], None)


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Installation]:
    """An installation that a test may stop; one process, so that every stream is its own."""
    running = await asyncio.to_thread(start_installation, tmp_path / "data", SAPA_PROCESSES="1")
    try:
        yield running
    finally:
        if running.process.poll() is None:
            await asyncio.to_thread(stop_installation, running)


@pytest.mark.long
async def test_listeners_that_leave_free_their_streams_and_a_stop_ends_the_others(own: Installation) -> None:
    async with open_database(own.server.app_url) as database:
        token = await make_token(database, (await make_company(database)).live)
        company_id = (await make_company(database)).live
        tokens_of_others = [await make_token(database, company_id) for _ in range(11)]
        for other in tokens_of_others * 5:
            async with hearing(own.address, other):
                pass
        streams = [hearing(own.address, token) for _ in range(3)]
        ears = [await stream.__aenter__() for stream in streams]
    try:
        assert await asyncio.to_thread(stop_installation, own) == 0
        for ear in ears:
            await ear.ends()
            assert ear.is_whole, "the server ended it by itself, and was not killed for it"
    finally:
        for stream in streams:
            await stream.__aexit__(None, None, None)


async def test_a_position_before_any_event_misses_nothing_and_repeats_nothing(
    installation: Installation, api: httpx.AsyncClient, token: str
) -> None:
    await make_customer(api, firstName="before it listened")
    async with hearing(installation.address, token) as ear:
        (place,) = [line.removeprefix("id: ") for line in ear.lines if line.startswith("id: ")]
    missed = await make_customer(api)
    async with hearing(installation.address, token, last_id=place) as ear:
        after = await make_customer(api)
        received = await ear.hears(2)
    assert [customer["id"] in event["body"] for customer, event in zip((missed, after), received, strict=True)] == [
        True,
        True,
    ]


async def test_a_late_event_is_sent_before_a_later_one_of_its_resource(
    database: Database, company: Environments, token: str
) -> None:
    """Looks of a stream, each right after the one before: nobody waits for a sweep that comes later."""
    ours = Company(company.live, "live", "ID", "IDR")
    stream = Listener(company.live, tokens.hash_token(token), [], None)
    async with database.connection() as db:
        await stream.start(db)
        async with database.transaction() as tx:
            late = await actions.create(tx, ours, CustomerIn(email="late@example.com"))
            async with database.transaction() as other:
                await actions.create(other, ours, CustomerIn(email="quick@example.com"))
            assert len((await stream.read(db))[0]) == 1
        async with database.transaction() as tx:
            await actions.delete(tx, ours, late.id)
        reported, _ = await stream.read(db)
        assert [event.kind for event in reported] == ["customer.created", "customer.deleted"]
        assert {event.resource_id for event in reported} == {late.id}
        assert (await stream.read(db))[0] == []


async def test_an_event_inside_a_savepoint_is_received_when_it_commits(
    database: Database, company: Environments, token: str
) -> None:
    ours = Company(company.live, "live", "ID", "IDR")
    stream = Listener(company.live, tokens.hash_token(token), [], None)
    async with database.connection() as db:
        await stream.start(db)
        async with database.transaction() as tx:
            async with tx.transaction():
                await actions.create(tx, ours, CustomerIn(email="inner@example.com"))
            assert (await stream.read(db))[0] == []
            assert (await stream.read(db))[0] == []
        assert len((await stream.read(db))[0]) == 1


@given(milliseconds=st.integers(0, 1_700_000_000_000), oldest=st.integers(0, 2**62))
def test_a_position_is_parsed_back(milliseconds: int, oldest: int) -> None:
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    place = StreamPosition(at, oldest)
    assert parse_position(listen.build_position(place)) == place


@given(milliseconds=st.integers(0, 2**48 - 1))
def test_an_id_tells_when_it_was_made(milliseconds: int) -> None:
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    text = "".join(digits[milliseconds >> shift & 31] for shift in range(45, -1, -5))
    assert parse_time(f"evt_{text}{'0' * 16}") == milliseconds / 1000


def test_an_id_made_now_was_made_now() -> None:
    earlier, later = parse_time(new_id("evt_")), parse_time(EVENT_ID.new())
    assert earlier <= later < earlier + 60


async def test_an_id_beyond_every_calendar_is_accepted(
    installation: Installation, api: httpx.AsyncClient, token: str
) -> None:
    async with hearing(installation.address, token, last_id="evt_7" + "z" * 25) as ear:
        made = await make_customer(api)
        assert made["id"] in (await ear.hears(1))[0]["body"]


async def test_a_body_too_large_for_a_delivery_is_sent_as_it_would_be_delivered(
    installation: Installation, api: httpx.AsyncClient, token: str
) -> None:
    async with hearing(installation.address, token) as ear:
        made = await make_customer(api, additionalData={f"k{n}": "x" * 4900 for n in range(20)})
        (event,) = await ear.hears(1)
    expected = f'{{"id":"{made["id"]}","truncated":true,"url":"{installation.customer_base}/customers/{made["id"]}"}}'
    assert event["body"] == expected


async def test_a_heartbeat_keeps_a_quiet_stream_open(
    database: Database, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "HEARTBEAT_SECONDS", 0.0)
    listeners = Listeners(database, "https://sapa.example.com")
    text = listeners.run(await listeners.open(token, [], None))
    blocks = [(await anext(text)).decode().split("\n") for _ in range(3)]
    assert [block[0] for block in blocks] == [": ready", ": still here", ": still here"]
    places = [block[1].removeprefix("id: ") for block in blocks]
    assert places == sorted(places)
    assert all(POSITION.matches(place) for place in places)
    listeners.stop()
    assert [part async for part in text] == []


async def test_nothing_is_held_while_a_stream_is_quiet(
    installation: Installation, company: Environments, database: Database
) -> None:
    """Streams take a connection for the length of a look only: more of them than the pool has work side by side."""
    others = [await make_token(database, company.live) for _ in range(6)]
    streams = [hearing(installation.address, other) for other in others for _ in range(5)]
    try:
        ears = [await stream.__aenter__() for stream in streams]
        async with httpx.AsyncClient(verify=TLS, timeout=120) as client:
            assert (await client.get(f"{installation.address}/readyz")).status_code == 200
        assert len(ears) == 30

        async def look() -> bool | None:
            async with database.connection() as db:
                held = await db.fetchval(
                    """
                    SELECT count(*) FROM pg_stat_activity
                     WHERE application_name = 'sapa api' AND xact_start IS NOT NULL"""
                )
            return held == 0 or None

        await eventually(look)
    finally:
        for stream in streams:
            await stream.__aexit__(None, None, None)
