"""The arithmetic of an order: exact, in whole minor units of its currency. Pure: no database.

Discounts and taxes of a percentage are rounded half up, line by line. What concerns the whole order is spread over its
lines so that the parts add up: a total is always the sum of what its lines, shipping lines and fees are charged.
"""

from collections.abc import Sequence
from decimal import Decimal

import msgspec
from msgspec import Struct

from sapa.http.errors import Invalid
from sapa.orders.pricing.types import Discount, Fee, LineDiscount, LineItem, ShippingLine, TaxLine
from sapa.values.money import DIGITS, BadMoney, parse_amount, shorten

PERCENT_PLACES = 4
_WHOLE = 100 * 10**PERCENT_PLACES
"""100 % in the units that percentages are computed with."""


class PricedOrder(Struct, frozen=True):
    """What was ordered, what changes its price, and the totals."""

    line_items: list[LineItem]
    discounts: list[Discount]
    shipping_lines: list[ShippingLine]
    fees: list[Fee]
    tax_lines: list[TaxLine]
    subtotal: Decimal
    discount_total: Decimal
    shipping_total: Decimal
    fee_total: Decimal
    tax_total: Decimal
    total: Decimal

    @property
    def goods(self) -> Decimal:
        """What the lines cost after all discounts."""
        return self.subtotal - self.discount_total

    @property
    def added_tax(self) -> Decimal:
        """The taxes that the prices do not contain."""
        return self.total - self.goods - self.shipping_total - self.fee_total


def build_plain_order(currency: str, lines: list[LineItem]) -> PricedOrder:
    """An order of lines alone, which most are: each is charged what it costs."""
    # Exact: 500 lines of 15 digits times a million stay within the 28 digits that Decimal computes with.
    total = _parse_total("lineItems", sum((line.total for line in lines), Decimal(0)), currency)
    nothing = Decimal(0)
    return PricedOrder(lines, [], [], [], [], total, nothing, nothing, nothing, nothing, total)


def price_order(
    currency: str,
    lines: Sequence[LineItem],
    discounts: Sequence[Discount],
    shipping_lines: Sequence[ShippingLine],
    fees: Sequence[Fee],
    tax_lines: Sequence[TaxLine],
) -> PricedOrder:
    """Computes every amount that depends on others; raises Invalid with the field that is too large."""
    unit = MinorUnit(currency)
    gross = [unit.count(line.price) * line.quantity for line in lines]
    lines = [_discount_line(unit, n, line, gross[n]) for n, line in enumerate(lines)]
    nets = [
        n - (unit.count(line.discount.amount) if line.discount else 0) for n, line in zip(gross, lines, strict=True)
    ]
    discounts = [_discount_order(unit, discount, sum(nets)) for discount in discounts]
    shares = spread(_sum_discounts(unit, discounts, sum(nets)), nets)
    goods = [net - share for net, share in zip(nets, shares, strict=True)]
    shipping_lines = [_discount_shipping(unit, n, line) for n, line in enumerate(shipping_lines)]
    shipping = [unit.count(line.total) for line in shipping_lines]
    taxes = _list_taxes(unit, tax_lines, goods + shipping)
    included, added = _sum_taxes(tax_lines, taxes, len(goods) + len(shipping))
    fee_total = sum(unit.count(fee.amount) for fee in fees)
    return PricedOrder(
        line_items=[
            msgspec.structs.replace(
                line,
                total=unit.amount(nets[n]),
                discount_allocation=unit.amount(shares[n]),
                tax=unit.amount(included[n] + added[n]),
                charged=unit.amount(goods[n] + added[n]),
            )
            for n, line in enumerate(lines)
        ],
        discounts=discounts,
        shipping_lines=[
            msgspec.structs.replace(
                line,
                tax=unit.amount(included[n] + added[n]),
                charged=unit.amount(shipping[n - len(goods)] + added[n]),
            )
            for n, line in enumerate(shipping_lines, start=len(goods))
        ],
        fees=list(fees),
        tax_lines=[
            msgspec.structs.replace(line, amount=unit.amount(sum(parts)))
            for line, parts in zip(tax_lines, taxes, strict=True)
        ],
        subtotal=_parse_total("lineItems", unit.amount(sum(gross)), currency),
        discount_total=unit.amount(sum(gross) - sum(goods)),
        shipping_total=_parse_total("shippingLines", unit.amount(sum(shipping)), currency),
        fee_total=_parse_total("fees", unit.amount(fee_total), currency),
        tax_total=_parse_total("taxLines", unit.amount(sum(included) + sum(added)), currency),
        total=_parse_total("lineItems", unit.amount(sum(goods) + sum(shipping) + fee_total + sum(added)), currency),
    )


