"""Bookings whose numbers are found out: the carrier is asked for what its answer, or a person, did not tell."""

from typing import Any

import httpx
import pytest

from sapa.context import AppContext
from sapa.sandbox.carriers.advance import advance
from sapa.shipping.bookings import actions as bookings
from sapa.shipping.connections.actions import get_carrier
from sapa.shipping.shipments import queries as shipments
from sapa.values.company import Company
from tests.shipping.carriers.journeys import SERVICES, build_journey, find_booking
from tests.shipping.parcels import cancel, change, create, error_of, move_clock, until_status


async def tell_without_a_number(kit: AppContext, company: Company, sandbox: httpx.AsyncClient) -> dict[str, Any]:
    made = await create(sandbox, "instant_carrier", sim="booking_timeout_not_booked", autoBook=True)
    assert (await bookings.book(kit, company, made["id"])).shipping_status == "booking_unknown"
    answer = await change(sandbox, made["id"], resolveBooking={"outcome": "booked"})
    told: dict[str, Any] = answer.json()["data"]
    assert (answer.status_code, told["shippingStatus"], told["orderNo"]) == (200, "confirmed", None)
    return told


async def arrive_at_the_carrier(kit: AppContext, company: Company, id: str) -> str:
    """The booking that was on its way for so long."""
    async with kit.database.connection() as db:
        kept = await shipments.get_stored(db, company.id, id)
        opened = await get_carrier(kit, db, company, "instant_carrier")
    assert kept.reference is not None
    await opened.carrier.book(opened.connection, build_journey(**SERVICES["gosend"]), kept.reference)
    return kept.reference


async def test_its_number_is_found_out(kit: AppContext, tester: Company, sandbox: httpx.AsyncClient) -> None:
    told = await tell_without_a_number(kit, tester, sandbox)
    reference = await arrive_at_the_carrier(kit, tester, told["id"])
    await move_clock(kit.database, tester.id, 40)
    known = await until_status(sandbox, told["id"], orderNo=...)
    booking = await find_booking(kit, tester, "gosend", reference)
    assert booking is not None
    assert known["orderNo"] == booking.order_no


async def test_it_is_not_cancelled_behind_the_carriers_back(
    kit: AppContext, tester: Company, sandbox: httpx.AsyncClient
) -> None:
    told = await tell_without_a_number(kit, tester, sandbox)
    answer = await cancel(sandbox, told["id"], "Changed my mind")
    assert error_of(answer) == (502, "CARRIER_UNAVAILABLE"), "it cannot say yet which booking that is"
    reference = await arrive_at_the_carrier(kit, tester, told["id"])
    again = await cancel(sandbox, told["id"])
    assert (again.status_code, again.json()["data"]["shippingStatus"]) == (200, "cancelled")
    booking = await find_booking(kit, tester, "gosend", reference)
    assert booking is not None
    assert booking.state.state == "cancelled"


@pytest.mark.parametrize(("state", "needs_action", "by"), [("no_driver", True, None), ("cancelled", False, "carrier")])
async def test_what_was_given_up_before_it_was_found_is_shown_so(
    kit: AppContext, tester: Company, sandbox: httpx.AsyncClient, state: str, needs_action: bool, by: str | None
) -> None:
    """The answer was lost, and so were all callbacks."""
    made = await create(sandbox, "instant_carrier", sim="booking_timeout", autoBook=True)
    reference = (await bookings.book(kit, tester, made["id"])).reference
    assert reference is not None
    async with kit.database.transaction() as tx:
        await advance(kit, tx, tester.id, "gosend", reference, state)
        await tx.execute("DELETE FROM sandbox_callbacks WHERE company_id = $1", tester.id)
    await move_clock(kit.database, tester.id, 10)
    found = await until_status(sandbox, made["id"], state)
    assert (found["needsAction"], found["cancelledBy"], bool(found["problem"])) == (needs_action, by, needs_action)
    assert found["orderNo"]
