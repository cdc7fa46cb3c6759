"""What a resumed endpoint gets of the events that it missed."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest

from sapa.customers.types import CustomerUpdated
from sapa.db.pool import Connection, Database, Tx
from sapa.events import emit
from sapa.values.company import Company
from sapa.values.sealing import Vault
from sapa.webhooks.endpoints import actions
from sapa.webhooks.replay import actions as replay
from sapa.webhooks.replay import jobs
from sapa.webhooks.replay.jobs import catch_up
from sapa.webhooks.types import Missed
from sapa.work import leases
from tests.factories import Environments, make_endpoint
from tests.http.wire import eventually
from tests.webhooks.station import Station, Thing, answer_with, attempts, happen, things, until, waiting


async def pause(post: Database, seal: Vault, company_id: int, id: str) -> None:
    async with post.transaction() as tx:
        await actions.pause(tx, seal, company_id, id)


async def resume(post: Database, seal: Vault, company_id: int, id: str, chosen: Missed) -> None:
    async with post.transaction() as tx:
        await actions.resume(tx, seal, company_id, id, chosen)


async def is_catching_up(post: Database, seal: Vault, company_id: int, id: str) -> bool:
    async with post.connection() as db:
        return (await actions.get(db, seal, company_id, id)).catching_up is not None


async def served_again(post: Database, seal: Vault, company_id: int, id: str) -> None:
    """The job is done with it and all that it queued has arrived."""

    async def is_done() -> bool:
        async with post.connection() as db:
            endpoint = await actions.get(db, seal, company_id, id)
        return endpoint.catching_up is None and await waiting(post, company_id) == 0

    await until(is_done)


async def make_held(post: Database, seal: Vault, company_id: int, station: Station) -> str:
    """An endpoint that was suspended with changes 0–11 of four resources held, and then missed 12–19."""
    made = await make_endpoint(post, seal, company_id, station.url("shop"), ["customer.updated"])
    station.answer = answer_with(500)
    await happen(post, company_id, things(12, resources=4))

    async def is_suspended() -> bool:
        async with post.connection() as db:
            return (await actions.get(db, seal, company_id, made.endpoint.id)).status == "suspended"

    await until(is_suspended)
    await happen(post, company_id, things(8, resources=4, start=12))
    assert await waiting(post, company_id) == 12
    station.answer = answer_with(200)
    station.arrivals.clear()
    await make_all_due(post, company_id)
    return made.endpoint.id


async def make_all_due(post: Database, company_id: int) -> None:
    """Retries, too, so that no clock needs to be moved."""
    async with post.connection() as db:
        await db.execute("UPDATE webhook_queue SET due_at = event_at WHERE company_id = $1", company_id)


def numbers(station: Station) -> list[int]:
    return sorted(arrival.number for arrival in station.arrivals)


async def test_all_that_was_held_and_missed_arrives_once(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_held(post, seal, client.live, station)
    await resume(post, seal, client.live, id, Missed.ALL)
    await served_again(post, seal, client.live, id)
    assert numbers(station) == list(range(20))
    missed = [arrival.number for arrival in station.arrivals if arrival.number >= 12]
    assert all(first < second or (second - first) % 4 for first, second in pairwise(missed)), (
        "those of one resource keep their order"
    )
    await happen(post, client.live, [Thing("cust_0", 20)])
    await until(lambda: numbers(station) == list(range(21)))


async def test_only_the_latest_of_each_resource_arrives(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_held(post, seal, client.live, station)
    await happen(post, client.live, [Thing("cust_new", 20), Thing("cust_0", 21)])
    await resume(post, seal, client.live, id, Missed.LATEST)
    await served_again(post, seal, client.live, id)
    assert numbers(station) == [17, 18, 19, 20, 21]
    skipped = [row for row in await attempts(post, client.live) if row["outcome"] == "skipped"]
    assert len(skipped) == 12
    assert {row["message"] for row in skipped} == {"skipped when the endpoint was resumed"}


async def test_nothing_of_it_arrives_when_it_is_skipped_and_all_that_comes_later_does(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    id = await make_held(post, seal, client.live, station)
    await resume(post, seal, client.live, id, Missed.SKIP)
    await happen(post, client.live, [Thing("cust_0", 20)])
    await served_again(post, seal, client.live, id)
    assert numbers(station) == [20]
    skipped = [row for row in await attempts(post, client.live) if row["outcome"] == "skipped"]
    assert len(skipped) == 12
    # The number is that of the attempt which did not take place.
    assert {row["number"] for row in skipped} == {1, 2}
    assert {row["kind"] for row in skipped} == {"customer.updated"}


async def test_what_an_endpoint_got_before_it_was_paused_does_not_come_again(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Nor what happened before there was an endpoint, nor kinds it did not ask for."""
    await happen(post, client.live, things(3))
    made = await make_endpoint(post, seal, client.live, station.url("shop"), ["customer.updated"])
    await make_endpoint(post, seal, client.live, station.url("creations"), ["customer.created"])
    await happen(post, client.live, things(5, start=3))
    await until(lambda: len(station.arrivals) == 5)
    id = made.endpoint.id
    for start, chosen in ((8, Missed.ALL), (10, Missed.LATEST)):
        await pause(post, seal, client.live, id)
        await happen(post, client.live, things(2, start=start))
        await resume(post, seal, client.live, id, chosen)
        await served_again(post, seal, client.live, id)
    assert numbers(station) == list(range(3, 12))


