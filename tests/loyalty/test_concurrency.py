"""Concurrent writes: nothing is lost, nothing happens twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import product

import httpx
import pytest

from sapa.access.actions import get_company
from sapa.customers import actions as customers
from sapa.customers.types import CustomerPatch
from sapa.db.pool import Database, open_database
from sapa.loyalty.adjust import adjust_all
from sapa.loyalty.types import Adjusted, AdjustmentIn
from sapa.orders import actions as orders
from sapa.orders.types import OrderPatch
from tests import depth
from tests.conftest import TLS, Installation
from tests.db.blocked_calls import start_behind
from tests.factories import Environments, add_points, make_customer, make_key, make_order, make_reservation
from tests.loyalty.ledger_steps import (
    adjust,
    close,
    drift_of,
    error_of,
    history_of,
    points_of,
    together,
    types_of,
    wallet_of,
)

MANY = 50
ENTRIES = depth.examples(1_000)


@pytest.fixture
async def plain(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    """A caller whose responses are not compared with the document: it makes thousands of calls. Fifty at a time, as a
    thousand would wait for a connection longer than the server lets them."""
    headers = {"x-api-key": (await make_key(database, company.test)).raw}
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(
        base_url=installation.customer_base, headers=headers, timeout=120, limits=limits, verify=TLS
    ) as client:
        yield client


async def test_of_fifty_reservations_of_ten_points_ten_fit_a_hundred(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    path = f"/loyalty/customers/{ayu}/reservations"
    responses = await together(*(sandbox.post(path, json={"points": 10}) for _ in range(MANY)))
    assert Counter(response.status_code for response in responses) == {201: 10, 409: MANY - 10}
    assert {error_of(response)[1] for response in responses if response.status_code == 409} == {"INSUFFICIENT_POINTS"}
    assert await points_of(sandbox, ayu) == (0, 100)
    ids = [response.json()["data"]["id"] for response in responses if response.status_code == 201]
    closed = await together(*(close(sandbox, id, verb) for id in ids for verb in ("commit", "release")))
    assert Counter(response.status_code for response in closed) == {200: 10, 409: 10}
    committed = sum(
        response.json()["data"]["status"] == "committed" for response in closed if response.status_code == 200
    )
    assert await points_of(sandbox, ayu) == (100 - 10 * committed, 0)
    assert await drift_of(sandbox) == []


async def test_fifty_equal_keys_are_one_entry_and_fifty_equal_responses(sandbox: httpx.AsyncClient, ayu: str) -> None:
    responses = await together(*(adjust(sandbox, ayu, "add", 5, idempotencyKey="one") for _ in range(MANY)))
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert await types_of(sandbox, ayu) == [("adjust_add", 5)]


async def test_one_key_for_many_customers_is_one_entry(sandbox: httpx.AsyncClient) -> None:
    ids = [(await make_customer(sandbox))["id"] for _ in range(10)]
    responses = await together(*(adjust(sandbox, id, "add", 5, idempotencyKey="one") for id in ids))
    assert Counter(response.status_code for response in responses) == {200: 1, 409: 9}
    assert {error_of(response)[1] for response in responses if response.status_code == 409} == {
        "IDEMPOTENCY_KEY_REUSED"
    }
    assert sum([(await points_of(sandbox, id))[0] for id in ids]) == 5


async def test_of_a_commit_and_a_release_one_wins(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    for _ in range(10):
        reservation = await make_reservation(sandbox, ayu, 10)
        before = (await points_of(sandbox, ayu))[0]
        responses = await together(*(close(sandbox, reservation["id"], verb) for verb in ("commit", "release") * 3))
        (won,) = [response.json()["data"]["status"] for response in responses if response.status_code == 200]
        assert {error_of(response) for response in responses if response.status_code != 200} == {
            (409, "RESERVATION_CLOSED")
        }
        assert await points_of(sandbox, ayu) == (before + (10 if won == "released" else 0), 0)
        await add_points(sandbox, ayu, 10)
    assert await drift_of(sandbox) == []


async def test_the_first_points_of_a_customer_may_come_from_concurrent_calls(sandbox: httpx.AsyncClient) -> None:
    for _ in range(5):
        customer = (await make_customer(sandbox))["id"]
        responses = await together(*(adjust(sandbox, customer, "add", 1) for _ in range(20)))
        assert {response.status_code for response in responses} == {200}
        wallet = await wallet_of(sandbox, customer)
        assert (wallet["availablePoints"], wallet["version"]) == ("20", "20")


async def test_a_customer_gets_their_first_points_while_they_are_being_changed(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    """An order that earns points would otherwise wait for its customer, and a rename of the customer for the order."""
    async with database.transaction() as tx:
        shop = await get_company(tx, company.test)
        await customers.update(tx, shop, ayu, CustomerPatch(first_name="Ayu Lestari"))
        adjusting = await start_behind(tx, database, adjust(sandbox, ayu, "add", 1))
        assert adjusting.done()
    assert (await adjusting).status_code == 200


async def test_an_order_earns_the_first_points_of_a_customer_who_gets_another_address(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    order = await make_order(sandbox, customerId=ayu)
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL lock_timeout = '500ms'")
        shop = await get_company(tx, company.test)
        await orders.update(tx, shop, order["id"], OrderPatch(notes="Lunas"))
        renaming = sandbox.put(f"/customers/{ayu}", json={"email": "ayu.lestari@example.com"})
        calling = await start_behind(tx, database, renaming)
        await adjust_all(tx, shop, [(ayu, AdjustmentIn(direction="add", points=5))])
    assert (await calling).status_code == 200
    seen = (await sandbox.get(f"/orders/{order['id']}")).json()["data"]
    assert (seen["notes"], seen["customer"]["email"]) == ("Lunas", "ayu.lestari@example.com")


async def test_the_points_of_several_customers_wait_for_the_first_points_of_one_without_a_deadlock(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, ayu: str
) -> None:
    budi = (await make_customer(sandbox))["id"]
    await add_points(sandbox, budi, 1)
    both = [(id, AdjustmentIn(direction="add", points=5)) for id in (ayu, budi)]
    async with open_database(database.url) as other, database.transaction() as tx:
        shop = await get_company(tx, company.test)
        await adjust_all(tx, shop, both[:1])
        adjusting = await start_behind(tx, database, other.transact(lambda tx: adjust_all(tx, shop, both)))
        await tx.execute("SET LOCAL lock_timeout = '500ms'")
        await adjust_all(tx, shop, both[1:])
    assert all(isinstance(one, Adjusted) for one in await adjusting)
    assert [(await points_of(sandbox, id))[0] for id in (ayu, budi)] == [10, 11]


async def test_tiers_that_are_replaced_at_once_are_never_mixed(sandbox: httpx.AsyncClient) -> None:
    sets = [[{"currencyAmount": 10 * n + index, "points": n} for index in range(1, 4)] for n in range(1, 11)]
    responses = await together(*(sandbox.post("/loyalty/point-conversion", json={"tiers": one}) for one in sets))
    assert {response.status_code for response in responses} == {200}
    assert (await sandbox.get("/loyalty/point-conversion")).json()["data"]["tiers"] in sets


FILTERS = {"all": 0, "points_added": 1, "points_deducted": -1}


async def keep_reading(
    api: httpx.AsyncClient, customer_id: str, limit: int, which: str, writing: asyncio.Event
) -> list[str]:
    """Walks the history from its first page to its last, again and again while it is written; the last walk's ids."""
    seen: list[str] = []
    while writing.is_set():
        ids = [entry["id"] for entry in await history_of(api, customer_id, limit=limit, filter=which)]
        assert len(set(ids)) == len(ids), "an entry came twice"
        assert ids[len(ids) - len(seen) :] == seen, "an entry was left out"
        seen = ids
    return seen


