"""A test clock that is set back: no work waits for a time that was taken back, and no event counts as late."""

import asyncio
import time

import httpx

from sapa.access import actions as access
from sapa.db.pool import Database
from tests.factories import Environments
from tests.shipping.parcels import PATIENCE, advance, cancel, create, error_of, get, move_clock, until_status

DAY = 86_400


async def turn_back(database: Database, company_id: int) -> None:
    async with database.transaction() as tx:
        await access.move_clock(tx, company_id, None)


async def silence(database: Database, company_id: int) -> None:
    async with database.connection() as db:
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company_id)


async def until_asked_after(database: Database, company_id: int, within: str) -> None:
    """Until no shipment waits longer than this to be polled."""
    deadline = time.monotonic() + PATIENCE
    while True:
        async with database.connection() as db:
            left = await db.fetchval(
                "SELECT count(*) FROM shipments"
                " WHERE company_id = $1 AND poll_at > clock_timestamp() + $2::text::interval",
                company_id, within,
            )  # fmt: skip
        if not left:
            return
        assert time.monotonic() < deadline, "nobody asks after it"
        await asyncio.sleep(0.1)


async def test_bookings_are_found_out(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    await move_clock(database, company.test, DAY)
    created = await create(sandbox, "aggregator_carrier", status=202, sim="booking_timeout", autoBook=True)
    await turn_back(database, company.test)
    await until_status(sandbox, created["id"], "confirmed")


async def test_a_booking_that_was_looked_for_tomorrow_is_looked_for_today(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """Sent before the clock was moved: its age is right again, but its next lookup is far ahead."""
    created = await create(sandbox, "aggregator_carrier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    async with database.connection() as db:
        await db.execute(
            "UPDATE shipment_bookings SET sent_at = sent_at - interval '5 minutes', due_at = due_at + interval '1 day',"
            " not_found = 1 WHERE company_id = $1",
            company.test,
        )  # fmt: skip
    await until_status(sandbox, created["id"], "booking_failed")


async def test_shipments_are_asked_after(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    await move_clock(database, company.test, DAY)
    for provider in ("aggregator_carrier", "ev_courier"):
        await create(sandbox, provider, autoBook=True)
    await silence(database, company.test)
    await turn_back(database, company.test)
    await until_asked_after(database, company.test, "6 hours")


async def test_shipments_made_long_after_today_are_asked_after(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await move_clock(database, company.test, 60 * DAY)
    created = await create(sandbox, "ev_courier", autoBook=True)
    await silence(database, company.test)
    await move_clock(database, company.test, 61)
    await until_status(sandbox, created["id"], "delivered")


async def test_cancellations_are_settled(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    await move_clock(database, company.test, DAY)
    created = await create(sandbox, "ev_courier", sim="carrier_down", autoBook=True)
    assert error_of(await cancel(sandbox, created["id"], "Away")) == (502, "CARRIER_UNAVAILABLE")
    await turn_back(database, company.test)
    async with database.connection() as db:
        await db.execute("UPDATE sandbox_bookings SET scenario = NULL WHERE company_id = $1", company.test)
    gone = await until_status(sandbox, created["id"], "cancelled_by_business")
    assert gone["cancellationReason"] == "Away"


async def test_what_carriers_say_now_is_not_late(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await move_clock(database, company.test, DAY)
    created = await create(sandbox, "ev_courier", autoBook=True)
    await advance(sandbox, created["id"], "driver_assigned")
    tomorrow = await until_status(sandbox, created["id"], "driver_assigned", "picking_up", eventTimestamp=...)
    await turn_back(database, company.test)
    await advance(sandbox, created["id"], "picked_up")
    await until_status(sandbox, created["id"], "picked_up", "out_for_delivery", "delivered")
    await advance(sandbox, created["id"], "delivered")
    await until_status(sandbox, created["id"], "delivered")
    assert (await get(sandbox, created["id"]))["eventTimestamp"] < tomorrow["eventTimestamp"]
