import asyncio
from decimal import Decimal

import httpx
import pytest

from sapa.db.pool import Database
from sapa.http.errors import Invalid
from sapa.products import actions
from sapa.products.types import Product, ProductPatch, VariantPatch
from sapa.values.company import Company
from tests.customers.test_updates import count_events
from tests.factories import Environments, make_product


@pytest.fixture
def owner(company: Environments) -> Company:
    return Company(company.live, "live", "ID", "IDR")


async def upsert(database: Database, owner: Company, id: str, patch: ProductPatch) -> tuple[Product, actions.Outcome]:
    async with database.transaction() as tx:
        return await actions.upsert(tx, owner, id, patch)


def patch(price: int, name: str = "Cap") -> ProductPatch:
    return ProductPatch(name=name, variants=[VariantPatch(title="M", price=Decimal(price), sku="A")])


async def test_an_unknown_product_id_is_created_and_an_existing_one_updated(
    api: httpx.AsyncClient, database: Database, company: Environments, owner: Company
) -> None:
    made, outcome = await upsert(database, owner, "cap-1", patch(5))
    assert (outcome, made.product_id, made.status) == ("created", "cap-1", "active")
    again, outcome = await upsert(database, owner, "cap-1", patch(5))
    assert (outcome, again) == ("unchanged", made)
    changed, outcome = await upsert(database, owner, "cap-1", ProductPatch(name="Hat"))
    assert (outcome, changed.id, changed.name, changed.variants) == ("updated", made.id, "Hat", made.variants)
    assert await count_events(database, company, made.id) == 2
    assert (await api.get("/products")).json()["meta"]["total"] == 1


async def test_a_product_made_over_http_is_found_by_either_id_it_has(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    for fields in ({"productId": "own"}, {}):
        made = await make_product(api, **fields)
        changed, outcome = await upsert(database, owner, made["productId"], ProductPatch(name="Hat"))
        assert (outcome, changed.id) == ("updated", made["id"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (ProductPatch(variants=[VariantPatch(title="M", price=Decimal(1))]), "name"),
        (ProductPatch(name="Cap"), "variants"),
        (ProductPatch(name="Cap", variants=[VariantPatch(title="M")]), "variants[0].price"),
        (ProductPatch(name="Cap", variants=[VariantPatch(id="x", title="M", price=Decimal(1))]), "variants[0].id"),
    ],
)
async def test_a_missing_field_of_a_new_product_is_refused_by_name(
    database: Database, owner: Company, body: ProductPatch, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await upsert(database, owner, "cap-1", body)
    assert [one.field for one in refused.value.details or []] == [field]


async def test_twenty_first_calls_at_once_make_one_product(
    api: httpx.AsyncClient, database: Database, company: Environments, owner: Company
) -> None:
    responses = await asyncio.gather(*(upsert(database, owner, "cap-1", patch(n)) for n in range(20)))
    assert sorted(outcome for _, outcome in responses) == ["created"] + ["updated"] * 19
    assert len({product.id for product, _ in responses}) == 1
    page = (await api.get("/products")).json()
    assert page["meta"]["total"] == len(page["data"]) == 1
    assert len(page["data"][0]["variants"]) == 1
    assert await count_events(database, company, page["data"][0]["id"]) == 20


async def test_an_upsert_can_race_with_a_delete(api: httpx.AsyncClient, database: Database, owner: Company) -> None:
    for number in range(5):
        made, _ = await upsert(database, owner, "cap-1", patch(number))
        upserts = asyncio.gather(*(upsert(database, owner, "cap-1", patch(9 + n)) for n in range(4)))
        deleted, _ = await asyncio.gather(api.delete(f"/products/{made.id}"), upserts)
        assert deleted.status_code == 204
        page = (await api.get("/products")).json()
        assert page["meta"]["total"] == len(page["data"])