@pytest.mark.long
async def test_entries_written_while_paging_come_once_each(
    plain: httpx.AsyncClient, sandbox: httpx.AsyncClient, ayu: str
) -> None:
    await add_points(sandbox, ayu, 10_000)
    writing = asyncio.Event()
    writing.set()
    walks = list(product((1, 7, 100), FILTERS))
    readers = [asyncio.create_task(keep_reading(plain, ayu, limit, which, writing)) for limit, which in walks]

    async def write(number: int) -> int:
        points, direction = number % 7 + 1, "deduct" if number % 3 == 0 else "add"
        response = await adjust(plain, ayu, direction, points, idempotencyKey=f"n{number}")
        assert response.status_code == 200, response.text
        return points if direction == "add" else -points

    deltas = await asyncio.gather(*map(write, range(ENTRIES)))
    writing.clear()
    entries = await history_of(plain, ayu)
    assert len(entries) == ENTRIES + 1
    for (_, which), seen in zip(walks, await asyncio.gather(*readers), strict=True):
        sign = FILTERS[which]
        expected = [entry["id"] for entry in entries if not sign or int(entry["pointsDelta"]) * sign > 0]
        assert seen == expected[len(expected) - len(seen) :]
        assert [entry["id"] for entry in await history_of(plain, ayu, filter=which)] == expected
    assert await points_of(sandbox, ayu) == (10_000 + sum(deltas), 0)
    assert (await wallet_of(sandbox, ayu))["version"] == str(len(entries))
    assert await drift_of(sandbox) == []
