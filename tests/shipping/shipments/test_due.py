"""Finding due work: by an index range, and round-robin per company."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from sapa.access import actions as access
from sapa.db.pool import Database, Tx
from sapa.db.sql import Statement
from sapa.shipping.bookings import queries as bookings
from sapa.shipping.tracking import queries as tracking
from tests.conftest import Installation
from tests.db.query_plans import get_range, scans
from tests.db.scratch import connect
from tests.factories import Environments, make_company

BATCH = 50
MANY = 2_000
"""So many that the way to find them matters."""
A_YEAR = 365 * 86_400
SHIPMENT = """
    INSERT INTO shipments (company_id, id, provider, provider_label, currency, shipping_status, package_handover,
                           insurance, search_text, {} )
    SELECT $1, 'shp_' || n, 'ev_courier', 'x', 'IDR', 'confirmed', 'PICKUP', false, '', {}
      FROM generate_series(1, $2::int) AS n"""
BOOKING = """
    INSERT INTO shipment_bookings (company_id, shipment_id, number, reference, adapter, state, due_at)
    SELECT $1, 'shp_' || n, 1, 'SP' || n, 'dash', 'unknown', {}
      FROM generate_series(1, $2::int) AS n"""
CALLBACK = """
    INSERT INTO carrier_callbacks (company_id, adapter, digest, body, events, due_at)
    SELECT $1, 'dash', sha256(n::text::bytea), '', '[]', {}
      FROM generate_series(1, $2::int) AS n"""
WHEN = "now() + make_interval(secs => $3 + n)"

Lists = Any


class Queue(Struct, frozen=True):
    """Something that waits, how it is found, and how a test puts it there: so many, from so many seconds on."""

    table: str
    column: str
    list_due: Lists
    statements: tuple[Statement[Any], ...]
    fill: tuple[str, ...]


QUEUES = {
    "untracked": Queue(
        "shipments", "poll_at", tracking.list_untracked,
        (tracking.LIST_UNTRACKED, tracking.LIST_UNTRACKED_IN_TURN), (SHIPMENT.format("poll_at", WHEN),),
    ),
    "cancelling": Queue(
        "shipments", "cancel_due_at", bookings.list_cancelling,
        (bookings.LIST_CANCELLING, bookings.LIST_CANCELLING_IN_TURN),
        (SHIPMENT.format("cancel_due_at", WHEN),),
    ),
    "bookings": Queue(
        "shipment_bookings", "due_at", bookings.list_due,
        (bookings.LIST_DUE, bookings.LIST_DUE_IN_TURN),
        (SHIPMENT.format("cancel_tries", "$3::int"), BOOKING.format(WHEN)),
    ),
    "callbacks": Queue(
        "carrier_callbacks", "due_at", tracking.list_due,
        (tracking.LIST_DUE, tracking.LIST_DUE_IN_TURN), (CALLBACK.format(WHEN),),
    ),
}  # fmt: skip


@pytest.fixture
async def tx(database: Database) -> AsyncIterator[Tx]:
    """Whatever is put there, no worker ever sees."""
    async with database.connection() as db:
        transaction = db.transaction()
        await transaction.start()
        yield db
        await transaction.rollback()


async def fill(tx: Tx, queue: Queue, company_id: int, count: int, from_seconds: float) -> None:
    for statement in queue.fill:
        await tx.execute(statement, company_id, count, from_seconds)


@pytest.mark.parametrize("name", QUEUES)
async def test_a_long_queue_of_one_company_keeps_no_other_waiting(
    database: Database, company: Environments, tx: Tx, name: str
) -> None:
    queue, other = QUEUES[name], await make_company(database)
    await fill(tx, queue, company.live, 2 * BATCH, -1_000)
    await fill(tx, queue, other.live, 2, -10)
    due = await queue.list_due(tx, BATCH)
    assert len(due) == BATCH
    assert [one.company_id for one in due].count(other.live) == 2
    keys = [one.id if hasattr(one, "id") else one.shipment_id for one in due if one.company_id == company.live]
    oldest = f"SELECT * FROM {queue.table} WHERE company_id = $1 ORDER BY {queue.column} LIMIT $2"
    rows = await tx.fetch(oldest, company.live, len(keys))
    assert keys == [row["shipment_id" if name == "bookings" else "id"] for row in rows], "the oldest first"


@pytest.mark.parametrize("name", [name for name in QUEUES if name != "callbacks"])
async def test_a_clock_that_was_moved_on_counts_in_a_long_queue_too(
    database: Database, company: Environments, tx: Tx, name: str
) -> None:
    queue, other = QUEUES[name], await make_company(database)
    await fill(tx, queue, company.live, 2 * BATCH, -1_000)
    await fill(tx, queue, other.test, 2, 3_600)
    assert other.test not in {one.company_id for one in await queue.list_due(tx, BATCH)}
    await access.move_clock(tx, other.test, timedelta(hours=2))
    assert other.test in {one.company_id for one in await queue.list_due(tx, BATCH)}


@pytest.mark.parametrize("name", QUEUES)
async def test_what_is_due_is_found_by_a_range_of_an_index(
    installation: Installation, database: Database, company: Environments, name: str
) -> None:
    queue = QUEUES[name]
    async with database.transaction() as tx:
        await fill(tx, queue, company.live, MANY, A_YEAR)
    async with connect(installation.server.owner_url) as owner:
        await owner.execute(f"ANALYZE {queue.table}, companies")
    for statement in queue.statements:
        async with database.transaction() as tx:
            await tx.execute("SET LOCAL enable_seqscan = off")
            plan = await tx.fetchval("EXPLAIN (FORMAT JSON) " + statement.text.replace("$1", str(BATCH)))
        found = list(scans(msgspec.json.decode(plan)[0]["Plan"], queue.table))
        assert found
        for scan in found:
            assert queue.column in get_range(scan), scan
            assert queue.column not in scan.get("Filter", ""), scan
