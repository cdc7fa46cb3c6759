"""Spellings of phone numbers: which are equal, and which are not."""

from string import digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.messaging.channels.identities import build_key, canonical, list_spellings
from sapa.messaging.channels.interface import Identity


def number(length: int, first: str = digits) -> st.SearchStrategy[str]:
    return st.builds(str.__add__, st.sampled_from(first), st.text(digits, min_size=length - 1, max_size=length - 1))


AREAS = st.sampled_from(["11", "21", "71", "99"])
PAIRS = st.one_of(
    st.builds(lambda area, rest: (f"55{area}{rest}", f"55{area}9{rest}"), AREAS, number(8, "6789")),
    st.builds(lambda rest: (f"54{rest}", f"549{rest}"), number(10, "123456789")),
    st.builds(lambda rest: (f"52{rest}", f"521{rest}"), number(10, "123456789")),
)


@given(PAIRS)
def test_both_spellings_have_one_key_and_name_each_other(pair: tuple[str, str]) -> None:
    short, long = pair
    assert build_key(Identity("wa_id", short)) == build_key(Identity("phone", f"+{long}"))
    assert set(list_spellings(short)) == set(list_spellings(long)) == {f"+{short}", f"+{long}"}
    assert list_spellings(long)[0] == f"+{long}"


@given(number(8, "2345"), st.sampled_from(["11", "21", "71"]))
def test_landlines_of_brazil_have_one_spelling(rest: str, area: str) -> None:
    assert list_spellings(f"55{area}{rest}") == [f"+55{area}{rest}"]


@given(st.text(digits, min_size=6, max_size=15).filter(lambda text: text[:2] not in {"52", "54", "55"}))
def test_all_other_countries_have_one_spelling(text: str) -> None:
    assert list_spellings(text) == [f"+{text}"]


@given(st.lists(st.text(digits, min_size=8, max_size=14), min_size=2, max_size=2, unique=True))
def test_numbers_with_one_key_are_spellings_of_each_other(pair: list[str]) -> None:
    one, other = pair
    same_key = build_key(Identity("phone", one)) == build_key(Identity("phone", other))
    assert same_key == (f"+{other}" in list_spellings(one))


@pytest.mark.parametrize(
    ("identity", "known"),
    [
        (Identity("wa_id", "628123456789"), Identity("phone", "+628123456789")),
        (Identity("phone", "+62 812-3456-789"), Identity("phone", "+628123456789")),
        (Identity("bsuid", "ID.1349"), Identity("bsuid", "ID.1349")),
        (Identity("email", " Ayu@Example.com "), Identity("email", "Ayu@Example.com")),
    ],
)
def test_every_form_of_a_number_is_one_identity(identity: Identity, known: Identity) -> None:
    assert canonical(identity) == known


def test_addresses_are_the_same_in_any_case() -> None:
    assert build_key(Identity("email", "Ayu@Example.com")) == build_key(Identity("email", "ayu@example.COM"))
