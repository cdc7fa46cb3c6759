"""The demo shop's orders of the last year: older ones are settled, a few cancelled or refunded."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.customers.types import Address, Customer
from sapa.orders.drafts.types import DraftOrderIn
from sapa.orders.pricing.types import DiscountIn, ShippingLineIn, TaxLineIn
from sapa.orders.types import LineItemIn, OrderCustomerIn, OrderIn, OrderPatch, ShippingAddressIn

DAYS = 365
HOURS = (8, 9, 10, 10, 11, 12, 12, 13, 14, 16, 18, 19, 19, 20, 20, 20, 21, 21, 22)
NOTES = ("Tolong dibungkus kado.", "Titip di satpam.", "Kirim setelah jam 5 sore.", "Tanpa plastik, ya.")
METHODS = ("bank_transfer", "bank_transfer", "qris", "e_wallet", "cod")
SHIPPING = (("JNE REG", 18_000), ("J&T EZ", 16_000), ("SiCepat HALU", 12_000), ("Ambil di toko", 0))
TAGS = ("toko", "online", "bazar", "reseller")
REQUESTED = (
    ("Sinta", "Hampers Lebaran isi 6", 285_000),
    ("Bagus", "Kopi Gayo 1 kg, giling halus", 310_000),
    ("Wulan", "Tumbler dengan nama", 95_000),
    ("Dimas", "Teh Melati curah 5 kg", 420_000),
)


_read_addresses = msgspec.json.Decoder(list[Address]).decode


class Sale(Struct, frozen=True):
    """An order, when it was placed, and its later update."""

    order: OrderIn
    placed_at: datetime
    update: OrderPatch | None
    method: str
    """How it is paid, if it is."""
    is_deposit: bool
    """Whether half of it is paid in advance, and nothing more yet."""
    is_returned: bool
    """Whether a part of what was paid is refunded."""


def build_sales(count: int, customers: Sequence[Customer], variants: Sequence[str], now: datetime) -> Iterator[Sale]:
    """In chronological order. A few customers return often."""
    dice = random.Random(8000)  # noqa: S311 - the same sales every time
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    instants = sorted(midnight - _age(dice) for _ in range(count))
    for number, at in enumerate(instants, start=1):
        customer = customers[int(len(customers) * dice.random() ** 2)]
        order = _order(dice, number, customer, variants)
        update = _build_update(dice, (midnight - at).days)
        is_deposit = number % 23 == 0
        yield Sale(order, at, None if is_deposit else update, dice.choice(METHODS), is_deposit, number % 31 == 0)


def build_drafts() -> Iterator[DraftOrderIn]:
    """Orders that were asked for by chat, and wait for an answer."""
    for number, (name, title, price) in enumerate(REQUESTED, start=1):
        shipping, cost = SHIPPING[number % len(SHIPPING)]
        yield DraftOrderIn(
            line_items=[LineItemIn(title=title, price=Decimal(price), quantity=number)],
            customer=OrderCustomerIn(first_name=name, phone_number=f"+62813{number:08d}"),
            shipping_lines=[ShippingLineIn(title=shipping, price=Decimal(cost))],
            discounts=[DiscountIn(title="Reseller", percentage=Decimal(5))] if number % 2 else None,
            notes="Menunggu konfirmasi alamat.",
            tags=["wa"],
        )


def _age(dice: random.Random) -> timedelta:
    """Before midnight: weighted to recent months and to shopping hours."""
    days = int(DAYS * dice.random() ** 1.3) + 1
    return timedelta(days=days) - timedelta(hours=dice.choice(HOURS) - 7, minutes=dice.randrange(60))


def _order(dice: random.Random, number: int, customer: Customer, variants: Sequence[str]) -> OrderIn:
    chosen = dice.sample(variants, dice.choice((1, 1, 1, 2, 2, 3)))
    title, price = SHIPPING[number % len(SHIPPING)]
    return OrderIn(
        order_id=f"demo-{number:05d}",
        customer_id=customer.id,
        line_items=[LineItemIn(product_variant_id=id, quantity=dice.choice((1, 1, 1, 2, 3))) for id in chosen],
        shipping_address=_address(customer),
        shipping_lines=[ShippingLineIn(title=title, price=Decimal(price))],
        discounts=[DiscountIn(code="TEMAN10", percentage=Decimal(10))] if number % 9 == 0 else None,
        tax_lines=[TaxLineIn(title="PPN", rate=Decimal(11), included=True)],
        notes=dice.choice(NOTES) if dice.random() < 0.1 else None,
        tags=[dice.choice(TAGS)] if dice.random() < 0.3 else None,
    )


def _address(customer: Customer) -> ShippingAddressIn:
    home = _read_addresses(customer.addresses)[0]
    return ShippingAddressIn(
        first_name=customer.first_name,
        last_name=customer.last_name,
        phone=customer.phone_number,
        address1=home.address1,
        city=home.city,
        province=home.province,
        country=home.country,
        zip=home.zip,
    )


def _build_update(dice: random.Random, age: int) -> OrderPatch | None:
    luck = dice.random()
    if luck < 0.05:
        return OrderPatch(status="cancelled")
    if luck < 0.08:
        return OrderPatch(fulfillment_status="fulfilled", status="refunded")
    if age > 120:
        return OrderPatch(financial_status="paid", fulfillment_status="fulfilled", status="archived")
    if age > 7 or luck < 0.4:
        return OrderPatch(financial_status="paid", fulfillment_status="fulfilled")
    return OrderPatch(financial_status="paid") if luck < 0.8 else None
