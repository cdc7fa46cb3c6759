import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sapa.db.pool import Database
from sapa.products import actions, stock
from sapa.products.types import InsufficientStock, ProductPatch, VariantPatch
from sapa.values.company import Company
from tests import depth
from tests.factories import Environments, make_company, make_product
from tests.test_events import data_of, events_of

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%products%'"


@pytest.fixture
def owner(company: Environments) -> Company:
    return Company(company.live, "live", "ID", "IDR")


async def make_stock(api: httpx.AsyncClient, *quantities: int | None, **fields: Any) -> dict[str, Any]:
    """A product with a variant for each quantity."""
    variants = [{"title": f"T{n}", "price": 1, "inventoryQuantity": q} for n, q in enumerate(quantities)]
    return await make_product(api, variants=variants, **fields)


async def take(database: Database, owner: Company, quantities: Mapping[str, int]) -> bool:
    """Whether there was enough; each call is a transaction."""
    try:
        async with database.transaction() as tx:
            await stock.take(tx, owner, quantities)
    except InsufficientStock:
        return False
    return True


async def restock(database: Database, owner: Company, quantities: Mapping[str, int]) -> None:
    async with database.transaction() as tx:
        await stock.restock(tx, owner, quantities)


async def read(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    product: dict[str, Any] = (await api.get(f"/products/{id}")).json()["data"]
    return product


async def quantities_of(api: httpx.AsyncClient, id: str) -> list[int | None]:
    return [variant["inventoryQuantity"] for variant in (await read(api, id))["variants"]]


def ids_of(product: dict[str, Any]) -> list[str]:
    return [variant["id"] for variant in product["variants"]]


async def test_forty_takers_of_the_last_ten_units_get_exactly_ten(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    product = await make_stock(api, 10)
    (id,) = ids_of(product)
    taken = await asyncio.gather(*(take(database, owner, {id: 1}) for _ in range(40)))
    assert sorted(taken) == [False] * 30 + [True] * 10
    assert await quantities_of(api, product["id"]) == [0]
    assert len(await events_of(database, owner.id)) == 1 + 10


async def test_a_change_of_stock_updates_each_product_once_and_announces_what_is_read(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    one, two = await make_stock(api, 5, 6, None), await make_stock(api, 7)
    (a, b, untracked), (c,) = ids_of(one), ids_of(two)
    assert await take(database, owner, {c: 1, b: 2, untracked: 9, a: 3})
    assert await quantities_of(api, one["id"]) == [2, 4, None]
    assert await quantities_of(api, two["id"]) == [6]
    now = {product["id"]: await read(api, product["id"]) for product in (one, two)}
    assert now[one["id"]]["updatedAt"] > one["updatedAt"]
    events = (await events_of(database, owner.id))[2:]
    assert {(event["kind"], event["resource_id"]) for event in events} == {
        ("product.updated", one["id"]),
        ("product.updated", two["id"]),
    }
    assert len(events) == 2
    for event in events:
        assert event["body"] == data_of(await api.get(f"/products/{event['resource_id']}"))


async def test_restocking_returns_what_was_taken(api: httpx.AsyncClient, database: Database, owner: Company) -> None:
    product = await make_stock(api, 5, 0)
    a, b = ids_of(product)
    await take(database, owner, {a: 5})
    await restock(database, owner, {a: 5, b: 3})
    assert await quantities_of(api, product["id"]) == [5, 3]
    kinds = [event["kind"] for event in await events_of(database, owner.id)]
    assert kinds == ["product.created", "product.updated", "product.updated"]


async def test_a_shortage_names_what_is_short_and_takes_nothing(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    product = await make_stock(api, 5, 2)
    a, b = ids_of(product)
    with pytest.raises(InsufficientStock) as refused:
        async with database.transaction() as tx:
            await stock.take(tx, owner, {a: 1, b: 3})
    assert (refused.value.status, refused.value.code) == (409, "INSUFFICIENT_STOCK")
    assert refused.value.message == f"The variant {b} (T1) has 2 units in stock; 3 are needed."
    assert await read(api, product["id"]) == product
    assert len(await events_of(database, owner.id)) == 1


async def test_the_last_unit_can_be_taken(api: httpx.AsyncClient, database: Database, owner: Company) -> None:
    product = await make_stock(api, 3)
    (id,) = ids_of(product)
    assert await take(database, owner, {id: 3})
    assert not await take(database, owner, {id: 1})
    assert await quantities_of(api, product["id"]) == [0]


async def test_untracked_unknown_and_foreign_variants_change_nothing(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    product, gone = await make_stock(api, None), await make_stock(api, 5)
    await api.delete(f"/products/{gone['id']}")
    stranger = Company((await make_company(database)).live, "live", "ID", "IDR")
    tracked = await make_stock(api, 5)
    before = len(await events_of(database, owner.id))
    for ids in (ids_of(product), ids_of(gone), ["var_01jc9y3q5me8w92v7x4t6r0n1k"], ["x"], []):
        quantities = dict.fromkeys(ids, 4)
        assert await take(database, owner, quantities)
        await restock(database, owner, quantities)
    foreign = dict.fromkeys(ids_of(tracked), 5)
    assert await take(database, stranger, foreign)
    await restock(database, stranger, foreign)
    assert await read(api, product["id"]) == product
    assert await read(api, tracked["id"]) == tracked
    assert len(await events_of(database, owner.id)) == before
    assert await events_of(database, stranger.id) == []


async def test_an_untracked_variant_takes_no_lock(api: httpx.AsyncClient, database: Database, owner: Company) -> None:
    product = await make_stock(api, None)
    async with database.transaction() as tx:
        await actions.update(tx, owner, product["id"], ProductPatch(name="Locked"))
        assert await take(database, owner, dict.fromkeys(ids_of(product), 1))


async def test_stock_never_grows_beyond_what_may_be_written_back(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    product = await make_stock(api, 999_999_999)
    await restock(database, owner, {ids_of(product)[0]: 1_000_000})
    await restock(database, owner, {ids_of(product)[0]: 2_000_000_000})
    assert await quantities_of(api, product["id"]) == [1_000_000_000]


@pytest.mark.parametrize("change", ["untracked", "removed", "deleted", "raised"])
async def test_a_taker_that_waited_sees_what_was_done_meanwhile(
    api: httpx.AsyncClient, database: Database, owner: Company, change: str
) -> None:
    product = await make_stock(api, 1, 8)
    a, b = ids_of(product)
    variants = {
        "untracked": [VariantPatch(id=a, inventory_quantity=None), VariantPatch(id=b)],
        "removed": [VariantPatch(id=b)],
        "raised": [VariantPatch(id=a, inventory_quantity=9), VariantPatch(id=b)],
    }
    async with database.connection() as onlooker:
        async with database.transaction() as tx:
            if change == "deleted":
                await actions.delete(tx, owner, product["id"])
            else:
                await actions.update(tx, owner, product["id"], ProductPatch(variants=variants[change]))
            waiter = asyncio.create_task(take(database, owner, {a: 5}))
            while not await onlooker.fetchval(WAITING):
                assert not waiter.done()
        assert await waiter
    events = [event["kind"] for event in await events_of(database, owner.id)]
    if change == "deleted":
        assert events == ["product.created", "product.deleted"]
        return
    assert await quantities_of(api, product["id"]) == {"untracked": [None, 8], "removed": [8], "raised": [4, 8]}[change]
    assert len(events) == (3 if change == "raised" else 2)


async def test_taking_the_same_products_in_opposite_orders_never_deadlocks(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    products = [await make_stock(api, 1000, 1000) for _ in range(3)]
    ids = [id for product in products for id in ids_of(product)]
    forth, back = dict.fromkeys(ids, 1), dict.fromkeys(reversed(ids), 1)
    calls = [take(database, owner, forth if n % 2 else back) for n in range(30)]
    returns = [restock(database, owner, back if n % 2 else forth) for n in range(10)]
    changes = [api.put(f"/products/{products[n % 3]['id']}", json={"description": str(n)}) for n in range(10)]
    taken, _, responses = await asyncio.gather(
        asyncio.gather(*calls), asyncio.gather(*returns), asyncio.gather(*changes)
    )
    assert all(taken)
    assert {response.status_code for response in responses} == {200}
    for product in products:
        assert await quantities_of(api, product["id"]) == [980, 980]


async def test_a_put_without_stock_does_not_overwrite_concurrent_changes_of_stock(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    product = await make_stock(api, 50)
    (id,) = ids_of(product)
    puts = [api.put(f"/products/{product['id']}", json={"variants": [{"id": id, "price": n}]}) for n in range(2, 12)]
    taken, responses = await asyncio.gather(
        asyncio.gather(*(take(database, owner, {id: 1}) for _ in range(20))), asyncio.gather(*puts)
    )
    assert all(taken)
    assert {response.status_code for response in responses} == {200}
    assert await quantities_of(api, product["id"]) == [30]


@given(moves=st.lists(st.dictionaries(st.integers(0, 3), st.integers(-4, 4).filter(bool), min_size=1), max_size=8))
@settings(max_examples=depth.examples(25), deadline=None, suppress_health_check=list(HealthCheck))
async def test_stock_follows_a_ledger_of_takings_and_returns(
    api: httpx.AsyncClient, database: Database, owner: Company, moves: list[dict[int, int]]
) -> None:
    products = [await make_stock(api, 5, None), await make_stock(api, 0, 3)]
    ids = [id for product in products for id in ids_of(product)]
    ledger: list[int | None] = [5, None, 0, 3]
    for move in moves:
        takings = {index: -change for index, change in move.items() if change < 0}
        returns = {index: change for index, change in move.items() if change > 0}
        enough = all((units := ledger[index]) is None or units >= quantity for index, quantity in takings.items())
        assert await take(database, owner, {ids[index]: quantity for index, quantity in takings.items()}) is enough
        await restock(database, owner, {ids[index]: quantity for index, quantity in returns.items()})
        for index, change in {**({p: -q for p, q in takings.items()} if enough else {}), **returns}.items():
            units = ledger[index]
            ledger[index] = None if units is None else units + change
    assert [quantity for product in products for quantity in await quantities_of(api, product["id"])] == ledger


async def test_variants_are_found_as_an_order_line_stores_them(
    api: httpx.AsyncClient, database: Database, owner: Company
) -> None:
    variant = {
        "title": "M",
        "key": "medium",
        "price": 299000.5,
        "compareAtPrice": 350000,
        "sku": "A",
        "media": "http://u",
    }
    shirt = await make_product(api, name="Shirt", variants=[variant, {"title": "L", "price": 0}])
    draft = await make_stock(api, 1, name="Draft", status="draft")
    archived = await make_stock(api, 1, name="Old", status="archived")
    ids = [*ids_of(shirt), *ids_of(draft), *ids_of(archived)]
    async with database.connection() as db:
        found = await stock.list_on_sale(db, owner, [*ids, "var_01jc9y3q5me8w92v7x4t6r0n1k", "x"])
        assert await stock.list_on_sale(db, owner, []) == {}
        assert await stock.list_on_sale(db, Company(owner.id + 1_000_000, "live", "ID", "IDR"), ids) == {}
    assert list(found) != []
    assert set(found) == set(ids)
    medium, large, drafted, old = (found[id] for id in ids)
    assert (medium.id, medium.key, medium.title, medium.inventory_sku, medium.media) == (
        ids[0], "medium", "M", "A", "http://u",
    )  # fmt: skip
    assert (str(medium.price), str(medium.compare_at_price)) == ("299000.5", "350000")
    assert (large.key, large.price, large.compare_at_price, large.inventory_sku) == ("L", Decimal(0), None, None)
    assert [one.product_name for one in (medium, large, drafted, old)] == ["Shirt", "Shirt", "Draft", "Old"]
    assert [one.on_sale for one in (medium, large, drafted, old)] == [True, True, False, False]
