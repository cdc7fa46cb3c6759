"""Imports orders: places new ones and moves them to their statuses, updates existing ones."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.db.pool import Tx
from sapa.http.errors import ApiError, Invalid
from sapa.http.query_string import BadValue, parse_date_time
from sapa.imports import queries
from sapa.imports.attempts import Result, StoreAlone, StoreContext, attempt
from sapa.imports.rows import FileRow
from sapa.imports.types import Outcome, Problem, build_problem
from sapa.orders import actions
from sapa.orders.bulk import actions as bulk
from sapa.orders.bulk.actions import BuiltOrder, BulkOrder, BulkPayment, BulkRefund
from sapa.orders.document import build_new_order, with_sold
from sapa.orders.editing import EDITED
from sapa.orders.pricing.types import DiscountIn, LineDiscountIn, LineItemVariant, ShippingLineIn, TaxLineIn
from sapa.orders.settlement.types import PaymentIn, RefundIn
from sapa.orders.types import (
    KnownOrder,
    LineItemIn,
    Order,
    OrderCustomerIn,
    OrderIn,
    OrderPatch,
    OwnOrderId,
    ShippingAddressIn,
)
from sapa.products import stock
from sapa.products.types import VariantOnSale
from sapa.values.change_actor import ChangeActor
from sapa.values.company import Company
from sapa.values.instants import truncate_to_milliseconds
from sapa.values.money import DIGITS, BadMoney, parse_amount
from sapa.values.web_addresses import WEB_ADDRESS

Text = Annotated[str, Meta(min_length=1, max_length=255)]
Url = Annotated[str, Meta(max_length=2048, pattern=WEB_ADDRESS)]

IMPORT = ChangeActor("import")
Line = TypeVar("Line", LineItemIn, ShippingLineIn)
Share = TypeVar("Share", LineDiscountIn, DiscountIn, TaxLineIn)


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
    sku: Annotated[str, Meta(max_length=255)] | None = None
    """The SKU of one of the company's variants, for a line with a title and a price of its own."""
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
    created_at: datetime | None = None


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
    outstanding: Decimal | None = None
    order_id: OwnOrderId | None = None
    customer_id: Annotated[str, Meta(max_length=100)] | None = None
    customer: CustomerOfOrder | None = None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")] | None = None
    total: Decimal | None = None
    created_at: str | None = None
    id: Any = None
    order_number: Any = None
    updated_at: Any = None

    @property
    def is_export(self) -> bool:
        """Whether it comes from an export of ours: then an edit may have lowered its total below what was paid."""
        return self.outstanding is not None


class PreparedOrder(Struct, frozen=True):
    """A row, and the order that it is if it is new, or why it cannot be one."""

    row: OrderRow
    new: BulkOrder | BuiltOrder | Problem


def prepare_order(
    context: StoreContext, row: OrderRow, on_sale: Mapping[str, VariantOnSale] = MappingProxyType({})
) -> PreparedOrder:
    try:
        return PreparedOrder(row, bulk.build_ahead(_build_bulk_order(context, row, on_sale)))
    except ApiError as error:
        return PreparedOrder(row, build_problem(0, error))


async def store_orders(tx: Tx, context: StoreContext, rows: Sequence[FileRow]) -> list[Result]:
    """Stores all rows together. Raises StoreAlone with the lines that need a transaction of their own.

    Those lock products, or an order that exists; after a number of another row that could deadlock with the API.
    """
    existing = await _list_existing(tx, context, [_row_of(row) for row in rows])
    alone = _list_alone(context, rows, existing)
    if len(rows) == 1 and alone:
        return [await attempt(tx, rows[0].line, partial(_store_alone, tx, context, _row_of(rows[0])))]
    if alone:
        raise StoreAlone(alone)
    return await _place_together(tx, context, rows, existing)


async def _list_existing(tx: Tx, context: StoreContext, rows: Sequence[OrderRow]) -> dict[str, KnownOrder]:
    order_ids = [row.order_id for row in rows if row.order_id]
    return await bulk.list_by_order_id(tx, context.company, order_ids)


