import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.products import actions
from sapa.products.types import ProductPatch, VariantPatch
from sapa.values.company import Company
from tests import depth
from tests.customers.test_api import refusal
from tests.customers.test_updates import count_events
from tests.factories import Environments, make_product
from tests.products.test_api import EVERYTHING, ONE


async def put(api: httpx.AsyncClient, id: str, **fields: Any) -> dict[str, Any]:
    response = await api.put(f"/products/{id}", json=fields)
    assert response.status_code == 200, response.text
    changed: dict[str, Any] = response.json()["data"]
    assert (await api.get(f"/products/{id}")).content == response.content
    return changed


@pytest.fixture
async def product(api: httpx.AsyncClient) -> dict[str, Any]:
    return await make_product(api, **EVERYTHING)


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("name", "Linen shirt", "Linen shirt"),
        ("description", "", ""),
        ("description", None, None),
        ("media", "https://example.com/new.png", "https://example.com/new.png"),
        ("media", None, None),
        ("medias", ["https://example.com/b.png"], ["https://example.com/b.png"]),
        ("medias", None, []),
        ("medias", [], []),
        ("status", "active", "active"),
        ("status", "archived", "archived"),
        ("options", None, []),
        ("options", [], []),
        ("tags", ["x", "x"], ["x"]),
        ("tags", None, []),
        ("types", ["x", " x "], ["x"]),
        ("types", None, []),
    ],
)
async def test_a_sent_field_changes_and_absent_ones_stay(
    api: httpx.AsyncClient,
    database: Database,
    company: Environments,
    product: dict[str, Any],
    field: str,
    value: Any,
    stored: Any,
) -> None:
    changed = await put(api, product["id"], **{field: value})
    assert changed == {**product, field: stored, "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > product["updatedAt"]
    assert await count_events(database, company, product["id"]) == 2


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("title", "Medium", "Medium"),
        ("price", 5, 5),
        ("price", 5.50, 5.5),
        ("compareAtPrice", 7, 7),
        ("compareAtPrice", None, None),
        ("key", "mid", "mid"),
        ("key", None, "M"),
        ("media", None, None),
        ("media", "https://example.com/x.png", "https://example.com/x.png"),
        ("inventoryQuantity", 0, 0),
        ("inventoryQuantity", None, None),
        ("inventorySku", "NEW", "NEW"),
        ("inventorySku", None, None),
    ],
)
async def test_a_sent_field_of_a_variant_changes_and_absent_ones_stay(
    api: httpx.AsyncClient, product: dict[str, Any], field: str, value: Any, stored: Any
) -> None:
    medium, large = product["variants"]
    variants = [{"id": medium["id"], field: value}, {"id": large["id"]}]
    changed = await put(api, product["id"], variants=variants)
    assert changed["variants"] == [{**medium, field: stored}, large]


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"name": "Batik shirt", "status": "draft"},
        {"description": EVERYTHING["description"], "media": EVERYTHING["media"], "medias": EVERYTHING["medias"]},
        {"tags": [" new", "cotton", "new"], "types": ["shirt "]},
        {"options": [{"name": "Size", "values": ["M", "L", "L"]}]},
        {"variants": EVERYTHING["variants"]},
        {"variants": [{"sku": "SHIRT-7-M"}, {"title": "L"}]},
        {"variants": [{"key": "medium", "price": 299000.50}, {"key": "L", "price": 0.0, "inventoryQuantity": None}]},
    ],
    ids=str,
)
async def test_a_put_that_changes_nothing_announces_nothing_and_keeps_the_time(
    api: httpx.AsyncClient, database: Database, company: Environments, product: dict[str, Any], same: dict[str, Any]
) -> None:
    assert await put(api, product["id"], **same) == product
    assert await count_events(database, company, product["id"]) == 1


