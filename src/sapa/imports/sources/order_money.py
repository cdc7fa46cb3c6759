"""The money of a foreign order in our fields, so that its total is the file's total."""

from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct

from sapa.imports.sources.interface import Fields

ZERO = Decimal(0)
ADJUSTMENT = "Adjustment"


class ForeignLine(Struct, frozen=True):
    """A line of an order in a file."""

    title: str
    quantity: int
    price: Decimal
    discount: Decimal = ZERO
    sku: str | None = None

    @property
    def gross(self) -> Decimal:
        return self.price * self.quantity


class OrderMoney(Struct, frozen=True, kw_only=True):
    """What a file says about an order's money."""

    lines: Sequence[ForeignLine]
    discounts: Sequence[Fields] = ()
    shipping: Decimal = ZERO
    shipping_title: str | None = None
    shipping_discount: Fields | None = None
    """What is not on the lines of a discount. It is on shipping if the total says so."""
    fees: Sequence[Fields] = ()
    tax: Decimal = ZERO
    tax_title: str | None = None
    total: Decimal | None = None
    """What the customer had to pay; None if the file does not say."""


def build_money(money: OrderMoney) -> tuple[Fields, Decimal]:
    """The fields of the order's money, and its total.

    Tax is taken as added if the total says so, otherwise as included. A difference that nothing in the file explains
    is a fee or a discount named Adjustment.
    """
    net = sum((line.gross - _line_discount(line) for line in money.lines), ZERO)
    discounts, on_shipping = _spread_discounts(money.discounts, net)
    fees = [fee for fee in money.fees if fee["amount"] > 0]
    goods, shipping = net - _sum(discounts), max(ZERO, money.shipping - on_shipping)
    shipping -= _get_shipping_discount(money, goods + shipping + _sum(fees), shipping)
    before_tax = goods + shipping + _sum(fees)
    is_added = money.total is not None and money.tax > 0 and before_tax + money.tax == money.total
    computed = before_tax + (money.tax if is_added else ZERO)
    total = computed if money.total is None else money.total
    if total > computed:
        fees = [*fees, {"title": ADJUSTMENT, "amount": total - computed}]
    if total < computed:
        from_goods = min(goods, computed - total)
        from_shipping = min(shipping, computed - total - from_goods)
        if from_goods:
            discounts = [*discounts, {"title": ADJUSTMENT, "amount": from_goods}]
        fees = _reduce(fees, computed - total - from_goods - from_shipping)
        goods, shipping = goods - from_goods, shipping - from_shipping
    tax = money.tax if is_added else min(money.tax, goods + shipping)
    fields: Fields = {
        "lineItems": [_build_line(line) for line in money.lines],
        "discounts": discounts,
        "shippingLines": _build_shipping(money, money.shipping - shipping),
        "fees": fees,
        "taxLines": [{"title": (money.tax_title or "Tax")[:255], "amount": tax, "included": not is_added}]
        if tax > 0
        else [],
    }
    return {name: value for name, value in fields.items() if value}, total


def _get_shipping_discount(money: OrderMoney, full: Decimal, shipping: Decimal) -> Decimal:
    """0 unless only it explains the total: without it, the order cost `full`, and perhaps a tax."""
    amount: Decimal = money.shipping_discount["amount"] if money.shipping_discount else ZERO
    if money.total in {full, full + money.tax} or amount > shipping:
        return ZERO
    return amount if money.total in {full - amount, full - amount + money.tax} else ZERO


def _build_line(line: ForeignLine) -> Fields:
    fields: Fields = {"title": line.title[:255], "price": line.price, "quantity": line.quantity}
    if discount := _line_discount(line):
        fields["discount"] = {"amount": discount}
    if line.sku:
        fields["sku"] = line.sku[:255]
    return fields


def _line_discount(line: ForeignLine) -> Decimal:
    return min(max(line.discount, ZERO), line.gross)


def _spread_discounts(discounts: Sequence[Fields], net: Decimal) -> tuple[list[Fields], Decimal]:
    """The order's discounts up to the net of its lines, and what is left of them, which can only be on shipping."""
    spread, left, rest = [], net, ZERO
    for discount in discounts:
        amount = min(left, discount["amount"])
        if amount > 0:
            spread.append({**discount, "amount": amount})
        left -= max(amount, ZERO)
        rest += max(discount["amount"] - max(amount, ZERO), ZERO)
    return spread, rest


def _build_shipping(money: OrderMoney, discount: Decimal) -> list[Fields]:
    if not money.shipping:
        return []
    line: Fields = {"title": (money.shipping_title or "Shipping")[:255], "price": money.shipping}
    if discount:
        line["discount"] = {**(money.shipping_discount or {}), "amount": discount}
    return [line]


def _reduce(fees: Sequence[Fields], amount: Decimal) -> list[Fields]:
    """The fees without so much of them, the last ones first."""
    left = []
    for fee in reversed(fees):
        part = min(amount, fee["amount"])
        amount -= part
        if part < fee["amount"]:
            left.append({**fee, "amount": fee["amount"] - part})
    return left[::-1]


def _sum(amounts: Sequence[Fields]) -> Decimal:
    return sum((one["amount"] for one in amounts), ZERO)
