"""Shopify's exports: customers, orders (one row per line item), products (one row per variant), old and new columns."""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Literal

from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    Fields,
    FileProfile,
    Records,
    has_columns,
    list_columns,
)
from sapa.imports.sources.order_fields import ForeignState, build_address, build_customer, build_order, join_notes
from sapa.imports.sources.order_money import ZERO, ForeignLine, OrderMoney
from sapa.imports.sources.records import (
    Group,
    build_data,
    convert_each,
    convert_groups,
    read_amount,
    read_cell,
    read_id,
    read_instant,
    read_quantity,
    read_text,
    without_empty,
)
from sapa.imports.tables.files import HeaderRow, TableRecord
from sapa.imports.values.contacts import parse_phone_cell
from sapa.imports.values.words import find_flag, split_tags

NAME = "shopify"

_CONSENTS = {
    "accepts marketing": "MAIL",
    "accepts email marketing": "MAIL",
    "accepts whatsapp marketing": "MSGAPP_CLOUD",
    "accepts sms marketing": "SMS",
}
"""The app of each consent: a channel of ours, or a name that is only stored. The oldest files have the first one."""

_DATA = {
    "total spent": "totalSpent", "total orders": "totalOrders", "note": "note", "tax exempt": "taxExempt",
    "default address company": "company", "company": "company",
}  # fmt: skip


