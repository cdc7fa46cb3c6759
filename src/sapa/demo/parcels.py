"""The demo shop's parcels: to be sent, on their way or delivered, some paid on delivery, a few late or brought back,
and a statement that lacks a rupiah."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.orders.types import Order, ShippingAddress
from sapa.shipping.settlements.types import SettlementIn, SettlementLineIn
from sapa.shipping.tracking_page.types import TrackingPageSettingsIn
from sapa.shipping.types import PackageIn, PartyIn, ShipmentIn, StoredShipment

COURIERS = ("JNE", "SiCepat", "AnterAja")
SERVICES = (("Reguler", "2-3 days", 3), ("Ekonomi", "3-5 days", 5), ("Besok Sampai", "1-1 days", 1))
SENDER = PartyIn(name="Toko Demo", phone="+6281234567890", address="Jl. Melawai Raya No. 8", city="Jakarta Selatan")
STATEMENT = "DEMO-COD-1"
LOOKS = TrackingPageSettingsIn(display_name="Toko Demo", color="#9a3412")
"""Of the public tracking pages."""

_read_address = msgspec.json.Decoder(ShippingAddress | None).decode


class DemoParcel(Struct, frozen=True):
    """A shipment to create, and its statuses with their times."""

    order: Order
    body: ShipmentIn
    steps: list[tuple[str, datetime]]


def build_parcels(provider: str, orders: Sequence[Order], now: datetime) -> Iterator[DemoParcel]:
    """One parcel for each order that has an address; an order that is not paid yet is paid on delivery."""
    dice = random.Random(62)  # noqa: S311 - the same parcels every time
    for number, order in enumerate(orders, start=1):
        address = None if order.shipping_address is None else _read_address(order.shipping_address)
        if address is not None:
            yield _build_parcel(dice, provider, order, address, number, now)


def _build_parcel(
    dice: random.Random, provider: str, order: Order, address: ShippingAddress, number: int, now: datetime
) -> DemoParcel:
    service, estimate, days = dice.choice(SERVICES)
    names = [name for name in (address.first_name, address.last_name) if name]
    body = ShipmentIn(
        provider=provider,
        order_id=order.id,
        name=f"demo-{number:05d}",
        service_name=f"{dice.choice(COURIERS)} {service}",
        estimate=estimate,
        fee=Decimal(dice.choice((9_000, 12_000, 18_000))),
        awb=f"DEMO{number:08d}",
        sender=SENDER,
        delivery=PartyIn(
            name=" ".join(names) or "Pembeli",
            phone=address.phone,
            address=address.address1,
            city=address.city,
            province=address.province,
            zip=address.zip,
        ),
        package=_build_package(dice),
        cod_amount=order.outstanding if order.outstanding > 0 else None,
        cod_fee=Decimal(2_500) if order.outstanding > 0 else None,
    )
    took = max(0, days + dice.choice((-2, -1, -1, 0, 0, 0, 1)))
    sent = now - timedelta(days=took + dice.randint(1, 20), hours=3)
    return DemoParcel(order, body, _build_steps(dice, sent, took))


def _build_package(dice: random.Random) -> PackageIn:
    """Some are light for their size."""
    length, width, height = dice.choice(((20, 15, 10), (20, 15, 10), (30, 25, 15), (40, 30, 25)))
    return PackageIn(
        weight=Decimal(dice.choice((500, 1_000, 1_500))) / 1000,
        length=Decimal(length),
        width=Decimal(width),
        height=Decimal(height),
        item_name="Pesanan toko",
        item_qty=1,
    )


def _build_steps(dice: random.Random, sent: datetime, took: int) -> list[tuple[str, datetime]]:
    luck, there = dice.random(), sent + timedelta(days=took, hours=2)
    way = [("confirmed", sent - timedelta(hours=2)), ("picked_up", sent), ("in_transit", sent + timedelta(hours=1))]
    if luck < 0.05:
        return way[:1]
    if luck < 0.1:
        return way
    if luck < 0.15:
        back = [("returning", there + timedelta(days=1)), ("returned", there + timedelta(days=3))]
        return [*way, ("delivery_failed", there), *back]
    if luck < 0.25:
        return [*way, ("delivery_failed", there - timedelta(hours=4)), ("delivered", there)]
    return [*way, ("delivered", there)]


def build_statement(provider: str, delivered: Sequence[StoredShipment], now: datetime) -> SettlementIn:
    """Half of what was collected; the first parcel lacks a rupiah."""
    lines = [
        SettlementLineIn(
            parcel=shipment.awb or shipment.id,
            amount=(shipment.cod_amount or Decimal(0)) - (shipment.cod_fee or 0) - (1 if n == 0 else 0),
            cod_amount=shipment.cod_amount,
            cod_fee=shipment.cod_fee,
        )
        for n, shipment in enumerate(delivered[: max(1, len(delivered) // 2)])
    ]
    return SettlementIn(provider=provider, reference=STATEMENT, remitted_at=now, lines=lines)
