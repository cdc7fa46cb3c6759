"""The simulators' scenarios over HTTP: cancellations, failures and callbacks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from sapa.context import AppContext
from sapa.outbound.client import Unclear
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.interface import (
    Booked,
    BookingNotFound,
    Cancelled,
    CancelPending,
    CancelRefused,
    CannotTell,
    CarrierAway,
    Coordinates,
    Rejected,
)
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.values.company import Company
from tests.shipping.carriers.simulated import (
    ADAPTERS,
    INSTANT,
    SERVICES,
    book_simulated,
    build_booked,
    build_request,
    connect_simulated,
    find_booking,
    move,
    new_reference,
    read_posting,
    track,
    wait_for_awb,
)

ENDS: Mapping[str, dict[str, str]] = {
    "kiriminaja": {"delivery_failed": "delivery_failed", "returned": "returned", "lost": "lost"},
    "gosend": {"no_driver": "no_driver", "driver_cancels": "cancelled", "reassign": "delivered",
               "delivery_failed": "on_hold", "returned": "returning", "lost": "on_hold"},
    "dash": {"no_driver": "rejected", "driver_cancels": "cancelled", "reassign": "delivered",
             "delivery_failed": "returning", "returned": "returned", "lost": "returning"},
    "biteship": {"delivery_failed": "on_hold", "returned": "returned", "lost": "lost"},
}  # fmt: skip
"""The last status of each scenario. Express carriers have no drivers to lose."""


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_cancelled_before_the_pick_up(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    shipment = await wait_for_awb(connected, reference, booked)
    for _ in range(2):
        assert await connected.carrier.cancel(connected.connection, shipment, "A mistake") == Cancelled()
    assert (await track(connected, shipment))[-1].status == "cancelled"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_not_cancelled_after_the_pick_up(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    shipment = await wait_for_awb(connected, reference, booked)
    await move(context, tester, adapter, reference, "picked_up")
    outcome = await connected.carrier.cancel(connected.connection, shipment, "Too late")
    assert isinstance(outcome, CancelRefused)
    assert outcome.reason


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_cancellation_may_be_refused(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter, "please #sim:cancel_refused")
    shipment = await wait_for_awb(connected, reference, booked)
    outcome = await connected.carrier.cancel(connected.connection, shipment, "Please")
    assert isinstance(outcome, CancelRefused)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_slow_cancellation_is_never_called_done(context: AppContext, tester: Company, adapter: str) -> None:
    """It is pending where the carrier has a word for that, and unclear elsewhere; after a while it is done."""
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter, "#sim:cancel_slow")
    shipment = await wait_for_awb(connected, reference, booked)
    if adapter == "kiriminaja":
        for _ in range(2):
            assert await connected.carrier.cancel(connected.connection, shipment, "A mistake") == CancelPending()
    else:
        with pytest.raises(CarrierAway):
            await connected.carrier.cancel(connected.connection, shipment, "A mistake")
    await move(context, tester, adapter, reference)
    assert (await track(connected, shipment))[-1].status == "cancelled"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_booking_that_the_carrier_refuses(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, shipment = new_reference(), build_request("#sim:booking_rejected", **SERVICES[adapter])
    outcome = await connected.carrier.book(connected.connection, shipment, reference)
    assert isinstance(outcome, Rejected)
    assert outcome.reason
    assert await find_booking(context, tester, adapter, reference) is None


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_senders_notes_may_ask_for_trouble_too(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    shipment = build_request("Lantai 2", **SERVICES[adapter])
    origin = msgspec.structs.replace(shipment.origin, notes="Gudang belakang #sim:booking_rejected")
    shipment = msgspec.structs.replace(shipment, origin=origin)
    outcome = await connected.carrier.book(connected.connection, shipment, new_reference())
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("exists", [True, False])
async def test_a_lost_response_is_unclear_and_looked_up(
    context: AppContext, tester: Company, adapter: str, exists: bool
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    scenario = "#sim:booking_timeout" if exists else "#sim:booking_timeout_not_booked"
    reference, shipment = new_reference(), build_request(scenario, **SERVICES[adapter])
    with pytest.raises(Unclear):
        await connected.carrier.book(connected.connection, shipment, reference)
    assert (await find_booking(context, tester, adapter, reference) is not None) is exists
    found = await connected.carrier.find(connected.connection, reference, None)
    if not connected.carrier.finds_by_reference:
        assert isinstance(found, CannotTell)
    else:
        assert isinstance(found, Booked if exists else BookingNotFound)


@pytest.mark.parametrize("scenario", ["no_driver", "driver_cancels", "reassign", "delivery_failed", "returned", "lost"])
async def test_how_a_scenario_ends(context: AppContext, tester: Company, scenario: str) -> None:
    for adapter, status in [(adapter, ends[scenario]) for adapter, ends in ENDS.items() if scenario in ends]:
        connected = await connect_simulated(context, tester, adapter)
        reference, booked = await book_simulated(connected, adapter, f"#sim:{scenario}")
        shipment = build_booked(reference, booked)
        booking = await find_booking(context, tester, adapter, reference)
        assert booking is not None
        for step in booking.steps[1:]:
            if step.state != "labelled":
                booking = await move(context, tester, adapter, reference)
        shipment = msgspec.structs.replace(shipment, was_picked_up=any(s.state == "picked_up" for s in booking.steps))
        assert (await track(connected, shipment))[-1].status == status, adapter
        if (adapter, scenario) == ("gosend", "returned"):
            status = "returned"  # a photo proves it, and only callbacks carry photos
        if SIMULATORS[adapter].build_posting(context, booking, booking.state):
            assert read_posting(context, connected, booking, booking.state.state)[0].status == status, adapter


@pytest.mark.parametrize("adapter", INSTANT)
async def test_another_driver_comes(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, _ = await book_simulated(connected, adapter, "#sim:reassign")
    booking = await find_booking(context, tester, adapter, reference)
    assert booking is not None
    posted = [SIMULATORS[adapter].build_posting(context, booking, step) for step in booking.steps]
    events = [
        event
        for posting in posted
        if posting
        for event in connected.carrier.read_callback(connected.connection.credentials, posting.headers, posting.body)
    ]
    drivers = [event.driver.name for event in events if event.status == "driver_assigned" and event.driver]
    assert len(set(drivers)) == 2
    assert len({event.dedupe_key for event in events}) == len(events)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_carrier_that_is_down_cannot_be_asked_about_a_booking(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter, "#sim:carrier_down")
    shipment = msgspec.structs.replace(build_booked(reference, booked), awb=booked.awb or reference)
    with pytest.raises(CarrierAway):
        await connected.carrier.track(connected.connection, shipment)
    with pytest.raises(CarrierAway):
        await connected.carrier.cancel(connected.connection, shipment, "A mistake")


@pytest.mark.parametrize("value", [503_503, 504_504])
async def test_a_quote_that_fails_or_hangs(context: AppContext, tester: Company, value: int) -> None:
    shipment = build_request(parcel={"item_value": value}, pickup_city="3171")
    trap = msgspec.structs.replace(shipment.destination, coordinates=Coordinates(-6 - value / 1_000_000, 106.8493))
    trapped = msgspec.structs.replace(shipment, destination=trap)

    async def quote(connected: ConnectedCarrier) -> None:
        is_told_no_value = connected.carrier.name == "gosend"
        await connected.carrier.quote(connected.connection, trapped if is_told_no_value else shipment)

    accounts = {adapter: await connect_simulated(context, tester, adapter) for adapter in ADAPTERS}
    outcomes = await asyncio.gather(*(quote(connected) for connected in accounts.values()), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [CarrierAway] * len(ADAPTERS)


async def count_waiting(context: AppContext, reference: str, statement: str = "count(*)") -> Any:
    async with context.database.connection() as db:
        return await db.fetchval(
            f"SELECT {statement} FROM sandbox_callbacks WHERE headers->>'x-sandbox-booking' LIKE '%' || $1", reference
        )


@pytest.mark.parametrize("adapter", INSTANT)
async def test_callbacks_wait_for_their_time_and_follow_a_change_of_course(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    assert await count_waiting(context, reference) == 5
    await connected.carrier.cancel(connected.connection, build_booked(reference, booked), "A mistake")
    assert await count_waiting(context, reference) <= 1


async def test_callbacks_may_come_twice(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "gosend")
    reference, _ = await book_simulated(connected, "gosend", "#sim:webhook_duplicate")
    assert await count_waiting(context, reference) == 10
    assert await count_waiting(context, reference, "count(DISTINCT body)") == 5


async def test_callbacks_may_come_in_the_wrong_order(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "gosend")
    reference, _ = await book_simulated(connected, "gosend", "#sim:webhook_out_of_order")
    query = "array_agg(convert_from(body, 'UTF8')::json->>'status' ORDER BY due_at, id)"
    assert await count_waiting(context, reference, query) == [
        "out_for_pickup", "allocated", "out_for_delivery", "picked", "delivered",
    ]  # fmt: skip


async def test_a_state_that_is_not_on_the_way_can_be_asked_for(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "kiriminaja")
    reference, booked = await book_simulated(connected, "kiriminaja")
    await move(context, tester, "kiriminaja", reference, "lost")
    assert (await track(connected, build_booked(reference, booked)))[-1].status == "lost"


@pytest.mark.parametrize(("to", "words"), [("flying", "must be one of"), (None, "no further state")])
async def test_a_booking_cannot_be_moved_just_anywhere(
    context: AppContext, tester: Company, to: str | None, words: str
) -> None:
    connected = await connect_simulated(context, tester, "gosend")
    reference, _ = await book_simulated(connected, "gosend")
    await move(context, tester, "gosend", reference, "delivered")
    with pytest.raises(Exception, match=words):
        await move(context, tester, "gosend", reference, to)
