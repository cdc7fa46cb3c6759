"""The money of WooCommerce's orders, as the plugin Advanced Order Export writes it.

An item's cost is that of one unit after coupons and without tax, and its quantity lacks the units that were refunded
since. The subtotal is before coupons and refunds, so it tells what was ordered and at which price.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

import msgspec

from sapa.imports.sources.interface import ConversionContext, Fields
from sapa.imports.sources.order_money import ZERO, ForeignLine, OrderMoney
from sapa.imports.sources.records import (
    Group,
    first_filled,
    read_amount,
    read_quantity,
    read_text,
    without_empty,
)
from sapa.imports.tables.files import TableRecord
from sapa.imports.values.amounts import DecimalSign
from sapa.values.money import DIGITS


def build_order_money(rows: Group, sign: DecimalSign | None, context: ConversionContext) -> OrderMoney:
    """The order's cells stand in any of its rows."""
    order = first_filled(rows, "order total amount")
    unit = Decimal(1).scaleb(-DIGITS[context.currency])
    discount = read_amount(order, "cart discount amount", sign)
    subtotal = read_amount(order, "order subtotal amount", sign) if order.get("order subtotal amount") else None
    lines = _list_lines(rows, sign, unit)
    if read_amount(order, "order refund amount", sign) or any(line.quantity == 0 for line in lines):
        lines = _add_refunded_units(lines, None if subtotal is None else subtotal - discount, unit)
    if discount and not _is_before_coupons(lines, discount, subtotal):
        lines, discount = _take_back_coupons(lines, discount, subtotal, unit)
    return OrderMoney(
        lines=lines,
        discounts=_build_discounts(rows, discount, sign),
        shipping=read_amount(order, "order shipping amount", sign),
        shipping_title=read_text(order, "shipping method title"),
        tax=read_amount(order, "order total tax amount", sign),
        total=read_amount(order, "order total amount", sign) if order.get("order total amount") else None,
    )


def _list_lines(rows: Group, sign: DecimalSign | None, unit: Decimal) -> list[ForeignLine]:
    """Several coupons repeat the items, so each counts once; a refunded unit may have a row of its own, with -1."""
    items = {(row.get("item #"), row.get("sku"), row.get("item name")): row for row in reversed(rows)}
    return [
        ForeignLine(
            row.get("item name"),
            quantity,
            read_amount(row, "item cost", sign).quantize(unit, ROUND_HALF_UP),
            sku=read_text(row, "sku"),
        )
        for row in reversed(items.values())
        if row.get("item name") and (quantity := _read_quantity(row)) >= 0
    ]


def _read_quantity(row: TableRecord) -> int:
    return read_quantity(row, "quantity" if row.get("quantity") else "quantity (- refund)")


def _add_refunded_units(lines: Sequence[ForeignLine], goods: Decimal | None, unit: Decimal) -> list[ForeignLine]:
    """With the units that were refunded. Each line had one; the others are those of the first line whose cost explains
    what is missing of the goods' price, if there is one."""
    found = [msgspec.structs.replace(line, quantity=max(1, line.quantity)) for line in lines]
    missing = ZERO if goods is None else goods - _sum(found)
    is_whole = all(line.price == line.price.to_integral_value() for line in found)
    for place, line in enumerate(found):
        units = int((missing / line.price).to_integral_value(ROUND_HALF_UP)) if line.price else 0
        max_rounded = (1 if is_whole else unit) * (_count(found) + units) / 2
        if units > 0 and abs(missing - units * line.price) <= max_rounded:
            found[place] = msgspec.structs.replace(line, quantity=line.quantity + units)
            break
    return found


def _is_before_coupons(lines: Sequence[ForeignLine], discount: Decimal, subtotal: Decimal | None) -> bool:
    """Whether a file has other costs than the plugin's: the subtotal decides."""
    return subtotal is not None and abs(_sum(lines) - subtotal) < abs(_sum(lines) - (subtotal - discount))


def _take_back_coupons(
    lines: Sequence[ForeignLine], discount: Decimal, subtotal: Decimal | None, unit: Decimal
) -> tuple[list[ForeignLine], Decimal]:
    """With the prices before coupons, as if these had taken the same share of each; and the discount that leads from
    there to the costs, which rounding may have changed a little."""
    net = _sum(lines) if subtotal is None else subtotal - discount
    before = net + discount
    raised = [
        msgspec.structs.replace(
            line, price=(line.price * before / net if net else before / _count(lines)).quantize(unit, ROUND_HALF_UP)
        )
        for line in lines
    ]
    return raised, max(ZERO, _sum(raised) - net)


def _build_discounts(rows: Group, discount: Decimal, sign: DecimalSign | None) -> list[Fields]:
    """One for each coupon if they add up to the discount."""
    coupons = {code: read_amount(row, "discount amount", sign) for row in rows if (code := row.get("coupon code"))}
    if discount and sum(coupons.values()) != discount:
        return [without_empty({"code": ", ".join(coupons)[:255], "amount": discount})]
    return [{"code": code, "amount": amount} for code, amount in coupons.items() if amount > 0]


def _count(lines: Sequence[ForeignLine]) -> int:
    return sum(line.quantity for line in lines)


def _sum(lines: Sequence[ForeignLine]) -> Decimal:
    return sum((line.gross for line in lines), ZERO)
