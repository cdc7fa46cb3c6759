"""Cancelling by provider, by what the carrier knows, and by status."""

import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.cli.command import sapa
from tests.conftest import Installation
from tests.factories import Environments
from tests.shipping.parcels import (
    advance,
    cancel,
    change,
    create,
    error_of,
    get,
    kinds,
    list_events,
    move_clock,
    until_status,
)


async def carriers_states(database: Database, company_id: int) -> list[str]:
    """The last step that the simulators plan for each booking."""
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT steps->-1->>'state' AS state FROM sandbox_bookings WHERE company_id = $1", company_id
        )
    return [row["state"] for row in rows]


@pytest.mark.parametrize(
    ("provider", "end"), [("aggregator_carrier", "cancelled"), ("ev_courier", "cancelled_by_business")]
)
async def test_with_an_awb_the_carrier_is_called(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str, end: str
) -> None:
    created = await create(sandbox, provider, autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    response = await cancel(sandbox, created["id"], "Wrong address")
    assert response.status_code == 200, response.text
    gone = response.json()["data"]
    assert gone["shippingStatus"] == end
    assert (gone["cancellationReason"], gone["cancelledBy"], gone["cancelledSource"]) == (
        "Wrong address",
        "user",
        "api",
    )
    assert await carriers_states(database, company.test) == ["cancelled"]
    again = await cancel(sandbox, created["id"], "Once more")
    assert (again.status_code, again.json()["data"]["cancellationReason"]) == (200, "Wrong address")
    await asyncio.sleep(1)
    assert (await get(sandbox, created["id"]))["shippingStatus"] == end, "the carrier's own callback changes nothing"
    events = kinds(await list_events(database, company.test, created["id"]))
    assert events.count("shipment.cancelled") == 1


@pytest.mark.parametrize("provider", ["aggregator_carrier", "ev_courier"])
async def test_without_an_awb_it_was_not_booked(sandbox: httpx.AsyncClient, provider: str) -> None:
    created = await create(sandbox, provider)
    assert error_of(await cancel(sandbox, created["id"])) == (409, "NOT_BOOKED")
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "draft"


async def test_an_awb_that_is_late_is_waited_for(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="awb_late", autoBook=True)
    assert (created["shippingStatus"], created["awb"]) == ("confirmed", None)
    assert error_of(await cancel(sandbox, created["id"])) == (409, "NOT_BOOKED")


async def test_the_instant_carrier_is_called_once_there_is_an_order_no(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "instant_carrier", autoBook=True)
    booked = sapa(installation.data, "shipment", "book", created["id"], "--company", str(company.test), "--json").json()
    assert booked["orderNo"]
    response = await cancel(sandbox, created["id"])
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "cancelled")
    assert await carriers_states(database, company.test) == ["cancelled"]


@pytest.mark.parametrize("auto_book", [True, False])
async def test_without_an_order_no_the_instant_carrier_hears_nothing(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, auto_book: bool
) -> None:
    created = await create(sandbox, "instant_carrier", autoBook=auto_book)
    response = await cancel(sandbox, created["id"], "Changed my mind")
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "cancelled")
    assert await carriers_states(database, company.test) == []


@pytest.mark.parametrize("provider", ["custom", "parcel_carrier"])
@pytest.mark.parametrize("auto_book", [True, False])
async def test_local_ones_are_cancelled_here(sandbox: httpx.AsyncClient, provider: str, auto_book: bool) -> None:
    created = await create(sandbox, provider, autoBook=auto_book)
    response = await cancel(sandbox, created["id"], "x" * 500)
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "cancelled")
    assert response.json()["data"]["cancellationReason"] == "x" * 500


@pytest.mark.parametrize(
    "provider", ["custom", "parcel_carrier", "aggregator_carrier", "instant_carrier", "ev_courier"]
)
async def test_after_the_pick_up_it_is_too_late(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, provider: str
) -> None:
    created = await create(sandbox, provider, autoBook=True)
    if provider in {"custom", "parcel_carrier"}:
        await change(sandbox, created["id"], shippingStatus="picked_up")
    else:
        if provider == "instant_carrier":
            sapa(installation.data, "shipment", "book", created["id"], "--company", str(company.test))
        await until_status(sandbox, created["id"], **{"orderNo" if provider == "instant_carrier" else "awb": ...})
        await advance(sandbox, created["id"], "picked_up")
    await until_status(sandbox, created["id"], "picked_up")
    refused = await cancel(sandbox, created["id"])
    assert error_of(refused) == (409, "NOT_CANCELLABLE")
    assert "picked" in refused.json()["error"]["message"]
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "picked_up"


