"""Totals, shares and refunds of units, against plain fractions."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.http.errors import Invalid
from sapa.orders.pricing.adjustments import (
    build_discounts,
    build_fees,
    build_line_discount,
    build_shipping_lines,
    build_tax_lines,
)
from sapa.orders.pricing.arithmetic import PricedOrder, build_unit_share, price_order, spread
from sapa.orders.pricing.types import DiscountIn, Fee, LineDiscountIn, LineItem, ShippingLineIn, TaxLineIn

NOTHING = Decimal(0)


def line(price: str, quantity: int = 1, **discount: str) -> LineItem:
    amounts: dict[str, Any] = {name: Decimal(text) for name, text in discount.items()}
    given = LineDiscountIn(**amounts) if discount else None
    total = Decimal(price) * quantity
    return LineItem(
        "li", quantity, Decimal(price), "Kopi", None, build_line_discount("discount", given, "USD"), total, NOTHING,
        NOTHING, total, 0, 0,
    )  # fmt: skip


def price(lines: list[LineItem], currency: str = "USD", **given: Any) -> PricedOrder:
    return price_order(
        currency,
        lines,
        build_discounts([DiscountIn(**one) for one in given.get("discounts", ())], currency),
        build_shipping_lines([ShippingLineIn(**one) for one in given.get("shipping", ())], currency),
        build_fees([Fee(title, Decimal(amount)) for title, amount in given.get("fees", ())], currency),
        build_tax_lines([TaxLineIn(title="PPN", **one) for one in given.get("taxes", ())], currency),
    )


def sum_charged(made: PricedOrder) -> Decimal:
    return sum([one.charged for one in made.line_items] + [one.charged for one in made.shipping_lines], NOTHING)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.data())
def test_shares_add_up_and_are_within_one_of_their_exact_value(weights: list[int], data: st.DataObject) -> None:
    amount = data.draw(st.integers(0, sum(weights)))
    parts = spread(amount, weights)
    assert sum(parts) == amount
    for part, weight in zip(parts, weights, strict=True):
        assert 0 <= part <= weight or not sum(weights)
        if sum(weights):
            assert abs(part - Fraction(amount * weight, sum(weights))) < 1


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [
        (15, [3, 5, 4, 0, 4, 0], [3, 4, 4, 0, 4, 0]),
        (103, [1, 1], [52, 51]),
        (1, [1, 1, 1], [1, 0, 0]),
        (100, [1, 1, 1], [34, 33, 33]),
        (0, [5], [0]),
        (7, [0, 0, 0], [3, 2, 2]),
    ],
)
def test_the_largest_remainder_takes_the_rest_and_ties_go_to_the_earlier(
    amount: int, weights: list[int], parts: list[int]
) -> None:
    assert spread(amount, weights) == parts


@given(st.integers(0, 10**8), st.integers(1, 50), st.data())
def test_units_that_are_refunded_in_any_steps_give_back_exactly_the_line(
    charged: int, quantity: int, data: st.DataObject
) -> None:
    before, returned = 0, 0
    while before < quantity:
        units = data.draw(st.integers(1, quantity - before))
        returned += build_unit_share(charged, quantity, before, units)
        before += units
        assert abs(returned - Fraction(charged * before, quantity)) < 1
    assert returned == charged


def test_an_order_with_everything() -> None:
    made = price(
        [line("23.90", 10, percentage="25"), line("5", 2, amount="1.50"), line("0.01", 3)],
        discounts=[{"percentage": Decimal(10), "code": "LEBARAN"}, {"amount": Decimal("0.99")}],
        shipping=[{"title": "JNE", "price": Decimal("9.99"), "discount": LineDiscountIn(percentage=Decimal(50))}],
        fees=[("Asuransi", "1.25")],
        taxes=[{"rate": Decimal(11), "included": False}],
    )
    nets = [Decimal("179.25"), Decimal("8.50"), Decimal("0.03")]
    assert [one.total for one in made.line_items] == nets
    assert [one.amount for one in made.discounts] == [Decimal("18.78"), Decimal("0.99")]
    assert sum(one.discount_allocation for one in made.line_items) == Decimal("19.77")
    assert (made.subtotal, made.discount_total) == (Decimal("249.03"), Decimal("81.02"))
    assert (made.shipping_total, made.fee_total) == (Decimal("4.99"), Decimal("1.25"))
    goods = [one.total - one.discount_allocation for one in made.line_items]
    taxes = [(amount * 11 / 100).quantize(Decimal("0.01"), "ROUND_HALF_UP") for amount in [*goods, Decimal("4.99")]]
    assert made.tax_total == sum(taxes) == made.tax_lines[0].amount
    assert made.total == sum_charged(made) + made.fee_total


@pytest.mark.parametrize(
    ("price_of_one", "rate", "included", "tax", "total"),
    [
        ("111", "11", True, "11", "111"),
        ("100", "11", False, "11", "111"),
        ("100", "11", True, "9.91", "100"),
        ("0.05", "10", False, "0.01", "0.06"),
        ("0.04", "10", False, "0", "0.04"),
        ("0", "11", False, "0", "0"),
    ],
)
def test_a_tax_is_included_or_added_and_rounded_half_up(
    price_of_one: str, rate: str, included: bool, tax: str, total: str
) -> None:
    made = price([line(price_of_one)], taxes=[{"rate": Decimal(rate), "included": included}])
    assert (made.tax_total, made.total) == (Decimal(tax), Decimal(total))


def test_two_included_taxes_share_one_net_price() -> None:
    made = price([line("116")], taxes=[{"rate": Decimal(11), "included": True}, {"rate": Decimal(5), "included": True}])
    assert [one.amount for one in made.tax_lines] == [Decimal(11), Decimal(5)]
    assert made.total == 116


def test_a_tax_of_an_amount_is_spread_and_never_lost() -> None:
    made = price([line("1"), line("1"), line("1")], taxes=[{"amount": Decimal(1), "included": False}])
    assert [one.charged for one in made.line_items] == [Decimal("1.34"), Decimal("1.33"), Decimal("1.33")]
    assert made.total == 4


@pytest.mark.parametrize("currency", ["IDR", "JPY", "KWD"])
def test_amounts_have_the_decimal_places_of_their_currency(currency: str) -> None:
    made = price([line("100"), line("100"), line("100")], currency, discounts=[{"percentage": Decimal("33.3333")}])
    places = {"IDR": 2, "JPY": 0, "KWD": 3}[currency]
    exponent = made.discount_total.as_tuple().exponent
    assert isinstance(exponent, int)
    assert -exponent <= places
    assert made.total + made.discount_total == 300


@pytest.mark.parametrize(
    ("lines", "given", "field"),
    [
        ([line("5", amount="5.01")], {}, "lineItems[0].discount"),
        ([line("5")], {"discounts": [{"amount": Decimal("5.01")}]}, "discounts"),
        ([line("5")], {"discounts": [{"amount": Decimal(3)}, {"percentage": Decimal(50)}]}, "discounts"),
        (
            [line("5")],
            {"shipping": [{"title": "x", "price": Decimal(1), "discount": LineDiscountIn(amount=Decimal(2))}]},
            "shippingLines[0].discount",
        ),
        ([line("5")], {"taxes": [{"amount": Decimal("5.01"), "included": True}]}, "taxLines[0].amount"),
        ([line("999999999999999")], {"fees": [("x", "1")]}, "lineItems"),
    ],
)
def test_more_than_there_is_cannot_be_taken_off(lines: list[LineItem], given: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        price(lines, **given)
    assert refused.value.details is not None
    assert refused.value.details[0].field == field


CENTS = st.integers(0, 10**7).map(lambda cents: Decimal(cents).scaleb(-2))
PERCENT = st.integers(0, 1_000_000).map(lambda parts: Decimal(parts).scaleb(-4))


@given(
    st.lists(st.tuples(CENTS, st.integers(1, 100), PERCENT), min_size=1, max_size=12),
    PERCENT,
    st.lists(st.tuples(CENTS, PERCENT), max_size=3),
    st.lists(st.tuples(PERCENT, st.booleans()), max_size=3),
    CENTS,
)
def test_every_order_adds_up(
    lines: list[tuple[Decimal, int, Decimal]],
    discount: Decimal,
    shipping: list[tuple[Decimal, Decimal]],
    taxes: list[tuple[Decimal, bool]],
    fee: Decimal,
) -> None:
    made = price(
        [line(str(price), quantity, percentage=str(off)) for price, quantity, off in lines],
        discounts=[{"percentage": discount}],
        shipping=[
            {"title": "x", "price": price, "discount": LineDiscountIn(percentage=off)} for price, off in shipping
        ],
        taxes=[{"rate": rate, "included": included} for rate, included in taxes],
        fees=[("x", str(fee))],
    )
    assert sum(one.discount_allocation for one in made.line_items) == made.discounts[0].amount
    assert all(0 <= one.discount_allocation <= one.total for one in made.line_items)
    line_discounts = sum((one.discount.amount for one in made.line_items if one.discount), NOTHING)
    assert made.discount_total == line_discounts + made.discounts[0].amount
    assert made.subtotal == sum(price * quantity for price, quantity, _ in lines)
    assert made.tax_total == sum(one.amount for one in made.tax_lines)
    taxes_of_lines = [one.tax for one in made.line_items] + [one.tax for one in made.shipping_lines]
    assert made.tax_total == sum(taxes_of_lines, NOTHING)
    added = sum((one.amount for one in made.tax_lines if not one.included), NOTHING)
    assert made.total == made.subtotal - made.discount_total + made.shipping_total + made.fee_total + added
    assert made.total == sum_charged(made) + made.fee_total
    assert made.total >= 0
