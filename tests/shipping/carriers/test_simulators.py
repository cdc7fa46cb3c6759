"""Adapters and simulators over HTTP: each operation of each carrier in the normal case."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from sapa.access.actions import move_clock
from sapa.context import AppContext
from sapa.sandbox.carriers import bookings, queries
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.dash.wire import CITIES
from sapa.shipping.carriers.interface import (
    BadCredentials,
    Booked,
    BookedShipment,
    Rejected,
)
from sapa.shipping.carriers.registry import CARRIERS
from sapa.values.company import Company
from tests.shipping.carriers.simulated import (
    ADAPTERS,
    EXPRESS,
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


def test_every_carrier_has_a_simulator() -> None:
    assert set(SIMULATORS) == set(CARRIERS)


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_an_account_with_a_simulator_works_from_the_start(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    await connected.carrier.verify(connected.connection)
    assert connected.connection.address.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_wrong_credentials_are_reported_as_such(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    wrong = dict.fromkeys(connected.connection.credentials, "sbx_1_" + "0" * 32)
    connection, carrier = msgspec.structs.replace(connected.connection, credentials=wrong), connected.carrier
    shipment = BookedShipment("SP1", "SBX-1", "SBX1", None, None, False)
    with pytest.raises(BadCredentials):
        await carrier.verify(connection)
    with pytest.raises(BadCredentials):
        await carrier.quote(connection, build_request(pickup_city="3171"))
    with pytest.raises(BadCredentials):
        await carrier.track(connection, shipment)
    with pytest.raises(BadCredentials):
        await carrier.cancel(connection, shipment, "A mistake")


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_wrong_credential_books_nothing(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    wrong = dict.fromkeys(connected.connection.credentials, "sbx_1_" + "0" * 32)
    connection = msgspec.structs.replace(connected.connection, credentials=wrong)
    shipment = build_request(**SERVICES[adapter])
    outcome = await connected.carrier.book(connection, shipment, new_reference())
    assert isinstance(outcome, Rejected)
    assert outcome.code == "BAD_CREDENTIALS"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_another_companys_account_sees_nothing_of_a_booking(
    context: AppContext, tester: Company, adapter: str, owner: Company
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, _ = await book_simulated(connected, adapter)
    assert await find_booking(context, tester, adapter, reference)
    async with context.database.connection() as db:
        assert await queries.find_booking(db, owner.id, adapter, reference) is None


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_quote_has_prices(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    quote = await connected.carrier.quote(connected.connection, build_request(pickup_city="3171", insurance=True))
    assert len(quote.offers) >= 2
    assert not quote.notes
    for offer in quote.offers:
        assert offer.price > 0
        assert (offer.currency, bool(offer.service_code), bool(offer.estimate)) == ("IDR", True, True)
        assert offer.service_type in connected.carrier.service_types
    assert (
        await connected.carrier.quote(connected.connection, build_request(pickup_city="3171", insurance=True)) == quote
    )


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_what_was_offered_can_be_booked_by_its_code_and_by_its_name(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    quote = await connected.carrier.quote(connected.connection, build_request(pickup_city="3171"))
    for offer in quote.offers[:2]:
        for city in ({"service_code": offer.service_code, "fee": offer.price}, {"service_name": offer.service_name}):
            shipment = build_request(pickup_city="3171", **city)
            booked = await connected.carrier.book(connected.connection, shipment, new_reference())
            assert isinstance(booked, Booked), booked
            assert booked.order_no


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_service_that_is_not_offered_is_refused_with_those_that_are(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    shipment = build_request(service_name="Rocket", pickup_city="3171")
    outcome = await connected.carrier.book(connected.connection, shipment, new_reference())
    assert isinstance(outcome, Rejected)
    assert outcome.code == "SERVICE_NOT_OFFERED"
    assert any(name in outcome.reason for name in ("Reguler", "Instant"))


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_a_reference_is_booked_once(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    again = await connected.carrier.book(connected.connection, build_request(**SERVICES[adapter]), reference)
    if adapter == "biteship":
        assert isinstance(again, Booked)
        assert again.order_no == booked.order_no
    else:
        assert isinstance(again, Rejected)
    stored = await find_booking(context, tester, adapter, reference)
    assert stored is not None
    assert stored.requests == 2
    async with context.database.connection() as db:
        assert len(await bookings.list_bookings(db, tester.id)) == 1


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_way_to_delivered(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    shipment = await wait_for_awb(connected, reference, booked)
    seen = [booked.status]
    while (booking := await find_booking(context, tester, adapter, reference)) and booking.state.state != "delivered":
        booking = await move(context, tester, adapter, reference)
        posted = read_posting(context, connected, booking, booking.state.state)
        tracked = (await track(connected, shipment))[-1]
        assert [event.status for event in posted] == [tracked.status]
        assert posted[0].order_no in {None, booked.order_no}
        assert reference in {posted[0].reference, tracked.reference}
        seen.append(str(tracked.status))
    ways = {
        "instant": ["finding_driver", "driver_assigned", "picking_up", "picked_up", "out_for_delivery", "delivered"],
        "kiriminaja": ["confirmed", "picked_up", "in_transit", "delivered"],
        "biteship": ["confirmed", "picked_up", "out_for_delivery", "delivered"],
    }
    assert seen == ways["instant" if adapter in INSTANT else adapter]
    last = (await track(connected, shipment))[-1]
    if adapter in INSTANT:
        assert last.driver is not None
        assert last.driver.name
        assert last.receiver == "Ayu Lestari"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_events_come_in_order_and_carry_the_companys_time(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    booking = await move(context, tester, adapter, reference, "delivered")
    instants = [step.at for step in booking.steps]
    assert instants == sorted(instants)
    assert instants[-1] <= booking.now
    events = await track(connected, build_booked(reference, booked))
    assert [event.occurred_at for event in events] == sorted(event.occurred_at for event in events)
    assert abs((events[-1].occurred_at - booking.now).total_seconds()) <= 1


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_the_companys_clock_brings_a_booking_on(context: AppContext, tester: Company, adapter: str) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    async with context.database.transaction() as tx:
        await move_clock(tx, tester.id, timedelta(seconds=60 if adapter in INSTANT else 600))
    events = await track(connected, build_booked(reference, booked))
    assert events[-1].status == "delivered"
    booking = await find_booking(context, tester, adapter, reference)
    assert booking is not None
    assert abs((events[-1].occurred_at - booking.steps[-1].at).total_seconds()) <= 1


@pytest.mark.parametrize("adapter", EXPRESS)
async def test_an_express_parcel_has_its_awb_within_two_seconds(
    context: AppContext, tester: Company, adapter: str
) -> None:
    connected = await connect_simulated(context, tester, adapter)
    reference, booked = await book_simulated(connected, adapter)
    assert booked.awb is None
    assert (await wait_for_awb(connected, reference, booked)).awb


async def test_an_awb_may_be_late(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "kiriminaja")
    reference, booked = await book_simulated(connected, "kiriminaja", "#sim:awb_late")
    await asyncio.sleep(0.7)
    assert not [event for event in await track(connected, build_booked(reference, booked)) if event.awb]
    await move(context, tester, "kiriminaja", reference)
    assert [event for event in await track(connected, build_booked(reference, booked)) if event.awb]


async def test_the_cities_of_the_electric_couriers_are_those_of_their_simulator(
    context: AppContext, tester: Company
) -> None:
    connected = await connect_simulated(context, tester, "dash")
    for code, name in CITIES.items():
        for city in (str(code), name, name.removeprefix("Kota ")):
            quote = await connected.carrier.quote(connected.connection, build_request(pickup_city=city))
            assert quote.offers, city
    outside = await connected.carrier.quote(connected.connection, build_request(pickup_city="Sleman"))
    assert [note.code for note in outside.notes] == ["pickup_city_not_served"]


async def test_the_aggregators_dictionary_leads_down_to_the_last_level(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "kiriminaja")
    parent = None
    for level in connected.carrier.levels:
        areas = await connected.carrier.list_areas(connected.connection, level, parent, None)
        assert areas, level
        assert all(str(area.parent_id or "") == (parent or "") for area in areas)
        parent = str(areas[0].id)


async def test_biteship_searches_for_districts(context: AppContext, tester: Company) -> None:
    connected = await connect_simulated(context, tester, "biteship")
    areas = await connected.carrier.list_areas(connected.connection, "districts", None, "Tebet")
    assert [area.zip for area in areas] == ["12810"]
    assert not await connected.carrier.list_areas(connected.connection, "districts", None, None)
