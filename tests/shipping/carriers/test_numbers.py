"""Bookings without numbers: the carrier is asked for those that its response, or a person, did not give."""

from typing import Any

import httpx
import pytest

from sapa.context import AppContext
from sapa.sandbox.carriers.advance import advance
from sapa.shipping import actions as shipping
from sapa.shipping.connections.actions import get_carrier
from sapa.shipping.shipments import queries as shipments
from sapa.values.company import Company
from tests.shipping.carriers.simulated import SERVICES, build_request, find_booking
from tests.shipping.parcels import cancel, change, create, error_of, move_clock, until_status


async def resolve_without_a_number(context: AppContext, company: Company, sandbox: httpx.AsyncClient) -> dict[str, Any]:
    created = await create(sandbox, "instant_carrier", sim="booking_timeout_not_booked", autoBook=True)
    assert (await shipping.book(context, company, created["id"])).shipping_status == "booking_unknown"
    response = await change(sandbox, created["id"], resolveBooking={"outcome": "booked"})
    resolved: dict[str, Any] = response.json()["data"]
    assert (response.status_code, resolved["shippingStatus"], resolved["orderNo"]) == (200, "confirmed", None)
    return resolved


async def arrive_at_the_carrier(context: AppContext, company: Company, id: str) -> str:
    """The booking that was on its way for so long."""
    async with context.database.connection() as db:
        stored = await shipments.get_stored(db, company.id, id)
        connected = await get_carrier(context, db, company, "instant_carrier")
    assert stored.reference is not None
    await connected.carrier.book(connected.connection, build_request(**SERVICES["gosend"]), stored.reference)
    return stored.reference


async def test_its_number_is_found_out(context: AppContext, tester: Company, sandbox: httpx.AsyncClient) -> None:
    resolved = await resolve_without_a_number(context, tester, sandbox)
    reference = await arrive_at_the_carrier(context, tester, resolved["id"])
    await move_clock(context.database, tester.id, 40)
    found = await until_status(sandbox, resolved["id"], orderNo=...)
    booking = await find_booking(context, tester, "gosend", reference)
    assert booking is not None
    assert found["orderNo"] == booking.order_no


async def test_it_is_not_cancelled_behind_the_carriers_back(
    context: AppContext, tester: Company, sandbox: httpx.AsyncClient
) -> None:
    resolved = await resolve_without_a_number(context, tester, sandbox)
    response = await cancel(sandbox, resolved["id"], "Changed my mind")
    assert error_of(response) == (502, "CARRIER_UNAVAILABLE"), "it cannot say yet which booking that is"
    reference = await arrive_at_the_carrier(context, tester, resolved["id"])
    again = await cancel(sandbox, resolved["id"])
    assert (again.status_code, again.json()["data"]["shippingStatus"]) == (200, "cancelled")
    booking = await find_booking(context, tester, "gosend", reference)
    assert booking is not None
    assert booking.state.state == "cancelled"


@pytest.mark.parametrize(("state", "needs_action", "by"), [("no_driver", True, None), ("cancelled", False, "carrier")])
async def test_a_booking_that_was_rejected_before_the_lookup_is_shown_as_rejected(
    context: AppContext, tester: Company, sandbox: httpx.AsyncClient, state: str, needs_action: bool, by: str | None
) -> None:
    """The response and all callbacks were lost."""
    created = await create(sandbox, "instant_carrier", sim="booking_timeout", autoBook=True)
    reference = (await shipping.book(context, tester, created["id"])).reference
    assert reference is not None
    async with context.database.transaction() as tx:
        await advance(context, tx, tester.id, "gosend", reference, state)
        await tx.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", tester.id)
    await move_clock(context.database, tester.id, 10)
    found = await until_status(sandbox, created["id"], state)
    assert (found["needsAction"], found["cancelledBy"], bool(found["problem"])) == (needs_action, by, needs_action)
    assert found["orderNo"]
