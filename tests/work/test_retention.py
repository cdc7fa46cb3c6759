from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sapa.access import actions, queries
from sapa.db.pool import Database, open_database
from sapa.http.keys import CHANNEL
from sapa.work.retention import keep_partitions, purge_idempotency_records
from tests.conftest import Installation
from tests.db.scratch import Scratch, connect, migrated_database
from tests.factories import make_company, make_key


@pytest.fixture(scope="module")
async def scratch(installation: Installation) -> AsyncIterator[Scratch]:
    async with migrated_database(installation.server) as made:
        yield made


@pytest.fixture(scope="module")
async def quiet(scratch: Scratch) -> AsyncIterator[Database]:
    async with open_database(scratch.app_url) as database:
        yield database


async def status(database: Database, key_id: str) -> str:
    async with database.connection() as db:
        return (await queries.get_key(db, key_id)).status


async def expire(database: Database, key_id: str, when: str) -> None:
    async with database.connection() as db:
        await db.execute("UPDATE api_keys SET expires_at = now() + $2::text::interval WHERE id = $1", key_id, when)


async def test_idempotency_records_are_purged_after_a_day_however_many(quiet: Database) -> None:
    async with quiet.connection() as db:
        await db.execute(
            """
            INSERT INTO idempotency_records (company_id, key, target, fingerprint, status, created_at)
            SELECT 1 + n % 3, 'old ' || n, 'POST /x', '', 201, now() - interval '24 hours 1 minute'
              FROM generate_series(1, 12000) n"""
        )
        for age in ("0", "1 hour", "23 hours 59 minutes"):
            await db.execute(
                "INSERT INTO idempotency_records (company_id, key, target, fingerprint, created_at)"
                " VALUES (1, $1::text, 'POST /x', '', now() - $1::text::interval)",
                age,
            )
        await purge_idempotency_records(quiet)
        rows = await db.fetch("SELECT key FROM idempotency_records ORDER BY created_at DESC")
    assert [row[0] for row in rows] == ["0", "1 hour", "23 hours 59 minutes"]


async def test_keys_past_their_time_are_listed_as_expired_and_no_others(quiet: Database) -> None:
    company = await make_company(quiet)
    past, future, endless, revoked = [await make_key(quiet, company.live) for _ in range(4)]
    await expire(quiet, past.id, "-1 second")
    await expire(quiet, future.id, "1 hour")
    await expire(quiet, revoked.id, "-1 second")
    async with quiet.transaction() as tx:
        await actions.revoke_key(tx, revoked.id)
    await actions.expire_keys(quiet)
    found = [await status(quiet, key.id) for key in (past, future, endless, revoked)]
    assert found == ["expired", "active", "active", "revoked"]


async def test_a_test_environments_keys_expire_by_its_own_clock(quiet: Database) -> None:
    company = await make_company(quiet)
    live, test = await make_key(quiet, company.live), await make_key(quiet, company.test)
    for key in (live, test):
        await expire(quiet, key.id, "1 hour")
    async with quiet.transaction() as tx:
        await actions.move_clock(tx, company.test, timedelta(hours=2))
    await actions.expire_keys(quiet)
    assert [await status(quiet, key.id) for key in (live, test)] == ["active", "expired"]


async def test_processes_are_notified_of_keys_that_expired(scratch: Scratch, quiet: Database) -> None:
    company = await make_company(quiet)
    key = await make_key(quiet, company.live)
    await expire(quiet, key.id, "-1 second")
    received: list[object] = []
    async with connect(scratch.app_url) as listener:
        await listener.add_listener(CHANNEL, lambda *message: received.append(message[-1]))
        await actions.expire_keys(quiet)
        await listener.execute("SELECT 1")
        assert received == [str(company.live)]
        await actions.expire_keys(quiet)
        await listener.execute("SELECT 1")
        assert received == [str(company.live)]


async def test_the_event_partitions_job_may_run_at_any_time(quiet: Database) -> None:
    for _ in range(3):
        await keep_partitions(quiet)
    async with quiet.connection() as db:
        made = await db.fetchval("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass")
    assert made == 9
