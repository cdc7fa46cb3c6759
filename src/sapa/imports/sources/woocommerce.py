"""WooCommerce: its own product export, the orders of the plugin Advanced Order Export, the customers of Analytics."""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from sapa.imports.cells import BadCell
from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    ConvertedRow,
    Fields,
    FileProfile,
    Records,
    has_columns,
    list_columns,
)
from sapa.imports.sources.order_fields import ForeignState, build_address, build_customer, build_order
from sapa.imports.sources.order_money import ZERO
from sapa.imports.sources.records import (
    Group,
    build_data,
    convert_each,
    convert_groups,
    read_amount,
    read_id,
    read_instant,
    read_text,
    without_empty,
)
from sapa.imports.sources.woocommerce_money import build_order_money
from sapa.imports.tables.files import HeaderRow, TableRecord
from sapa.imports.types import Problem
from sapa.imports.values.amounts import DecimalSign, decide_decimal_sign, parse_amount_cell
from sapa.imports.values.contacts import split_name
from sapa.imports.values.dates import DayOrder, decide_day_order
from sapa.imports.values.words import split_escaped

NAME = "woocommerce"

_PAID = ForeignState(paid="all")
_STATES: dict[str, ForeignState | None] = {
    "pending": ForeignState(),
    "on-hold": ForeignState(),
    "processing": _PAID,
    "completed": ForeignState(paid="all", is_fulfilled=True),
    "cancelled": ForeignState(is_cancelled=True),
    "failed": ForeignState(is_cancelled=True),
    "refunded": ForeignState(paid="all", refunded="all"),
    "checkout-draft": None,
    "trash": None,
}
"""None for orders that are not imported."""

_LABELS = {
    "pending payment": "pending", "menunggu pembayaran": "pending", "on hold": "on-hold", "ditahan": "on-hold",
    "sedang diproses": "processing", "diproses": "processing", "selesai": "completed", "canceled": "cancelled",
    "dibatalkan": "cancelled", "batal": "cancelled", "gagal": "failed", "dikembalikan": "refunded",
    "dana dikembalikan": "refunded", "draft": "checkout-draft", "draf": "checkout-draft",
}  # fmt: skip
_MONEY = (
    "cart discount amount", "order subtotal amount", "order shipping amount", "order refund amount",
    "order total amount", "order total tax amount", "item cost", "discount amount",
)  # fmt: skip
_PRODUCT_MONEY = ("sale price", "regular price")
_STATUSES = {"1": "active", "0": "archived", "2": "draft", "-1": "draft"}
_KINDS = {"simple", "variable", "external"}
_ATTRIBUTES = range(1, 21)


