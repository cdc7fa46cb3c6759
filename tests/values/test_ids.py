"""Public ids: their form, their order, and what is not one."""

import time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.values.ids import ALPHABET, IdKind, new_id

KIND = IdKind("cust_")


def as_uuid(id: str) -> UUID:
    """The UUID behind an id, read back by the definition of Crockford's base 32."""
    number = 0
    for char in id.removeprefix("cust_"):
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(char)
    return UUID(int=number)


def test_an_id_is_a_uuid_of_version_7_made_now() -> None:
    before = time.time_ns() // 1_000_000
    uuid = as_uuid(KIND.new())
    after = time.time_ns() // 1_000_000
    assert uuid.version == 7
    assert uuid.variant == "specified in RFC 4122"
    assert before <= uuid.int >> 80 <= after


def test_an_id_has_its_prefix_and_26_lower_case_characters_without_look_alikes() -> None:
    for prefix in ("cust_", "evt_", "tl_"):
        id = new_id(prefix)
        assert id.startswith(prefix)
        assert len(id) == len(prefix) + 26
        assert set(id.removeprefix(prefix)) <= set(ALPHABET)
    assert len(ALPHABET) == 32
    assert not set(ALPHABET) & set("ilou")


def test_ids_are_unique_and_sort_by_their_time() -> None:
    ids = [KIND.new() for _ in range(5000)]
    assert len(set(ids)) == 5000
    moments = [as_uuid(id).int >> 80 for id in sorted(ids)]
    assert moments == sorted(moments)
    early = KIND.new()
    time.sleep(0.002)
    assert early < KIND.new()


def test_new_ids_and_the_documented_example_have_the_form() -> None:
    assert KIND.matches(KIND.example)
    assert all(KIND.matches(KIND.new()) for _ in range(1000))


@pytest.mark.parametrize(
    "text",
    ["", "cust_", "cust", KIND.example[:-1], KIND.example + "0", KIND.example.upper(), "x" + KIND.example,
     KIND.example + "\n", KIND.example + "\0", "addr_" + KIND.example[5:], "cust_8" + KIND.example[6:],
     "cust_" + "u" * 26, "cust_0" + "l" * 25, "cust_" + "٠" * 26, " " + KIND.example, "cust" + KIND.example[5:]],
)  # fmt: skip
def test_other_texts_have_not(text: str) -> None:
    assert not KIND.matches(text)


@given(st.integers(0, 2**128 - 1))
def test_every_uuid_has_an_id(number: int) -> None:
    text = ""
    for _ in range(26):
        number, digit = divmod(number, 32)
        text = ALPHABET[digit] + text
    assert KIND.matches("cust_" + text)


@given(st.text(max_size=40))
def test_what_matches_has_the_written_pattern(text: str) -> None:
    assert KIND.matches(text) == (
        text.startswith("cust_") and len(text) == 31 and text[5] in ALPHABET[:8] and set(text[5:]) <= set(ALPHABET)
    )
