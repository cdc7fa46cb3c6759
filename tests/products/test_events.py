from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.products import stock
from sapa.values.company import Company
from tests import depth
from tests.factories import Environments, make_product
from tests.javascript import print_again
from tests.products.test_api import EVERYTHING, ONE
from tests.test_events import TEXTS, data_of, events_of

NAMES = TEXTS.filter(str.strip)
WORDS = TEXTS.filter(lambda text: text.strip() and "," not in text)
PRICES = st.integers(0, 10**15 - 1).map(str) | st.decimals(0, 10**12, places=2).map(str)
VARIANTS = st.fixed_dictionaries(
    {"title": NAMES, "price": PRICES},
    optional={
        "key": NAMES,
        "sku": NAMES,
        "media": NAMES.map("https://example.com/{}".format),
        "compareAtPrice": PRICES,
        "inventoryQuantity": st.integers(1, 10**9),
    },
)


async def test_every_change_is_recorded_once_with_the_bytes_of_the_answer(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = await api.post("/products", json=EVERYTHING)
    id = made.json()["data"]["id"]
    changed = await api.put(f"/products/{id}", json={"name": "Cap", "variants": [{"sku": "SHIRT-7-M", "price": 5}]})
    assert (await api.delete(f"/products/{id}")).status_code == 204
    events = await events_of(database, company.live)
    assert [(event["kind"], event["resource_id"]) for event in events] == [
        ("product.created", id),
        ("product.updated", id),
        ("product.deleted", id),
    ]
    assert [event["body"] for event in events] == [data_of(made), data_of(changed), data_of(changed)]


async def test_a_refused_change_is_not_recorded(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = await make_product(api, productId="shirt-7")
    path = f"/products/{made['id']}"
    for response in (
        await api.post("/products", json={"name": "Twin", "productId": "shirt-7", "variants": [ONE]}),
        await api.post("/products", json={"name": "None", "variants": []}),
        await api.post("/products", json={"name": "Bad", "variants": [{**ONE, "price": 0.001}]}),
        await api.put(path, json={"variants": [{"id": "var_01jc9y3q5me8w92v7x4t6r0n1k"}]}),
        await api.put(path, json={"name": None}),
        await api.put("/products/prod_01jc9y3q5me8w92v7x4t6r0n1k", json={"name": "x"}),
        await api.delete("/products/prod_01jc9y3q5me8w92v7x4t6r0n1k"),
    ):
        assert response.status_code in {400, 404, 409}
    assert len(await events_of(database, company.live)) == 1


def product_text(fields: dict[str, Any]) -> str:
    """A body with the amounts exactly as written."""
    text = httpx.Request("POST", "http://x", json=fields).content.decode()
    for variant in fields["variants"]:
        for name in ("price", "compareAtPrice"):
            if name in variant:
                text = text.replace(f'"{name}":"{variant[name]}"', f'"{name}":{variant[name]}')
    return text


@given(name=NAMES, text=TEXTS, words=st.lists(WORDS, max_size=3), variants=st.lists(VARIANTS, min_size=1, max_size=3))
@settings(max_examples=depth.examples(40), deadline=None, suppress_health_check=list(HealthCheck))
async def test_responses_lists_and_events_are_the_same_bytes_and_javascript_prints_them_again(
    api: httpx.AsyncClient,
    database: Database,
    company: Environments,
    name: str,
    text: str,
    words: list[str],
    variants: list[dict[str, Any]],
) -> None:
    options = [{"name": name, "values": [word.strip() for word in words]}]
    fields = {"name": name, "description": text, "tags": words, "types": words, "options": options}
    body = product_text({**fields, "variants": variants})
    made = await api.post("/products", content=body, headers={"content-type": "application/json"})
    product = data_of(made)
    id = made.json()["data"]["id"]
    assert print_again(product.decode()) == product.decode()
    assert (await api.get(f"/products/{id}")).content == made.content
    assert (await api.get("/products?limit=1")).content.startswith(b'{"data":[' + product + b"],")
    tracked = {one["id"]: 1 for one in made.json()["data"]["variants"] if one["inventoryQuantity"]}
    async with database.transaction() as tx:
        await stock.take(tx, Company(company.live, "live", "ID", "IDR"), tracked)
    bodies = [event["body"] for event in await events_of(database, company.live) if event["resource_id"] == id]
    assert bodies[0] == product
    assert bodies[-1] == data_of(await api.get(f"/products/{id}"))
    assert len(bodies) == (2 if tracked else 1)
