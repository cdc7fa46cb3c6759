"""A request that every carrier accepts, accounts with the simulators, and common steps with them."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import msgspec

from sapa.context import AppContext
from sapa.sandbox.carriers import bookings
from sapa.sandbox.carriers.advance import advance
from sapa.sandbox.carriers.bookings import Booking
from sapa.sandbox.carriers.simulators import SIMULATORS
from sapa.shipping.carriers.interface import (
    Booked,
    BookedShipment,
    CarrierEvent,
    Coordinates,
    Parcel,
    ServiceRequest,
    ShipmentRequest,
    ShippingPoint,
)
from sapa.shipping.carriers.registry import CARRIERS, list_adapters
from sapa.shipping.connections import actions as connections
from sapa.shipping.connections.types import ConnectedCarrier
from sapa.values.company import Company

ADAPTERS = list(CARRIERS)
INSTANT = [name for name, simulator in SIMULATORS.items() if simulator.kind == "instant"]
EXPRESS = [name for name in ADAPTERS if name not in INSTANT]
PROVIDERS = {name: carrier.provider for name, carrier in CARRIERS.items()}
SERVICES: dict[str, dict[str, Any]] = {
    "kiriminaja": {"service_name": "JNE Reguler"},
    "gosend": {"service_name": "GoSend Instant"},
    "dash": {"service_name": "Dash Same Day", "pickup_city": "3171"},
    "biteship": {"service_name": "JNE Reguler"},
}


async def connect_simulated(context: AppContext, company: Company, adapter: str) -> ConnectedCarrier:
    """The company's account with a carrier's simulator; one that is not its provider's default is connected first."""
    provider = PROVIDERS[adapter]
    if CARRIERS[adapter] is not list_adapters(provider)[0]:
        await connections.connect(context, company, provider, adapter, {})
    async with context.database.connection() as db:
        return await connections.get_carrier(context, db, company, provider)


def build_request(notes: str | None = None, parcel: dict[str, Any] | None = None, **service: Any) -> ShipmentRequest:
    """From Menteng to Tebet."""
    return ShipmentRequest(
        origin=ShippingPoint(
            name="Toko Kopi",
            phone="+628123456789",
            address="Jl. Cikini Raya No. 12",
            city="Kota Jakarta Pusat",
            province="DKI Jakarta",
            zip="10330",
            kecamatan="Menteng",
            kecamatan_id=317106,
            kelurahan="Cikini",
            kelurahan_id=3171061003,
            coordinates=Coordinates(-6.1963, 106.8346),
        ),
        destination=ShippingPoint(
            name="Ayu Lestari",
            phone="0812-9999-8888",
            address="Jl. Tebet Barat Dalam No. 7",
            notes=notes,
            city="Kota Jakarta Selatan",
            province="DKI Jakarta",
            zip="12810",
            kecamatan="Tebet",
            kecamatan_id=317401,
            kelurahan="Tebet Barat",
            kelurahan_id=3174011001,
            coordinates=Coordinates(-6.2297, 106.8493),
        ),
        parcel=msgspec.structs.replace(
            Parcel(
                weight=Decimal("1.2"),
                length=Decimal(20),
                width=Decimal(15),
                height=Decimal(10),
                item_name="Kopi Gayo",
                item_value=Decimal(150_000),
                item_qty=2,
            ),
            **(parcel or {}),
        ),
        service=ServiceRequest(**service),
    )


def build_scheduled(**service: Any) -> ShipmentRequest:
    """Picked up at ten in the morning, Jakarta's time."""
    return build_request(pickup_schedule=datetime(2026, 3, 2, 3, 0, tzinfo=UTC), **service)


def new_reference() -> str:
    return f"SP{uuid4().hex[:16].upper()}"


def build_booked(reference: str, booked: Booked, was_picked_up: bool = False) -> BookedShipment:
    return BookedShipment(reference, booked.order_no, booked.awb, booked.booking_id, None, was_picked_up)


async def book_simulated(connected: ConnectedCarrier, adapter: str, notes: str | None = None) -> tuple[str, Booked]:
    reference = new_reference()
    booked = await connected.carrier.book(connected.connection, build_request(notes, **SERVICES[adapter]), reference)
    assert isinstance(booked, Booked), booked
    return reference, booked


async def find_booking(context: AppContext, company: Company, adapter: str, reference: str) -> Booking | None:
    async with context.database.connection() as db:
        return await bookings.find(db, company.id, adapter, reference)


async def move(context: AppContext, company: Company, adapter: str, reference: str, to: str | None = None) -> Booking:
    async with context.database.transaction() as tx:
        return await advance(context, tx, company.id, adapter, reference, to)


async def track(connected: ConnectedCarrier, shipment: BookedShipment) -> list[CarrierEvent]:
    return list((await connected.carrier.track(connected.connection, shipment)).events)


async def wait_for_awb(connected: ConnectedCarrier, reference: str, booked: Booked) -> BookedShipment:
    """Waits for the awb, which an express parcel gets a moment later. An instant shipment may have none."""
    shipment = build_booked(reference, booked)
    for _ in range(40):
        awb = next((event.awb for event in await track(connected, shipment) if event.awb), None)
        if awb or connected.carrier.name in INSTANT:
            return msgspec.structs.replace(shipment, awb=awb)
        await asyncio.sleep(0.05)
    raise AssertionError("there is no awb within two seconds")


def read_posting(context: AppContext, connected: ConnectedCarrier, booking: Booking, state: str) -> list[CarrierEvent]:
    """The callback of a step as the adapter reads it."""
    step = next(step for step in booking.steps if step.state == state)
    posting = SIMULATORS[booking.adapter].build_posting(context, booking, step)
    assert posting is not None
    headers = {name.lower(): value for name, value in posting.headers.items()}
    return list(connected.carrier.read_callback(connected.connection.credentials, headers, posting.body))