def spread(amount: int, weights: Sequence[int]) -> list[int]:
    """The amount in proportion to the weights, by largest remainder: the parts add up, and no part is above its weight
    unless the amount is above their sum. Equal remainders go to the earlier part; weights of 0 alone count alike."""
    whole = sum(weights)
    if not whole:
        weights, whole = [1] * len(weights), len(weights)
    parts = [amount * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda n: (-(amount * weights[n] % whole), n))
    for n in by_remainder[: amount - sum(parts)]:
        parts[n] += 1
    return parts


def build_unit_share(charged: int, quantity: int, before: int, units: int) -> int:
    """What so many units of a line are charged, after others: all units together are charged exactly the line."""
    return charged * (before + units) // quantity - charged * before // quantity


class MinorUnit:
    """Amounts of a currency as whole numbers of its smallest unit."""

    def __init__(self, currency: str) -> None:
        self._digits = DIGITS[currency]

    def count(self, amount: Decimal) -> int:
        return int(amount.scaleb(self._digits))

    def amount(self, count: int) -> Decimal:
        return shorten(Decimal(count).scaleb(-self._digits))


def count_percent(percentage: Decimal) -> int:
    return int(percentage.scaleb(PERCENT_PLACES))


def divide_half_up(dividend: int, divisor: int) -> int:
    return (2 * dividend + divisor) // (2 * divisor)


def _discount_line(unit: MinorUnit, index: int, line: LineItem, gross: int) -> LineItem:
    discount = _compute_discount(unit, f"lineItems[{index}].discount", line.discount, gross)
    return line if discount is line.discount else msgspec.structs.replace(line, discount=discount)


def _discount_shipping(unit: MinorUnit, index: int, line: ShippingLine) -> ShippingLine:
    price = unit.count(line.price)
    discount = _compute_discount(unit, f"shippingLines[{index}].discount", line.discount, price)
    total = price - (unit.count(discount.amount) if discount else 0)
    return msgspec.structs.replace(line, discount=discount, total=unit.amount(total))


def _compute_discount(unit: MinorUnit, field: str, discount: LineDiscount | None, price: int) -> LineDiscount | None:
    if discount is None:
        return None
    if discount.percentage is not None:
        amount = divide_half_up(price * count_percent(discount.percentage), _WHOLE)
        return msgspec.structs.replace(discount, amount=unit.amount(amount))
    if unit.count(discount.amount) > price:
        raise Invalid.field(field, f"must not be more than {unit.amount(price)}, the price that it is taken from")
    return discount


def _discount_order(unit: MinorUnit, discount: Discount, net: int) -> Discount:
    if discount.percentage is None:
        return discount
    amount = divide_half_up(net * count_percent(discount.percentage), _WHOLE)
    return msgspec.structs.replace(discount, amount=unit.amount(amount))


def _sum_discounts(unit: MinorUnit, discounts: Sequence[Discount], net: int) -> int:
    total = sum(unit.count(discount.amount) for discount in discounts)
    if total > net:
        raise Invalid.field(
            "discounts",
            f"add up to {unit.amount(total)}, which is more than the lines cost after their own discounts,"
            f" {unit.amount(net)}",
        )
    return total


def _list_taxes(unit: MinorUnit, tax_lines: Sequence[TaxLine], bases: list[int]) -> list[list[int]]:
    """Each tax, part by part: for every line, then for every shipping line."""
    rates = sum(count_percent(line.rate) for line in tax_lines if line.included and line.rate is not None)
    taxes = []
    for index, line in enumerate(tax_lines):
        if line.rate is None:
            taxes.append(_spread_tax(unit, index, line, bases))
            continue
        rate = count_percent(line.rate)
        divisor = _WHOLE + rates if line.included else _WHOLE
        taxes.append([divide_half_up(base * rate, divisor) for base in bases])
    return taxes


def _spread_tax(unit: MinorUnit, index: int, line: TaxLine, bases: list[int]) -> list[int]:
    amount = unit.count(line.amount)
    if line.included and amount > sum(bases):
        raise Invalid.field(
            f"taxLines[{index}].amount",
            f"must not be more than {unit.amount(sum(bases))}, the prices that include it",
        )
    return spread(amount, bases)


def _sum_taxes(tax_lines: Sequence[TaxLine], taxes: Sequence[list[int]], parts: int) -> tuple[list[int], list[int]]:
    """Of every line and shipping line: the taxes that its price includes, and those that are added to it."""
    included, added = [0] * parts, [0] * parts
    for line, tax in zip(tax_lines, taxes, strict=True):
        into = included if line.included else added
        for n, amount in enumerate(tax):
            into[n] += amount
    return included, added


def _parse_total(field: str, amount: Decimal, currency: str) -> Decimal:
    try:
        return parse_amount(amount, currency)
    except BadMoney as error:
        raise Invalid.field(field, f"add up to a total that {error}") from None