def _row_of(row: FileRow) -> OrderRow:
    prepared: Any = row.value
    found: OrderRow = prepared.row
    return found


def _list_alone(context: StoreContext, rows: Sequence[FileRow], existing: dict[str, KnownOrder]) -> set[int]:
    """The lines of rows that take stock, change an existing order, or name an order that another row has as well."""
    alone, seen = set(), set()
    for row in rows:
        value = _row_of(row)
        order = existing.get(value.order_id or "")
        takes_stock = order is None and context.effects and _names_products(value)
        if takes_stock or value.order_id in seen or (order is not None and not _is_unchanged(context, order, value)):
            alone.add(row.line)
        if value.order_id:
            seen.add(value.order_id)
    return alone


def _names_products(row: OrderRow) -> bool:
    return any(line.product_variant_id or line.product_variant or line.sku for line in row.line_items or ())


def _is_unchanged(context: StoreContext, order: KnownOrder, row: OrderRow) -> bool:
    try:
        return bulk.has_same_contents(order, _patch(context, order, row)) and not _list_new_money(order, row)
    except ApiError:
        return False


async def _place_together(
    tx: Tx, context: StoreContext, rows: Sequence[FileRow], existing: dict[str, KnownOrder]
) -> list[Result]:
    new: dict[int, PreparedOrder] = {
        index: prepared for index, row in enumerate(rows) if (prepared := _find_new(row, existing)) is not None
    }
    variants = await _list_variants(tx, context, [prepared.row for prepared in new.values()])
    on_sale = await stock.list_on_sale(tx, context.company, _list_variant_ids(new.values()))
    results: list[Result] = ["unchanged"] * len(rows)
    orders: dict[int, BulkOrder | BuiltOrder] = {}
    for index, prepared in new.items():
        if on_sale and _list_variant_ids([prepared]):
            prepared = prepare_order(context, prepared.row, on_sale)
        if isinstance(prepared.new, Problem):
            results[index] = msgspec.structs.replace(prepared.new, line=rows[index].line)
        else:
            orders[index] = _with_variants(prepared.new, prepared.row, variants)
    refusals = await bulk.place_together(tx, context.company, list(orders.values()), actor=IMPORT) if orders else []
    for index, refusal in zip(orders, refusals, strict=True):
        results[index] = build_problem(rows[index].line, refusal) if refusal else "created"
    return results


def _list_variant_ids(orders: Iterable[PreparedOrder]) -> list[str]:
    """The variants that lines name by id; only history has them here, because they take no stock."""
    lines = (line for order in orders for line in order.row.line_items or ())
    return list(dict.fromkeys(line.product_variant_id for line in lines if line.product_variant_id))


def _find_new(row: FileRow, existing: dict[str, KnownOrder]) -> PreparedOrder | None:
    prepared: Any = row.value
    return None if prepared.row.order_id in existing else prepared


async def _list_variants(tx: Tx, context: StoreContext, rows: Sequence[OrderRow]) -> dict[str, VariantOnSale]:
    """The products that lines name by SKU."""
    skus = {line.sku for row in rows for line in row.line_items or () if line.sku and not line.product_variant_id}
    return await stock.list_by_sku(tx, context.company, sorted(skus))


def _with_variants(
    new: BulkOrder | BuiltOrder, row: OrderRow, variants: Mapping[str, VariantOnSale]
) -> BulkOrder | BuiltOrder:
    """With the products that its lines name by SKU."""
    found = [_find_variant(line, variants) for line in row.line_items or ()]
    if not any(found):
        return new
    order = new.order if isinstance(new, BuiltOrder) else new
    return msgspec.structs.replace(order, new_order=with_sold(order.new_order, found))


