"""Whole numbers in any spelling that JSON has for them."""

from decimal import Decimal
from typing import Annotated, Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from sapa.db.pool import Database
from sapa.http.bodies import build_decoder, decode_body
from sapa.http.errors import Invalid
from tests.conftest import TLS, Installation
from tests.factories import Environments, make_key


class Box(Struct):
    count: int


class Pallet(Struct, rename="camel"):
    in_stock: Annotated[int, Meta(ge=0, le=8760)] | None = None
    code: int | str | UnsetType = UNSET
    boxes: list[Box] = []
    by_colour: dict[str, int] = {}
    price: Decimal = Decimal(0)
    weight: float = 0
    metadata: dict[str, Any] = {}


def decode(text: str) -> Any:
    return decode_body(text.encode(), build_decoder(Pallet))


@pytest.mark.parametrize(
    ("text", "value"),
    [("8760.0", 8760), ("8.76e3", 8760), ("8760.000", 8760), ("-0.0", 0), ("0.0", 0), ("12E0", 12), ("10e-1", 1)],
)
def test_a_whole_number_is_an_integer_however_it_is_written(text: str, value: int) -> None:
    assert decode(f' {{"inStock": {text}}} ').in_stock == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8760.5", "must be a whole number or null, not a number"),
        ("1e-400", "must be a whole number or null, not a number"),
        ("8761.0", "must be a whole number <= 8760"),
        ('"8760.0"', "must be a whole number or null, not a string"),
    ],
)
def test_other_numbers_are_refused_as_before(text: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        decode(f'{{"inStock": {text}}}')
    assert [(detail.field, detail.message) for detail in refusal.value.details or []] == [("inStock", message)]


def test_integers_are_found_in_lists_maps_and_choices_and_nothing_else_changes() -> None:
    pallet = decode(
        '{"boxes": [{"count": 1.0}, {"count": 2}], "byColour": {"red": 3.0}, "code": 4.0, "price": 5.50, "weight": 6.0,'
        ' "metadata": {"n": 7.0, "text": "8.0"}}'
    )
    assert ([box.count for box in pallet.boxes], pallet.by_colour, pallet.code) == ([1, 2], {"red": 3}, 4)
    assert (str(pallet.price), pallet.weight) == ("5.50", 6.0)
    assert msgspec.json.encode(pallet.metadata) == b'{"n":7.0,"text":"8.0"}'


@given(st.integers(-(2**62), 2**62), st.integers(0, 30))
def test_zeros_after_the_point_never_change_an_integer(value: int, zeros: int) -> None:
    assert decode(f'{{"boxes": [{{"count": {value}.0{"0" * zeros}}}]}}').boxes[0].count == value


async def test_the_api_stores_such_a_number(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    body = '{"reopenWindowHours": 8760.0}'
    async with httpx.AsyncClient(base_url=f"{installation.address}/messaging/v1", verify=TLS, timeout=120) as client:
        stored = await client.put(
            "/support/settings", content=body, headers={"x-api-key": key.raw, "content-type": "application/json"}
        )
    assert (stored.status_code, stored.json()["data"]["reopenWindowHours"]) == (200, 8760), stored.text
