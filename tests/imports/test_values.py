"""Amounts, dates and contacts as people and spreadsheets write them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.imports.cells import BadCell
from sapa.imports.values.amounts import (
    DecimalSign,
    decide_decimal_sign,
    parse_amount_cell,
    parse_quantity_cell,
)
from sapa.imports.values.contacts import find_email, find_phone, parse_phone_cell, split_name, unquote_cell
from sapa.imports.values.dates import decide_day_order, parse_date_cell
from sapa.imports.values.words import find_flag, split_escaped, split_tags

JAKARTA = ZoneInfo("Asia/Jakarta")


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("150000", "150000"),
        ("Rp 150.000,00", "150000"),
        ("Rp150.000", "150000"),
        ("Rp. 1.250.000", "1250000"),
        ("IDR 99,500.50", "99500.5"),
        ("150rb", "150000"),
        ("1,5 jt", "1500000"),
        ("2 juta", "2000000"),
        ("150.000,-", "150000"),
        ("12.5", "12.5"),
        ("12,50", "12.5"),
        ("0.500", "0.5"),
        ("1.250", "1250"),
        ("1,250", "1250"),
        ("(20.000)", "-20000"),
        ("-5", "-5"),
        ("1 250 000", "1250000"),
        ("247500.00", "247500"),
        ("$ 10.00", "10"),
        ("KWD 3.250", "3.25"),
        ("EUR 3.250", "3250"),
        ("12,34,567", "1234567"),
        ("1234.567", "1234.567"),
        (" Rp-   ", "0"),
        ("–", "0"),
    ],
)
def test_an_amount_is_read_as_it_is_written(text: str, amount: str) -> None:
    assert parse_amount_cell(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    ["", "gratis", "1.2.3,4,5x", "--", "6.28123E+11", "1,5E+3", "12:30", "Rp.150.000.00", "1234,567.89", "9" * 61],
)
def test_what_is_not_an_amount_is_refused(text: str) -> None:
    with pytest.raises(BadCell):
        parse_amount_cell(text)


@pytest.mark.parametrize(
    ("cells", "sign", "amounts"),
    [
        (["1.250", "12.50"], ".", ["1.25", "12.5"]),
        (["1.250", "12,50"], ",", ["1250", "12.5"]),
        (["1.250", "10.000"], None, ["1250", "10000"]),
        (["1,250", "3,5"], ",", ["1.25", "3.5"]),
        (["1.250.000", "999"], None, ["1250000", "999"]),
    ],
)
def test_a_column_decides_what_a_sign_before_three_digits_means(
    cells: list[str], sign: DecimalSign | None, amounts: list[str]
) -> None:
    assert decide_decimal_sign(cells, "IDR") == sign
    assert [parse_amount_cell(cell, sign) for cell in cells] == list(map(Decimal, amounts))


@pytest.mark.parametrize(
    ("cells", "sign", "amounts"),
    [
        (["3.250", "12.500"], ".", ["3.25", "12.5"]),
        (["3,250", "1.250,500"], ",", ["3.25", "1250.5"]),
        (["1,250", "1,250,000"], None, ["1250", "1250000"]),
    ],
)
def test_three_digits_are_decimals_in_a_currency_that_has_three(
    cells: list[str], sign: DecimalSign | None, amounts: list[str]
) -> None:
    assert decide_decimal_sign(cells, "KWD") == sign
    assert [parse_amount_cell(cell, sign) for cell in cells] == list(map(Decimal, amounts))


@given(st.integers(0, 10**12), st.integers(0, 99), st.sampled_from([".", ","]))
def test_any_amount_with_thousands_and_two_decimals_is_read_back(whole: int, cents: int, sign: DecimalSign) -> None:
    thousands = "," if sign == "." else "."
    text = f"{whole:,}".replace(",", thousands) + f"{sign}{cents:02d}"
    assert parse_amount_cell(text, sign) == Decimal(whole) + Decimal(cents) / 100


@pytest.mark.parametrize(("text", "count"), [("2", 2), ("2.0", 2), ("2,00", 2), ("1.000", 1000)])
def test_a_quantity_is_a_whole_number(text: str, count: int) -> None:
    assert parse_quantity_cell(text) == count
    with pytest.raises(BadCell):
        parse_quantity_cell("2.5")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2025-10-07 09:50:26 +0200", "2025-10-07T07:50:26Z"),
        ("2026-09-03T10:14:00Z", "2026-09-03T10:14:00Z"),
        ("2026-09-03 10:14:05.25+07", "2026-09-03T03:14:05Z"),
        ("2026-09-03 10:14", "2026-09-03T03:14:00Z"),
        ("03/09/2026 10:14:05", "2026-09-03T03:14:05Z"),
        ("3-9-2026", "2026-09-02T17:00:00Z"),
        ("03.09.26", "2026-09-02T17:00:00Z"),
        ("17 Agustus 2024", "2024-08-16T17:00:00Z"),
        ("Sabtu, 17 Agu 2024 08:30 WIB", "2024-08-17T01:30:00Z"),
        ("17 Agustus 2024 08:30 WITA", "2024-08-17T00:30:00Z"),
        ("August 17, 2024 8:30 pm", "2024-08-17T13:30:00Z"),
        ("1 Mei 2024, 12:05 AM", "2024-04-30T17:05:00Z"),
        ("25569", "1969-12-31T17:00:00Z"),
        ("45521.5", "2024-08-17T05:00:00Z"),
        ("25/12/2025", "2025-12-24T17:00:00Z"),
        ("12/25/2025", "2025-12-24T17:00:00Z"),
    ],
)
def test_a_date_is_read_in_the_files_time_zone(text: str, instant: str) -> None:
    assert parse_date_cell(text, JAKARTA) == datetime.fromisoformat(instant)


@pytest.mark.parametrize(
    "text", ["", "besok", "31/02/2026", "2026-13-01", "17 Foo 2024", "99999999", "2026-01-01 25:00"]
)
def test_what_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(BadCell):
        parse_date_cell(text, JAKARTA)


def test_a_column_decides_the_order_of_day_and_month() -> None:
    assert decide_day_order(["3/4/2026", "12/25/2026"]) == "mdy"
    assert decide_day_order(["3/4/2026", "25/12/2026"]) == "dmy"
    assert decide_day_order(["3/4/2026"]) is None
    assert parse_date_cell("3/4/2026", ZoneInfo("UTC"), "mdy") == datetime(2026, 3, 4, tzinfo=UTC)
    assert parse_date_cell("3/4/2026", ZoneInfo("UTC")) == datetime(2026, 4, 3, tzinfo=UTC)


@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)))
def test_a_serial_date_of_a_spreadsheet_is_read_back(instant: datetime) -> None:
    whole = instant.replace(microsecond=0)
    days = (whole - datetime(1899, 12, 30)) / timedelta(days=1)
    if 10_000 <= days < 100_000:
        read = parse_date_cell(f"{days:.8f}", ZoneInfo("UTC"))
        assert abs(read - whole.replace(tzinfo=UTC)) <= timedelta(seconds=1)


@pytest.mark.parametrize(
    "text",
    ["08123456789", "8123456789", "'08123456789", "+62 812-3456-789", "628123456789", "8123456789.0",
     "0812-3456-789 / 0813 000", "08123456789; 0811", "08123456789 atau 0811"],
)  # fmt: skip
def test_a_phone_number_survives_a_spreadsheet(text: str) -> None:
    assert parse_phone_cell(text, "ID") == "+628123456789"


@pytest.mark.parametrize("text", ["", "0812****01", "(+62)812xxxx01", "******01"])
def test_a_masked_phone_number_is_none(text: str) -> None:
    assert parse_phone_cell(text, "ID") is None


def test_a_phone_number_that_lost_digits_is_refused() -> None:
    with pytest.raises(BadCell, match="shortened by a spreadsheet"):
        parse_phone_cell("6.28123E+11", "ID")
    assert find_phone("6.28123E+11", "ID") is None


@pytest.mark.parametrize("text", ["a***@example.com", "**@example.com", "a••u@example.com"])
def test_a_masked_email_address_is_none(text: str) -> None:
    assert find_email(text) is None


@pytest.mark.parametrize("text", ["ayu@example.com", "maxx@example.com", "AXX@exxample.com", "xx@example.com"])
def test_an_email_address_may_have_two_x_in_a_row(text: str) -> None:
    assert find_email(text) == text


@pytest.mark.parametrize(
    ("text", "unquoted"),
    [("'75008", "75008"), ("'=1", "=1"), ("'t Hooft", "'t Hooft"), ("'", "'"), ("O'Hara", "O'Hara")],
)
def test_only_an_apostrophe_that_marks_text_is_removed(text: str, unquoted: str) -> None:
    assert unquote_cell(text) == unquoted


@pytest.mark.parametrize("text", ["1" + " " * 100_000 + "x", "0812" + " " * 100_000 + "x", "17 " + "," * 100_000])
def test_a_very_long_cell_is_refused_at_once(text: str) -> None:
    for parse in (
        parse_amount_cell,
        lambda cell: parse_phone_cell(cell, "ID"),
        lambda cell: parse_date_cell(cell, JAKARTA),
    ):
        with pytest.raises(BadCell):
            parse(text)
    assert decide_decimal_sign([text], "IDR") is None
    assert decide_day_order([text]) is None


def test_words() -> None:
    assert [find_flag(text) for text in ("Ya", "tidak", "YES", "0", "")] == [True, False, True, False, None]
    with pytest.raises(BadCell):
        find_flag("mungkin")
    assert split_tags("a, b ;a|c,,") == ["a", "b", "c"]
    assert split_escaped(r"Kopi\, bubuk, Teh") == ["Kopi, bubuk", "Teh"]
    assert split_name("  Ayu   Dewi Lestari ") == ("Ayu", "Dewi Lestari")
    assert split_name("") == (None, None)
