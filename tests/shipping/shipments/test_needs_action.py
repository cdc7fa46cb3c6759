"""Shipments that need action: finding them, and acknowledging them."""

import httpx

from sapa.db.pool import Database
from tests.factories import Environments
from tests.shipping.parcels import (
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


async def list_ids(api: httpx.AsyncClient, **params: str) -> list[str]:
    response = await api.get("/shipping/shipments", params=params)
    assert response.status_code == 200, response.text
    assert response.json()["meta"]["total"] == len(response.json()["data"])
    return [one["id"] for one in response.json()["data"]]


async def test_a_person_has_looked_at_it(sandbox: httpx.AsyncClient, database: Database, company: Environments) -> None:
    fine = await create(sandbox, "custom")
    created = await create(sandbox, "aggregator_carrier", sim="booking_rejected", autoBook=True)
    assert (created["shippingStatus"], created["needsAction"]) == ("booking_failed", True)
    assert await list_ids(sandbox, needsAction="true") == [created["id"]]
    assert await list_ids(sandbox, needsAction="false", provider="custom") == [fine["id"]]
    response = await change(sandbox, created["id"], needsAction=False)
    seen = response.json()["data"]
    assert (response.status_code, seen["needsAction"], seen["shippingStatus"]) == (200, False, "booking_failed")
    assert seen["problem"] == created["problem"], "what went wrong stays to be read"
    assert await list_ids(sandbox, needsAction="true") == []
    assert kinds(await list_events(database, company.test, created["id"]))[-1] == "shipment.updated"
    again = await change(sandbox, created["id"], needsAction=False)
    assert again.json()["data"] == seen, "it changes nothing a second time"
    booked = await change(sandbox, created["id"], needsAction=False, triggerBooking=True, delivery={"notes": None})
    assert (booked.json()["data"]["shippingStatus"], booked.json()["data"]["problem"]) == ("confirmed", None)


async def test_needs_action_can_be_cleared_when_the_shipment_is_not_editable(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier", autoBook=True)
    async with database.connection() as db:
        await db.execute("UPDATE shipments SET needs_action = true WHERE company_id = $1", company.test)
    response = await change(sandbox, created["id"], needsAction=False)
    assert (response.status_code, response.json()["data"]["needsAction"]) == (200, False)
    assert error_of(await change(sandbox, created["id"], needsAction=False, fee=1)) == (409, "NOT_EDITABLE")


async def test_needs_action_cannot_be_set_or_cleared_while_the_booking_is_unknown(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "custom")
    assert field_of(await change(sandbox, created["id"], needsAction=True)) == "needsAction"
    open_question = await create(sandbox, "ev_courier", status=202, sim="booking_timeout_not_booked", autoBook=True)
    await move_clock(database, company.test, 7_200)
    await until_status(sandbox, open_question["id"], "booking_unknown", needsAction=True)
    refused = await change(sandbox, open_question["id"], needsAction=False)
    assert error_of(refused) == (409, "INVALID_TRANSITION")
    assert "resolveBooking" in refused.json()["error"]["message"]
    assert (await get(sandbox, open_question["id"]))["needsAction"] is True
