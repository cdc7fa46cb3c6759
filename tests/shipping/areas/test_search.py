"""The search over all levels: one edit in each word is tolerated, and not two."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.shipping.areas.search import (
    has_distance_of_one,
    list_spellings,
    parse_terms,
    search_places,
)
from sapa.shipping.carriers.interface import AreaPath
from tests.conftest import Installation, connect
from tests.factories import make_company, make_key

WORDS = st.text("abcd", min_size=1, max_size=7)


def list_edits(word: str) -> set[str]:
    """Every word that is one edit away, written out."""
    splits = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    deleted = {left + right[1:] for left, right in splits if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1}
    replaced = {left + letter + right[1:] for left, right in splits if right for letter in "abcd"}
    inserted = {left + letter + right for left, right in splits for letter in "abcd"}
    return (deleted | swapped | replaced | inserted) - {word}


@given(WORDS, WORDS)
def test_a_distance_of_one_is_one_edit(one: str, other: str) -> None:
    assert has_distance_of_one(one, other) == (other in list_edits(one))


@given(WORDS)
def test_words_that_are_one_edit_apart_share_a_spelling(word: str) -> None:
    assert all(list_spellings(word) & list_spellings(edited) for edited in list_edits(word))


def test_words_that_only_name_the_kind_of_area_are_left_out() -> None:
    assert parse_terms("Kec. Sukajadi, Kel. PASTEUR") == ["sukajadi", "pasteur"]
    assert parse_terms("kec") == ["kec"]


def build_place(*names: str, zip: str | None = None) -> AreaPath:
    return AreaPath(1, 2, 3, 4, names, zip)


def test_a_match_of_a_narrower_level_comes_first() -> None:
    dago = build_place("Dago", "Coblong", "Kota Bandung", "Jawa Barat", zip="40135")
    bandung = build_place("Bandung", "Tanjung", "Kabupaten Serang", "Banten")
    assert [place.names[0] for place in search_places([dago, bandung], "bandung", 10)] == ["Bandung", "Dago"]
    assert search_places([dago, bandung], "40135", 10) == [dago]
    assert search_places([dago, bandung], "40136", 10) == []
    assert search_places([dago, bandung], "coblong bandumg", 10) == [dago]
    assert search_places([dago, bandung], "coblong bandmg", 10) == []


@pytest.fixture(scope="module")
async def sandbox(installation: Installation, database: Database) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, (await make_company(database)).test)
    async with connect(installation, key.raw) as client:
        yield client


async def search(client: httpx.AsyncClient, q: str, **params: Any) -> list[dict[str, Any]]:
    response = await client.get("/shipping/coverage/search", params={"q": q, **params})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]
    return found


@pytest.mark.parametrize(
    "q",
    [
        "sukabungah",
        "Sukabungah Sukajadi Bandung",
        "bandung sukajadi sukabungah",
        "sukab band",
        "sukabunga sukajdai bandumg",
        "sukabungah 40162",
    ],
)
async def test_words_of_any_level_find_the_sub_district_with_its_ids(sandbox: httpx.AsyncClient, q: str) -> None:
    assert (await search(sandbox, q))[0] == {
        "provinceId": 32,
        "cityId": 3273,
        "districtId": 327307,
        "subDistrictId": 3273071001,
        "label": "Sukabungah, Sukajadi, Kota Bandung, Jawa Barat, 40162",
        "zip": "40162",
    }


async def test_what_is_found_can_be_priced(sandbox: httpx.AsyncClient) -> None:
    (found,) = await search(sandbox, "pasteur bandung", limit=1)
    place = {"districtId": found["districtId"], "subDistrictId": found["subDistrictId"]}
    body = {
        "provider": "aggregator_carrier", "origin": place, "destination": place,
        "package": {"weight": 1, "length": 40, "width": 30, "height": 20},
    }  # fmt: skip
    quote = (await sandbox.post("/shipping/calculate-fee", json=body)).json()["data"]
    assert quote["volumetricWeight"] == 4
    assert {option["chargeableWeight"] for option in quote["options"]} == {4}


async def test_a_search_is_bounded_and_says_what_is_wrong(sandbox: httpx.AsyncClient) -> None:
    assert len(await search(sandbox, "jakarta", limit=3)) == 3
    assert await search(sandbox, "nowhere at all") == []
    for query in ("", "q=%20", "q=x&limit=51", "q=x&provider=nobody"):
        refused = await sandbox.get(f"/shipping/coverage/search?{query}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), query