@asynccontextmanager
async def change_under_way(post: Database, company_id: int, thing: Thing) -> AsyncIterator[Tx]:
    """A transaction that has recorded its event and commits at the end of the block."""
    async with post.transaction() as tx:
        await emit(tx, Company(company_id, "live", "ID", "IDR"), CustomerUpdated(thing))
        yield tx


@pytest.mark.parametrize("chosen", [Missed.ALL, Missed.LATEST])
async def test_a_change_that_was_under_way_while_the_endpoint_was_resumed_is_not_lost(
    post: Database, seal: Vault, client: Environments, station: Station, chosen: Missed
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    async with change_under_way(post, client.live, Thing("cust_open", 1)):
        await resume(post, seal, client.live, id, chosen)
        await ran_meanwhile(post)
        async with post.connection() as db:
            assert (await actions.get(db, seal, client.live, id)).catching_up == chosen
    await until(lambda: numbers(station) == [1])


async def test_a_change_that_began_while_the_resumption_was_under_way_is_not_lost(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """It bears a higher transaction number than the resumption, and saw the endpoint paused all the same."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    async with post.transaction() as resuming:
        await actions.resume(resuming, seal, client.live, id, Missed.ALL)
        under_way = change_under_way(post, client.live, Thing("cust_open", 1))
        await under_way.__aenter__()
    await ran_meanwhile(post)
    async with post.connection() as db:
        assert (await actions.get(db, seal, client.live, id)).catching_up == Missed.ALL
    await under_way.__aexit__(None, None, None)
    await until(lambda: numbers(station) == [1])


async def ran_meanwhile(post: Database) -> None:
    """A run of the job, which is through by now if it does not wait for anybody."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.5):
            await catch_up(post)


async def test_a_run_that_was_stopped_in_the_middle_is_finished_by_the_next(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Whatever the first had queued is not queued again."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    await happen(post, client.live, things(1500))
    async with post.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, created_at FROM events WHERE company_id = $1 ORDER BY number LIMIT 700", client.live
        )
        await tx.execute(
            """INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
               SELECT $1, 'whd_' || e.id, $2, e.at, e.id, e.at
                 FROM unnest($3::text[], $4::text[]::timestamptz[]) AS e (id, at)""",
            client.live,
            id,
            [row["id"] for row in rows],
            [row["created_at"] for row in rows],
        )
    await resume(post, seal, client.live, id, Missed.ALL)
    await served_again(post, seal, client.live, id)
    assert numbers(station) == list(range(1500))


async def test_no_delivery_is_repeated_while_changes_continue(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    await happen(post, client.live, things(4000))
    await resume(post, seal, client.live, id, Missed.ALL)
    happened = 4000
    while await is_catching_up(post, seal, client.live, id):
        await happen(post, client.live, [Thing(f"cust_{happened}", happened)])
        happened += 1
    await served_again(post, seal, client.live, id)
    assert numbers(station) == list(range(happened))


RENEWED = """SELECT bool_and(expires_at > $1::text::timestamptz + make_interval(secs => $2)) FROM leases
              WHERE name LIKE 'worker %' AND expires_at > now()"""


async def has_renewed(db: Connection, taken_at: str, seconds: float) -> bool | None:
    return await db.fetchval(RENEWED, taken_at, seconds) or None


@pytest.fixture
async def alone(post: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The job is run by the test itself, in small batches and short turns."""
    async with post.connection() as db:
        await db.execute(
            """UPDATE leases SET holder = 'the test', expires_at = now() + interval '5 minutes'
                WHERE name = 'catch up with webhooks'"""
        )
        taken_at: str = await db.fetchval("SELECT now()::text")
        # The worker learns at its next renewal that it lost the lease. The margin is for a run that is under way.
        await eventually(lambda: has_renewed(db, taken_at, leases.LEASE_SECONDS + leases.RENEW_SECONDS / 2))
    monkeypatch.setattr(replay, "BATCH", 5)
    monkeypatch.setattr(jobs, "TURN_SECONDS", 0)
    yield
    async with post.connection() as db:
        await leases.release_all(db, "the test")


@pytest.mark.usefixtures("alone")
async def test_trouble_with_one_endpoint_keeps_no_other_from_catching_up(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    troubled = await make_endpoint(post, seal, client.live, station.url("troubled"))
    other = await make_endpoint(post, seal, client.test, station.url("other"))
    for company_id, made in ((client.live, troubled), (client.test, other)):
        await pause(post, seal, company_id, made.endpoint.id)
        await happen(post, company_id, things(3))
        await resume(post, seal, company_id, made.endpoint.id, Missed.ALL)
    await spoil_progress(post, client.live, "what is this?")
    await catch_up(post)
    await until(lambda: len(station.at("other")) == 3)
    assert station.at("troubled") == []
    await spoil_progress(post, client.live, None)
    await catch_up(post)
    await until(lambda: len(station.at("troubled")) == 3)


async def spoil_progress(post: Database, company_id: int, text: str | None) -> None:
    async with post.connection() as db:
        await db.execute("UPDATE webhook_endpoints SET progress = $2 WHERE company_id = $1", company_id, text)


@pytest.mark.long
@pytest.mark.usefixtures("alone")
async def test_a_long_absence_keeps_nobody_waiting(
    post: Database, seal: Vault, client: Environments, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endpoints take turns: a few turns are enough for one of them, and far too few for the other."""
    long = await make_endpoint(post, seal, client.live, station.url("long"))
    short = await make_endpoint(post, seal, client.test, station.url("short"))
    for company_id, made, number in ((client.live, long, 1000), (client.test, short, 3)):
        await pause(post, seal, company_id, made.endpoint.id)
        await happen(post, company_id, things(number))
        await resume(post, seal, company_id, made.endpoint.id, Missed.ALL)
    with monkeypatch.context() as few_turns:
        few_turns.setattr(replay, "BATCH", 1)
        few_turns.setattr(jobs, "TURN_SECONDS", 0.0)
        few_turns.setattr(jobs, "RUN_SECONDS", 1.0)
        while await is_catching_up(post, seal, client.test, short.endpoint.id):
            await catch_up(post)
    assert await is_catching_up(post, seal, client.live, long.endpoint.id)
    await until(lambda: len(station.at("short")) == 3)
    await catch_up(post)
    await until(lambda: len(station.at("long")) == 1000)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("chosen", "owed"), [pytest.param(Missed.ALL, 200, marks=pytest.mark.long), (Missed.LATEST, 40)]
)
async def test_a_run_continues_where_the_last_one_stopped(
    post: Database,
    seal: Vault,
    client: Environments,
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    chosen: Missed,
    owed: int,
) -> None:
    """A few turns in each run. What the first one did is taken away, and not done again."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    await happen(post, client.live, things(200, resources=40))
    await resume(post, seal, client.live, id, chosen)
    monkeypatch.setattr(jobs, "RUN_SECONDS", 0.05)

    async def run_and_take() -> int | None:
        """A run does nothing while a transaction from before is under way."""
        await catch_up(post)
        async with post.connection() as db:
            count: int = await db.fetchval(
                "WITH gone AS (DELETE FROM webhook_queue WHERE company_id = $1 RETURNING 1) SELECT count(*) FROM gone",
                client.live,
            )
        return count if count or chosen is Missed.LATEST else None

    taken = await eventually(run_and_take)
    for _ in range(60):
        await catch_up(post)
    await served_again(post, seal, client.live, id)
    assert len(station.arrivals) + taken == owed
    assert (0 < taken < 200) == (chosen is Missed.ALL)


async def test_a_held_delivery_is_outdated_by_a_newer_one_that_arrived(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Before the endpoint was paused: the first change failed and waits, the second one was taken."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    station.answer = answer_with(500, 200)
    for number in (1, 2):
        await happen(post, client.live, [Thing("cust_a", number)])

        async def is_tried(number: int = number) -> bool:
            return len(await attempts(post, client.live)) == number

        await until(is_tried)
    await asyncio.sleep(1.1)
    await pause(post, seal, client.live, made.endpoint.id)
    await resume(post, seal, client.live, made.endpoint.id, Missed.LATEST)
    await served_again(post, seal, client.live, made.endpoint.id)
    assert numbers(station) == [1, 2]
    assert [row["outcome"] for row in await attempts(post, client.live)] == ["retrying", "delivered", "skipped"]


@pytest.mark.usefixtures("alone")
async def test_the_latest_event_of_each_resource_is_delivered_wherever_it_waits(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """Random histories: each event is held, missed or delivered already, and only the last one of each counts."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    id = made.endpoint.id
    await pause(post, seal, client.live, id)
    fates = random.Random(7)
    await happen(post, client.live, things(150, resources=30))
    expected = []
    async with post.transaction() as tx:
        rows = await tx.fetch("SELECT id, created_at, number FROM events WHERE company_id = $1", client.live)
        for place, row in enumerate(sorted(rows, key=lambda row: row["number"])):
            fate = fates.choice(["held", "retried", "missed", "delivered"])
            expected += [place] if place >= 120 and fate != "delivered" else []
            await arrange(tx, client.live, id, row["id"], row["created_at"], fate)
    await resume(post, seal, client.live, id, Missed.LATEST)
    await catch_up(post)
    await make_all_due(post, client.live)
    await served_again(post, seal, client.live, id)
    assert numbers(station) == expected


async def arrange(tx: Tx, company_id: int, endpoint_id: str, event_id: str, at: str, fate: str) -> None:
    """An event as it stands when the endpoint is resumed."""
    if fate in ("held", "retried"):
        await tx.execute(
            """INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
               VALUES ($1, 'whd_' || $3::text, $2, $4::text::timestamptz + make_interval(hours => $5), $3,
                       $4::text::timestamptz)""",
            company_id,
            endpoint_id,
            event_id,
            at,
            2 if fate == "retried" else 0,
        )
    elif fate == "delivered":
        await tx.execute(
            """INSERT INTO webhook_attempts (company_id, endpoint_id, started_at, delivery_id, number, event_id,
                                             event_at, kind, milliseconds, outcome)
               VALUES ($1, $2, now(), 'whd_' || $3::text, 1, $3, $4::text::timestamptz, 'customer.updated', 1,
                       'delivered')""",
            company_id,
            endpoint_id,
            event_id,
            at,
        )
