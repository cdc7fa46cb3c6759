"""Adapters and simulators over real HTTP: each operation of each carrier, and every scenario."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sapa.access.actions import move_clock
from sapa.company import Company
from sapa.kit import Kit
from sapa.outbound.client import Unclear
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.advance import advance
from sapa.sandbox.carriers.bookings import Booking
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.dash.wire import CITIES
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    Cancelled,
    CancelPending,
    CancelRefused,
    CannotTell,
    CarrierAway,
    CarrierEvent,
    Coordinates,
    NotFound,
    Rejected,
    Shipped,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.shipping.connections import Opened
from tests.shipping.carriers.journeys import (
    SERVICES,
    book_simulated,
    build_journey,
    build_shipped,
    new_reference,
    open_simulated,
)

ADAPTERS = list(CARRIERS)
INSTANT = ["gosend", "dash"]
EXPRESS = ["kiriminaja", "biteship"]


async def find_booking(kit: Kit, company: Company, adapter: str, reference: str) -> Booking | None:
    async with kit.database.connection() as db:
        return await bookings.find(db, company.id, adapter, reference)


async def move(kit: Kit, company: Company, adapter: str, reference: str, to: str | None = None) -> Booking:
    async with kit.database.transaction() as tx:
        return await advance(kit, tx, company.id, adapter, reference, to)


async def track(opened: Opened, shipped: Shipped) -> list[CarrierEvent]:
    return list((await opened.carrier.track(opened.connection, shipped)).events)


async def get_shipped(opened: Opened, reference: str, booked: Booked) -> Shipped:
    """With its awb, which an express parcel has a moment later."""
    shipped = build_shipped(reference, booked)
    for _ in range(40):
        awb = next((event.awb for event in await track(opened, shipped) if event.awb), None)
        if awb or opened.carrier.name == "gosend":
            return msgspec.structs.replace(shipped, awb=awb)
        await asyncio.sleep(0.05)
    raise AssertionError("there is no awb within two seconds")


def read_posting(kit: Kit, opened: Opened, booking: Booking, state: str) -> list[CarrierEvent]:
    """The callback of a step as the adapter reads it."""
    step = next(step for step in booking.steps if step.state == state)
    posting = SIMULATORS[booking.adapter].build_posting(kit, booking, step)
    assert posting is not None
    headers = {name.lower(): value for name, value in posting.headers.items()}
    return list(opened.carrier.read_callback(opened.connection.credentials, headers, posting.body))


def test_every_carrier_has_a_simulator() -> None:
    assert set(SIMULATORS) == set(CARRIERS)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_an_account_with_a_simulator_works_from_the_start(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    await opened.carrier.verify(opened.connection)
    assert opened.connection.address.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_wrong_credential_is_told_as_such(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    wrong = dict.fromkeys(opened.connection.credentials, "sbx_1_" + "0" * 32)
    connection, carrier = msgspec.structs.replace(opened.connection, credentials=wrong), opened.carrier
    shipped = Shipped("SP1", "SBX-1", "SBX1", None, None, False)
    with pytest.raises(BadCredentials):
        await carrier.verify(connection)
    with pytest.raises(BadCredentials):
        await carrier.quote(connection, build_journey(pickup_city="3171"))
    with pytest.raises(BadCredentials):
        await carrier.track(connection, shipped)
    with pytest.raises(BadCredentials):
        await carrier.cancel(connection, shipped, "A mistake")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_wrong_credential_books_nothing(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    wrong = dict.fromkeys(opened.connection.credentials, "sbx_1_" + "0" * 32)
    connection = msgspec.structs.replace(opened.connection, credentials=wrong)
    journey = build_journey(**SERVICES[adapter])
    outcome = await opened.carrier.book(connection, journey, new_reference())
    assert isinstance(outcome, Rejected)
    assert outcome.code == "BAD_CREDENTIALS"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_another_companys_account_sees_nothing_of_a_booking(
    kit: Kit, tester: Company, adapter: str, owner: Company
) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, _ = await book_simulated(opened, adapter)
    assert await find_booking(kit, tester, adapter, reference)
    async with kit.database.connection() as db:
        assert await bookings.FIND.find(db, owner.id, adapter, reference) is None


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_quote_has_prices(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    quote = await opened.carrier.quote(opened.connection, build_journey(pickup_city="3171", insurance=True))
    assert len(quote.offers) >= 2
    assert not quote.notes
    for offer in quote.offers:
        assert offer.price > 0
        assert (offer.currency, bool(offer.service_code), bool(offer.estimate)) == ("IDR", True, True)
        assert offer.service_type in opened.carrier.service_types
    assert await opened.carrier.quote(opened.connection, build_journey(pickup_city="3171", insurance=True)) == quote


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_what_was_offered_can_be_booked_by_its_code_and_by_its_name(
    kit: Kit, tester: Company, adapter: str
) -> None:
    opened = await open_simulated(kit, tester, adapter)
    quote = await opened.carrier.quote(opened.connection, build_journey(pickup_city="3171"))
    for offer in quote.offers[:2]:
        for said in ({"service_code": offer.service_code, "fee": offer.price}, {"service_name": offer.service_name}):
            journey = build_journey(pickup_city="3171", **said)
            booked = await opened.carrier.book(opened.connection, journey, new_reference())
            assert isinstance(booked, Booked), booked
            assert booked.order_no


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_service_that_is_not_offered_is_refused_with_those_that_are(
    kit: Kit, tester: Company, adapter: str
) -> None:
    opened = await open_simulated(kit, tester, adapter)
    journey = build_journey(service_name="Rocket", pickup_city="3171")
    outcome = await opened.carrier.book(opened.connection, journey, new_reference())
    assert isinstance(outcome, Rejected)
    assert outcome.code == "SERVICE_NOT_OFFERED"
    assert any(name in outcome.reason for name in ("Reguler", "Instant"))


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_reference_is_booked_once(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    again = await opened.carrier.book(opened.connection, build_journey(**SERVICES[adapter]), reference)
    if adapter == "biteship":
        assert isinstance(again, Booked)
        assert again.order_no == booked.order_no
    else:
        assert isinstance(again, Rejected)
    kept = await find_booking(kit, tester, adapter, reference)
    assert kept is not None
    assert kept.requests == 2
    async with kit.database.connection() as db:
        assert len(await bookings.list_bookings(db, tester.id)) == 1


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_way_to_delivered(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    shipped = await get_shipped(opened, reference, booked)
    seen = [booked.status]
    while (booking := await find_booking(kit, tester, adapter, reference)) and booking.state.state != "delivered":
        booking = await move(kit, tester, adapter, reference)
        told = read_posting(kit, opened, booking, booking.state.state)
        tracked = (await track(opened, shipped))[-1]
        assert [event.status for event in told] == [tracked.status]
        assert told[0].order_no in {None, booked.order_no}
        assert reference in {told[0].reference, tracked.reference}
        seen.append(str(tracked.status))
    ways = {
        "instant": ["finding_driver", "driver_assigned", "picking_up", "picked_up", "out_for_delivery", "delivered"],
        "kiriminaja": ["confirmed", "picked_up", "in_transit", "delivered"],
        "biteship": ["confirmed", "picked_up", "out_for_delivery", "delivered"],
    }
    assert seen == ways["instant" if adapter in INSTANT else adapter]
    last = (await track(opened, shipped))[-1]
    if adapter in INSTANT:
        assert last.driver is not None
        assert last.driver.name
        assert last.receiver == "Ayu Lestari"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_events_come_in_order_and_carry_the_companys_time(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    booking = await move(kit, tester, adapter, reference, "delivered")
    instants = [step.at for step in booking.steps]
    assert instants == sorted(instants)
    assert instants[-1] <= booking.now
    events = await track(opened, build_shipped(reference, booked))
    assert [event.occurred_at for event in events] == sorted(event.occurred_at for event in events)
    assert abs((events[-1].occurred_at - booking.now).total_seconds()) <= 1


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_companys_clock_brings_a_booking_on(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    async with kit.database.transaction() as tx:
        await move_clock(tx, tester.id, timedelta(seconds=60 if adapter in INSTANT else 600))
    events = await track(opened, build_shipped(reference, booked))
    assert events[-1].status == "delivered"
    booking = await find_booking(kit, tester, adapter, reference)
    assert booking is not None
    assert abs((events[-1].occurred_at - booking.steps[-1].at).total_seconds()) <= 1


@pytest.mark.parametrize("adapter", EXPRESS)
async def test_an_express_parcel_has_its_awb_within_two_seconds(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    assert booked.awb is None
    assert (await get_shipped(opened, reference, booked)).awb


async def test_an_awb_may_be_late(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "kiriminaja")
    reference, booked = await book_simulated(opened, "kiriminaja", "#sim:awb_late")
    await asyncio.sleep(0.7)
    assert not [event for event in await track(opened, build_shipped(reference, booked)) if event.awb]
    await move(kit, tester, "kiriminaja", reference)
    assert [event for event in await track(opened, build_shipped(reference, booked)) if event.awb]


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_cancelled_before_the_pick_up(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    shipped = await get_shipped(opened, reference, booked)
    for _ in range(2):
        assert await opened.carrier.cancel(opened.connection, shipped, "A mistake") == Cancelled()
    assert (await track(opened, shipped))[-1].status == "cancelled"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_not_cancelled_after_the_pick_up(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    shipped = await get_shipped(opened, reference, booked)
    await move(kit, tester, adapter, reference, "picked_up")
    outcome = await opened.carrier.cancel(opened.connection, shipped, "Too late")
    assert isinstance(outcome, CancelRefused)
    assert outcome.reason


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_cancellation_may_be_refused(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter, "please #sim:cancel_refused")
    shipped = await get_shipped(opened, reference, booked)
    outcome = await opened.carrier.cancel(opened.connection, shipped, "Please")
    assert isinstance(outcome, CancelRefused)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_slow_cancellation_is_never_called_done(kit: Kit, tester: Company, adapter: str) -> None:
    """It is pending where the carrier has a word for that, and unclear elsewhere; after a while it is done."""
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter, "#sim:cancel_slow")
    shipped = await get_shipped(opened, reference, booked)
    if adapter == "kiriminaja":
        for _ in range(2):
            assert await opened.carrier.cancel(opened.connection, shipped, "A mistake") == CancelPending()
    else:
        with pytest.raises(CarrierAway):
            await opened.carrier.cancel(opened.connection, shipped, "A mistake")
    await move(kit, tester, adapter, reference)
    assert (await track(opened, shipped))[-1].status == "cancelled"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_booking_that_the_carrier_refuses(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, journey = new_reference(), build_journey("#sim:booking_rejected", **SERVICES[adapter])
    outcome = await opened.carrier.book(opened.connection, journey, reference)
    assert isinstance(outcome, Rejected)
    assert outcome.reason
    assert await find_booking(kit, tester, adapter, reference) is None


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_senders_notes_may_ask_for_trouble_too(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    journey = build_journey("Lantai 2", **SERVICES[adapter])
    origin = msgspec.structs.replace(journey.origin, notes="Gudang belakang #sim:booking_rejected")
    journey = msgspec.structs.replace(journey, origin=origin)
    outcome = await opened.carrier.book(opened.connection, journey, new_reference())
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("exists", [True, False])
async def test_a_lost_answer_is_unclear_and_looked_for(kit: Kit, tester: Company, adapter: str, exists: bool) -> None:
    opened = await open_simulated(kit, tester, adapter)
    scenario = "#sim:booking_timeout" if exists else "#sim:booking_timeout_not_booked"
    reference, journey = new_reference(), build_journey(scenario, **SERVICES[adapter])
    with pytest.raises(Unclear):
        await opened.carrier.book(opened.connection, journey, reference)
    assert (await find_booking(kit, tester, adapter, reference) is not None) is exists
    found = await opened.carrier.find(opened.connection, reference, None)
    if not opened.carrier.finds_by_reference:
        assert isinstance(found, CannotTell)
    else:
        assert isinstance(found, Booked if exists else NotFound)


@pytest.mark.parametrize(
    ("scenario", "ends"),
    [
        ("no_driver", {"gosend": "no_driver", "dash": "rejected"}),
        ("driver_cancels", {"gosend": "cancelled", "dash": "cancelled"}),
        ("reassign", {"gosend": "delivered", "dash": "delivered"}),
        ("delivery_failed", {"kiriminaja": "delivery_failed", "gosend": "on_hold", "dash": "returning",
                             "biteship": "on_hold"}),
        ("returned", {"kiriminaja": "returned", "gosend": "returning", "dash": "returned", "biteship": "returned"}),
        ("lost", {"kiriminaja": "lost", "gosend": "on_hold", "dash": "returning", "biteship": "lost"}),
    ],
)  # fmt: skip
async def test_how_a_scenario_ends(kit: Kit, tester: Company, scenario: str, ends: dict[str, str]) -> None:
    for adapter, status in ends.items():
        opened = await open_simulated(kit, tester, adapter)
        reference, booked = await book_simulated(opened, adapter, f"#sim:{scenario}")
        shipped = build_shipped(reference, booked)
        booking = await find_booking(kit, tester, adapter, reference)
        assert booking is not None
        for step in booking.steps[1:]:
            if step.state != "labelled":
                booking = await move(kit, tester, adapter, reference)
        shipped = msgspec.structs.replace(shipped, was_picked_up=any(s.state == "picked_up" for s in booking.steps))
        assert (await track(opened, shipped))[-1].status == status, adapter
        if (adapter, scenario) == ("gosend", "returned"):
            status = "returned"  # a photo tells it, and only callbacks carry photos
        if SIMULATORS[adapter].build_posting(kit, booking, booking.state):
            assert read_posting(kit, opened, booking, booking.state.state)[0].status == status, adapter


@pytest.mark.parametrize("adapter", INSTANT)
async def test_another_driver_comes(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, _ = await book_simulated(opened, adapter, "#sim:reassign")
    booking = await find_booking(kit, tester, adapter, reference)
    assert booking is not None
    posted = [SIMULATORS[adapter].build_posting(kit, booking, step) for step in booking.steps]
    events = [
        event
        for posting in posted
        if posting
        for event in opened.carrier.read_callback(opened.connection.credentials, posting.headers, posting.body)
    ]
    drivers = [event.driver.name for event in events if event.status == "driver_assigned" and event.driver]
    assert len(set(drivers)) == 2
    assert len({event.dedupe_key for event in events}) == len(events)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_carrier_that_is_down_answers_nothing_of_a_booking(kit: Kit, tester: Company, adapter: str) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter, "#sim:carrier_down")
    shipped = msgspec.structs.replace(build_shipped(reference, booked), awb=booked.awb or reference)
    with pytest.raises(CarrierAway):
        await opened.carrier.track(opened.connection, shipped)
    with pytest.raises(CarrierAway):
        await opened.carrier.cancel(opened.connection, shipped, "A mistake")


@pytest.mark.parametrize("value", [503_503, 504_504])
async def test_a_quote_that_fails_or_hangs(kit: Kit, tester: Company, value: int) -> None:
    journey = build_journey(goods={"item_value": value}, pickup_city="3171")
    trap = msgspec.structs.replace(journey.destination, coordinates=Coordinates(-6 - value / 1_000_000, 106.8493))
    trapped = msgspec.structs.replace(journey, destination=trap)

    async def quote(opened: Opened) -> None:
        is_told_no_value = opened.carrier.name == "gosend"
        await opened.carrier.quote(opened.connection, trapped if is_told_no_value else journey)

    accounts = {adapter: await open_simulated(kit, tester, adapter) for adapter in ADAPTERS}
    outcomes = await asyncio.gather(*(quote(opened) for opened in accounts.values()), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [CarrierAway] * len(ADAPTERS)


async def count_waiting(kit: Kit, reference: str, statement: str = "count(*)") -> Any:
    async with kit.database.connection() as db:
        return await db.fetchval(
            f"SELECT {statement} FROM sandbox_callbacks WHERE headers->>'x-sandbox-booking' LIKE '%' || $1", reference
        )


@pytest.mark.parametrize("adapter", INSTANT)
async def test_callbacks_wait_for_their_time_and_follow_a_change_of_course(
    kit: Kit, tester: Company, adapter: str
) -> None:
    opened = await open_simulated(kit, tester, adapter)
    reference, booked = await book_simulated(opened, adapter)
    assert await count_waiting(kit, reference) == 5
    await opened.carrier.cancel(opened.connection, build_shipped(reference, booked), "A mistake")
    assert await count_waiting(kit, reference) <= 1


async def test_callbacks_may_come_twice(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "gosend")
    reference, _ = await book_simulated(opened, "gosend", "#sim:webhook_duplicate")
    assert await count_waiting(kit, reference) == 10
    assert await count_waiting(kit, reference, "count(DISTINCT body)") == 5


async def test_callbacks_may_come_in_the_wrong_order(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "gosend")
    reference, _ = await book_simulated(opened, "gosend", "#sim:webhook_out_of_order")
    query = "array_agg(convert_from(body, 'UTF8')::json->>'status' ORDER BY due_at, id)"
    assert await count_waiting(kit, reference, query) == [
        "out_for_pickup", "allocated", "out_for_delivery", "picked", "delivered",
    ]  # fmt: skip


async def test_a_state_that_is_not_on_the_way_can_be_asked_for(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "kiriminaja")
    reference, booked = await book_simulated(opened, "kiriminaja")
    await move(kit, tester, "kiriminaja", reference, "lost")
    assert (await track(opened, build_shipped(reference, booked)))[-1].status == "lost"


@pytest.mark.parametrize(("to", "words"), [("flying", "must be one of"), (None, "nothing follows")])
async def test_a_booking_cannot_be_moved_just_anywhere(kit: Kit, tester: Company, to: str | None, words: str) -> None:
    opened = await open_simulated(kit, tester, "gosend")
    reference, _ = await book_simulated(opened, "gosend")
    await move(kit, tester, "gosend", reference, "delivered")
    with pytest.raises(Exception, match=words):
        await move(kit, tester, "gosend", reference, to)


async def test_the_cities_of_the_electric_couriers_are_those_of_their_simulator(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "dash")
    for code, name in CITIES.items():
        for said in (str(code), name, name.removeprefix("Kota ")):
            quote = await opened.carrier.quote(opened.connection, build_journey(pickup_city=said))
            assert quote.offers, said
    outside = await opened.carrier.quote(opened.connection, build_journey(pickup_city="Sleman"))
    assert [note.code for note in outside.notes] == ["pickup_city_not_served"]


async def test_the_aggregators_dictionary_leads_down_to_the_last_level(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "kiriminaja")
    parent = None
    for level in opened.carrier.levels:
        areas = await opened.carrier.list_areas(opened.connection, level, parent, None)
        assert areas, level
        assert all(str(area.parent_id or "") == (parent or "") for area in areas)
        parent = str(areas[0].id)


async def test_biteship_searches_for_districts(kit: Kit, tester: Company) -> None:
    opened = await open_simulated(kit, tester, "biteship")
    areas = await opened.carrier.list_areas(opened.connection, "districts", None, "Tebet")
    assert [area.zip for area in areas] == ["12810"]
    assert not await opened.carrier.list_areas(opened.connection, "districts", None, None)
