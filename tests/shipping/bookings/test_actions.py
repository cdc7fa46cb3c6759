"""Bookings: sent once, unknown when the outcome is, and settled in the end; counted at the simulators."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.shipping.errors import BookingInProgress
from tests.cli.command import sapa, sapa_process
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.parcels import (
    DELIVERY,
    PATIENCE,
    body_of,
    cancel,
    change,
    create,
    error_of,
    field_of,
    get,
    kinds,
    list_events,
    move_clock,
    until_status,
)

HOUR = 3_600


async def requests_at_the_carrier(database: Database, company_id: int) -> list[int]:
    """How often each booking was requested at the simulators."""
    async with database.connection() as db:
        rows = await db.fetch("SELECT requests FROM sandbox_bookings WHERE company_id = $1", company_id)
    return [row["requests"] for row in rows]


async def has_waiter(database: Database, pid: int) -> bool:
    async with database.connection() as db:
        waiting = await db.fetchval("SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", pid)
    return bool(waiting)


async def attempts_of(database: Database, company_id: int, id: str) -> list[Any]:
    async with database.connection() as db:
        return await db.fetch(
            "SELECT * FROM shipment_bookings WHERE company_id = $1 AND shipment_id = $2 ORDER BY number", company_id, id
        )


@pytest.mark.parametrize(
    ("phone", "status"), [("+62 895-1234-56789", "confirmed"), ("+65 6123 4567", "booking_failed")]
)
async def test_the_longest_phone_numbers_are_booked_and_foreign_ones_are_explained(
    sandbox: httpx.AsyncClient, phone: str, status: str
) -> None:
    created = await create(sandbox, "aggregator_carrier", delivery={**DELIVERY, "phone": phone}, autoBook=True)
    assert created["shippingStatus"] == status, created["problem"]
    if status == "booking_failed":
        assert "delivery.phone must be an Indonesian number" in created["problem"]


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_a_draft_is_booked_on_request(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    created = await create(sandbox, provider)
    assert (created["shippingStatus"], created["orderNo"], created["awb"]) == ("draft", None, None)
    response = await change(sandbox, created["id"], triggerBooking=True, name="Edited with it")
    assert response.status_code == 200
    booked = response.json()["data"]
    assert booked["shippingStatus"] in {"confirmed", "finding_driver"}
    assert booked["name"] == "Edited with it"
    again = await change(sandbox, created["id"], triggerBooking=True)
    assert (again.status_code, again.json()["data"]["id"]) == (200, created["id"])
    assert await requests_at_the_carrier(database, company.test) == [1]
    (attempt,) = await attempts_of(database, company.test, created["id"])
    assert attempt["state"] == "succeeded"
    assert attempt["reference"].startswith("SP")
    assert len(attempt["reference"]) == 18
    assert kinds(await list_events(database, company.test, created["id"])).count("shipment.booked") == 1
    assert error_of(await change(sandbox, created["id"], fee=1)) == (409, "NOT_EDITABLE")


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_many_requests_at_once_are_one_booking(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    created = await create(sandbox, provider)
    answers = await asyncio.gather(*(change(sandbox, created["id"], triggerBooking=True) for _ in range(8)))
    for response in answers:
        assert response.status_code in {200, 409}, response.text
        if response.status_code == 409:
            assert error_of(response) == (409, "BOOKING_IN_PROGRESS")
    assert await requests_at_the_carrier(database, company.test) == [1]
    assert len(await attempts_of(database, company.test, created["id"])) == 1


async def test_a_refused_booking_failed_and_can_be_tried_anew(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="booking_rejected", autoBook=True)
    assert created["shippingStatus"] == "booking_failed"
    assert created["needsAction"] is True
    assert "kredit" in created["problem"]
    response = await change(sandbox, created["id"], triggerBooking=True, delivery={"notes": None})
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "confirmed")
    assert (response.json()["data"]["problem"], response.json()["data"]["needsAction"]) == (None, False)
    first, second = await attempts_of(database, company.test, created["id"])
    assert (first["state"], second["state"]) == ("failed", "succeeded")
    assert first["reference"] != second["reference"]
    assert await requests_at_the_carrier(database, company.test) == [1]


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_a_lost_response_is_unknown_and_then_looked_up(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    """The aggregator is asked by our reference; the EV courier cannot be, and its callback settles it."""
    created = await create(sandbox, provider, status=202, sim="booking_timeout", autoBook=True)
    assert created["shippingStatus"] == "booking_unknown"
    again = await change(sandbox, created["id"], triggerBooking=True)
    assert again.status_code in {200, 409}
    await move_clock(database, company.test, 10)
    settled = await until_status(
        sandbox, created["id"], "confirmed", "finding_driver", "driver_assigned", "picking_up", awb=...
    )
    assert settled["problem"] is None
    assert await requests_at_the_carrier(database, company.test) == [1]
    events = kinds(await list_events(database, company.test, created["id"]))
    assert events.count("shipment.booked") == 1


async def test_an_unclear_response_to_a_pickup_request_is_a_202(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="booking_timeout")
    path, once = f"/shipping/shipments/{created['id']}", {"idempotency-key": f"book {created['id']}"}
    response = await sandbox.patch(path, json={"triggerBooking": True}, headers=once)
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (202, "booking_unknown")
    again = await sandbox.patch(path, json={"triggerBooking": True}, headers=once)
    assert (again.status_code, again.json()) == (202, response.json())
    await move_clock(database, company.test, 10)
    await until_status(sandbox, created["id"], "confirmed")
    assert await requests_at_the_carrier(database, company.test) == [1]


async def test_what_never_arrived_fails_only_when_that_is_certain(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    await move_clock(database, company.test, 60)
    await asyncio.sleep(1.5)
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "booking_unknown", (
        "a minute is not enough to be sure"
    )
    await move_clock(database, company.test, 120)
    failed = await until_status(sandbox, created["id"], "booking_failed")
    assert failed["needsAction"] is True
    response = await change(sandbox, created["id"], triggerBooking=True, delivery={"notes": None})
    assert response.json()["data"]["shippingStatus"] == "confirmed"
    assert await requests_at_the_carrier(database, company.test) == [1]


async def test_a_person_resolves_a_booking_that_cannot_be_looked_up(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    await move_clock(database, company.test, 2 * HOUR)
    await until_status(sandbox, created["id"], "booking_unknown", needsAction=True)
    response = await change(sandbox, created["id"], resolveBooking={"outcome": "not_booked"})
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "booking_failed")
    again = await change(sandbox, created["id"], resolveBooking={"outcome": "booked"})
    assert error_of(again) == (409, "INVALID_TRANSITION")
    other = await create(sandbox, "ev_courier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    nameless = await change(sandbox, other["id"], resolveBooking={"outcome": "booked"})
    assert field_of(nameless) == "resolveBooking.orderNo", "Dash cannot be asked by our reference"
    response = await change(sandbox, other["id"], resolveBooking={"outcome": "booked", "orderNo": "DASH-7"})
    assert response.json()["data"]["shippingStatus"] == "confirmed"
    assert response.json()["data"]["orderNo"] == "DASH-7"


async def test_a_late_success_of_an_old_reference_is_cancelled_there(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    await move_clock(database, company.test, 180)
    await until_status(sandbox, created["id"], "booking_failed")
    response = await change(sandbox, created["id"], triggerBooking=True, delivery={"notes": None})
    assert response.json()["data"]["shippingStatus"] == "confirmed"
    old, new = await attempts_of(database, company.test, created["id"])
    async with database.connection() as db:  # the carrier had queued it
        await db.execute(
            """INSERT INTO sandbox_bookings
               SELECT company_id, adapter, $3, 'SBX-LATE', 'SBXLATE', scenario, asked, steps, booked_at, 1
                 FROM sandbox_bookings WHERE company_id = $1 AND reference = $2""",
            company.test, new["reference"], old["reference"],
        )  # fmt: skip
        await db.execute(
            "UPDATE shipment_bookings SET due_at = sent_at WHERE company_id = $1 AND reference = $2",
            company.test, old["reference"],
        )  # fmt: skip
    flagged = await until_status(sandbox, created["id"], needsAction=True)
    assert flagged["orderNo"] != "SBX-LATE"
    assert old["reference"] in flagged["problem"]

    async def steps() -> str:
        async with database.connection() as db:
            row = await db.fetchval(
                "SELECT steps::text FROM sandbox_bookings WHERE company_id = $1 AND order_no = 'SBX-LATE'", company.test
            )
        return str(row)

    for _ in range(200):
        if '"cancelled"' in await steps():
            break
        await asyncio.sleep(0.1)
    assert '"cancelled"' in await steps()
    assert (await get(sandbox, created["id"]))["shippingStatus"] not in {"cancelled", "cancelling"}


async def test_the_instant_carrier_waits_for_a_person(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "instant_carrier", autoBook=True)
    assert created["shippingStatus"] == "awaiting"
    draft = await create(sandbox, "instant_carrier")
    waiting = await change(sandbox, draft["id"], triggerBooking=True)
    assert (waiting.status_code, waiting.json()["data"]["shippingStatus"]) == (200, "awaiting")
    assert await requests_at_the_carrier(database, company.test) == []
    arguments = ["shipment", "book", created["id"], "--company", str(company.test), "--json"]
    shown = sapa_process(installation.data, *arguments).json()
    assert (shown["id"], shown["shippingStatus"]) == (created["id"], "finding_driver")
    assert shown["orderNo"]
    assert sapa(installation.data, *arguments).json()["orderNo"] == shown["orderNo"]
    assert await requests_at_the_carrier(database, company.test) == [1]
    listed = sapa(
        installation.data, "shipment", "list", "--company", str(company.test), "--status", "awaiting", "--json"
    ).json()
    assert [one["id"] for one in listed] == [draft["id"]]
    wrong = sapa(installation.data, "shipment", "book", "shp_x", "--company", str(company.test))
    assert wrong.sentence() == "shipment not found"


async def test_without_a_connection_nothing_is_stored(api: httpx.AsyncClient) -> None:
    response = await api.post("/shipping/shipments", json=body_of("aggregator_carrier", autoBook=True))
    assert error_of(response) == (409, "PROVIDER_NOT_CONNECTED")
    assert "/console/live/carriers/" in response.json()["error"]["message"]
    assert (await api.get("/shipping/shipments")).json()["meta"]["total"] == 0
    draft = await api.post("/shipping/shipments", json=body_of("aggregator_carrier"))
    assert draft.status_code == 201
    awaiting = await api.post("/shipping/shipments", json=body_of("instant_carrier", autoBook=True))
    assert (awaiting.status_code, awaiting.json()["data"]["shippingStatus"]) == (201, "awaiting")


async def test_no_driver_and_a_new_booking(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", sim="no_driver", autoBook=True)
    await move_clock(database, company.test, 40)
    failed = await until_status(sandbox, created["id"], "no_driver", "rejected", "cancelled")
    response = await change(sandbox, created["id"], triggerBooking=True, delivery={"notes": None})
    assert response.status_code == 200, response.text
    anew = response.json()["data"]
    assert anew["shippingStatus"] == "finding_driver"
    assert anew["orderNo"] != failed["orderNo"]
    assert (anew["needsAction"], anew["problem"], anew["driver"]) == (False, None, None)
    assert await requests_at_the_carrier(database, company.test) == [1, 1]


async def test_only_what_people_book_waits_for_them(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """A failed booking is sent again; only what the API does not book becomes awaiting."""
    created = await create(sandbox, "aggregator_carrier", sim="booking_rejected", autoBook=True)
    response = await change(sandbox, created["id"], triggerBooking=True)
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "booking_failed")
    assert [attempt["state"] for attempt in await attempts_of(database, company.test, created["id"])] == ["failed"] * 2
    people = await create(sandbox, "instant_carrier")
    response = await change(sandbox, people["id"], triggerBooking=True)
    assert response.json()["data"]["shippingStatus"] == "awaiting"
    assert await attempts_of(database, company.test, people["id"]) == []


async def test_a_booking_that_fails_before_the_lock_is_acquired_is_sent_again(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    """A booking is in progress when the call arrives, and has failed when its lock is acquired."""
    created = await create(sandbox, "aggregator_carrier")
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE shipments SET shipping_status = 'booking_failed' WHERE company_id = $1 AND id = $2",
            company.test, created["id"],
        )  # fmt: skip
        waiting = asyncio.create_task(change(sandbox, created["id"], triggerBooking=True))
        for _ in range(PATIENCE * 20):
            if waiting.done() or await has_waiter(database, tx.get_server_pid()):
                break
            await asyncio.sleep(0.05)
    assert (await waiting).json()["data"]["shippingStatus"] == "confirmed"


async def test_an_unknown_booking_blocks_another(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments
) -> None:
    created = await create(sandbox, "instant_carrier", sim="booking_timeout_not_booked", autoBook=True)
    arguments = ["shipment", "book", created["id"], "--company", str(company.test), "--json"]
    assert sapa(installation.data, *arguments).json()["shippingStatus"] == "booking_unknown"
    assert (await cancel(sandbox, created["id"])).json()["data"]["shippingStatus"] == "cancelled"
    response = await change(sandbox, created["id"], triggerBooking=True)
    assert response.json()["data"]["shippingStatus"] == "awaiting"
    refused = sapa(installation.data, *arguments)
    assert refused.sentence() == BookingInProgress.__doc__


async def test_what_should_have_been_picked_up_by_now_is_not_booked(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    def ahead(**distance: float) -> str:
        return (datetime.now(UTC) + timedelta(**distance)).isoformat()

    created = await create(sandbox, "ev_courier", pickupSchedule=ahead(hours=1))
    late = body_of("ev_courier", pickupSchedule=ahead(days=4))
    assert field_of(await sandbox.post("/shipping/shipments", json=late)) == "pickupSchedule", "Dash plans three days"
    assert await create(sandbox, "aggregator_carrier", pickupSchedule=ahead(days=6))
    await move_clock(database, company.test, 2 * HOUR)
    assert field_of(await change(sandbox, created["id"], triggerBooking=True)) == "pickupSchedule"
    assert await requests_at_the_carrier(database, company.test) == []
    response = await change(sandbox, created["id"], triggerBooking=True, pickupSchedule=None)
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "finding_driver")
