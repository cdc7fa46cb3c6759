"""Many at once: nothing lost, nothing twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.factories import add_points, make_customer, make_reservation
from tests.loyalty.ledger import adjust, close, drift_of, error_of, history_of, points_of, types_of, wallet_of

MANY = 50
ENTRIES = 1_000


async def together(*calls: Awaitable[httpx.Response]) -> list[httpx.Response]:
    return list(await asyncio.gather(*calls))


async def test_fifty_who_reserve_ten_of_a_hundred_are_ten(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    path = f"/loyalty/customers/{ayu}/reservations"
    answers = await together(*(sandbox.post(path, json={"points": 10}) for _ in range(MANY)))
    assert Counter(answer.status_code for answer in answers) == {201: 10, 409: MANY - 10}
    assert {error_of(answer)[1] for answer in answers if answer.status_code == 409} == {"INSUFFICIENT_POINTS"}
    assert await points_of(sandbox, ayu) == (0, 100)
    ids = [answer.json()["data"]["id"] for answer in answers if answer.status_code == 201]
    closed = await together(*(close(sandbox, id, verb) for id in ids for verb in ("commit", "release")))
    assert Counter(answer.status_code for answer in closed) == {200: 10, 409: 10}
    committed = sum(answer.json()["data"]["status"] == "committed" for answer in closed if answer.status_code == 200)
    assert await points_of(sandbox, ayu) == (100 - 10 * committed, 0)
    assert await drift_of(sandbox) == []


async def test_fifty_equal_keys_are_one_entry_and_fifty_equal_answers(sandbox: httpx.AsyncClient, ayu: str) -> None:
    answers = await together(*(adjust(sandbox, ayu, "add", 5, idempotencyKey="one") for _ in range(MANY)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert await types_of(sandbox, ayu) == [("adjust_add", 5)]


async def test_one_key_for_many_customers_is_one_entry(sandbox: httpx.AsyncClient) -> None:
    ids = [(await make_customer(sandbox))["id"] for _ in range(10)]
    answers = await together(*(adjust(sandbox, id, "add", 5, idempotencyKey="one") for id in ids))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 9}
    assert {error_of(answer)[1] for answer in answers if answer.status_code == 409} == {"IDEMPOTENCY_KEY_REUSED"}
    assert sum([(await points_of(sandbox, id))[0] for id in ids]) == 5


async def test_of_a_commit_and_a_release_one_wins(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    for _ in range(10):
        held = await make_reservation(sandbox, ayu, 10)
        before = (await points_of(sandbox, ayu))[0]
        answers = await together(*(close(sandbox, held["id"], verb) for verb in ("commit", "release") * 3))
        (won,) = [answer.json()["data"]["status"] for answer in answers if answer.status_code == 200]
        assert {error_of(answer) for answer in answers if answer.status_code != 200} == {(409, "RESERVATION_CLOSED")}
        assert await points_of(sandbox, ayu) == (before + (10 if won == "released" else 0), 0)
        await add_points(sandbox, ayu, 10)
    assert await drift_of(sandbox) == []


async def test_the_first_points_of_a_customer_may_come_from_many_sides(sandbox: httpx.AsyncClient) -> None:
    for _ in range(5):
        customer = (await make_customer(sandbox))["id"]
        answers = await together(*(adjust(sandbox, customer, "add", 1) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        wallet = await wallet_of(sandbox, customer)
        assert (wallet["availablePoints"], wallet["version"]) == ("20", "20")


async def test_tiers_that_are_replaced_at_once_are_never_mixed(sandbox: httpx.AsyncClient) -> None:
    sets = [[{"currencyAmount": 10 * n + place, "points": n} for place in range(1, 4)] for n in range(1, 11)]
    answers = await together(*(sandbox.post("/loyalty/point-conversion", json={"tiers": one}) for one in sets))
    assert {answer.status_code for answer in answers} == {200}
    assert (await sandbox.get("/loyalty/point-conversion")).json()["data"]["tiers"] in sets


@asynccontextmanager
async def reading(
    sandbox: httpx.AsyncClient, customer_id: str, limit: int, which: str
) -> AsyncIterator[list[dict[str, Any]]]:
    """Walks the history from the first page to the last, again and again, while the block runs."""
    known: list[dict[str, Any]] = []
    done = asyncio.Event()

    async def walk() -> None:
        while not done.is_set():
            entries = await history_of(sandbox, customer_id, limit=limit, filter=which)
            ids = [entry["id"] for entry in entries]
            assert len(set(ids)) == len(ids), "an entry came twice"
            assert ids[len(ids) - len(known) :] == [entry["id"] for entry in known], "an entry was left out"
            known[:] = entries
            await asyncio.sleep(0)

    walker = asyncio.create_task(walk())
    try:
        yield known
    finally:
        done.set()
        await walker


@pytest.mark.parametrize("filters", [["all"], ["points_added", "points_deducted"]], ids=["all", "by direction"])
async def test_entries_that_are_written_while_they_are_read_come_once_each(
    sandbox: httpx.AsyncClient, ayu: str, filters: list[str]
) -> None:
    await add_points(sandbox, ayu, ENTRIES)
    room = asyncio.Semaphore(30)

    async def write(number: int) -> int:
        async with room:
            points, direction = number % 7 + 1, "deduct" if number % 3 == 0 else "add"
            answer = await adjust(sandbox, ayu, direction, points, idempotencyKey=f"n{number}")
            assert answer.status_code == 200, answer.text
            return points if direction == "add" else -points

    walks = [(limit, which) for limit in (7, 100) for which in filters]
    async with (
        reading(sandbox, ayu, *walks[0]),
        reading(sandbox, ayu, *walks[-1]),
    ):
        deltas = await asyncio.gather(*map(write, range(ENTRIES // 2)))
    entries = await history_of(sandbox, ayu)
    assert len(entries) == len(deltas) + 1
    for limit in (1, 7, 100):
        for which, keep in {"points_added": 1, "points_deducted": -1, "all": 0}.items():
            wanted = [entry for entry in entries if not keep or int(entry["pointsDelta"]) * keep > 0]
            if limit > 1 or which in filters:
                assert await history_of(sandbox, ayu, limit=limit, filter=which) == wanted
    assert await points_of(sandbox, ayu) == (ENTRIES + sum(deltas), 0)
    assert (await wallet_of(sandbox, ayu))["version"] == str(len(entries))
    assert await drift_of(sandbox) == []
