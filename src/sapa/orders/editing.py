"""Changes what an order consists of: its lines, discounts, shipping lines, fees and taxes. Pure: no database."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from sapa.http.errors import Invalid
from sapa.orders.document import build_line
from sapa.orders.pricing.adjustments import (
    build_discounts,
    build_fees,
    build_line_discount,
    build_shipping_lines,
    build_tax_lines,
    parse_field,
)
from sapa.orders.pricing.arithmetic import MinorUnit, PricedOrder, divide_half_up, price_order
from sapa.orders.pricing.types import LineDiscount, LineItem
from sapa.orders.revision import Revision
from sapa.orders.settlement.balance import fit_to
from sapa.orders.settlement.types import InvalidTransition
from sapa.orders.transitions import derive_fulfilment, with_balance
from sapa.orders.types import LineItemPatch, OrderPatch
from sapa.products.types import VariantOnSale
from sapa.values.company import Company

EDITED = ("line_items", "discounts", "shipping_lines", "fees", "tax_lines")


def is_edit(patch: OrderPatch) -> bool:
    return any(getattr(patch, name) is not UNSET for name in EDITED)


def edit(
    revision: Revision, patch: OrderPatch, company: Company, currency: str, variants: Mapping[str, VariantOnSale]
) -> Revision:
    """The order with new contents, priced again; raises Invalid or InvalidTransition."""
    if revision.state.status != "active":
        raise InvalidTransition(
            f"Lines, discounts, shipping, fees and taxes change only while the order is active; it is"
            f" {revision.state.status}."
        )
    priced = edit_priced(revision.priced, patch, company, currency, variants)
    balance = fit_to(revision.balance, currency, revision.priced, priced)
    return derive_fulfilment(with_balance(msgspec.structs.replace(revision, priced=priced), balance))


def edit_priced(
    before: PricedOrder, patch: OrderPatch, company: Company, currency: str, variants: Mapping[str, VariantOnSale]
) -> PricedOrder:
    """Discounts and taxes that were given as a percentage are computed again, and the order's discounts are spread
    again."""
    lines = before.line_items
    if patch.line_items is not UNSET:
        lines = _edit_lines(lines, patch.line_items, company, currency, variants)
    discounts, shipping, fees, taxes = patch.discounts, patch.shipping_lines, patch.fees, patch.tax_lines
    return price_order(
        currency,
        lines,
        before.discounts if discounts is UNSET else build_discounts(discounts or (), currency),
        before.shipping_lines if shipping is UNSET else build_shipping_lines(shipping or (), currency),
        before.fees if fees is UNSET else build_fees(fees or (), currency),
        before.tax_lines if taxes is UNSET else build_tax_lines(taxes or (), currency),
    )


def _edit_lines(
    before: list[LineItem],
    patches: list[LineItemPatch],
    company: Company,
    currency: str,
    variants: Mapping[str, VariantOnSale],
) -> list[LineItem]:
    existing = {line.id: line for line in before}
    lines: list[LineItem] = []
    for index, patch in enumerate(patches):
        if patch.id is None:
            lines.append(build_line(index, patch, company, currency, variants))
            continue
        line = existing.pop(patch.id, None)
        if line is None:
            state = "is given twice" if any(patch.id == one.id for one in lines) else "is not the id of a line"
            raise Invalid.field(f"lineItems[{index}].id", f"{state}; leave it out for a new line")
        lines.append(_edit_line(f"lineItems[{index}]", line, patch, currency))
    for line in existing.values():
        _require_units(line, 0)
    return lines


def _edit_line(field: str, line: LineItem, patch: LineItemPatch, currency: str) -> LineItem:
    _require_units(line, patch.quantity)
    _refuse_other_variant(field, line, patch)
    price = line.price if patch.price is None else parse_field(f"{field}.price", patch.price, currency)
    title = line.title if patch.title is None else patch.title
    if line.product_variant is not None and (price, title) != (line.price, line.title):
        name = "price" if price != line.price else "title"
        raise Invalid.field(f"{field}.{name}", "comes from the product variant; leave it out")
    if not title.strip():
        raise Invalid.field(f"{field}.title", "must not be blank")
    discount = (
        _reduce_discount(line, patch.quantity, currency)
        if patch.discount is UNSET
        else build_line_discount(f"{field}.discount", patch.discount, currency)
    )
    return msgspec.structs.replace(line, quantity=patch.quantity, price=price, title=title, discount=discount)


def _require_units(line: LineItem, quantity: int) -> None:
    """Only open units can be taken off: those that were refunded would be taken off the total and the stock twice.
    Where fulfilled units came back, one that is added could not be told from them and would never be open."""
    least = line.quantity - line.open_quantity
    if quantity < least:
        raise InvalidTransition(
            f"The line {line.id} cannot have {quantity} units: {line.fulfilled_quantity} are fulfilled and"
            f" {line.refunded_quantity} refunded. It must have at least {least}."
        )
    if quantity > line.quantity and line.fulfilled_quantity + line.refunded_quantity > line.quantity:
        raise InvalidTransition(
            f"Units of the line {line.id} were returned, so it cannot have more than {line.quantity}. Add a line"
            " without an id for more of them."
        )


def _refuse_other_variant(field: str, line: LineItem, patch: LineItemPatch) -> None:
    sold = None if line.product_variant is None else line.product_variant.id
    if patch.product_variant_id not in {None, sold}:
        raise Invalid.field(
            f"{field}.productVariantId", "cannot change; leave out the id to order another variant in a new line"
        )


def _reduce_discount(line: LineItem, quantity: int, currency: str) -> LineDiscount | None:
    """A discount that was given as an amount belongs to the units that it was given for."""
    discount = line.discount
    if discount is None or discount.percentage is not None or quantity >= line.quantity:
        return discount
    unit = MinorUnit(currency)
    amount = divide_half_up(unit.count(discount.amount) * quantity, line.quantity)
    return msgspec.structs.replace(discount, amount=unit.amount(amount))
