"""Any spreadsheet, by a mapping of its columns."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import ROUND_UP, Decimal
from functools import partial
from typing import Any

from msgspec import Struct

from sapa.imports.cells import BadCell
from sapa.imports.mappings.types import ImportMapping
from sapa.imports.sources.interface import ConversionContext, Converted, Fields, Records
from sapa.imports.sources.order_fields import ForeignState, build_address, build_customer, build_order
from sapa.imports.sources.order_money import ZERO, ForeignLine, OrderMoney
from sapa.imports.sources.records import (
    Group,
    build_data,
    convert_each,
    convert_groups,
    list_scattered,
    read_cell,
    without_empty,
)
from sapa.imports.sources.spreadsheet_fields import JOINED, MappableField, check_mapping
from sapa.imports.tables.files import HeaderRow, TableRecord
from sapa.imports.tables.types import normalise_header
from sapa.imports.types import Resource
from sapa.imports.values.amounts import DASHES, DecimalSign, decide_decimal_sign, parse_amount_cell, parse_quantity_cell
from sapa.imports.values.contacts import parse_id_cell, parse_phone_cell, split_name, unquote_cell
from sapa.imports.values.dates import DayOrder, decide_day_order, parse_date_cell
from sapa.imports.values.words import find_flag, split_tags
from sapa.values.money import DIGITS

NAME = "spreadsheet"

_CANCELLED = {"batal", "dibatalkan", "cancelled", "canceled", "void"}
_FULFILLED = {"selesai", "terkirim", "dikirim", "diterima", "completed", "fulfilled", "shipped", "delivered", "done"}
_PAID = {"lunas", "paid", "dibayar", "sudah bayar", "sudah dibayar", "settlement", "berhasil", "diproses", "processing"}
_UNPAID = {"", "belum bayar", "belum dibayar", "belum lunas", "pending", "unpaid", "menunggu", "menunggu pembayaran",
           "baru", "new", "open", "utang", "cod"}  # fmt: skip
_REFUNDED = {"refund", "refunded", "dikembalikan", "retur"}
_STATUSES = {"aktif": "active", "active": "active", "draft": "draft", "draf": "draft", "nonaktif": "archived",
             "tidak aktif": "archived", "arsip": "archived", "archived": "archived"}  # fmt: skip


class ColumnReader(Struct, frozen=True):
    """One column: its field, and how its cells are read."""

    key: str
    field: MappableField
    sign: DecimalSign | None
    order: DayOrder | None


Row = Mapping[str, Any]
"""The values of a record by field."""


def convert(
    resource: Resource, mapping: ImportMapping, records: Records, header: HeaderRow, context: ConversionContext
) -> Iterator[Converted]:
    columns = check_mapping(resource, mapping, header.names)
    readers = [_build_reader(key, field, mapping, records, context.currency) for key, field in columns.items()]
    read = partial(_read_row, readers, context)
    keeps = context.keeps_columns or mapping.keep_columns
    unread = {normalise_header(name): name for name in header.names if normalise_header(name) not in columns}
    if resource == "customers":
        return convert_each(records, lambda row: _build_customer(context, read(row), row, unread if keeps else {}))
    by_field = {field.name: key for key, field in reversed(columns.items())}
    key = partial(_read_key, by_field)
    scattered = list_scattered(records, key)

    def read_group(rows: Group) -> list[dict[str, Any]]:
        if lines := scattered.get(key(rows[0])):
            places = " and ".join(lines)
            error = BadCell(f"has rows in several places, from lines {places} on; put them below each other")
            error.field = by_field.get(_get_id_field(by_field), "")
            raise error
        return [read(row) for row in rows]

    if resource == "orders":
        return convert_groups(records, key, lambda rows: _build_order(context, read_group(rows)))
    names: dict[str, str] = {}
    return convert_groups(records, key, lambda rows: _build_product(read_group(rows), names))


def _get_id_field(columns: Mapping[str, str]) -> str:
    return next((name for name in ("orderId", "productId") if name in columns), "name")


def _read_key(columns: dict[str, str], record: TableRecord) -> str:
    """Without a column for its id, a record is alone, but variants of a product follow each other with its name."""
    if (id_field := _get_id_field(columns)) != "name":
        return record.get(columns[id_field])
    if "variant" in columns and record.get(columns["variant"]):
        return record.get(columns["name"])
    return f"line {record.line}"


def _build_reader(
    key: str, field: MappableField, mapping: ImportMapping, records: Records, currency: str
) -> ColumnReader:
    """Decides by all cells of the column how ambiguous ones are read."""
    sign, order = mapping.decimal_sign, mapping.day_order
    cells = (record.get(key) for record in records if isinstance(record, TableRecord))
    if field.kind == "amount" and sign is None:
        sign = decide_decimal_sign(cells, currency)
    if field.kind == "date" and order is None:
        order = decide_day_order(cells)
    return ColumnReader(key, field, sign, order)


def _read_row(readers: list[ColumnReader], context: ConversionContext, record: TableRecord) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for reader in readers:
        if record.get(reader.key) in DASHES:
            continue
        value = read_cell(record, reader.key, partial(_parse, reader, context))
        name = reader.field.name
        if value in (None, "", []):
            continue
        if name in JOINED and name in values:
            values[name] += f", {value}"
        values.setdefault(name, value)
    return values


def _parse(reader: ColumnReader, context: ConversionContext, text: str) -> Any:
    match reader.field.kind:
        case "id":
            return parse_id_cell(text)
        case "phone":
            return parse_phone_cell(text, context.region)
        case "amount":
            return parse_amount_cell(unquote_cell(text), reader.sign)
        case "quantity":
            return parse_quantity_cell(unquote_cell(text))
        case "date":
            return parse_date_cell(unquote_cell(text), context.zone, reader.order)
        case "flag":
            return find_flag(text)
        case "tags":
            return split_tags(text)
        case _:
            return unquote_cell(text)


def _build_customer(context: ConversionContext, row: Row, record: TableRecord, unread: dict[str, str]) -> Fields:
    first, last = split_name(row.get("name", ""))
    address = _build_address(context, row)
    subscribes = row.get("subscribes")
    status = "subscribe" if subscribes else "unsubscribe"
    data = build_data(record, unread)
    if "createdOn" in row:
        data["createdOn"] = row["createdOn"]
    return without_empty(
        {
            "externalId": row.get("externalId"),
            "email": row.get("email"),
            "phoneNumber": row.get("phoneNumber"),
            "firstName": row.get("firstName", first),
            "lastName": row.get("lastName", last),
            "imageUrl": row.get("imageUrl"),
            "tags": row.get("tags"),
            "addresses": [address] if address else [],
            "subscriptionStatus": [] if subscribes is None else [{"app": "CRM", "status": status}],
            "additionalData": data,
        }
    )


def _build_address(context: ConversionContext, row: Row) -> Fields | None:
    lines = {
        name: row.get(f"address.{name}", "") for name in ("address1", "address2", "city", "province", "zip", "country")
    }
    return build_address("", context.region, "", **lines)


def _build_order(context: ConversionContext, rows: list[dict[str, Any]]) -> Fields:
    """What concerns the whole order stands in the first of its rows, or in each."""
    order = {name: value for row in reversed(rows) for name, value in row.items()}
    name = order.get("name") or f"{order.get('firstName', '')} {order.get('lastName', '')}"
    created_at: datetime | None = order.get("createdAt")
    return build_order(
        order.get("orderId"),
        created_at,
        _build_money(rows, order, _choose_unit(context, order)),
        _build_state(order),
        currency=order.get("currency"),
        customer=build_customer(context.region, name, order.get("email", ""), [order.get("phoneNumber", "")]),
        shippingAddress=_build_address(context, order),
        notes=order.get("notes"),
        tags=order.get("tags"),
    )


def _choose_unit(context: ConversionContext, order: Row) -> Decimal:
    digits = DIGITS.get(order.get("currency", ""), DIGITS[context.currency])
    return Decimal(1).scaleb(-digits)


def _build_money(rows: list[dict[str, Any]], order: Row, unit: Decimal) -> OrderMoney:
    has_own_discounts = _has_line_totals(rows, "line.discount", "discount")
    has_line_totals = has_own_discounts or _has_line_totals(rows) or _has_line_totals(rows, "line.discount")
    discount = abs(_add_up(rows, "discount", each=has_own_discounts))
    fee, shipping = _add_up(rows, "fee"), _add_up(rows, "shipping")
    goods: Decimal | None = None
    if len(rows) == 1 and "total" in order:
        goods = order["total"] - shipping - fee + discount
    return OrderMoney(
        lines=[_build_line(row, goods, unit) for row in rows if row.get("line.title")],
        discounts=[{"title": "Discount", "amount": discount}] if discount else [],
        shipping=shipping,
        shipping_title=order.get("shippingMethod"),
        fees=[{"title": "Fee", "amount": fee}] if fee else [],
        tax=_add_up(rows, "tax"),
        total=order.get("total") if not has_line_totals and _repeats(rows, "total") else None,
    )


def _add_up(rows: list[dict[str, Any]], name: str, *, each: bool = False) -> Decimal:
    """The order's amount, which stands in one of its rows or in each; amounts that differ are those of its lines."""
    amounts: list[Decimal] = [row[name] for row in rows if name in row]
    return sum(amounts, ZERO) if each or not _repeats(rows, name) else amounts[0]


