from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sapa.access import actions, queries
from sapa.db.pool import Connection, Database, open_database
from sapa.http.keys import CHANNEL
from sapa.settings import read_settings
from sapa.work.retention import keep_partitions, purge_idempotency_records, purge_rows
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


OLD = "now() - interval '13 months'"

OLD_ROWS = {
    "messages": f"""
        INSERT INTO messages (company_id, id, direction, source, connection_id, identity_kind, identity, client_number,
                              connected_number, type, feature_source, status, created_at, ticket_id)
        SELECT 1, 'm' || n, 'in', 'MAIL', 'c', 'email', 'e', '', '', 'text', 'API', 'received',
               CASE WHEN n > 5 THEN now() ELSE {OLD} END, CASE n WHEN 1 THEN 't1' WHEN 2 THEN 't2' END
          FROM generate_series(1, 6000) AS n""",
    "message_events": """
        INSERT INTO message_events (company_id, message_id, kind, reported_at, at, is_implied)
        SELECT 1, 'm' || n, 'sent', now(), now(), false FROM generate_series(1, 10) AS n""",
    "timeline_entries": f"""
        INSERT INTO timeline_entries (company_id, id, customer_id, category, type, source, created_at, updated_at,
                                      is_counted)
        SELECT 1, 't' || n, 'c', 'system', 'x', 'y', CASE WHEN n > 5 THEN now() ELSE {OLD} END, now(), n <> 1
          FROM generate_series(1, 10) AS n""",
    "shipment_events": f"""
        INSERT INTO shipment_events (company_id, shipment_id, dedupe_key, occurred_at, received_at, text, proof, source,
                                     applied)
        SELECT 1, 's', n::text, now(), CASE WHEN n > 5 THEN now() ELSE {OLD} END, '', '{{}}', 'x', true
          FROM generate_series(1, 10) AS n""",
    "notices": f"""
        INSERT INTO notices (company_id, id, kind, resource_id, message, created_at)
        SELECT 1, n::text, 'x', 'y', 'z', CASE WHEN n > 5 THEN now() ELSE {OLD} END FROM generate_series(1, 10) AS n""",
}  # fmt: skip


TICKETS = """
    INSERT INTO tickets (company_id, id, source, connection_id, contact_id, identity, client_number, connected_number,
                         status, last_message_at, silent_since, created_at, updated_at, resolved_at)
    VALUES (1, 't1', 'MAIL', 'c', 'c', 'e', '', '', 'open', now(), now(), now(), now(), NULL),
           (1, 't2', 'MAIL', 'c', 'c', 'e', '', '', 'resolved', now(), now(), now(), now(), now())"""


async def count_rows(db: Connection) -> dict[str, int]:
    return {table: await db.fetchval(f"SELECT count(*) FROM {table} WHERE company_id = 1") for table in OLD_ROWS}


async def test_old_rows_are_purged_only_where_the_operator_says_so(scratch: Scratch, quiet: Database) -> None:
    async with connect(scratch.superuser_url) as owner:
        await owner.execute("SET session_replication_role = replica")
        for statement in OLD_ROWS.values():
            await owner.execute(statement)
        await owner.execute(TICKETS)
        await purge_rows(quiet, read_settings({}).retention.months)
        assert (await count_rows(owner))["messages"] == 6000
        variables = {f"SAPA_{kind}_MONTHS": "12" for kind in ("MESSAGES", "TIMELINE", "SHIPMENT_EVENTS", "AUDIT")}
        await purge_rows(quiet, read_settings(variables).retention.months)
        assert await count_rows(owner) == {
            "messages": 5996,  # one belongs to an open ticket
            "message_events": 6,
            "timeline_entries": 5,
            "shipment_events": 5,
            "notices": 10,
        }
        deltas = "SELECT cell, sum(delta) FROM counter_deltas WHERE counter = 'timeline' GROUP BY cell"
        assert [tuple(row) for row in await owner.fetch(deltas)] == [("c system", -4)]


async def test_what_is_four_weeks_old_is_never_purged(quiet: Database) -> None:
    async with quiet.transaction() as tx:
        await tx.execute(
            "INSERT INTO notices (company_id, id, kind, resource_id, message, created_at)"
            " VALUES (2, 'n', 'x', 'y', 'z', now() - interval '27 days')"
        )
        assert await tx.fetchval("SELECT purge_rows('notices', now(), 100)") == 5
        assert await tx.fetchval("SELECT count(*) FROM notices WHERE company_id = 2") == 1
