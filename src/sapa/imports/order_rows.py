"""Imports orders: places new ones and moves them to their statuses, updates existing ones."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.db.pool import Tx
from sapa.http.errors import Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.imports import queries
from sapa.imports.attempts import Result, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome
from sapa.orders import actions
from sapa.orders.editing import EDITED
from sapa.orders.pricing.types import DiscountIn, LineDiscountIn, LineItemVariant, ShippingLineIn, TaxLineIn
from sapa.orders.settlement.types import PaymentIn, RefundIn
from sapa.orders.types import (
    LineItemIn,
    Order,
    OrderCustomerIn,
    OrderIn,
    OrderPatch,
    OwnOrderId,
)
from sapa.values.actor import Actor
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.money import DIGITS, BadMoney, parse_amount
from sapa.values.web_addresses import WEB_ADDRESS

Text = Annotated[str, Meta(min_length=1, max_length=255)]
Url = Annotated[str, Meta(max_length=2048, pattern=WEB_ADDRESS)]

IMPORT = Actor("import")
Share = TypeVar("Share", LineDiscountIn, DiscountIn, TaxLineIn)

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
    total: Any = None
    discount_allocation: Any = None
    tax: Any = None
    charged: Any = None
    fulfilled_quantity: Any = None
    refunded_quantity: Any = None


class ShippingRow(ShippingLineIn, frozen=True, kw_only=True):
    total: Any = None
    tax: Any = None
    charged: Any = None


class PaymentRow(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A payment of an imported order. One that was voided is skipped."""

    amount: Decimal
    method: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    reference: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    paid_at: datetime | None = None
    id: Any = None
    created_at: Any = None
    voided_at: Any = None


class RefundRow(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A refund of an imported order, by its amount."""

    amount: Decimal
    reason: Annotated[str, Meta(max_length=1000)] | None = None
    id: Any = None
    shipping: Any = None
    adjustment: Any = None
    line_items: Any = None
    created_at: Any = None


class CustomerOfOrder(OrderCustomerIn, frozen=True, kw_only=True):
    id: Any = None


class OrderRow(OrderPatch, frozen=True, kw_only=True):
    """An order as the API accepts it, plus its statuses and the columns of an export."""

    line_items: Annotated[list[LineRow], Meta(min_length=1, max_length=500)] | UnsetType = UNSET  # type: ignore[assignment]
    shipping_lines: list[ShippingRow] | None | UnsetType = UNSET  # type: ignore[assignment]
    payments: list[PaymentRow] | None = None
    refunds: list[RefundRow] | None = None
    fulfillments: Any = None
    subtotal: Any = None
    discount_total: Any = None
    shipping_total: Any = None
    fee_total: Any = None
    tax_total: Any = None
    total_paid: Any = None
    total_refunded: Any = None
    outstanding: Any = None
    order_id: OwnOrderId | None = None
    customer_id: Annotated[str, Meta(max_length=100)] | None = None
    customer: CustomerOfOrder | None = None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")] | None = None
    total: Decimal | None = None
    created_at: str | None = None
    id: Any = None
    order_number: Any = None
    updated_at: Any = None


async def store_orders(tx: Tx, company: Company, rows: Sequence[FileRow]) -> list[Result]:
    return [await attempt(tx, row.line, partial(_store, tx, company, row.value)) for row in rows]


async def _store(tx: Tx, company: Company, row: Any) -> Outcome:
    existing = await actions.find_by_order_id(tx, company, row.order_id) if row.order_id else None
    if existing is None:
        await _place(tx, company, row)
        return "created"
    order = await actions.update(tx, company, existing.id, _patch(row), by=IMPORT)
    return "unchanged" if order == existing else "updated"


async def _place(tx: Tx, company: Company, row: OrderRow) -> Order:
    sold = _sold(company, row)
    placed_at = None if row.created_at is None else await _get_past_instant(tx, company, row.created_at)
    order = await actions.place(tx, company, _build_order(row), placed_at=placed_at, sold=sold, by=IMPORT)
    status = await _record_money(tx, company, order, row)
    for patch in _transitions(row, status):
        order = await actions.update(tx, company, order.id, patch, by=IMPORT)
    return order


async def _record_money(tx: Tx, company: Company, order: Order, row: OrderRow) -> str:
    """Records the payments and refunds of the row; returns the financialStatus that follows from them."""
    for payment in row.payments or ():
        if payment.voided_at is None and payment.method is not None:
            body = PaymentIn(
                amount=payment.amount, method=payment.method, reference=payment.reference, paid_at=payment.paid_at
            )
            await actions.record_payment(tx, company, order.id, body, by=IMPORT)
        elif payment.voided_at is None:
            await actions.update(tx, company, order.id, OrderPatch(financial_status="paid"), by=IMPORT)
    if row.status != "refunded" and row.financial_status == "partially_refunded":
        for refund in row.refunds or ():
            body_of = RefundIn(amount=refund.amount, reason=refund.reason)
            await actions.refund(tx, company, order.id, body_of, by=IMPORT)
    current = await actions.find(tx, company, order.id)
    return order.financial_status if current is None else current.financial_status


def _build_order(row: OrderRow) -> OrderIn:
    if row.line_items is UNSET:
        raise Invalid.field("lineItems", "is required for a new order")
    customer = None if row.customer is None else OrderCustomerIn(**_fields(row.customer, OrderCustomerIn))
    return OrderIn(
        line_items=[_build_line(line) for line in row.line_items],
        order_id=row.order_id,
        customer_id=row.customer_id,
        customer=customer,
        shipping_address=_patch(row).shipping_address or None,
        currency=row.currency,
        total=row.total,
        discounts=[_one_share(discount, "percentage") for discount in row.discounts or ()],
        shipping_lines=[_build_shipping(line) for line in row.shipping_lines or ()],
        fees=list(row.fees or ()),
        tax_lines=[_one_share(line, "rate") for line in row.tax_lines or ()],
        notes=row.notes or None,
        tags=row.tags or None,
    )


def _build_line(line: LineRow) -> LineItemIn:
    fields = _fields(line, LineItemIn)
    return LineItemIn(**fields | {"discount": line.discount and _one_share(line.discount, "percentage")})


def _build_shipping(line: ShippingRow) -> ShippingLineIn:
    fields = _fields(line, ShippingLineIn)
    return ShippingLineIn(**fields | {"discount": line.discount and _one_share(line.discount, "percentage")})


def _one_share(share: Share, percentage: str) -> Share:
    """An export has the percentage and the amount that follows from it; the percentage alone is enough."""
    return share if getattr(share, percentage) is None else msgspec.structs.replace(share, amount=None)


def _fields(value: Struct, kind: type[Struct]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in kind.__struct_fields__}


def _patch(row: OrderRow) -> OrderPatch:
    """What an existing order takes from a row. Without the address's id: an existing address keeps its own if the
    content is equal."""
    fields = _fields(row, OrderPatch) | dict.fromkeys(EDITED, UNSET)
    if address := row.shipping_address:
        fields["shipping_address"] = msgspec.structs.replace(address, id=None)
    return OrderPatch(**fields)


def _transitions(row: OrderRow, paid: str) -> Iterator[OrderPatch]:
    """From a new order to its statuses: a refunded order was paid first."""
    if row.financial_status == "refunded" and row.status != "refunded" and paid == "pending":
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