def convert_customers(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    unread = {key: name for key, name in zip(header.keys, header.names, strict=True) if not CUSTOMERS.reads(key)}
    return convert_each(records, partial(_build_customer, context, unread if context.keeps_columns else {}))


_DATA = {
    "username": "username", "last active": "lastActive", "date registered": "registered", "orders": "totalOrders",
    "total spend": "totalSpent", "aov": "averageOrder",
}  # fmt: skip


def _build_customer(context: ConversionContext, unread: dict[str, str], row: TableRecord) -> Fields:
    first, last = split_name(row.get("name"))
    address = build_address(
        "",
        context.region,
        "",
        city=row.get("city"),
        province=row.get("region"),
        country=row.get("country / region"),
        zip=read_text(row, "postal code") or "",
    )
    return without_empty(
        {
            "email": row.get("email"),
            "firstName": first,
            "lastName": last,
            "addresses": [address] if address else [],
            "additionalData": build_data(row, _DATA | unread),
        }
    )


def convert_orders(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    dates = (row.get("order date") for row in records if isinstance(row, TableRecord))
    build = partial(_build_order, context, _decide_sign(records, _MONEY, context.currency), decide_day_order(dates))
    return convert_groups(records, lambda row: row.get("order number"), build)


def _decide_sign(rows: Iterable[TableRecord | Problem], columns: Iterable[str], currency: str) -> DecimalSign | None:
    """All amounts of a shop have the same decimal sign."""
    cells = (row.get(name) for row in rows if isinstance(row, TableRecord) for name in columns)
    return decide_decimal_sign(cells, currency)


def _build_order(
    context: ConversionContext, sign: DecimalSign | None, day_order: DayOrder | None, rows: Group
) -> Fields | None:
    rows = [row for row in rows if not _is_refund(row, sign)]
    state = _find_state(rows[0]) if rows else None
    if state is None:
        return None
    order = rows[0]
    money = build_order_money(rows, sign, context)
    refunded = read_amount(order, "order refund amount", sign)
    if refunded and state.refunded == ZERO and state.paid == "all":
        state = ForeignState(paid="all", refunded=refunded, is_fulfilled=state.is_fulfilled)
    name = f"{order.get('first name (billing)')} {order.get('last name (billing)')}"
    return build_order(
        read_id(order, "order number"),
        read_instant(order, "order date", context, day_order),
        money,
        _with_method(state, read_text(order, "payment method title")),
        customer=build_customer(context.region, name, order.get("email (billing)"), [order.get("phone (billing)")]),
        shippingAddress=_build_address(order, context),
        notes=order.get("customer note"),
    )


def _is_refund(row: TableRecord, sign: DecimalSign | None) -> bool:
    """A refund may stand in a row of its own, with the order's number or its own; the order has its amount, too."""
    return read_amount(row, "order total amount", sign) < 0


def _find_state(order: TableRecord) -> ForeignState | None:
    label = order.get("order status").casefold().removeprefix("wc-")
    status = _LABELS.get(label, label)
    if status not in _STATES:
        error = BadCell(f"{label[:40]!r} is not a known status of WooCommerce; change it to completed, pending, …")
        error.field = "order status"
        raise error
    return _STATES[status]


def _with_method(state: ForeignState, method: str | None) -> ForeignState:
    return ForeignState(
        is_fulfilled=state.is_fulfilled, is_cancelled=state.is_cancelled, paid=state.paid, refunded=state.refunded,
        method=method,
    )  # fmt: skip


def _build_address(order: TableRecord, context: ConversionContext) -> Fields | None:
    part = "shipping" if order.get("address 1&2 (shipping)", "city (shipping)") else "billing"
    return build_address(
        f"{order.get(f'first name ({part})')} {order.get(f'last name ({part})')}",
        context.region,
        order.get("phone (billing)"),
        address1=order.get(f"address 1&2 ({part})"),
        city=order.get(f"city ({part})"),
        province=order.get(f"state code ({part})"),
        country=order.get(f"country code ({part})"),
        zip=read_text(order, f"postcode ({part})") or "",
    )


def convert_products(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    """Variations may stand anywhere below their product, so the whole file is read first."""
    rows = list(records)
    sign = _decide_sign(rows, _PRODUCT_MONEY, context.currency)
    variations: dict[str, Group] = {}
    for row in rows:
        if isinstance(row, TableRecord) and _kind(row) == "variation":
            variations.setdefault(row.get("parent"), []).append(row)
    products = [row for row in rows if isinstance(row, TableRecord) and _kind(row) in _KINDS]
    parents = {parent for row in products for parent in _list_names(row)}
    for record in rows:
        if isinstance(record, Problem):
            yield record
        elif _kind(record) == "variation":
            if record.get("parent") not in parents:
                yield Problem(record.line, "parent", f"{record.get('parent')[:60]!r} is not a product of the file")
        elif _kind(record) not in _KINDS:
            yield Problem(record.line, "type", f"products of the type {_kind(record)[:40]!r} cannot be imported")
        else:
            own = [one for name in _list_names(record) for one in variations.get(name, [])]
            try:
                yield ConvertedRow(record.line, _build_product(record, own, sign))
            except BadCell as error:
                yield Problem(record.line, error.field, str(error))


def _list_names(product: TableRecord) -> list[str]:
    """What its variations call it."""
    return [name for name in (product.get("sku"), f"id:{product.get('id')}") if name]


def _kind(row: TableRecord) -> str:
    return row.get("type").partition(",")[0].strip().casefold()


def _build_product(row: TableRecord, variations: Group, sign: DecimalSign | None) -> Fields:
    images = split_escaped(row.get("images"))
    options = [
        {"name": name, "values": split_escaped(row.get(f"attribute {n} value(s)"))}
        for n in _ATTRIBUTES
        if (name := row.get(f"attribute {n} name"))
    ]
    return without_empty(
        {
            "productId": read_id(row, "sku") or f"woo-{row.get('id')}",
            "name": row.get("name"),
            "description": row.get("description", "short description")[:20_000],
            "status": _STATUSES.get(row.get("published")),
            "types": list(
                dict.fromkeys(path.split(">")[-1].strip()[:100] for path in split_escaped(row.get("categories")))
            ),
            "tags": [tag.replace(",", " ")[:100] for tag in split_escaped(row.get("tags"))],
            "media": images[0] if images else None,
            "medias": images[1:],
            "options": options if variations else [],
            "variants": [_build_variant(one, row, sign) for one in variations or [row]],
        }
    )


def _build_variant(row: TableRecord, product: TableRecord, sign: DecimalSign | None) -> Fields:
    values = [value for n in _ATTRIBUTES if (value := row.get(f"attribute {n} value(s)"))]
    is_alone = row is product
    sale, regular = read_amount(row, "sale price", sign), read_amount(row, "regular price", sign)
    images = split_escaped(row.get("images"))
    return without_empty(
        {
            "title": (row.get("name") if is_alone else " / ".join(values) or row.get("name"))[:255],
            "key": "default" if is_alone else None,
            "sku": read_id(row, "sku"),
            "media": images[0] if images and not is_alone else None,
            "compareAtPrice": regular if row.get("sale price") and regular > sale else None,
        }
    ) | {"price": sale if row.get("sale price") else regular, "inventoryQuantity": _read_stock(row)}


def _read_stock(row: TableRecord) -> int | None:
    """None where stock is not tracked; `parent` stands for the product's own."""
    text = row.get("stock")
    if not text or not re.fullmatch(r"-?\d+(?:[.,]\d+)?", text):
        return None
    return max(0, int(parse_amount_cell(text)))


CUSTOMERS = FileProfile(
    NAME,
    "customers",
    has_columns(["Name", "Username", "Last active", "Email", "AOV"]),
    convert_customers,
    list_columns(
        "Name|Username|Last active|Date registered|Email|Orders|Total spend|AOV|Country / Region|City|Region",
        "Postal code",
    ),
)
ORDERS = FileProfile(
    NAME,
    "orders",
    has_columns(["Order Number", "Order Status", "First Name (Billing)", "Item Name"]),
    convert_orders,
    list_columns(
        "Order Number|Order Status|Order Date|Customer Note|First Name (Billing)|Last Name (Billing)|Email (Billing)",
        "Phone (Billing)|First Name (Shipping)|Last Name (Shipping)|Address 1&2 (Shipping)|City (Shipping)",
        "State Code (Shipping)|Postcode (Shipping)|Country Code (Shipping)|Address 1&2 (Billing)|City (Billing)",
        "State Code (Billing)|Postcode (Billing)|Country Code (Billing)|Payment Method Title|Cart Discount Amount",
        "Shipping Method Title|Order Shipping Amount|Order Refund Amount|Order Total Amount|Order Total Tax Amount|SKU",
        "Order Subtotal Amount|Item #|Item Name|Quantity (- Refund)|Quantity|Item Cost|Coupon Code|Discount Amount",
    ),
)
PRODUCTS = FileProfile(
    NAME,
    "products",
    has_columns(["Type", "Name", "Visibility in catalog", "Regular price"]),
    convert_products,
    list_columns(
        "ID|Type|SKU|Name|Published|Short description|Description|Stock|Sale price|Regular price|Categories|Tags",
        "Images|Parent|Attribute * name|Attribute ** name|Attribute * value(s)|Attribute ** value(s)",
    ),
)
PROFILES = (CUSTOMERS, ORDERS, PRODUCTS)