def _repeats(rows: list[dict[str, Any]], name: str) -> bool:
    """Whether the column has one value for the whole order, and not one for each line."""
    return len({row[name] for row in rows if name in row}) == 1


def _has_line_totals(rows: list[dict[str, Any]], *discounts: str) -> bool:
    """Whether each row's total is its own: its price times its quantity, less these discounts."""
    return len(rows) > 1 and all(
        "line.price" in row and row.get("total") == row["line.price"] * row.get("line.quantity", 1)
        - sum((abs(row.get(name, ZERO)) for name in discounts), ZERO)
        for row in rows
    )  # fmt: skip


def _build_line(row: Row, goods: Decimal | None, unit: Decimal) -> ForeignLine:
    """`goods` is what the only line of an order costs, for a file without prices. A price is rounded up, and the rest
    is the line's discount."""
    quantity: int = row.get("line.quantity", 1)
    price, discount = row.get("line.price"), row.get("line.discount", ZERO)
    if price is None:
        if goods is None or goods < 0 or quantity < 1:
            raise BadCell("has no price")
        price = ((goods + discount) / quantity).quantize(unit, ROUND_UP)
        discount = price * quantity - goods
    return ForeignLine(row["line.title"], quantity, price, discount, row.get("line.sku"))


def _build_state(order: Row) -> ForeignState:
    status, payment = (order.get(name, "").casefold() for name in ("orderStatus", "paymentStatus"))
    for name, word in (("orderStatus", status), ("paymentStatus", payment)):
        if word not in _CANCELLED | _FULFILLED | _PAID | _UNPAID | _REFUNDED:
            error = BadCell(f"{word[:40]!r} is not a known status; write lunas, belum bayar, dikirim, selesai or batal")
            error.field = name
            raise error
    is_paid = payment in _PAID | _REFUNDED or (not payment and status in _PAID | _FULFILLED | _REFUNDED)
    return ForeignState(
        is_fulfilled=status in _FULFILLED,
        is_cancelled=status in _CANCELLED,
        paid="all" if is_paid and status not in _CANCELLED else ZERO,
        refunded="all" if _REFUNDED & {status, payment} else ZERO,
        method=order.get("paymentMethod"),
    )


