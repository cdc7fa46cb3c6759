"""Products of Medusa v2: one row per variant, with the product's cells in each row."""

import re
from collections.abc import Iterator
from functools import partial

from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    Fields,
    FileProfile,
    Records,
    has_columns,
    list_columns,
)
from sapa.imports.sources.records import Group, convert_groups, read_amount, read_text, without_empty
from sapa.imports.tables.files import HeaderRow, TableRecord

NAME = "medusa"

_STATUSES = {"draft": "draft", "proposed": "draft", "published": "active", "rejected": "archived"}
_NUMBERS = range(1, 51)


def convert_products(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    price = _choose_price_column(header.keys, context.currency.casefold())
    return convert_groups(records, lambda row: row.get("product handle", "product id"), partial(_build_product, price))


def _choose_price_column(keys: list[str], currency: str) -> str:
    """The price in the company's currency, else its price in a region, else any price."""
    prices = [key for key in keys if key.startswith("variant price ")]
    wanted = [rf"variant price {currency}", rf"variant price .*\[{currency}\]", r".*"]
    return next((key for pattern in wanted for key in prices if re.fullmatch(pattern, key)), "")


def _build_product(price: str, rows: Group) -> Fields:
    first = rows[0]
    images = list(dict.fromkeys(_list_numbered(first, "product image {}")))
    return without_empty(
        {
            "productId": first.get("product handle", "product id"),
            "name": first.get("product title"),
            "description": first.get("product description", "product subtitle")[:20_000],
            "status": _STATUSES.get(first.get("product status").casefold()),
            "tags": [tag.replace(",", " ")[:100] for tag in _list_numbered(first, "product tag {}")],
            "types": [first.get("product type")] if first.get("product type") else [],
            "media": first.get("product thumbnail") or (images[0] if images else None),
            "medias": [url for url in images if url != first.get("product thumbnail")],
            "options": _build_options(rows),
            "variants": [_build_variant(row, price) for row in rows],
        }
    )


def _list_numbered(row: TableRecord, name: str) -> list[str]:
    return [value for number in _NUMBERS if (value := row.get(name.format(number)))]


def _build_options(rows: Group) -> list[Fields]:
    options: dict[str, list[str]] = {}
    for row in rows:
        for number in _NUMBERS:
            name, value = row.get(f"variant option {number} name"), row.get(f"variant option {number} value")
            if name and value and value not in options.setdefault(name, []):
                options[name].append(value)
    return [{"name": name, "values": values} for name, values in options.items()]


def _build_variant(row: TableRecord, price: str) -> Fields:
    values = _list_numbered(row, "variant option {} value")
    title = row.get("variant title") or " / ".join(values) or row.get("product title")
    return without_empty({"title": title[:255], "sku": read_text(row, "variant sku")}) | {
        "price": read_amount(row, price)
    }


PRODUCTS = FileProfile(
    NAME,
    "products",
    has_columns(["Product Handle", "Product Title", "Variant Title"], ["Product Handle", "Variant Id"]),
    convert_products,
    list_columns(
        "Product Id|Product Handle|Product Title|Product Subtitle|Product Description|Product Status|Product Thumbnail",
        "Product Image *|Product Image **|Product Tag *|Product Tag **|Product Type|Variant Title|Variant Sku",
        "Variant Option * Name|Variant Option * Value|Variant Price IDR|Variant Price USD",
    ),
)
PROFILES = (PRODUCTS,)
