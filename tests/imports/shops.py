"""Shops that move in: their customers, products and orders, made from a seed."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Literal

from msgspec import Struct

FIRST = "Ayu Budi Citra Dewi Eko Fitri Gilang Hesti Indra Joko José Kartika Lina Made Nur Putri Rizky Sari Tono".split()
LAST = "Lestari Santoso Wijaya Pratama Nugroho Siregar Halim O'Hara Gunawan Kusuma Hidayat Müller Saputra".split()
CITIES = [
    ("Bandung", "Jawa Barat", "40111"),
    ("Jakarta Selatan", "DKI Jakarta", "12160"),
    ("Denpasar", "Bali", "80112"),
]
GOODS = ["Kopi Gayo", "Teh Melati", "Batik Parang", "Keripik Pisang", "Sambal, pedas", 'Tas "Etnik"', "Gula Aren"]
SIZES = ["S", "M", "L"]

State = Literal["pending", "partially_paid", "paid", "fulfilled", "cancelled", "refunded", "partially_refunded"]
STATES: list[State] = [
    "pending", "partially_paid", "paid", "fulfilled", "fulfilled", "cancelled", "refunded", "partially_refunded",
]  # fmt: skip


class Person(Struct, frozen=True):
    number: int
    first: str
    last: str
    email: str
    phone: str
    """National, with its leading zero."""
    street: str
    city: str
    province: str
    zip: str
    subscribes: bool | None
    tags: list[str]
    note: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def e164(self) -> str:
        return f"+62{self.phone[1:]}"


class Line(Struct, frozen=True):
    title: str
    sku: str
    quantity: int
    price: int
    discount: int = 0
    """Of the whole line."""

    @property
    def net(self) -> int:
        return self.price * self.quantity - self.discount


class Sale(Struct, frozen=True):
    number: int
    at: datetime
    buyer: Person
    lines: list[Line]
    discount: int
    """Of the whole order."""
    shipping: int
    fee: int
    tax: int
    is_tax_added: bool
    state: State

    @property
    def subtotal(self) -> int:
        return sum(line.net for line in self.lines) - self.discount

    @property
    def total(self) -> int:
        return self.subtotal + self.shipping + self.fee + (self.tax if self.is_tax_added else 0)

    @property
    def paid(self) -> int:
        if self.state == "partially_paid":
            return self.total // 2
        return self.total if self.state in {"paid", "fulfilled", "refunded", "partially_refunded"} else 0

    @property
    def refunded(self) -> int:
        return {"refunded": self.total, "partially_refunded": self.total // 4}.get(self.state, 0)


class Article(Struct, frozen=True):
    number: int
    name: str
    sizes: list[str]
    """Empty for an article without variants."""
    price: int
    before: int | None
    stock: int | None

    def sku(self, size: str = "") -> str:
        return f"SKU-{self.number}{size and '-'}{size}"


class Shop(Struct, frozen=True):
    people: list[Person]
    articles: list[Article]
    sales: list[Sale]


def make_shop(seed: int, orders: int) -> Shop:
    random = Random(seed)
    people = [_make_person(random, number) for number in range(max(3, orders // 3))]
    articles = [_make_article(random, number) for number in range(max(3, orders // 10))]
    sales = [_make_sale(random, number, people, articles) for number in range(orders)]
    return Shop(people, articles, sales)


def _make_person(random: Random, number: int) -> Person:
    city, province, zip = random.choice(CITIES)
    first, last = random.choice(FIRST), random.choice(LAST)
    return Person(
        number,
        first,
        last,
        f"pelanggan{number}@toko.example",
        f"0812{10_000_000 + number}",
        f"Jl. Merdeka {random.randint(1, 200)}, RT 0{random.randint(1, 9)}",
        city,
        province,
        zip,
        random.choice([True, False, None]),
        random.sample(["vip", "grosir", "langganan"], random.randint(0, 2)),
        random.choice(["", "suka kopi", 'tulis "kado"']),
    )


def _make_article(random: Random, number: int) -> Article:
    price = random.randrange(10_000, 400_000, 500)
    return Article(
        number,
        f"{GOODS[number % len(GOODS)]} {number}",
        SIZES if number % 2 else [],
        price,
        price + 5_000 if number % 3 == 0 else None,
        random.choice([None, 0, 7, 250]),
    )


def _make_sale(random: Random, number: int, people: list[Person], articles: list[Article]) -> Sale:
    lines = [_make_line(random, article) for article in random.sample(articles, random.randint(1, 3))]
    net = sum(line.net for line in lines)
    tax = net * 11 // 100 if number % 5 == 0 else 0
    return Sale(
        number,
        datetime(2025, 1, 1, 2, 30, 15, tzinfo=UTC) + timedelta(hours=7 * number % 8_000, minutes=number % 60),
        people[random.randrange(len(people))],
        lines,
        random.choice([0, 0, net // 10]),
        random.choice([0, 9_000, 18_000]),
        random.choice([0, 1_000]),
        tax,
        number % 2 == 0,
        random.choice(STATES),
    )


def _make_line(random: Random, article: Article) -> Line:
    size = random.choice(article.sizes) if article.sizes else ""
    quantity = random.randint(1, 4)
    title = f"{article.name} - {size}" if size else article.name
    return Line(title, article.sku(size), quantity, article.price, random.choice([0, 0, 500 * quantity]))
