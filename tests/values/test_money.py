"""Amounts: exact, in their shortest form, with no more digits than the currency has."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.values.json import encode
from sapa.values.money import (
    DIGITS,
    BadMoney,
    parse_amount,
    parse_currency,
    shorten,
)

amounts = st.decimals(min_value=0, max_value=10**13, allow_nan=False, allow_infinity=False, places=2)


@pytest.mark.parametrize(
    ("given", "currency", "printed"),
    [
        ("0", "IDR", b"0"),
        ("0.00", "IDR", b"0"),
        ("-0.0", "IDR", b"0"),
        ("0e5", "IDR", b"0"),
        ("0e-999999999", "IDR", b"0"),
        ("0.30", "IDR", b"0.3"),
        ("853000.0", "IDR", b"853000"),
        ("1.5E+5", "IDR", b"150000"),
        ("299000.50", "IDR", b"299000.5"),
        ("1999999999999.99", "IDR", b"1999999999999.99"),
        ("999999999999999", "JPY", b"999999999999999"),
        ("1.234", "KWD", b"1.234"),
        ("1.2345", "CLF", b"1.2345"),
    ],
)
def test_an_amount_is_printed_in_its_shortest_form(given: str, currency: str, printed: bytes) -> None:
    assert encode(parse_amount(Decimal(given), currency)) == printed


@pytest.mark.parametrize(
    ("given", "currency", "advice"),
    [
        ("0.001", "IDR", "2 decimal places"),
        ("0.5", "JPY", "whole number"),
        ("1.2345", "KWD", "3 decimal places"),
        ("-1", "IDR", "0 or more"),
        ("NaN", "IDR", "0 or more"),
        ("Infinity", "IDR", "0 or more"),
        ("1000000000000000", "IDR", "15 digits"),
        ("12345678901234.56", "IDR", "15 digits"),
        ("1e999999", "IDR", "15 digits"),
        ("1e-999999", "IDR", "2 decimal places"),
        ("1e-999999999", "IDR", "2 decimal places"),
        ("1e-999999999", "JPY", "whole number"),
        ("123456e-99999999999", "CLF", "4 decimal places"),
        ("1." + "0" * 40 + "1", "IDR", "2 decimal places"),
    ],
)
def test_what_the_currency_lacks_is_refused(given: str, currency: str, advice: str) -> None:
    with pytest.raises(BadMoney, match=advice):
        parse_amount(Decimal(given), currency)


@pytest.mark.parametrize("code", ["idr", "XXX", "RP", "", "IDRR", "BTC"])
def test_an_unknown_currency_is_refused(code: str) -> None:
    with pytest.raises(BadMoney, match="ISO 4217"):
        parse_currency(code)


def test_every_currency_has_its_digits() -> None:
    assert all(len(code) == 3 and code.isupper() and 0 <= digits <= 4 for code, digits in DIGITS.items())
    assert [DIGITS[code] for code in ("IDR", "JPY", "USD", "KWD", "CLF")] == [2, 0, 2, 3, 4]


@given(amounts)
def test_shortening_changes_no_value_and_leaves_nothing_to_shorten(amount: Decimal) -> None:
    short = shorten(amount)
    assert short == amount
    text = str(short)
    assert "E" not in text
    assert not ("." in text and text.endswith(("0", ".")))
