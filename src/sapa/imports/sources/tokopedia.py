"""Orders of Tokopedia and TikTok Shop, which share a seller centre: one row per SKU.

The row below the header may describe the columns. Ids, postal codes and times end with a tab, and the order's amounts
repeat in each of its rows. The buyer stays unknown: the marketplace masks name and phone number.
"""

import re
from collections.abc import Iterator
from functools import partial

from sapa.imports.cells import BadCell
from sapa.imports.sources.interface import (
    ConversionContext,
    Converted,
    Fields,
    FileProfile,
    Records,
    has_columns,
    list_columns,
)
from sapa.imports.sources.order_fields import ForeignState, build_address, build_order, join_notes
from sapa.imports.sources.order_money import ZERO, ForeignLine, OrderMoney
from sapa.imports.sources.records import (
    Group,
    convert_groups,
    read_amount,
    read_instant,
    read_quantity,
    read_text,
)
from sapa.imports.tables.files import HeaderRow, TableRecord
from sapa.imports.types import Problem
from sapa.imports.values.amounts import refuse_scientific
from sapa.imports.values.contacts import unquote_cell

NAME = "tokopedia"

_STATES = {
    "belum dibayar": "unpaid", "unpaid": "unpaid",
    "perlu dikirim": "paid", "to ship": "paid", "awaiting shipment": "paid", "awaiting collection": "paid",
    "dikirim": "shipped", "shipped": "shipped", "in transit": "shipped",
    "selesai": "completed", "completed": "completed", "delivered": "completed",
    "dibatalkan": "cancelled", "canceled": "cancelled", "cancelled": "cancelled",
}  # fmt: skip
_FEES = {
    "buyer service fee": "Buyer service fee", "handling fee": "Handling fee",
    "shipping insurance": "Shipping insurance", "item insurance": "Item insurance",
    "distance shipping fee": "Distance shipping fee", "distance fee": "Distance fee",
}  # fmt: skip
_COD = {"bayar di tempat", "cash on delivery", "cod"}


def convert_orders(records: Records, header: HeaderRow, context: ConversionContext) -> Iterator[Converted]:
    return convert_groups(_skip_description(records), _read_key, partial(_build_order, context))


def _skip_description(records: Records) -> Iterator[TableRecord | Problem]:
    """Without the row below the header if it describes the columns: then its id has no digit."""
    for place, row in enumerate(records):
        if place or isinstance(row, Problem) or not re.fullmatch(r"\D+", row.get("order id")):
            yield row


def _read_key(row: TableRecord) -> str:
    """A row without a usable id is alone, and refused."""
    order_id = unquote_cell(row.get("order id"))
    return order_id if order_id.isdigit() else f"line {row.line}"


def _read_order_id(row: TableRecord) -> str:
    text = row.get("order id")
    try:
        refuse_scientific(text)
        if not unquote_cell(text).isdigit():
            raise BadCell(f"must be the order's number; it is {text[:40]!r}")
    except BadCell as error:
        error.field = "order id"
        raise
    return unquote_cell(text)


def _build_order(context: ConversionContext, rows: Group) -> Fields:
    order = rows[0]
    order_id = _read_order_id(order)
    money = _build_money(rows)
    channel = order.get("purchase channel").casefold()
    return build_order(
        order_id,
        read_instant(order, "created time", context, "dmy"),
        money,
        _build_state(order, money, context),
        shippingAddress=build_address(
            order.get("recipient"),
            context.region,
            order.get("phone #"),
            address1=order.get("detail address"),
            address2=", ".join(part for part in (order.get("villages"), order.get("districts")) if part),
            city=order.get("regency and city"),
            province=order.get("province"),
            country=order.get("country"),
            zip=read_text(order, "zipcode") or "",
        ),
        notes=join_notes(order.get("buyer message"), order.get("seller note")),
        tags=[tag for tag in (channel, order.get("tokopedia invoice number")) if tag],
    )


def _build_money(rows: Group) -> OrderMoney:
    order = rows[0]
    lines = [
        ForeignLine(
            " - ".join(part for part in (row.get("product name"), _variation(row)) if part),
            read_quantity(row, "quantity"),
            read_amount(row, "sku unit original price"),
            read_amount(row, "sku subtotal before discount") - read_amount(row, "sku subtotal after discount"),
            read_text(row, "seller sku"),
        )
        for row in rows
        if read_quantity(row, "quantity") > 0
    ]
    discount = read_amount(order, "payment platform discount")
    return OrderMoney(
        lines=lines,
        discounts=[{"title": "Payment platform discount", "amount": abs(discount)}] if discount else [],
        shipping=read_amount(order, "shipping fee after discount"),
        shipping_title=read_text(order, "shipping provider name", "delivery option"),
        fees=[{"title": title, "amount": read_amount(order, column)} for column, title in _FEES.items()],
        total=read_amount(order, "order amount") if order.get("order amount") else None,
    )


def _variation(row: TableRecord) -> str:
    variation = row.get("variation")
    return "" if variation.casefold() in {"default", "-"} else variation


def _build_state(order: TableRecord, money: OrderMoney, context: ConversionContext) -> ForeignState:
    """Cash on delivery is paid when the parcel is delivered."""
    state = _STATES.get(order.get("order status").casefold())
    if state is None:
        error = BadCell(f"{order.get('order status')[:40]!r} is not a known status of Tokopedia and TikTok Shop")
        error.field = "order status"
        raise error
    is_cod = order.get("payment method").casefold() in _COD
    paid_at = read_instant(order, "delivered time" if is_cod else "paid time", context, "dmy")
    is_paid = paid_at is not None or state == "completed" if is_cod else state in {"paid", "shipped", "completed"}
    refunded = read_amount(order, "order refund amount")
    is_returned = order.get("cancelation/return type").casefold() in {"return/refund", "pengembalian/refund"}
    return ForeignState(
        is_fulfilled=state in {"shipped", "completed"},
        is_cancelled=state == "cancelled",
        paid="all" if is_paid and state != "cancelled" else ZERO,
        refunded="all" if is_returned and refunded >= (money.total or ZERO) > 0 else refunded,
        paid_at=paid_at,
        method=read_text(order, "payment method"),
    )


ORDERS = FileProfile(
    NAME,
    "orders",
    has_columns(["Order ID", "Seller SKU", "Sku Quantity of return", "Order Amount"]),
    convert_orders,
    list_columns(
        "Order ID|Order Status|Cancelation/Return Type|Seller SKU|Product Name|Variation|Quantity",
        "SKU Unit Original Price|SKU Subtotal Before Discount|SKU Subtotal After Discount",
        "Shipping Fee After Discount|Distance Shipping Fee|Distance Fee|Order Refund Amount",
        "Payment platform discount|Buyer Service Fee|Handling Fee|Shipping Insurance|Item Insurance|Order Amount",
        "Created Time|Paid Time|Delivered Time|Delivery Option|Shipping Provider Name|Buyer Message|Recipient",
        "Phone #|Zipcode|Country|Province|Regency and City|Districts|Villages|Detail Address|Payment Method",
        "Purchase Channel|Seller Note|Tokopedia Invoice Number",
    ),
)
PROFILES = (ORDERS,)