def convert_customers(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    unread = {key: name for key, name in zip(header.keys, header.names, strict=True) if not CUSTOMERS.reads(key)}
    return convert_each(records, partial(_build_customer, context, unread if context.keeps_columns else {}))


def _build_customer(context: ConversionContext, unread: dict[str, str], row: TableRecord) -> Fields:
    phone = "phone" if row.get("phone") else "default address phone"
    address = build_address(
        row.get("first name") + " " + row.get("last name"),
        context.region,
        row.get("default address phone"),
        address1=row.get("default address address1", "address1"),
        address2=row.get("default address address2", "address2"),
        city=row.get("default address city", "city"),
        province=row.get("province", "default address province code", "province code"),
        country=row.get("country", "default address country code", "country code"),
        zip=read_text(row, "default address zip", "zip") or "",
    )
    consents = {
        app: accepted
        for column, app in _CONSENTS.items()
        if (accepted := read_cell(row, column, find_flag)) is not None
    }
    return without_empty(
        {
            "externalId": read_id(row, "customer id"),
            "email": row.get("email"),
            "phoneNumber": read_cell(row, phone, lambda text: parse_phone_cell(text, context.region)),
            "firstName": row.get("first name"),
            "lastName": row.get("last name"),
            "tags": split_tags(row.get("tags"), ","),
            "addresses": [address] if address else [],
            "subscriptionStatus": [
                {"app": app, "status": "subscribe" if accepted else "unsubscribe"} for app, accepted in consents.items()
            ],
            "additionalData": build_data(row, _DATA | unread),
        }
    )


def convert_orders(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    return convert_groups(records, lambda row: row.get("name"), partial(_build_order, context))


def _build_order(context: ConversionContext, rows: Group) -> Fields:
    """Everything but the lines stands in the first row."""
    order = rows[0]
    money = _build_money(rows)
    return build_order(
        read_id(order, "id") or order.get("name"),
        read_instant(order, "created at", context),
        money,
        _build_state(order, money, context),
        currency=order.get("currency"),
        customer=build_customer(
            context.region,
            order.get("billing name", "shipping name"),
            order.get("email"),
            [order.get(name) for name in ("phone", "billing phone", "shipping phone")],
        ),
        shippingAddress=build_address(
            order.get("shipping name"),
            context.region,
            order.get("shipping phone"),
            address1=order.get("shipping address1", "shipping street"),
            address2=order.get("shipping address2"),
            city=order.get("shipping city"),
            province=order.get("shipping province name", "shipping province"),
            country=order.get("shipping country"),
            zip=read_text(order, "shipping zip") or "",
        ),
        notes=join_notes(order.get("notes"), order.get("note attributes")),
        tags=[*split_tags(order.get("tags"), ","), *([order.get("name")] if order.get("id") else [])],
    )


def _build_money(rows: Group) -> OrderMoney:
    order = rows[0]
    lines = [
        ForeignLine(
            row.get("lineitem name"),
            read_quantity(row, "lineitem quantity"),
            read_amount(row, "lineitem price"),
            read_amount(row, "lineitem discount"),
            read_text(row, "lineitem sku"),
        )
        for row in rows
        if row.get("lineitem name") and read_quantity(row, "lineitem quantity") > 0
    ]
    amount, on_lines = read_amount(order, "discount amount"), _sum_discounts(order, lines)
    code = read_text(order, "discount code")
    return OrderMoney(
        lines=lines,
        discounts=[without_empty({"code": code, "amount": on_lines})] if on_lines else [],
        shipping=read_amount(order, "shipping"),
        shipping_title=read_text(order, "shipping method"),
        shipping_discount=without_empty({"title": code, "amount": amount - on_lines}) if amount > on_lines else None,
        tax=read_amount(order, "taxes"),
        tax_title=read_text(order, "tax 1 name"),
        total=read_amount(order, "total") if order.get("total") else None,
    )


def _sum_discounts(order: TableRecord, lines: list[ForeignLine]) -> Decimal:
    """The order's, as far as they are on lines. The subtotal decides: the discount amount may have the lines' own
    discounts in it, and that of shipping."""
    amount = read_amount(order, "discount amount")
    if order.get("subtotal"):
        net = sum((line.gross - line.discount for line in lines), ZERO)
        amount = min(amount, max(ZERO, net - read_amount(order, "subtotal")))
    return amount


def _build_state(order: TableRecord, money: OrderMoney, context: ConversionContext) -> ForeignState:
    status = order.get("financial status").casefold()
    refunded = read_amount(order, "refunded amount")
    paid: Decimal | Literal["all"] = ZERO
    if status in {"paid", "partially_refunded", "refunded"}:
        paid = "all"
    elif status == "partially_paid":
        paid = max(ZERO, (money.total or ZERO) - read_amount(order, "outstanding balance"))
    return ForeignState(
        is_fulfilled=order.get("fulfillment status").casefold() == "fulfilled",
        is_cancelled=bool(order.get("cancelled at")) or status == "voided",
        paid=paid,
        refunded="all" if status == "refunded" else refunded if status == "partially_refunded" else ZERO,
        paid_at=read_instant(order, "paid at", context),
        method=read_text(order, "payment method"),
        reference=read_text(order, "payment reference", "payment id"),
    )


def convert_products(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    return convert_groups(records, lambda row: row.get("handle", "url handle"), _build_product)


def _build_product(rows: Group) -> Fields:
    """The product's cells and the names of its options stand in the first row; a row may have only an image."""
    first = rows[0]
    names = [first.get(f"option{number} name") for number in (1, 2, 3)]
    is_plain = names[0].casefold() == "title" and first.get("option1 value").casefold() == "default title"
    variants = [row for row in rows if row.get("option1 value", "variant price", "price")]
    images = sorted(
        ((read_quantity(row, "image position"), url) for row in rows if (url := _image(row))), key=lambda pair: pair[0]
    )
    medias = list(dict.fromkeys(url for _, url in images))
    return without_empty(
        {
            "productId": first.get("handle", "url handle"),
            "name": first.get("title"),
            "description": first.get("body (html)", "description")[:20_000],
            "status": _build_status(first),
            "types": [kind] if (kind := first.get("type")[:100]) else [],
            "tags": split_tags(first.get("tags"), ","),
            "media": medias[0] if medias else None,
            "medias": medias[1:],
            "options": [] if is_plain else _build_options(names, variants),
            "variants": [_build_variant(row, is_plain, first.get("title")) for row in variants],
        }
    )


def _image(row: TableRecord) -> str:
    return row.get("image src", "product image url")


def _build_status(row: TableRecord) -> str | None:
    status = row.get("status").casefold()
    if status in {"active", "draft", "archived"}:
        return status
    return "draft" if row.get("published", "published on online store").casefold() == "false" else None


def _build_options(names: list[str], rows: Group) -> list[Fields]:
    return [
        {"name": name, "values": list(dict.fromkeys(value for row in rows if (value := row.get(f"option{n} value"))))}
        for n, name in enumerate(names, 1)
        if name
    ]


def _build_variant(row: TableRecord, is_plain: bool, product: str) -> Fields:
    values = [value for n in (1, 2, 3) if (value := row.get(f"option{n} value"))]
    is_tracked = bool(row.get("variant inventory tracker", "inventory tracker"))
    stock = "variant inventory qty" if "variant inventory qty" in row.cells else "inventory quantity"
    price = "variant price" if "variant price" in row.cells else "price"
    before = "variant compare at price" if "variant compare at price" in row.cells else "compare-at price"
    return without_empty(
        {
            "title": (product if is_plain else " / ".join(values))[:255],
            "key": "default" if is_plain else None,
            "price": None,
            "sku": read_text(row, "variant sku", "sku"),
            "media": row.get("variant image", "variant image url"),
            "compareAtPrice": read_amount(row, before) or None,
        }
    ) | {
        "price": read_amount(row, price),
        "inventoryQuantity": max(0, read_quantity(row, stock)) if is_tracked and row.get(stock) else None,
    }


CUSTOMERS = FileProfile(
    NAME,
    "customers",
    has_columns(
        ["Accepts Email Marketing", "Default Address Zip"],
        ["Accepts Email Marketing", "Total Spent", "Zip"],
        ["Accepts Marketing", "Total Spent", "Zip"],
    ),
    convert_customers,
    list_columns(
        "Customer ID|First Name|Last Name|Email|Accepts Email Marketing|Accepts SMS Marketing|Phone|Tags",
        "Accepts WhatsApp Marketing|Total Spent|Total Orders|Note|Tax Exempt|Company|Address1|Address2|City|Province",
        "Province Code|Country|Country Code|Zip|Default Address Company|Default Address Address1",
        "Default Address Address2|Default Address City|Default Address Province Code|Default Address Country Code",
        "Default Address Zip|Default Address Phone|Accepts Marketing",
    ),
)
ORDERS = FileProfile(
    NAME,
    "orders",
    has_columns(["Name", "Lineitem quantity", "Lineitem name", "Lineitem price"]),
    convert_orders,
    list_columns(
        "Name|Email|Financial Status|Paid at|Fulfillment Status|Currency|Subtotal|Shipping|Taxes|Total|Discount Code",
        "Discount Amount|Shipping Method|Created at|Lineitem quantity|Lineitem name|Lineitem price|Lineitem sku",
        "Lineitem discount|Billing Name|Billing Phone|Shipping Name|Shipping Street|Shipping Address1|Shipping Phone",
        "Shipping Address2|Shipping City|Shipping Zip|Shipping Province|Shipping Country|Notes|Note Attributes",
        "Cancelled at|Payment Method|Payment Reference|Refunded Amount|Outstanding Balance|Id|Tags|Tax 1 Name|Phone",
        "Shipping Province Name|Payment ID",
    ),
)
PRODUCTS = FileProfile(
    NAME,
    "products",
    has_columns(["Handle", "Variant Price"], ["URL handle", "Price", "Option1 value"]),
    convert_products,
    list_columns(
        "Handle|URL handle|Title|Body (HTML)|Description|Type|Tags|Published|Published on online store|Status",
        "Option* Name|Option* Value|Variant SKU|SKU|Variant Price|Price|Variant Compare At Price|Compare-at price",
        "Variant Inventory Tracker|Inventory tracker|Variant Inventory Qty|Inventory quantity|Image Src|Image Position",
        "Product image URL|Variant Image|Variant image URL",
    ),
)
PROFILES = (CUSTOMERS, ORDERS, PRODUCTS)
