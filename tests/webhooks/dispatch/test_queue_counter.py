"""The number of waiting deliveries comes from a counter, which every statement that changes the queue keeps exact."""

import re

import pytest

from sapa.db.counters import fold, get_total
from sapa.db.pool import Database, open_database
from sapa.values.sealing import Vault
from sapa.webhooks.dispatch.jobs import reconcile_counter
from sapa.webhooks.endpoints import actions
from sapa.webhooks.types import Missed
from sapa.work.ages import collect_queue_ages
from tests.conftest import Installation
from tests.db.scratch import migrated_database
from tests.factories import Environments, make_company, make_endpoint
from tests.webhooks.station import Station, answer_with, happen, things, until

MANY = 120_000
"""More than were ever counted row by row."""


async def assert_exact(database: Database, company_id: int) -> int:
    """Counter and rows of one moment."""
    async with database.snapshot() as db:
        rows: int = await db.fetchval("SELECT count(*) FROM webhook_queue WHERE company_id = $1", company_id)
        assert await get_total(db, company_id, "webhook_queue") == rows
        return rows


async def read_waiting(database: Database) -> float:
    found = re.search(r"^sapa_webhook_waiting (\S+)$", (await collect_queue_ages(database)).decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("missed", list(Missed))
async def test_it_is_exact_at_every_moment_of_deliveries_retries_and_replays(
    post: Database, seal: Vault, client: Environments, station: Station, missed: Missed
) -> None:
    made = await make_endpoint(post, seal, client.live, station.url("shop"), ["customer.updated"])
    id = made.endpoint.id

    async def is_empty() -> bool:
        async with post.connection() as db:
            is_resumed = (await actions.get(db, seal, client.live, id)).catching_up is None
        return await assert_exact(post, client.live) == 0 and is_resumed

    await happen(post, client.live, things(30, resources=5))
    await until(is_empty)
    async with post.transaction() as tx:
        await actions.pause(tx, seal, client.live, id)
    await happen(post, client.live, things(20, resources=5, start=30))
    async with post.transaction() as tx:
        await actions.resume(tx, seal, client.live, id, missed)
    await until(is_empty)
    station.answer = answer_with(503)
    await happen(post, client.live, things(5, resources=5, start=50))
    await until(lambda: len(station.arrivals) >= 35)
    assert await assert_exact(post, client.live) == 5
    async with post.transaction() as tx:
        await actions.delete(tx, client.live, id)
    assert await assert_exact(post, client.live) == 0


async def test_a_long_queue_is_shown_in_full_and_corrected_when_somebody_else_changes_it(
    installation: Installation,
) -> None:
    async with migrated_database(installation.server) as scratch, open_database(scratch.app_url) as database:
        company = (await make_company(database)).live
        assert await read_waiting(database) == 0
        async with database.transaction() as tx:
            await tx.execute("SET LOCAL statement_timeout = 0")  # a loaded machine takes a while for so many rows
            await tx.execute(
                """
                INSERT INTO webhook_queue (company_id, id, endpoint_id, due_at, event_id, event_at)
                SELECT $1, 'whd_' || lpad(number::text, 8, '0'), 'whe_1', now(), 'evt_1', now()
                  FROM generate_series(0, $2::int - 1) AS number""",
                company, MANY,
            )  # fmt: skip
            await tx.execute(
                "INSERT INTO counter_deltas (company_id, counter, cell, delta) VALUES ($1, 'webhook_queue', '', $2)",
                company, MANY,
            )  # fmt: skip
        assert await read_waiting(database) == MANY
        await fold(database)
        assert await read_waiting(database) == MANY
        async with database.connection() as db:
            await db.execute("DELETE FROM webhook_queue WHERE company_id = $1 AND id < 'whd_00000100'", company)
        assert await read_waiting(database) == MANY
        await reconcile_counter(database)
        assert await read_waiting(database) == MANY - 100
        await reconcile_counter(database)
        await fold(database)
        assert await read_waiting(database) == MANY - 100 == await assert_exact(database, company)