async def test_putting_a_product_as_it_was_read_changes_nothing(
    api: httpx.AsyncClient, database: Database, company: Environments, product: dict[str, Any]
) -> None:
    read_only = {"id", "productId", "createdAt", "updatedAt"}
    writable = {name: value for name, value in product.items() if name not in read_only}
    assert await put(api, product["id"], **writable) == product
    assert await count_events(database, company, product["id"]) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None), ("name", ""), ("status", None), ("status", "gone"), ("variants", None), ("variants", []),
        ("productId", "x"), ("id", "x"), ("createdAt", "x"), ("updatedAt", "x"), ("unknown", "x"),
    ],
)  # fmt: skip
async def test_an_invalid_change_of_a_field_is_refused(
    api: httpx.AsyncClient, product: dict[str, Any], field: str, value: Any
) -> None:
    response = await api.put(f"/products/{product['id']}", json={"description": "changed", field: value})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field
    assert (await api.get(f"/products/{product['id']}")).json()["data"] == product


@pytest.mark.parametrize(
    ("variant", "field"),
    [
        ({"title": "XL"}, "price"), ({"price": 5}, "title"), ({}, "title"), ({"sku": "NEW", "price": 5}, "title"),
        ({"title": None}, "title"), ({"price": None, "title": "M"}, "price"), ({"price": "5"}, "price"),
        ({"price": 0.001, "title": "L"}, "price"), ({"key": "L", "compareAtPrice": -1}, "compareAtPrice"),
        ({"key": "L", "sku": "A", "inventorySku": "B"}, "sku"), ({"key": "L", "inventoryQuantity": -1},
                                                                 "inventoryQuantity"),
    ],
)  # fmt: skip
async def test_an_invalid_variant_is_refused_and_nothing_changes(
    api: httpx.AsyncClient, product: dict[str, Any], variant: dict[str, Any], field: str
) -> None:
    body = {"name": "Changed", "variants": [{"sku": "SHIRT-7-M"}, variant]}
    error = refusal(await api.put(f"/products/{product['id']}", json=body), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == f"variants[1].{field}"
    assert (await api.get(f"/products/{product['id']}")).json()["data"] == product


async def test_an_unknown_foreign_or_repeated_id_is_refused(api: httpx.AsyncClient) -> None:
    parts: dict[str, Any] = {"variants": [ONE], "options": [{"name": "Size"}]}
    other, made = await make_product(api, **parts), await make_product(api, **parts)
    rests: dict[str, dict[str, Any]] = {"variants": ONE, "options": {"name": "Size"}}
    for field, rest in rests.items():
        mine, theirs = made[field][0]["id"], other[field][0]["id"]
        for ids in (["x"], [""], [theirs], [mine, mine], [mine, "var_01jc9y3q5me8w92v7x4t6r0n1k"]):
            sent = [{**rest, "id": id, **({"name": f"N{n}"} if field == "options" else {})} for n, id in enumerate(ids)]
            response = await api.put(f"/products/{made['id']}", json={field: sent})
            error = refusal(response, 400, "VALIDATION_ERROR")
            assert error["details"][0]["field"] == f"{field}[{len(ids) - 1}].id"
    assert (await api.get(f"/products/{other['id']}")).json()["data"] == other


async def test_variants_not_sent_are_removed_and_the_order_is_the_new_one(api: httpx.AsyncClient) -> None:
    made = await make_product(api, variants=[{"title": title, "price": 1} for title in "abcd"])
    a, b, c, d = made["variants"]
    changed = await put(api, made["id"], variants=[{"title": "d"}, {"title": "e", "price": 2}, {"title": "a"}])
    first, second, third = changed["variants"]
    assert (first, third) == (d, a)
    assert second["id"] not in {a["id"], b["id"], c["id"], d["id"]}


async def test_an_id_match_wins_over_an_earlier_looser_match(api: httpx.AsyncClient) -> None:
    made = await make_product(api, variants=[{"title": "a", "price": 1, "sku": "A"}])
    (existing,) = made["variants"]
    changed = await put(
        api, made["id"], variants=[{"title": "a", "price": 2, "sku": "A"}, {"id": existing["id"], "title": "b"}]
    )
    new, stored = changed["variants"]
    assert (stored["id"], stored["title"], stored["key"], stored["inventorySku"]) == (existing["id"], "b", "a", "A")
    assert new["id"] != existing["id"]


async def test_a_sku_match_wins_over_an_earlier_key_match(api: httpx.AsyncClient) -> None:
    made = await make_product(api, variants=[{"title": "a", "price": 1, "sku": "A"}])
    (existing,) = made["variants"]
    changed = await put(
        api, made["id"], variants=[{"title": "a", "price": 2}, {"title": "b", "sku": "A", "inventoryQuantity": 4}]
    )
    assert changed["variants"][1] == {**existing, "title": "b", "inventoryQuantity": 4}
    assert changed["variants"][0]["id"] != existing["id"]


async def test_options_keep_their_ids_by_id_and_by_name(api: httpx.AsyncClient) -> None:
    made = await make_product(api, options=[{"name": "Size", "values": ["M"]}, {"name": "Colour"}])
    size, colour = made["options"]
    changed = await put(
        api,
        made["id"],
        options=[{"name": "Cut"}, {"name": "Size", "values": ["L"]}, {"id": colour["id"], "name": "Color"}],
    )
    cut, size_now, color = changed["options"]
    assert size_now == {**size, "values": ["L"]}
    assert color == {**colour, "name": "Color"}
    assert cut["id"] not in {size["id"], colour["id"]}


async def test_swapped_skus_follow_their_ids(api: httpx.AsyncClient) -> None:
    made = await make_product(api, variants=[{"title": t, "price": 1, "sku": t.upper()} for t in "ab"])
    a, b = made["variants"]
    changed = await put(api, made["id"], variants=[{"id": a["id"], "sku": "B"}, {"id": b["id"], "sku": "A"}])
    assert changed["variants"] == [{**a, "inventorySku": "B"}, {**b, "inventorySku": "A"}]


def drawn_round(draw: Any, existing: list[dict[str, Any]], round_: int) -> tuple[list[Any], list[dict[str, Any]]]:
    """A PUT's variants, and for each what is expected of it: an existing variant with changes, or a new one.

    Each existing variant is matched at most once, in one of the three ways. One that is matched by id may take the SKU
    and the key of any other.
    """
    sent, expected = [], []
    meant = draw(st.lists(st.sampled_from(existing), unique_by=lambda one: one["id"]))
    for number, variant in enumerate(meant):
        ways = ["id", "key", *(["sku"] if variant["inventorySku"] else [])]
        way = draw(st.sampled_from(ways))
        change = draw(CHANGES)
        if way == "id":
            change |= draw(names_of(existing))
            named = {"id": variant["id"]}
        elif way == "sku":
            change |= {name: value for name, value in draw(names_of(existing)).items() if name != "inventorySku"}
            named = {draw(st.sampled_from(["sku", "inventorySku"])): variant["inventorySku"]}
        else:
            change |= draw(st.sampled_from([{}, {"inventorySku": f"fresh {round_} {number}"}, {"inventorySku": None}]))
            named = {"key": variant["key"]}
        sent.append({**change, **named})
        expected.append({**variant, **change})
    for number in range(draw(st.integers(0 if sent else 1, 2))):
        new = {"price": 1, **draw(CHANGES), "title": f"new {round_} {number}", "sku": f"sku {round_} {number}"}
        sent.append(new)
        expected.append({"id": None, "key": new["title"], "compareAtPrice": None, "inventorySku": new["sku"],
                         "media": None, "inventoryQuantity": None, **new})  # fmt: skip
        del expected[-1]["sku"]
    order = draw(st.permutations(range(len(sent))))
    return [sent[index] for index in order], [expected[index] for index in order]


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["S", "M", "L"]),
        "price": st.integers(0, 5),
        "compareAtPrice": st.none() | st.integers(0, 5),
        "media": st.none() | st.just("http://u"),
        "inventoryQuantity": st.none() | st.integers(0, 3),
    },
)