def _build_bulk_order(context: StoreContext, row: OrderRow, on_sale: Mapping[str, VariantOnSale]) -> BulkOrder:
    body = _build_order(row)
    return BulkOrder(
        new_order=with_sold(build_new_order(context.company, body, on_sale), _sold(context.company, row)),
        customer_id=body.customer_id,
        contact=None if body.customer is None else bulk.build_contact_profile(context.company, body.customer),
        placed_at=None if row.created_at is None else _parse_created_at(row.created_at),
        payments=[_build_payment(payment) for payment in row.payments or () if payment.voided_at is None],
        refunds=_list_refunds(row),
        is_export=row.is_export,
        statuses=_statuses(row),
        is_history=not context.effects,
    )


def _build_payment(payment: PaymentRow) -> BulkPayment:
    return BulkPayment(payment.amount, payment.method, payment.reference, payment.paid_at)


def _list_refunds(row: OrderRow) -> list[BulkRefund]:
    """Without a status, the refunds decide it; otherwise the status refunds what they would. A refund of 0 has units
    only, which a file does not bring in."""
    is_part = row.status != "refunded" and row.financial_status == "partially_refunded"
    refunds = row.refunds if is_part or row.financial_status is UNSET else None
    return [
        BulkRefund(RefundIn(amount=refund.amount, reason=refund.reason), refund.created_at)
        for refund in refunds or ()
        if refund.amount
    ]


def _statuses(row: OrderRow) -> OrderPatch:
    return OrderPatch(
        status=row.status, fulfillment_status=row.fulfillment_status, financial_status=row.financial_status
    )


async def _store_alone(tx: Tx, context: StoreContext, row: OrderRow) -> Outcome:
    company = context.company
    existing = (await _list_existing(tx, context, [row])).get(row.order_id or "")
    if existing is None:
        await _place(tx, context, row)
        return "created"
    for change in _list_new_money(existing, row):
        if isinstance(change, PaymentIn):
            await actions.record_payment(tx, company, existing.id, change, actor=IMPORT)
        else:
            await actions.refund(tx, company, existing.id, change, actor=IMPORT)
    await actions.update(tx, company, existing.id, _patch(context, existing, row), actor=IMPORT)
    return "unchanged" if await _list_existing(tx, context, [row]) == {existing.order_id: existing} else "updated"


def _list_new_money(order: Order, row: OrderRow) -> list[PaymentIn | RefundIn]:
    """What a later export of the same shop shows as paid and refunded since the last import."""
    if row.financial_status is not UNSET or (row.payments is None and row.refunds is None):
        return []
    paid = sum((one.amount for one in row.payments or () if one.voided_at is None), Decimal(0))
    refunded = sum((one.amount for one in row.refunds or ()), Decimal(0))
    changes: list[PaymentIn | RefundIn] = []
    if (due := min(paid - order.total_paid, order.outstanding)) > 0:
        last = (row.payments or [PaymentRow(amount=paid)])[-1]
        changes.append(PaymentIn(amount=due, method=last.method or "other", paid_at=last.paid_at))
    if refunded > order.total_refunded:
        changes.append(RefundIn(amount=refunded - order.total_refunded))
    return changes


async def _place(tx: Tx, context: StoreContext, row: OrderRow) -> Order:
    company = context.company
    variants = await _list_variants(tx, context, [row])
    named = [_find_variant(line, variants) for line in row.line_items or ()]
    sold = [own or other for own, other in zip(_sold(company, row), named, strict=True)]
    placed_at = None if row.created_at is None else await _get_past_instant(tx, company, row.created_at)
    order = await actions.place(tx, company, _build_order(row), placed_at=placed_at, sold=sold, actor=IMPORT)
    status = await _record_money(tx, company, order, row, placed_at)
    for patch in bulk.list_patches(_statuses(row), is_unpaid=status == "pending", is_export=row.is_export):
        order = await actions.update(tx, company, order.id, patch, actor=IMPORT)
    return order


