"""What the demo shop sold over the last year: older orders are settled, a few were cancelled or refunded."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from sapa.orders.types import LineItemIn, OrderIn, OrderPatch, ShippingAddressIn

DAYS = 365
HOURS = (8, 9, 10, 10, 11, 12, 12, 13, 14, 16, 18, 19, 19, 20, 20, 20, 21, 21, 22)
NOTES = ("Tolong dibungkus kado.", "Titip di satpam.", "Kirim setelah jam 5 sore.", "Tanpa plastik, ya.")
TAGS = ("toko", "online", "bazar", "reseller")


class Sale(Struct, frozen=True):
    """An order, when it was placed, and what became of it."""

    order: OrderIn
    placed_at: datetime
    fate: OrderPatch | None


def build_sales(count: int, customers: Sequence[str], variants: Sequence[str], now: datetime) -> Iterator[Sale]:
    """In the sequence of time. Customers and variants are ids; a few customers come again and again."""
    dice = random.Random(8000)  # noqa: S311 - the same sales every time
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ages = sorted((int(DAYS * dice.random() ** 1.3) + 1 for _ in range(count)), reverse=True)
    for number, age in enumerate(ages, start=1):
        at = midnight - timedelta(days=age) + timedelta(hours=dice.choice(HOURS) - 7, minutes=number % 60)
        customer = customers[int(len(customers) * dice.random() ** 2)]
        yield Sale(_order(dice, number, customer, variants), at, _fate(dice, age))


def _order(dice: random.Random, number: int, customer: str, variants: Sequence[str]) -> OrderIn:
    chosen = dice.sample(variants, dice.choice((1, 1, 1, 2, 2, 3)))
    return OrderIn(
        order_id=f"demo-{number:05d}",
        customer_id=customer,
        line_items=[LineItemIn(product_variant_id=id, quantity=dice.choice((1, 1, 1, 2, 3))) for id in chosen],
        shipping_address=ShippingAddressIn(
            address1=f"Jl. Melati No. {dice.randint(1, 250)}", city="Bandung", country="Indonesia", zip="40111"
        ),
        notes=dice.choice(NOTES) if dice.random() < 0.1 else None,
        tags=[dice.choice(TAGS)] if dice.random() < 0.3 else None,
    )


def _fate(dice: random.Random, age: int) -> OrderPatch | None:
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
