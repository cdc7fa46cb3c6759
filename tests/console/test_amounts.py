"""Amounts as people type and read them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.console.amounts import NotAnAmount, parse_typed_amount, parse_typed_measure
from sapa.console.formats import Formats

TYPED = [
    ("10.000", "id", "IDR", "10000"),
    ("10,000", "en", "IDR", "10000"),
    ("10.000", "en", "IDR", "10000"),
    ("10,000", "id", "IDR", "10000"),
    ("Rp 174.000", "id", "IDR", "174000"),
    ("Rp174.000", "id", "IDR", "174000"),
    ("rp. 174.000", "id", "IDR", "174000"),
    ("Rp\N{NO-BREAK SPACE}174,000", "en", "IDR", "174000"),
    ("IDR 174000", "en", "IDR", "174000"),
    ("10.000,-", "id", "IDR", "10000"),
    ("1.234.567", "id", "IDR", "1234567"),
    ("1,234,567", "en", "IDR", "1234567"),
    ("1 234 567", "id", "IDR", "1234567"),
    ("10.000,50", "id", "IDR", "10000.50"),
    ("10,000.50", "en", "IDR", "10000.50"),
    ("1,5", "id", "USD", "1.5"),
    ("1.5", "en", "USD", "1.5"),
    ("1.5", "id", "USD", "1.5"),
    ("10.125", "en", "KWD", "10.125"),
    ("10.125", "id", "KWD", "10125"),
    ("10rb", "id", "IDR", "10000"),
    ("25 ribu", "id", "IDR", "25000"),
    ("1,5 jt", "id", "IDR", "1500000"),
    ("2 juta", "id", "IDR", "2000000"),
    ("0", "id", "IDR", "0"),
]


@pytest.mark.parametrize(("text", "language", "currency", "meant"), TYPED, ids=range(len(TYPED)))
def test_an_amount_is_read_as_meant(text: str, language: str, currency: str, meant: str) -> None:
    assert parse_typed_amount(text, language, currency) == Decimal(meant)


@pytest.mark.parametrize(
    "text",
    ["", "Rp", "abc", "-5", "1e5", "1.2.3", "1,23,456", "10..0", "1.000.00", "9" * 16, "٣", "10.0000", "85.0001"],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    for language in ("en", "id"):
        with pytest.raises(NotAnAmount):
            parse_typed_amount(text, language, "IDR")


@pytest.mark.parametrize(
    ("text", "language", "meant"),
    [("1,5", "id", "1.5"), ("1.5", "id", "1.5"), ("0.250", "id", "0.250"), ("1.500", "id", "1500"),
     ("1,5", "en", "1.5"), ("1,500", "en", "1500"), ("12", "en", "12")],
)  # fmt: skip
def test_a_measure_is_read_as_meant(text: str, language: str, meant: str) -> None:
    assert parse_typed_measure(text, language) == Decimal(meant)


@given(
    amount=st.decimals(min_value=0, max_value=10**12, places=2),
    language=st.sampled_from(["en", "id"]),
    currency=st.sampled_from(["IDR", "USD"]),
)
def test_what_a_page_shows_can_be_typed(amount: Decimal, language: str, currency: str) -> None:
    formats = Formats(language)
    assert parse_typed_amount(formats.money(amount, currency).striptags(), language, currency) == amount
    assert parse_typed_amount(formats.number(amount), language, currency) == amount
