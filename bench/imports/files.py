"""The files of a run: as a shop would bring them along."""

import csv
from pathlib import Path

from bench.names import CITIES, FIRST_NAMES, GOODS, LAST_NAMES, TAGS

CUSTOMER_COLUMNS = ["externalId", "email", "phoneNumber", "firstName", "lastName", "tags", "additionalData.visits",
                    "addresses.1.address1", "addresses.1.city", "addresses.1.zip"]  # fmt: skip
ORDER_COLUMNS = ["orderId", "customer.email", "customer.firstName", "customer.lastName", "lineItems.1.title",
                 "lineItems.1.price", "lineItems.1.quantity", "shippingAddress.address1", "shippingAddress.city",
                 "tags", "financialStatus", "createdAt"]  # fmt: skip

SHOPIFY_COLUMNS = ["Name", "Email", "Financial Status", "Currency", "Subtotal", "Shipping", "Taxes", "Total",
                   "Shipping Method", "Created at", "Lineitem quantity", "Lineitem name", "Lineitem price",
                   "Shipping Name", "Shipping Address1", "Shipping City", "Shipping Zip", "Id", "Tags"]  # fmt: skip


def write_customers(path: Path, rows: int) -> None:
    _write(path, CUSTOMER_COLUMNS, map(_customer, range(rows)))


def write_orders(path: Path, rows: int, customers: int, prefix: str = "web") -> None:
    """Every customer they name is in the other file."""
    _write(path, ORDER_COLUMNS, (_order(f"{prefix}-{n}", n, n * 7919 % customers) for n in range(rows)))


def write_shopify_orders(path: Path, rows: int, customers: int) -> None:
    """One line item each, as Shopify exports them."""
    _write(path, SHOPIFY_COLUMNS, (_shopify_order(n, n * 7919 % customers) for n in range(rows)))


def _write(path: Path, columns: list[str], rows: object) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)  # type: ignore[arg-type]


def _customer(n: int) -> list[object]:
    first, last = _name(n)
    tags = f"{TAGS[n % len(TAGS)]},{TAGS[(n + 1) % len(TAGS)]}"
    city = CITIES[n % len(CITIES)]
    return [f"c-{n}", _email(n), f"+62811{n:08d}", first, last, tags, n % 40, f"Jl. Merdeka {n % 200 + 1}", city, 40111]


def _order(id: str, n: int, customer: int) -> list[object]:
    first, last = _name(customer)
    price = 25_000 + n % 40 * 5_000
    placed = f"2026-{n % 9 + 1:02d}-{n % 28 + 1:02d}T{n % 24:02d}:30:00Z"
    return [id, _email(customer), first, last, GOODS[n % len(GOODS)], price, n % 3 + 1,
            f"Jl. Merdeka {n % 200 + 1}", CITIES[n % len(CITIES)], TAGS[n % len(TAGS)],
            "paid" if n % 3 else "", placed]  # fmt: skip


def _shopify_order(n: int, customer: int) -> list[object]:
    first, last = _name(customer)
    price, quantity = 25_000 + n % 40 * 5_000, n % 3 + 1
    total = price * quantity + 9_000
    placed = f"2026-{n % 9 + 1:02d}-{n % 28 + 1:02d} {n % 24:02d}:30:00 +0700"
    return [f"#{1001 + n}", _email(customer), "paid" if n % 3 else "pending", "IDR", price * quantity, 9_000, 0, total,
            "JNE", placed, quantity, GOODS[n % len(GOODS)], price, f"{first} {last}", f"Jl. Merdeka {n % 200 + 1}",
            CITIES[n % len(CITIES)], "'40111", 5_550_000_000 + n, TAGS[n % len(TAGS)]]  # fmt: skip


def _name(n: int) -> tuple[str, str]:
    return FIRST_NAMES[n % len(FIRST_NAMES)], LAST_NAMES[n // len(FIRST_NAMES) % len(LAST_NAMES)]


def _email(n: int) -> str:
    first, last = _name(n)
    return f"{first}.{last}{n}@example.com".lower()
