"""The demo shop's products: coffee, tea, batik, crafts and snacks, at realistic prices."""

import random
from collections.abc import Iterator
from decimal import Decimal

from sapa.products.types import OptionIn, ProductPatch, VariantPatch

WEIGHTS = (("100 g", "0.45"), ("250 g", "1"), ("500 g", "1.9"), ("1 kg", "3.6"))
SIZES = (("S", "1"), ("M", "1"), ("L", "1"), ("XL", "1.08"))
PACKS = (("1 pak", "1"), ("3 pak", "2.8"))
ONE = (("Standar", "1"),)

# A product group: names, makes, the middle price in rupiah, the variants' attribute, type.
SHELVES = (
    ("Kopi", "Gayo Toraja Kintamani Flores Mandailing Lampung Bajawa Wamena Preanger Sidikalang", "Arabika Robusta",
     85_000, "Berat", WEIGHTS, "kopi"),
    ("Teh", "Melati Hijau Hitam Putih Rosella Serai", "Asli Premium", 32_000, "Berat", WEIGHTS[:3], "teh"),
    ("Kemeja Batik", "Parang Kawung Mega-Mendung Truntum Sekar-Jagad Sidomukti", "Tulis Cap", 285_000, "Ukuran", SIZES,
     "batik"),
    ("Kain Tenun", "Sumba Toraja Lombok Troso Endek Ulos", "Klasik Modern", 420_000, "Pilihan", ONE, "kain"),
    ("Sambal", "Matah Bawang Roa Terasi Ijo Cumi", "Pedas Sedang", 28_000, "Kemasan", PACKS, "makanan"),
    ("Keripik", "Singkong Pisang Tempe Ubi Apel Nangka", "Asin Manis", 18_000, "Kemasan", PACKS, "makanan"),
    ("Tas", "Anyaman Rotan Pandan Mendong Kulit Kanvas", "Kecil Besar", 175_000, "Pilihan", ONE, "kerajinan"),
    ("Madu", "Hutan Kelulut Randu Kaliandra Karet", "Murni Herbal", 96_000, "Berat", WEIGHTS[1:], "makanan"),
    ("Sabun", "Sereh Kopi Kelapa Cendana Zaitun", "Batang Cair", 24_000, "Kemasan", PACKS, "perawatan"),
    ("Gelang", "Perak Kayu Batu Tembaga", "Ukir Polos", 65_000, "Ukuran", SIZES[:3], "kerajinan"),
)  # fmt: skip
TAGS = ("baru", "terlaris", "hadiah", "lokal", "diskon")


def build_products() -> Iterator[tuple[str, ProductPatch]]:
    """Each product with its external id."""
    dice = random.Random(45)  # noqa: S311 - the same goods every time
    number = 0
    for kind, names, makes, price, option, sizes, type_ in SHELVES:
        for name in names.split():
            for make in makes.split():
                number += 1
                title = f"{kind} {name.replace('-', ' ')} {make}"
                yield f"demo-{number:03d}", _product(dice, number, title, price, option, sizes, type_)


def _product(
    dice: random.Random, number: int, name: str, price: int, option: str, sizes: tuple[tuple[str, str], ...], type_: str
) -> ProductPatch:
    middle = Decimal(price) * dice.randint(80, 130) / 100
    return ProductPatch(
        name=name,
        description=f"{name}, langsung dari pengrajin dan petani.",
        variants=[_variant(dice, number, place, size, middle) for place, size in enumerate(sizes, start=1)],
        options=[OptionIn(name=option, values=[title for title, _ in sizes])],
        tags=sorted(dice.sample(TAGS, dice.randint(0, 2))),
        types=[type_],
    )


def _variant(dice: random.Random, number: int, place: int, size: tuple[str, str], middle: Decimal) -> VariantPatch:
    title, factor = size
    price = (middle * Decimal(factor) / 500).quantize(Decimal(1)) * 500
    before = (price * Decimal("1.2") / 500).quantize(Decimal(1)) * 500
    return VariantPatch(
        title=title,
        price=price,
        compare_at_price=before if dice.random() < 0.15 else None,
        sku=f"DM-{number:03d}-{place}",
        inventory_quantity=dice.randint(300, 900) if dice.random() < 0.7 else None,
    )
