"""Tracking: the carrier's present answer with the history, and the last known state when the carrier is away."""

from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from sapa.access import actions as access
from sapa.db.pool import Database
from sapa.shipping.bookings.cancel import settle_cancel
from sapa.shipping.carriers.interface import Cancelled, CarrierEvent
from sapa.shipping.shipments import queries as shipments
from sapa.shipping.shipments.types import POLLED
from sapa.shipping.shipments.validation import build_draft
from sapa.shipping.tracking.actions import apply_events
from sapa.shipping.tracking.status_changes import build_change, date_event
from sapa.values.company import Company
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.parcels import advance, change, create, get, move_clock, track, until_status

FIELDS = {
    "shipmentId", "provider", "awb", "orderNo", "shippingStatus", "statusGroup", "statusCode", "statusText",
    "eventTimestamp", "trackingUrl", "distance", "driver", "proof", "history", "live", "stale", "fetchedAt", "error",
}  # fmt: skip


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_the_carrier_is_asked_and_its_word_counts(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    created = await create(sandbox, provider, autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    async with database.connection() as db:  # the carrier's callbacks are lost
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 620)
    found = await track(sandbox, created["id"])
    assert set(found) == FIELDS
    assert (found["live"], found["stale"], found["error"]) == (True, False, None)
    assert (found["shippingStatus"], found["statusGroup"]) == ("delivered", "delivered")
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "delivered"
    assert found["history"]
    assert [event["occurredAt"] for event in found["history"]] == sorted(
        event["occurredAt"] for event in found["history"]
    )
    assert found["statusText"]
    again = await track(sandbox, created["id"])
    assert again["history"] == found["history"], "the same events are not told twice"
    if provider == "ev_courier":
        assert found["driver"]["name"]
        assert found["driver"]["licensePlate"]


async def test_a_carrier_that_is_away_leaves_the_last_known_state(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="carrier_down", autoBook=True)
    found = await track(sandbox, created["id"])
    assert (found["live"], found["stale"], found["shippingStatus"]) == (False, True, "confirmed")
    assert found["error"]["code"] == "CARRIER_UNAVAILABLE"
    assert found["error"]["message"]


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_an_event_that_is_called_back_and_polled_is_shown_once(sandbox: httpx.AsyncClient, provider: str) -> None:
    created = await create(sandbox, provider, autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    for status in ("picked_up", "delivered"):
        await advance(sandbox, created["id"], status)
        await until_status(sandbox, created["id"], status)
    history = (await track(sandbox, created["id"]))["history"]
    shown = [(event["status"], event["occurredAt"][:19]) for event in history]
    assert len(shown) == len(set(shown)), shown
    assert [event["status"] for event in history].count("delivered") == 1


async def test_drafts_and_local_shipments_are_not_polled(sandbox: httpx.AsyncClient) -> None:
    draft = await create(sandbox, "aggregator_carrier")
    found = await track(sandbox, draft["id"])
    assert (found["live"], found["stale"], found["history"], found["error"]) == (False, False, [], None)
    local = await create(sandbox, "custom", autoBook=True, trackingUrl="https://example.com/t/1")
    await change(sandbox, local["id"], shippingStatus="in_transit")
    found = await track(sandbox, local["id"])
    assert (found["shippingStatus"], found["statusGroup"]) == ("in_transit", "in_delivery")
    assert (found["stale"], found["trackingUrl"]) == (False, "https://example.com/t/1")
    assert [event["status"] for event in found["history"]] == ["confirmed", "in_transit"]


async def test_of_a_very_long_history_the_latest_is_shown(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "custom", autoBook=True)
    async with database.connection() as db:
        await db.execute(
            """INSERT INTO shipment_events
                      (company_id, shipment_id, dedupe_key, occurred_at, text, proof, source, applied)
               SELECT $1, $2, n::text, now() + make_interval(secs => n), 'word ' || n, '{}', 'carrier_poll', true
                 FROM generate_series(1, 1001) AS n""",
            company.test, created["id"],
        )  # fmt: skip
    found = await track(sandbox, created["id"])
    assert (len(found["history"]), found["statusText"]) == (1_000, "word 1001")
    assert found["history"][-1]["text"] == "word 1001"


async def test_the_worker_asks_where_callbacks_are_missing(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", autoBook=True)
    async with database.connection() as db:
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 61)
    await until_status(sandbox, created["id"], "delivered")
    async with database.connection() as db:
        poll_at = await db.fetchval(
            "SELECT poll_at FROM shipments WHERE company_id = $1 AND id = $2", company.test, created["id"]
        )
    assert poll_at is None, "what has arrived is not asked after"


async def test_proof_and_receiver_are_shown(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    await advance(sandbox, created["id"], "delivered")
    await until_status(sandbox, created["id"], "delivered")
    found = await track(sandbox, created["id"])
    assert set(found["proof"]) == {"receiver", "images"}
    assert found["proof"]["receiver"] or found["proof"]["images"]


async def test_events_of_an_earlier_booking_do_not_change_the_present_one(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """The response is about the earlier booking, and arrives after the next one."""
    created = await create(sandbox, "ev_courier", sim="no_driver", autoBook=True)
    await advance(sandbox, created["id"], "no_driver")
    await until_status(sandbox, created["id"], "rejected")
    async with database.connection() as db:
        asked = await shipments.get_stored(db, company.test, created["id"])
        shop = await access.get_company(db, company.test)
    await change(sandbox, created["id"], triggerBooking=True, delivery={"notes": None})
    anew = await get(sandbox, created["id"])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    event = CarrierEvent("late", tomorrow, "rejected", "FAILED", order_no=asked.order_no, awb=asked.awb)
    async with database.transaction() as tx:
        stored = await apply_events(tx, shop, asked, [event], POLLED)
    assert stored.reference != asked.reference
    assert stored.shipping_status != "rejected"
    async with database.transaction() as tx:
        stored = await shipments.lock_shipment(tx, company.test, created["id"])
        await shipments.save_shipment(
            tx, company.test, msgspec.structs.replace(stored, shipping_status="cancelling"), True
        )
        assert (await settle_cancel(tx, shop, asked, Cancelled())).shipping_status == "cancelling"
    found = await track(sandbox, created["id"])
    assert [event["occurredAt"][:10] for event in found["history"]].count(tomorrow.date().isoformat()) == 0
    assert found["orderNo"] == anew["orderNo"] != asked.order_no


def test_a_present_status_is_not_older_than_the_last_event() -> None:
    """GoSend reports a status without its time; the callback before it was exact."""
    shop = Company(1, "test", "ID", "IDR")
    blank = msgspec.structs.replace(
        build_draft(shop, "instant_carrier"), created_at=datetime(2026, 11, 15, 10, tzinfo=UTC)
    )
    asked = msgspec.structs.replace(
        blank, shipping_status="picked_up", event_timestamp=datetime(2026, 11, 15, 10, 7, tzinfo=UTC)
    )
    early = datetime(2026, 11, 15, 10, 5, tzinfo=UTC)
    event = CarrierEvent("GK-1/out", early, "out_for_delivery", "out_for_delivery", is_present=True)
    change = build_change(asked, date_event(asked, asked, event), POLLED)
    assert (change.is_applied, change.shipment.shipping_status) == (True, "out_for_delivery")
    again = date_event(change.shipment, change.shipment, event)
    assert again.dedupe_key == date_event(asked, asked, event).dedupe_key, "asked again, it is no news"
    later = msgspec.structs.replace(change.shipment, event_timestamp=datetime(2026, 11, 15, 10, 20, tzinfo=UTC))
    assert date_event(later, later, event).dedupe_key != again.dedupe_key, "the same state a second time is"
    assert date_event(later, asked, event) == event, "what was told meanwhile is newer than the answer"
    assert date_event(blank, blank, event).occurred_at == early


async def test_what_the_carrier_cannot_be_asked_by_is_not_live(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", autoBook=True)
    async with database.connection() as db:
        await db.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", company.test)
        await db.execute(
            "UPDATE shipments SET order_no = NULL, awb = NULL WHERE company_id = $1 AND id = $2",
            company.test, created["id"],
        )  # fmt: skip
    found = await track(sandbox, created["id"])
    assert (found["live"], found["stale"]) == (False, True)
    assert "number" in found["error"]["message"]
