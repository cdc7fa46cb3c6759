"""Outcomes that cannot be stored: they hold up nobody, are not sent again and again, and people can see why."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from sapa.context import ProcessLease
from sapa.db.pool import Database, open_database
from sapa.settings import read_settings
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch import queries
from sapa.webhooks.dispatch import settler as settler_module
from sapa.webhooks.dispatch.dispatcher import Dispatcher
from sapa.webhooks.dispatch.settler import Settler
from sapa.webhooks.dispatch.slots import ActiveLane
from sapa.webhooks.dispatch.types import AttemptResult
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import Environments, make_company, make_endpoint
from tests.webhooks.station import Arrival, Station, attempts, count, happen, things, until, waiting

SETTINGS = read_settings({"SAPA_WEBHOOK_ALLOW_INSECURE": "1"})


@pytest.fixture
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as made:
        yield made


@pytest.fixture
async def post(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url, size=6) as opened:
        yield opened


@pytest.fixture
def seal(installation: Installation) -> Vault:
    return Vault(installation.server.secret_key)


@pytest.fixture
async def client(post: Database) -> Environments:
    return await make_company(post)


@asynccontextmanager
async def delivering(post: Database, seal: Vault) -> AsyncIterator[None]:
    stopping = asyncio.Event()
    running = asyncio.create_task(Dispatcher(post, SETTINGS, seal, ProcessLease()).run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await running


async def refuse(scratch: Scratch, condition: str) -> None:
    """From now on attempts for which the condition does not hold cannot be stored."""
    async with connect(scratch.owner_url) as owner:
        await owner.execute(f"ALTER TABLE webhook_attempts ADD CONSTRAINT refused CHECK ({condition})")


async def until_released(post: Database, company_id: int) -> None:
    async def is_free() -> bool:
        held = "SELECT count(*) FROM webhook_lanes WHERE company_id = $1 AND owner IS NOT NULL"
        return await count(post, held, company_id) == 0

    await until(is_free, "a lane is still held")


async def test_an_outcome_that_cannot_be_stored_is_a_failed_attempt(
    scratch: Scratch, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    async def answer(arrival: Arrival) -> int:
        return 299 if arrival.number == 3 else 200

    station.answer = answer
    await make_endpoint(post, seal, client.live, station.url("shop"))
    await refuse(scratch, "status IS DISTINCT FROM 299")
    await happen(post, client.live, things(10))
    async with delivering(post, seal):
        await until(lambda: len(station.arrivals) == 10)
        await until_released(post, client.live)
    stored = await attempts(post, client.live)
    assert sorted(row["outcome"] for row in stored) == ["delivered"] * 9 + ["failed"]
    (failed,) = [row for row in stored if row["outcome"] == "failed"]
    assert (failed["error"], failed["status"]) == ("unrecorded", None)
    assert "could not be stored" in failed["message"]
    assert await waiting(post, client.live) == 0
    assert await count(post, "SELECT failures FROM webhook_lanes WHERE company_id = $1", client.live) == 0
    assert len(station.arrivals) == 10


async def test_a_delivery_of_which_nothing_can_be_stored_waits_and_gives_the_lane_back(
    scratch: Scratch, post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    await make_endpoint(post, seal, client.live, station.url("shop"))
    await happen(post, client.live, things(5))
    async with post.connection() as db:
        refused = await db.fetchval("SELECT min(id) FROM webhook_queue WHERE company_id = $1", client.live)
    await refuse(scratch, f"delivery_id <> '{refused}'")
    async with delivering(post, seal):
        await until(lambda: len(station.arrivals) == 5)
        await until_released(post, client.live)
    assert [row["outcome"] for row in await attempts(post, client.live)] == ["delivered"] * 4
    later = "SELECT count(*) FROM webhook_queue WHERE company_id = $1 AND due_at > now() + interval '15 seconds'"
    assert await count(post, later, client.live) == await waiting(post, client.live) == 1
    assert len(station.arrivals) == 5


@pytest.mark.long
async def test_a_delivery_that_cannot_be_postponed_is_sent_again_and_settled_once_it_can_be_stored(
    scratch: Scratch,
    post: Database,
    seal: Vault,
    client: Environments,
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last fallback: neither its attempt nor its next due time can be stored."""
    monkeypatch.setattr(settler_module, "RETRY_SECONDS", (0.05,))
    await make_endpoint(post, seal, client.live, station.url("shop"))
    await happen(post, client.live, things(5))
    async with post.connection() as db:
        refused = await db.fetchval("SELECT min(id) FROM webhook_queue WHERE company_id = $1", client.live)
    await refuse(scratch, f"delivery_id <> '{refused}'")
    async with connect(scratch.owner_url) as owner:
        await owner.execute(
            f"ALTER TABLE webhook_queue ADD CONSTRAINT refused CHECK (id <> '{refused}' OR due_at = event_at)"
        )
        async with delivering(post, seal):
            await until(lambda: len(station.arrivals) > 5)
            for table in ("webhook_attempts", "webhook_queue"):
                await owner.execute(f"ALTER TABLE {table} DROP CONSTRAINT refused")
            await until_released(post, client.live)
    assert [row["outcome"] for row in await attempts(post, client.live)] == ["delivered"] * 5
    assert await waiting(post, client.live) == 0


async def test_a_value_that_does_not_fit_holds_up_nobody(
    post: Database, seal: Vault, client: Environments, station: Station
) -> None:
    """What the driver refuses before the database sees it."""
    made = await make_endpoint(post, seal, client.live, station.url("shop"))
    await happen(post, client.live, things(3))
    async with post.connection() as db:
        ids = [row[0] for row in await db.fetch("SELECT id FROM webhook_queue WHERE company_id = $1", client.live)]
        (grant,) = await queries.acquire(db, client.live, [made.endpoint.id], "worker", 60)
    lane = ActiveLane(client.live, grant, until=0)
    lane.in_progress = set(ids)
    settler = Settler(post, "worker", lambda _: None)
    for number, id in enumerate(ids):
        milliseconds = 2**40 if number == 1 else 5
        settler.add(lane, build_delivered(client.live, made.endpoint.id, lane.epoch, id, milliseconds))
    await settler.settle_batch()
    await settler.done(0)
    assert lane.in_progress == set()
    stored = {row["delivery_id"]: row["outcome"] for row in await attempts(post, client.live)}
    assert stored == dict(zip(ids, ["delivered", "failed", "delivered"], strict=True))


def build_delivered(
    company_id: int, endpoint_id: str, epoch: int, delivery_id: str, milliseconds: int
) -> AttemptResult:
    return AttemptResult(
        company_id=company_id,
        endpoint_id=endpoint_id,
        epoch=epoch,
        delivery_id=delivery_id,
        attempt=1,
        kind="customer.updated",
        started_at=datetime.now(UTC),
        milliseconds=milliseconds,
        status=200,
        error=None,
        message=None,
        address=None,
        response=b"",
    )
