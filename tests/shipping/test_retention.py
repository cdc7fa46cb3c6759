"""Retention of call logs, callbacks and simulated bookings."""

from sapa.db.pool import Database
from sapa.sandbox import jobs as sandbox
from sapa.shipping.carriers import call_log
from sapa.shipping.tracking import hooks as tracking
from tests.factories import Environments, make_company

CALL = """
    INSERT INTO carrier_calls (company_id, connection_id, adapter, operation, reference, outcome, details, created_at)
    SELECT $1, 'carr_1', 'gosend', 'book', $2 || n, 'Booked', '{}', now() - make_interval(days => $3)
      FROM generate_series(1, $4::int) AS n"""
CALLBACK = """
    INSERT INTO carrier_callbacks (company_id, adapter, digest, body, events, received_at, due_at, processed_at)
    SELECT $1, 'gosend', sha256($2::bytea), $2::bytea, '[]', at, NULL, CASE WHEN $4 THEN at END
      FROM (SELECT now() - make_interval(days => $3) AS at) AS received"""
BOOKING = """
    INSERT INTO sandbox_bookings (company_id, adapter, reference, order_no, awb, asked, steps, booked_at)
    VALUES ($1, 'gosend', $2, $2, $2, '{}', '[]', now() - make_interval(days => $3))"""


async def test_old_call_logs_and_simulated_bookings_are_purged(database: Database, company: Environments) -> None:
    other = await make_company(database)
    async with database.transaction() as tx:
        for owner in (company.test, other.test):
            for name, days, times in (("OLD", 91, call_log.PURGE_BATCH + 1), ("NEW", 89, 1)):
                await tx.execute(CALL, owner, name, days, times)
                await tx.execute(BOOKING, owner, name, days)
    await call_log.purge_old(database)
    await sandbox.purge_old(database)
    async with database.connection() as db:
        for owner in (company.test, other.test):
            calls = await db.fetch("SELECT reference FROM carrier_calls WHERE company_id = $1", owner)
            bookings = await db.fetch("SELECT reference FROM sandbox_bookings WHERE company_id = $1", owner)
            assert ([row[0] for row in calls], [row[0] for row in bookings]) == (["NEW1"], ["NEW"])


async def test_callbacks_are_purged_after_their_retention(database: Database, company: Environments) -> None:
    async with database.transaction() as tx:
        for body, days, is_done in ((b"old", 31, True), (b"new", 29, True), (b"open", 31, False)):
            await tx.execute(CALLBACK, company.live, body, days, is_done)
    await tracking.purge_old(database)
    async with database.connection() as db:
        rows = await db.fetch("SELECT body FROM carrier_callbacks WHERE company_id = $1 ORDER BY id", company.live)
    assert [row["body"] for row in rows] == [b"new", b"open"]