def _build_product(rows: list[dict[str, Any]], names: dict[str, str]) -> Fields:
    """`names` are those of earlier products by the ids that were made of them."""
    first = rows[0]
    name = first.get("name", "")
    media = first.get("media")
    return without_empty(
        {
            "productId": first.get("productId") or _build_id(first.get("sku") if len(rows) == 1 else None, name, names),
            "name": name,
            "description": first.get("description"),
            "status": _STATUSES.get(first.get("status", "").casefold()),
            "tags": first.get("tags"),
            "types": first.get("types"),
            "media": media if media and re.match(r"https?://", media) else None,
            "variants": [_build_variant(row, name) for row in rows],
        }
    )


def _build_variant(row: Row, product: str) -> Fields:
    if "price" not in row:
        raise BadCell("has no price")
    return without_empty(
        {
            "title": row.get("variant") or product,
            "key": None if row.get("variant") else "default",
            "sku": row.get("sku"),
            "compareAtPrice": row.get("compareAtPrice"),
        }
    ) | {
        "price": row["price"],
        "inventoryQuantity": max(0, row["inventoryQuantity"]) if "inventoryQuantity" in row else None,
    }


def _build_id(sku: str | None, name: str, names: dict[str, str]) -> str:
    """Made of the SKU or of the name, so that a second import finds the product."""
    whole = " ".join(name.casefold().split())
    id = sku or (re.sub(r"[^a-z0-9]+", "-", whole).strip("-") or whole)[:255].strip()
    if id in names:
        error = BadCell(
            f"would replace {names[id][:60]!r}, because both get the id {id[:60]!r}; add a column with product ids"
        )
        error.field = "name"
        raise error
    names[id] = whole
    return id
