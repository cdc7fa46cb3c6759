"""Checks discounts, shipping lines, fees and taxes that a caller sends. Pure: no database.

Amounts that depend on others are 0 until the order is priced.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeVar

from msgspec import UNSET, UnsetType

from sapa.http.errors import Invalid
from sapa.orders.pricing.arithmetic import PERCENT_PLACES
from sapa.orders.pricing.types import (
    Discount,
    DiscountIn,
    Fee,
    LineDiscount,
    LineDiscountIn,
    ShippingLine,
    ShippingLineIn,
    TaxLine,
    TaxLineIn,
)
from sapa.values.money import BadMoney, parse_amount, shorten

NOTHING = Decimal(0)

Label = TypeVar("Label", str, str | None)


def build_line_discount(field: str, body: LineDiscountIn | None | UnsetType, currency: str) -> LineDiscount | None:
    if body is None or body is UNSET:
        return None
    amount, percentage = _parse_share(field, "percentage", body.amount, body.percentage, currency)
    return LineDiscount(amount, percentage, _parse_label(f"{field}.title", body.title))


def build_discounts(bodies: Sequence[DiscountIn], currency: str) -> list[Discount]:
    return [_discount(f"discounts[{index}]", body, currency) for index, body in enumerate(bodies)]


def build_shipping_lines(bodies: Sequence[ShippingLineIn], currency: str) -> list[ShippingLine]:
    return [_shipping_line(f"shippingLines[{index}]", body, currency) for index, body in enumerate(bodies)]


def build_fees(bodies: Sequence[Fee], currency: str) -> list[Fee]:
    return [
        Fee(_parse_label(f"fees[{index}].title", fee.title), parse_field(f"fees[{index}].amount", fee.amount, currency))
        for index, fee in enumerate(bodies)
    ]


def build_tax_lines(bodies: Sequence[TaxLineIn], currency: str) -> list[TaxLine]:
    return [_tax_line(f"taxLines[{index}]", body, currency) for index, body in enumerate(bodies)]


def parse_field(field: str, amount: Decimal, currency: str) -> Decimal:
    """An amount of the currency; raises Invalid with the field."""
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, str(error)) from None


def _discount(field: str, body: DiscountIn, currency: str) -> Discount:
    amount, percentage = _parse_share(field, "percentage", body.amount, body.percentage, currency)
    code, title = _parse_label(f"{field}.code", body.code), _parse_label(f"{field}.title", body.title)
    return Discount(code, title, amount, percentage)


def _shipping_line(field: str, body: ShippingLineIn, currency: str) -> ShippingLine:
    title = _parse_label(f"{field}.title", body.title)
    price = parse_field(f"{field}.price", body.price, currency)
    discount = build_line_discount(f"{field}.discount", body.discount, currency)
    return ShippingLine(title, _parse_label(f"{field}.code", body.code), price, discount, price, NOTHING, price)


def _tax_line(field: str, body: TaxLineIn, currency: str) -> TaxLine:
    amount, rate = _parse_share(field, "rate", body.amount, body.rate, currency)
    return TaxLine(_parse_label(f"{field}.title", body.title), rate, amount, body.included)


def _parse_share(
    field: str, name: str, amount: Decimal | None, percentage: Decimal | None, currency: str
) -> tuple[Decimal, Decimal | None]:
    """An amount, or 0 and a percentage; exactly one of the two is required."""
    if (amount is None) == (percentage is None):
        state = "is required" if amount is None else f"cannot be combined with {name}"
        raise Invalid.field(f"{field}.amount", f"{state}; send either an amount or a {name}")
    if percentage is not None:
        return NOTHING, _parse_percentage(f"{field}.{name}", percentage)
    return parse_field(f"{field}.amount", amount or NOTHING, currency), None


def _parse_percentage(field: str, percentage: Decimal) -> Decimal:
    if not percentage.is_finite() or not 0 <= percentage <= 100:
        raise Invalid.field(field, "must be a number from 0 to 100")
    if (percentage and percentage.adjusted() < -PERCENT_PLACES) or percentage.scaleb(PERCENT_PLACES) % 1:
        raise Invalid.field(field, f"must have at most {PERCENT_PLACES} decimal places")
    return shorten(percentage)


def _parse_label(field: str, text: Label) -> Label:
    if text is not None and not text.strip():
        raise Invalid.field(field, "must not be blank")
    return text
