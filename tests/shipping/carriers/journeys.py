"""A journey that every carrier likes, and accounts with their simulators."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import msgspec

from sapa.company import Company
from sapa.kit import Kit
from sapa.shipping import connections
from sapa.shipping.carriers.interface import Booked, Coordinates, Goods, Journey, Place, Shipped, Wish
from sapa.shipping.connections import Opened

PROVIDERS = {
    "kiriminaja": "aggregator_carrier",
    "gosend": "instant_carrier",
    "dash": "ev_courier",
    "biteship": "aggregator_carrier",
}
SERVICES: dict[str, dict[str, Any]] = {
    "kiriminaja": {"service_name": "JNE Reguler"},
    "gosend": {"service_name": "GoSend Instant"},
    "dash": {"service_name": "Dash Same Day", "pickup_city": "3171"},
    "biteship": {"service_name": "JNE Reguler"},
}


async def open_simulated(kit: Kit, company: Company, adapter: str) -> Opened:
    """The company's account with a carrier's simulator; Biteship has to be connected for it."""
    provider = PROVIDERS[adapter]
    if adapter == "biteship":
        await connections.connect(kit, company, provider, adapter, {})
    async with kit.database.connection() as db:
        return await connections.get_carrier(kit, db, company, provider)


def build_journey(notes: str | None = None, goods: dict[str, Any] | None = None, **wish: Any) -> Journey:
    """From Menteng to Tebet."""
    return Journey(
        origin=Place(
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
        destination=Place(
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
        goods=msgspec.structs.replace(
            Goods(
                weight=Decimal("1.2"),
                length=Decimal(20),
                width=Decimal(15),
                height=Decimal(10),
                item_name="Kopi Gayo",
                item_value=Decimal(150_000),
                item_qty=2,
            ),
            **(goods or {}),
        ),
        wish=Wish(**wish),
    )


def build_scheduled(**wish: Any) -> Journey:
    """To be fetched at ten in the morning, Jakarta's time."""
    return build_journey(pickup_schedule=datetime(2026, 3, 2, 3, 0, tzinfo=UTC), **wish)


def new_reference() -> str:
    return f"SP{uuid4().hex[:16].upper()}"


def build_shipped(reference: str, booked: Booked, was_picked_up: bool = False) -> Shipped:
    return Shipped(reference, booked.order_no, booked.awb, booked.booking_id, None, was_picked_up)


async def book_simulated(opened: Opened, adapter: str, notes: str | None = None) -> tuple[str, Booked]:
    reference = new_reference()
    booked = await opened.carrier.book(opened.connection, build_journey(notes, **SERVICES[adapter]), reference)
    assert isinstance(booked, Booked), booked
    return reference, booked