async def _record_money(tx: Tx, company: Company, order: Order, row: OrderRow, placed_at: datetime | None) -> str:
    """Records the payments and refunds of the row, at the order's time if they have none of their own; returns the
    financialStatus that follows from them."""
    if not row.payments and not row.refunds:
        return order.financial_status
    for payment in row.payments or ():
        if payment.voided_at is None:
            body = PaymentIn(
                amount=payment.amount,
                method=payment.method or "",
                reference=payment.reference,
                paid_at=payment.paid_at or placed_at,
            )
            has_method = payment.method is not None
            await actions.record_past_payment(
                tx, company, order.id, body, has_method=has_method, may_exceed=row.is_export, actor=IMPORT
            )
    for refund in _list_refunds(row):
        await actions.refund(tx, company, order.id, refund.body, at=refund.at or placed_at, actor=IMPORT)
    current = await actions.find(tx, company, order.id)
    return order.financial_status if current is None else current.financial_status


def _build_order(row: OrderRow) -> OrderIn:
    if row.line_items is UNSET:
        raise Invalid.field("lineItems", "is required for a new order")
    return OrderIn(
        line_items=[_with_one_share(line) for line in row.line_items],
        order_id=row.order_id,
        customer_id=row.customer_id,
        customer=row.customer,
        shipping_address=_build_address(row) or None,
        currency=row.currency,
        total=row.total,
        discounts=[_one_share(discount, "percentage") for discount in row.discounts or ()],
        shipping_lines=[_with_one_share(line) for line in row.shipping_lines or ()],
        fees=list(row.fees or ()),
        tax_lines=[_one_share(line, "rate") for line in row.tax_lines or ()],
        notes=row.notes or None,
        tags=row.tags or None,
    )


def _with_one_share(line: Line) -> Line:
    if line.discount is None:
        return line
    return msgspec.structs.replace(line, discount=_one_share(line.discount, "percentage"))


def _one_share(share: Share, percentage: str) -> Share:
    """An export has the percentage and the amount that follows from it; the percentage alone is enough."""
    return share if getattr(share, percentage) is None else msgspec.structs.replace(share, amount=None)


def _build_address(row: OrderRow) -> ShippingAddressIn | None | UnsetType:
    """Without its id: an existing address keeps its own if the content is equal."""
    address = row.shipping_address
    return msgspec.structs.replace(address, id=None) if address and address.id is not None else address


def _patch(context: StoreContext, order: KnownOrder, row: OrderRow) -> OrderPatch:
    """What an existing order takes from a row."""
    fields = {name: getattr(row, name) for name in OrderPatch.__struct_fields__ if name not in EDITED}
    if context.is_foreign and row.status == order.archived_from:
        fields["status"] = UNSET
    return OrderPatch(**fields | {"shipping_address": _build_address(row)})


async def _get_past_instant(tx: Tx, company: Company, text: str) -> datetime:
    instant = _parse_created_at(text)
    if instant < actions.EARLIEST:
        raise Invalid.field("createdAt", f"must not be before {actions.EARLIEST.year}")
    # Truncated, because PostgreSQL would round, and the current instant could round into the future.
    instant = truncate_to_milliseconds(instant)
    if not await queries.is_past(tx, company.id, instant):
        raise Invalid.field("createdAt", "must not be in the future")
    return instant


def _parse_created_at(text: str) -> datetime:
    try:
        return parse_date_time(text)
    except BadValue as error:
        raise Invalid.field("createdAt", str(error)) from None


def _sold(company: Company, row: OrderRow) -> list[LineItemVariant | None]:
    """The variant that each line sold, as the file has it."""
    currency = row.currency or company.currency
    return [
        None if line.product_variant_id else _build_variant(f"lineItems[{index}]", line.product_variant, currency)
        for index, line in enumerate(row.line_items or [])
    ]


def _find_variant(line: LineRow, variants: Mapping[str, VariantOnSale]) -> LineItemVariant | None:
    """The product with the line's SKU as it is now, unless the file has the one that was sold."""
    named = variants.get(line.sku or "")
    if named is None or line.product_variant_id or line.product_variant is not None:
        return None
    return LineItemVariant(*(getattr(named, name) for name in LineItemVariant.__struct_fields__))


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
