from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.values.text_folding import fold
from tests import depth
from tests.factories import make_product
from tests.products.test_listing import ask, walk

LETTERS = [
    "a",
    "B",
    "é",
    "E",
    "ß",
    "İ",
    "Ø",
    "%",
    "_",
    "\\",
    "'",
    '"',
    " ",
    "🌸",
    "ق",
    "ه",
    "ж",
    "Ж",
    "日",
    "-",
    "7",
    ",",
]
WORDS = st.text(st.sampled_from(LETTERS), min_size=1, max_size=6).filter(lambda text: text == text.strip())
PRODUCTS = st.fixed_dictionaries({"name": WORDS, "own": WORDS, "skus": st.lists(st.none() | WORDS, max_size=2)})


async def finds(api: httpx.AsyncClient, term: str, **fields: Any) -> bool:
    """Whether a search among two products finds the one with these fields, and not the other."""
    made = await make_product(api, **fields)
    await make_product(api, name="Zzz", productId="zzz", variants=[{"title": "Zz", "price": 1, "sku": "ZZZ"}])
    page = await ask(api, {"search": term})
    assert page["meta"]["total"] == len(page["data"])
    assert all(found == made for found in page["data"])
    return bool(page["data"])


SHIRT: dict[str, Any] = {
    "name": "Batik  Shirt",
    "productId": "own-17",
    "description": "secret words",
    "tags": ["tagged"],
    "variants": [{"title": "titled", "key": "keyed", "price": 1, "sku": f"SKU-{n}"} for n in range(3)],
}


@pytest.mark.parametrize(
    "term", ["batik", "SHIRT", "tik sh", "batik  shirt", " Shirt ", "i", "own-17", "WN-1", "sku-2", "SKU", "u-0", "-"]
)
async def test_a_part_of_name_product_id_or_sku_is_found_in_any_case(api: httpx.AsyncClient, term: str) -> None:
    assert await finds(api, term, **SHIRT)


@pytest.mark.parametrize(
    "term", ["secret", "tagged", "titled", "keyed", "shirt own", "sku-0 sku-1", "own-17 sku", "batikshirt", "shirtx"]
)
async def test_what_is_elsewhere_or_crosses_from_one_field_to_the_next_is_not_found(
    api: httpx.AsyncClient, term: str
) -> None:
    assert not await finds(api, term, **SHIRT)


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("Café crème", "cafe CREME"), ("Cafe creme", "café"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σισυφος"),
        ("ДМИТРИЙ", "дмитрии"), ("قَهْوَة", "قهوة"), ("日本の茶", "本の"), ("ﬁne", "FINE"), ("Batik 🌸", "🌸"),
        ("Ångström", "angstrom"), ("Việt Nam", "viet nam"), ("e\u0301clair", "éclair"),
    ],
)  # fmt: skip
async def test_case_and_accents_are_folded_in_every_script(api: httpx.AsyncClient, name: str, term: str) -> None:
    assert await finds(api, term, name=name)


@pytest.mark.parametrize(
    ("name", "term", "found"),
    [
        ("100%", "0%", True), ("Cap", "%", False), ("Cap", "C%p", False), ("a_b", "a_b", True), ("aXb", "a_b", False),
        ("a\\b", "\\", True), ("Cap", "\\", False), ("a%b", "\\%", False), ("O'Neil", "'n", True),
        ('5" disc', '"', True), ("{0}", "{0}", True), ("$1", "$1", True), ("a,b", ",b", True),
    ],
)  # fmt: skip
async def test_wildcard_characters_are_searched_literally(
    api: httpx.AsyncClient, name: str, term: str, found: bool
) -> None:
    assert await finds(api, term, name=name) is found


async def test_our_own_id_is_found_when_the_caller_has_none(api: httpx.AsyncClient) -> None:
    made = await make_product(api)
    assert (await ask(api, {"search": made["id"]}))["data"] == [made]


async def test_a_search_follows_changes(api: httpx.AsyncClient) -> None:
    made = await make_product(api, **SHIRT)
    await api.put(f"/products/{made['id']}", json={"name": "Cap", "variants": [{"sku": "SKU-1"}, {"sku": "SKU-2"}]})
    for term in ("batik", "SKU-0"):
        assert (await ask(api, {"search": term}))["data"] == []
    await api.put(f"/products/{made['id']}", json={"variants": [{"key": "keyed", "sku": "NEW-9"}]})
    assert (await ask(api, {"search": "sku"}))["data"] == []
    for term in ("cap", "new-9", "own-17"):
        assert len((await ask(api, {"search": term}))["data"]) == 1


@given(catalogue=st.lists(PRODUCTS, min_size=3, max_size=6), data=st.data())
@settings(max_examples=depth.examples(15), deadline=None, suppress_health_check=list(HealthCheck))
async def test_a_search_finds_what_reading_everything_finds(
    api: httpx.AsyncClient, catalogue: list[dict[str, Any]], data: Any
) -> None:
    await clear(api)
    products = [await build(api, number, one) for number, one in enumerate(catalogue)]
    products.reverse()
    texts = [text for _, lines in products for text in lines]
    pieces = st.sampled_from(texts).flatmap(slices) | WORDS
    for _ in range(12):
        term = data.draw(pieces.filter(fold), label="term")
        expected = [product for product, lines in products if any(fold(term) in fold(line) for line in lines)]
        assert await walk(api, 4, search=term) == expected


async def build(api: httpx.AsyncClient, number: int, fields: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A product, and the texts in which it may be found."""
    own = f"{fields['own']}{number}"
    variants = [{"title": "nowhere", "price": 1, "sku": sku} for sku in fields["skus"]] or [{"title": "T", "price": 1}]
    made = await make_product(api, name=fields["name"], productId=own, variants=variants)
    return made, [fields["name"], own, *filter(None, fields["skus"])]


def slices(text: str) -> st.SearchStrategy[str]:
    places = st.tuples(st.integers(0, len(text) - 1), st.integers(1, len(text)))
    return places.map(lambda ends: text[ends[0] : ends[0] + ends[1]].swapcase())


async def clear(api: httpx.AsyncClient) -> None:
    for product in (await ask(api, {"limit": 100}))["data"]:
        assert (await api.delete(f"/products/{product['id']}")).status_code == 204
