"""Phone numbers in their one international form."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sapa.values.phones import BadPhone, _parse, find_main_region, find_region, is_region, parse_phone
from tests import depth


@pytest.mark.parametrize(
    ("text", "region", "number"),
    [
        ("+628123456789", "ID", "+628123456789"),
        ("08123456789", "ID", "+628123456789"),
        ("8123456789", "ID", "+628123456789"),
        ("0812-3456-789", "ID", "+628123456789"),
        ("(0812) 3456 789", "ID", "+628123456789"),
        ("+62 812 3456 789", "US", "+628123456789"),
        ("00628123456789", "ID", "+628123456789"),
        ("tel:+62-812-3456-789", "ID", "+628123456789"),
        ("+6281 2345 6789", "ID", "+628123456789"),
        ("(201) 555-0123", "US", "+12015550123"),
        ("06 6982 0123", "IT", "+390669820123"),
        ("+390669820123", "ID", "+390669820123"),
        ("\uff0b\uff16\uff128123456789", "ID", "+628123456789"),
    ],
)
def test_usual_ways_of_writing_become_one(text: str, region: str, number: str) -> None:
    assert parse_phone(text, region) == number


@pytest.mark.parametrize(
    "text", ["", "abc", "12", "+", "+0", "+999123456789", "+62", "0" * 40, "081234567890123456789"]
)
def test_what_is_no_phone_number_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadPhone, match=r"^must be a phone number with its country code, such as \+62\d+$"):
        parse_phone(text, "ID")


def test_an_extension_is_refused_because_it_would_be_lost() -> None:
    with pytest.raises(BadPhone):
        parse_phone("+628123456789 ext. 12", "ID")


def test_the_example_is_one_of_the_region_and_a_number_itself() -> None:
    for region in ("ID", "US", "DE"):
        with pytest.raises(BadPhone) as refused:
            parse_phone("nonsense", region)
        example = str(refused.value).rpartition(" ")[2]
        assert parse_phone(example, region) == example


@settings(max_examples=depth.examples(50))
@given(st.from_regex(r"\A8[1-9][0-9]{7,9}\Z"))
def test_a_national_number_and_its_international_form_are_the_same(digits: str) -> None:
    ways = {parse_phone(prefix + digits, "ID") for prefix in ("0", "+62", "+62 ", "")}
    assert ways == {"+62" + digits}


@given(st.from_regex(r"\A(?:\+62|0)?[0-9]{4,16}\Z"))
def test_indonesian_numbers_are_judged_as_the_parser_would(text: str) -> None:
    try:
        expected = _parse(text, "ID")
    except BadPhone:
        expected = None
    try:
        found = parse_phone(text, "ID")
    except BadPhone:
        found = None
    assert found == expected


@given(st.text(max_size=40) | st.from_regex(r"\A\+?[0-9 ]{4,20}\Z"))
@example("000000000000000")
@example("10000000000000")
def test_any_text_is_a_number_in_e164_or_refused(text: str) -> None:
    try:
        number = parse_phone(text, "ID")
    except BadPhone:
        return
    assert number[0] == "+"
    assert number[1:].isascii()
    assert number[1:].isdigit()
    assert 2 <= len(number) <= 16, "a plus sign and at most 15 digits"
    assert parse_phone(number, "ID") == number


@pytest.mark.parametrize(("code", "known"), [("ID", True), ("US", True), ("id", False), ("XX", False), ("", False)])
def test_regions_are_countries_with_phones(code: str, known: bool) -> None:
    assert is_region(code) is known


@pytest.mark.parametrize(
    ("number", "region"),
    [
        ("+628123456789", "ID"),
        ("+12015550123", "US"),
        ("+14165550123", "CA"),
        ("+19999999999", "US"),
        ("+77011234567", "KZ"),
        ("+80012345678", None),
        ("+999123456789", None),
        ("628123456789", None),
        ("", None),
    ],
)
def test_the_country_of_a_number(number: str, region: str | None) -> None:
    assert find_region(number) == region


@pytest.mark.parametrize(
    ("region", "main"), [("GG", "GB"), ("GB", "GB"), ("CA", "US"), ("ID", "ID"), ("*", None), ("ZZ", None), ("", None)]
)
def test_the_main_country_of_a_country_code(region: str, main: str | None) -> None:
    assert find_main_region(region) == main
