"""JSON as JavaScript prints it again."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sapa.values.json import MAX_EXACT, encode_document, encode_values, is_exact
from tests.javascript import print_again

# Printed by JSON.stringify(JSON.parse(…)) of a JavaScript engine.
PRINTED = [
    (b'{"n":1.0}', b'{"n":1}'),
    (b'{"n":-0.0}', b'{"n":0}'),
    (b'{"n":-0}', b'{"n":0}'),
    (b'{"n":0.1}', b'{"n":0.1}'),
    (b'{"n":0.10}', b'{"n":0.1}'),
    (b'{"n":1e3}', b'{"n":1000}'),
    (b'{"n":1E-3}', b'{"n":0.001}'),
    (b'{"n":0.000001}', b'{"n":0.000001}'),
    (b'{"n":0.00000123}', b'{"n":0.00000123}'),
    (b'{"n":0.0000001}', b'{"n":1e-7}'),
    (b'{"n":0.00000012345}', b'{"n":1.2345e-7}'),
    (b'{"n":1e-10}', b'{"n":1e-10}'),
    (b'{"n":-1.5e-9}', b'{"n":-1.5e-9}'),
    (b'{"n":5e-324}', b'{"n":5e-324}'),
    (b'{"n":2.2250738585072014e-308}', b'{"n":2.2250738585072014e-308}'),
    (b'{"n":1e-400}', b'{"n":0}'),
    (b'{"n":123456789.123456789}', b'{"n":123456789.12345679}'),
    (b'{"n":9007199254740991}', b'{"n":9007199254740991}'),
    (b'{"n":-9007199254740991}', b'{"n":-9007199254740991}'),
    (b'{"n":4503599627370495.5}', b'{"n":4503599627370495.5}'),
    (b'{"n":0.30000000000000004}', b'{"n":0.30000000000000004}'),
    (b'{"n":100.25}', b'{"n":100.25}'),
    (b'{"s":"\\/"}', b'{"s":"/"}'),
    (b'{"s":"\\u00e9"}', '{"s":"é"}'.encode()),
    (b'{"s":"\\ud83d\\ude00"}', '{"s":"😀"}'.encode()),
    (b'{"s":"\\u2028\\u2029"}', '{"s":"\u2028\u2029"}'.encode()),
    (b'{"s":"\\u007f"}', b'{"s":"\x7f"}'),
    (b'{"s":"\\u0001\\u001F"}', b'{"s":"\\u0001\\u001f"}'),
    (b'{"s":"\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d"}', b'{"s":"\\b\\t\\n\\u000b\\f\\r"}'),
    (b'{"s":"\\"\\\\"}', b'{"s":"\\"\\\\"}'),
    (b'{"b":1,"a":2}', b'{"b":1,"a":2}'),
    (b'{"b":1,"2":2,"a":3,"1":4,"10":5}', b'{"1":4,"2":2,"10":5,"b":1,"a":3}'),
    (b'{"01":1,"1":2,"-1":3,"1.5":4,"0":5}', b'{"0":5,"1":2,"01":1,"-1":3,"1.5":4}'),
    (b'{"4294967295":1,"4294967294":2,"a":3}', b'{"4294967294":2,"4294967295":1,"a":3}'),
    (b'{"b":1,"4294967296":2,"7":3}', b'{"7":3,"b":1,"4294967296":2}'),
    ('{"b":1,"١":2,"²":3,"1":4}'.encode(), '{"1":4,"b":1,"١":2,"²":3}'.encode()),
    (b'{"a":1,"b":2,"a":3}', b'{"a":3,"b":2}'),
    (b'{"__proto__":1,"a":2}', b'{"__proto__":1,"a":2}'),
    (b"{}", b"{}"),
]


def decode(text: bytes) -> dict[str, str | int | float]:
    return msgspec.json.decode(text, type=dict[str, str | int | float])


@pytest.mark.parametrize(("given_text", "printed"), PRINTED)
def test_what_javascript_would_print(given_text: bytes, printed: bytes) -> None:
    assert encode_values(decode(given_text)) == printed
    assert encode_values(decode(printed)) == printed


def number_text(value: float) -> str:
    """ECMAScript's Number::toString for finite numbers, from its definition: the shortest digits, then the layout."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int) or value == 0:
        return "0"
    text, count = "".join(map(str, digits)), len(digits)
    point = count + exponent  # value = 0.digits × 10^point
    minus = "-" if sign else ""
    if count <= point <= 21:
        return minus + text + "0" * (point - count)
    if 0 < point <= 21:
        return minus + text[:point] + "." + text[point:]
    if -6 < point <= 0:
        return minus + "0." + "0" * -point + text
    mantissa = text[0] + ("." + text[1:] if count > 1 else "")
    return f"{minus}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


