"""Imports orders: places new ones and moves them to their statuses, updates existing ones."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.imports import queries
from sapa.imports.attempts import Result, StoreContext, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome
from sapa.orders import actions
from sapa.orders.types import (
    LineItemIn,
    LineItemVariant,
    Order,
    OrderCustomerIn,
    OrderIn,
    OrderPatch,
    OwnOrderId,
)
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.money import DIGITS, BadMoney, parse_amount
from sapa.values.web_addresses import WEB_ADDRESS

Text = Annotated[str, Meta(min_length=1, max_length=255)]
Url = Annotated[str, Meta(max_length=2048, pattern=WEB_ADDRESS)]

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)


class SoldVariant(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The variant that a line of an imported order had sold."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    key: Text
    price: Decimal
    compare_at_price: Decimal | None = None
    inventory_sku: Text | None = None
    media: Url | None = None


class LineRow(LineItemIn, frozen=True, kw_only=True):
    id: Any = None
    product_variant: SoldVariant | None = None


class CustomerOfOrder(OrderCustomerIn, frozen=True, kw_only=True):
    id: Any = None


class OrderRow(OrderPatch, frozen=True, kw_only=True):
    """An order as the API accepts it, plus its statuses and the columns of an export."""

    line_items: Annotated[list[LineRow], Meta(min_length=1, max_length=500)] | UnsetType = UNSET
    order_id: OwnOrderId | None = None
    customer_id: Annotated[str, Meta(max_length=100)] | None = None
    customer: CustomerOfOrder | None = None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")] | None = None
    total: Decimal | None = None
    created_at: str | None = None
    id: Any = None
    order_number: Any = None
    updated_at: Any = None


async def store_orders(tx: Tx, context: StoreContext, rows: Sequence[FileRow]) -> list[Result]:
    return [await attempt(tx, row.line, partial(_store, tx, context.company, row.value)) for row in rows]


async def _store(tx: Tx, company: Company, row: Any) -> Outcome:
    existing = await actions.find_by_order_id(tx, company, row.order_id) if row.order_id else None
    if existing is None:
        await _place(tx, company, row)
        return "created"
    order = await actions.update(tx, company, existing.id, _patch(row))
    return "unchanged" if order == existing else "updated"


async def _place(tx: Tx, company: Company, row: OrderRow) -> Order:
    sold = _sold(company, row)
    placed_at = None if row.created_at is None else await _get_past_instant(tx, company, row.created_at)
    order = await actions.place(tx, company, _build_order(row), placed_at=placed_at, sold=sold)
    for patch in _transitions(row):
        order = await actions.update(tx, company, order.id, patch)
    return order


def _build_order(row: OrderRow) -> OrderIn:
    if row.line_items is UNSET:
        raise Invalid.field("lineItems", "is required for a new order")
    customer = None if row.customer is None else OrderCustomerIn(**_fields(row.customer, OrderCustomerIn))
    return OrderIn(
        line_items=[LineItemIn(**_fields(line, LineItemIn)) for line in row.line_items],
        order_id=row.order_id,
        customer_id=row.customer_id,
        customer=customer,
        shipping_address=_patch(row).shipping_address or None,
        currency=row.currency,
        total=row.total,
        notes=row.notes or None,
        tags=row.tags or None,
    )


def _fields(value: Struct, kind: type[Struct]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in kind.__struct_fields__}


def _patch(row: OrderRow) -> OrderPatch:
    """Without the address's id: an existing address keeps its own if the content is equal."""
    fields = _fields(row, OrderPatch)
    if address := row.shipping_address:
        fields["shipping_address"] = msgspec.structs.replace(address, id=None)
    return OrderPatch(**fields)


def _transitions(row: OrderRow) -> Iterator[OrderPatch]:
    """From a new order to its statuses: a refunded order was paid first."""
    if row.financial_status == "refunded" and row.status != "refunded":
        yield OrderPatch(financial_status="paid")
    patch = OrderPatch(
        status=row.status, fulfillment_status=row.fulfillment_status, financial_status=row.financial_status
    )
    if patch != OrderPatch():
        yield patch


async def _get_past_instant(tx: Tx, company: Company, text: str) -> datetime:
    try:
        instant = parse_date_time(text)
    except BadValue as error:
        raise Invalid.field("createdAt", str(error)) from None
    if instant < EARLIEST:
        raise Invalid.field("createdAt", f"must not be before {EARLIEST.year}")
    # Truncated, because PostgreSQL would round, and the current instant could round into the future.
    instant = truncate_to_milliseconds(instant)
    if not await queries.is_past(tx, company.id, instant):
        raise Invalid.field("createdAt", "must not be in the future")
    return instant


def _sold(company: Company, row: OrderRow) -> list[LineItemVariant | None]:
    lines = row.line_items or []
    currency = row.currency or company.currency
    return [
        None if line.product_variant_id else _build_variant(f"lineItems[{index}]", line.product_variant, currency)
        for index, line in enumerate(lines)
    ]


def _build_variant(line: str, variant: SoldVariant | None, currency: str) -> LineItemVariant | None:
    if variant is None or currency not in DIGITS:
        return None
    price = _amount(f"{line}.productVariant.price", variant.price, currency)
    before = variant.compare_at_price
    compared = None if before is None else _amount(f"{line}.productVariant.compareAtPrice", before, currency)
    return LineItemVariant(variant.id, variant.key, price, compared, variant.inventory_sku, variant.media)


def _amount(field: str, amount: Decimal, currency: str) -> Decimal:
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None