async def test_a_carrier_that_refuses_keeps_it(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="cancel_refused", autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    assert error_of(await cancel(sandbox, created["id"], "Please")) == (409, "NOT_CANCELLABLE")
    stored = await get(sandbox, created["id"])
    assert (stored["shippingStatus"], stored["cancellationReason"]) == ("confirmed", None)


async def test_a_carrier_that_takes_its_time_is_waited_for(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="cancel_slow", autoBook=True)
    await until_status(sandbox, created["id"], awb=...)
    response = await cancel(sandbox, created["id"], "No hurry")
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (202, "cancelling")
    await move_clock(database, company.test, 60)
    gone = await until_status(sandbox, created["id"], "cancelled")
    assert (gone["cancelledBy"], gone["cancellationReason"]) == ("user", "No hurry")


async def test_a_carrier_that_is_away_is_asked_again_by_the_worker(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", sim="carrier_down", autoBook=True)
    async with database.connection() as db:  # its callbacks do not arrive either
        await db.execute(
            """UPDATE shipments s SET awb = b.awb FROM sandbox_bookings b
                WHERE s.company_id = $1 AND b.company_id = $1 AND s.reference = b.reference""",
            company.test,
        )
    response = await cancel(sandbox, created["id"], "Away")
    assert error_of(response) == (502, "CARRIER_UNAVAILABLE")
    assert (await get(sandbox, created["id"]))["shippingStatus"] == "cancelling"
    assert error_of(await cancel(sandbox, created["id"])) == (502, "CARRIER_UNAVAILABLE")
    async with database.connection() as db:
        await db.execute("UPDATE sandbox_bookings SET scenario = NULL WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 60)
    gone = await until_status(sandbox, created["id"], "cancelled")
    assert (gone["cancelledBy"], gone["cancellationReason"]) == ("user", "Away")


async def test_a_cancellation_that_stays_open_is_shown_to_a_person(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", sim="carrier_down", autoBook=True)
    assert error_of(await cancel(sandbox, created["id"])) == (502, "CARRIER_UNAVAILABLE")
    assert (await get(sandbox, created["id"]))["needsAction"] is False
    async with database.connection() as db:  # as after two days
        await db.execute("UPDATE shipments SET cancel_tries = 49 WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 60)
    shown = await until_status(sandbox, created["id"], "cancelling", needsAction=True)
    assert "has not confirmed the cancellation" in shown["problem"]


@pytest.mark.parametrize("media_type", [None, "application/json", "application/x-www-form-urlencoded"])
async def test_a_reason_may_be_left_out_with_its_body(sandbox: httpx.AsyncClient, media_type: str | None) -> None:
    created = await create(sandbox, "custom")
    headers = {"content-type": media_type} if media_type else {}
    response = await sandbox.post(f"/shipping/shipments/{created['id']}/cancel", headers=headers)
    gone = response.json()["data"]
    assert (response.status_code, gone["shippingStatus"], gone["cancellationReason"]) == (200, "cancelled", None)
    again = await sandbox.post(f"/shipping/shipments/{created['id']}/cancel", headers=headers, content=b"{}")
    assert again.status_code == (200 if media_type == "application/json" else 415), "what is sent has to be JSON"


async def test_reasons_and_ids_are_checked(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "custom")
    response = await cancel(sandbox, created["id"], "x" * 501)
    assert error_of(response) == (400, "VALIDATION_ERROR")
    assert response.json()["error"]["details"][0]["field"] == "reason"
    unknown = await cancel(sandbox, "shp_01jc9y3q5me8w92v7x4t6r0n1k")
    assert unknown.json() == {"error": {"code": "NOT_FOUND", "message": "shipment not found"}}


async def test_a_cancelled_shipment_can_be_booked_anew_on_request(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "aggregator_carrier", autoBook=True)
    first = await until_status(sandbox, created["id"], awb=...)
    await cancel(sandbox, created["id"])
    response = await change(sandbox, created["id"], triggerBooking=True)
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, "confirmed")
    second = await until_status(sandbox, created["id"], awb=...)
    assert second["awb"] != first["awb"]
    assert second["cancellationReason"] is None


async def give_up(
    installation: Installation, sandbox: httpx.AsyncClient, company: Environments, provider: str
) -> dict[str, Any]:
    """A shipment that was accepted but found no driver."""
    created = await create(sandbox, provider, sim="no_driver", autoBook=True)
    if provider == "instant_carrier":
        sapa(installation.data, "shipment", "book", created["id"], "--company", str(company.test), "--json").json()
    await advance(sandbox, created["id"], "no_driver")
    return await until_status(sandbox, created["id"], "no_driver", "rejected")


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize(
    ("provider", "end"), [("instant_carrier", "cancelled"), ("ev_courier", "cancelled_by_business")]
)
async def test_what_the_carrier_gave_up_is_cancelled_there_too(
    installation: Installation, sandbox: httpx.AsyncClient, database: Database, company: Environments,
    provider: str, end: str, goes_on: bool,
) -> None:  # fmt: skip
    created = await give_up(installation, sandbox, company, provider)
    if goes_on:
        async with database.connection() as db:
            await db.execute(
                "UPDATE sandbox_bookings SET steps = (steps::jsonb - (-1))::json WHERE company_id = $1", company.test
            )
    response = await cancel(sandbox, created["id"], "No more")
    assert (response.status_code, response.json()["data"]["shippingStatus"]) == (200, end), response.text
    assert response.json()["data"]["needsAction"] is False
    assert await carriers_states(database, company.test) == ["cancelled" if goes_on else "no_driver"]


async def test_a_refusal_in_the_background_needs_action(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "ev_courier", sim="carrier_down", autoBook=True)
    assert error_of(await cancel(sandbox, created["id"], "Away")) == (502, "CARRIER_UNAVAILABLE")
    async with database.connection() as db:
        await db.execute("UPDATE sandbox_bookings SET scenario = 'cancel_refused' WHERE company_id = $1", company.test)
    await move_clock(database, company.test, 4)
    stored = await until_status(
        sandbox, created["id"], "finding_driver", "driver_assigned", "picking_up", needsAction=True
    )
    assert "can no longer be cancelled" in stored["problem"]
    assert stored["cancellationReason"] is None


@pytest.mark.parametrize("provider", ["custom", "parcel_carrier"])
async def test_local_ones_stay_cancelled(sandbox: httpx.AsyncClient, provider: str) -> None:
    created = await create(sandbox, provider, autoBook=True)
    gone = (await cancel(sandbox, created["id"], "Over")).json()["data"]
    assert error_of(await change(sandbox, created["id"], triggerBooking=True)) == (409, "NOT_BOOKABLE")
    assert await get(sandbox, created["id"]) == gone