exact_floats = st.floats(-MAX_EXACT, MAX_EXACT)


@given(exact_floats | st.floats(-1e-4, 1e-4) | st.integers(-MAX_EXACT, MAX_EXACT).map(float))
@example(1e-6)
@example(9.999999999999999e-7)
@example(1e-7)
@example(-1e-7)
@example(float(MAX_EXACT))
def test_numbers_are_laid_out_as_the_language_defines(value: float) -> None:
    assert encode_values({"n": value}) == f'{{"n":{number_text(value)}}}'.encode()


values = st.dictionaries(
    st.text(max_size=12) | st.integers(0, 2**33).map(str),
    st.text(max_size=12) | st.integers(-MAX_EXACT, MAX_EXACT) | exact_floats,
    max_size=8,
)


@given(values)
def test_printing_again_changes_nothing(given_values: dict[str, str | int | float]) -> None:
    once = encode_values(given_values)
    assert encode_values(decode(once)) == once
    assert decode(once) == given_values


@given(values)
def test_array_like_keys_come_first_and_by_number(given_values: dict[str, str | int | float]) -> None:
    keys = list(decode(encode_values(given_values)))
    indexes = [
        key for key in given_values if key.isascii() and key.isdigit() and str(int(key)) == key and int(key) < 2**32 - 1
    ]
    assert keys == sorted(indexes, key=int) + [key for key in given_values if key not in indexes]


@pytest.mark.parametrize(
    ("number", "exact"),
    [(0, True), (MAX_EXACT, True), (-MAX_EXACT, True), (MAX_EXACT + 1, False), (-MAX_EXACT - 1, False),
     (10**400, False), (1.5, True), (1e300, False), (5e-324, True)],
)  # fmt: skip
def test_whole_numbers_are_exact_up_to_javascript_s_limit(number: int | float, exact: bool) -> None:
    assert is_exact(number) is exact


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(st.characters(), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.integers(0, 2**33).map(str), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(documents)
@example({"b": 1, "2": [1.0, -0.0, 1e-7, 1e21, Decimal("0.10")], "1": "\ud800\x00x"})
@example([2**53, -(2**53), Decimal("0.1000000000000000000001"), Decimal("1e400"), float("nan")])
def test_any_document_is_printed_again_as_it_is(value: Any) -> None:
    once = encode_document(value)
    assert print_again(once.decode()) == once.decode()
    assert encode_document(json.loads(once, parse_float=Decimal)) == once
    assert b"\\u0000" not in once


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (2**53 - 1, b"9007199254740991"),
        (2**53, b'"9007199254740992"'),
        (Decimal("75000.50"), b"75000.5"),
        (Decimal("0.1000000000000000000001"), b'"0.1000000000000000000001"'),
        (float("inf"), b"null"),
        ("a\x00b", b'"ab"'),
    ],
)
def test_a_number_that_javascript_cannot_hold_keeps_its_digits(value: Any, printed: bytes) -> None:
    assert encode_document(value) == printed
