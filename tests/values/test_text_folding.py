"""What a search takes for the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.values.text_folding import fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("José  LESTARI", "jose lestari"),
        ("Ångström", "angstrom"),
        ("STRASSE", "straße"),
        ("Ёлка", "елка"),
        ("ﬁn", "fin"),
        ("\tAyu\n ", "ayu"),
        ("\u0130stanbul", "istanbul"),
        ("e\u0301", "é"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_case_accents_and_blanks_make_no_difference(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("ayu", "ayo"), ("😀", "😁"), ("a%b", "a_b"), ("محمد", "احمد")])
def test_other_letters_do(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