def names_of(existing: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    skus = [variant["inventorySku"] for variant in existing]
    keys = [variant["key"] for variant in existing]
    return st.fixed_dictionaries(
        {}, optional={"inventorySku": st.sampled_from(skus) | st.none(), "key": st.sampled_from(keys)}
    )


def unmistakable(variants: list[dict[str, Any]]) -> bool:
    """Whether every SKU and key belongs to one variant, so that the next round can match by them."""
    skus = [variant["inventorySku"] for variant in variants if variant["inventorySku"]]
    keys = [variant["key"] for variant in variants]
    return len(set(skus)) == len(skus) and len(set(keys)) == len(keys)


@given(data=st.data())
@settings(max_examples=depth.examples(60), deadline=None, suppress_health_check=list(HealthCheck))
async def test_variants_keep_their_ids_and_the_fields_that_are_not_sent(api: httpx.AsyncClient, data: Any) -> None:
    start = [
        {"title": f"T{n}", "price": 1, "sku": data.draw(st.sampled_from([f"S{n}", None])), "inventoryQuantity": n}
        for n in range(data.draw(st.integers(1, 5)))
    ]
    product = await make_product(api, variants=start)
    for round_ in range(3):
        given_, expected = drawn_round(data.draw, product["variants"], round_)
        before = {variant["id"] for variant in product["variants"]}
        product = await put(api, product["id"], variants=given_)
        ids = [variant["id"] for variant in product["variants"]]
        assert len(set(ids)) == len(ids)
        for variant, fields in zip(product["variants"], expected, strict=True):
            assert variant == {**fields, "id": fields["id"] or variant["id"]}
            assert (variant["id"] in before) == (fields["id"] is not None)
        if not unmistakable(product["variants"]):
            break


async def test_a_change_waits_for_one_under_way_and_keeps_what_that_one_did(
    api: httpx.AsyncClient, database: Database, company: Environments, product: dict[str, Any]
) -> None:
    owner = Company(company.live, "live", "ID", "IDR")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%products%'"
    first = ProductPatch(name="First", variants=[VariantPatch(key="L", title="Large")])
    async with database.connection() as onlooker:
        async with database.transaction() as tx:
            await actions.update(tx, owner, product["id"], first)
            second = asyncio.create_task(put(api, product["id"], description="Second"))
            while not await onlooker.fetchval(waiting):
                assert not second.done()
        changed = await second
    assert (changed["name"], changed["description"]) == ("First", "Second")
    assert changed["variants"] == [{**product["variants"][1], "title": "Large"}]


async def test_concurrent_changes_of_different_fields_all_arrive(
    api: httpx.AsyncClient, database: Database, company: Environments, product: dict[str, Any]
) -> None:
    new: dict[str, Any] = {
        "name": "N",
        "description": "D",
        "media": "http://m",
        "medias": ["http://x"],
        "tags": ["t"],
        "types": [],
    }
    changes = [{name: value} for name, value in new.items()] + [{"variants": [{"key": "L", "price": 9}]}]
    responses = await asyncio.gather(*(api.put(f"/products/{product['id']}", json=change) for change in changes))
    assert [response.status_code for response in responses] == [200] * len(changes)
    now = (await api.get(f"/products/{product['id']}")).json()["data"]
    assert {name: now[name] for name in new} == new
    assert now["variants"] == [{**product["variants"][1], "price": 9}]
    assert now["updatedAt"] == max(response.json()["data"]["updatedAt"] for response in responses)
    assert await count_events(database, company, product["id"]) == 1 + len(changes)
