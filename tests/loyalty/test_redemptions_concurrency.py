"""Concurrent redemptions: nothing is lost, nothing happens twice."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.factories import add_points, make_customer, make_redemption, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import error_of, points_of, together, types_of
from tests.loyalty.redemption_steps import end, redeem, redemptions_of, summary_of

MANY = 50


pytestmark = pytest.mark.usefixtures("whole")


def codes_of(responses: list[httpx.Response]) -> Counter[str]:
    """How many responses there are of each error."""
    return Counter(error_of(response)[1] for response in responses if response.status_code != 200)


async def test_of_fifty_redemptions_of_ten_points_ten_fit_a_hundred(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    reward = await make_reward(sandbox, 10)
    responses = await together(*(redeem(sandbox, ayu, reward) for _ in range(MANY)))
    assert codes_of(responses) == {"INSUFFICIENT_POINTS": MANY - 10}
    assert await points_of(sandbox, ayu) == (0, 100)
    made = [response.json()["data"]["redemption"] for response in responses if response.status_code == 200]
    assert len({one["voucherCode"] for one in made}) == len({one["createdAt"] for one in made}) == 10
    assert sorted(made, key=lambda one: str(one["createdAt"]), reverse=True) == await redemptions_of(sandbox, ayu)


async def test_of_a_commit_and_a_release_one_wins(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 100)
    reward = await make_reward(sandbox, 10)
    left = 100
    for _ in range(10):
        made = await make_redemption(sandbox, ayu, reward)
        responses = await together(*(end(sandbox, made["id"], verb) for verb in ("commit", "release") * 3))
        assert codes_of(responses) == {"RESERVATION_CLOSED": 5}
        (won,) = [response.json()["data"] for response in responses if response.status_code == 200]
        left -= 10 if won["status"] == "committed" else 0
        assert await points_of(sandbox, ayu) == (left, 0)
        assert (await redemptions_of(sandbox, ayu, limit=1))[0] == won


async def test_fifty_equal_keys_are_one_redemption_and_fifty_equal_responses(
    sandbox: httpx.AsyncClient, ayu: str
) -> None:
    await add_points(sandbox, ayu, 1_000)
    reward = await make_reward(sandbox, 10)
    responses = await together(*(redeem(sandbox, ayu, reward, idempotencyKey="one") for _ in range(MANY)))
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert await types_of(sandbox, ayu) == [("adjust_add", 1000), ("redeem_reserve", 0)]
    assert len(await redemptions_of(sandbox, ayu)) == 1


async def test_one_code_for_many_customers_is_one_redemption(sandbox: httpx.AsyncClient) -> None:
    reward = await make_reward(sandbox, 10)
    ids = [(await make_customer(sandbox))["id"] for _ in range(20)]
    await together(*(sandbox.post(path_of(id), json={"direction": "add", "points": 10}) for id in ids))
    for code in ("one", "two"):
        cases = [code.upper(), code, code.title()]
        responses = await together(
            *(redeem(sandbox, id, reward, voucherCode=cases[n % 3]) for n, id in enumerate(ids)),
        )
        assert sum(response.status_code == 200 for response in responses) == 1
        assert codes_of(responses)["VOUCHER_TAKEN"] >= 18
        assert set(codes_of(responses)) <= {"VOUCHER_TAKEN", "INSUFFICIENT_POINTS"}


def path_of(customer_id: str) -> str:
    return f"/loyalty/customers/{customer_id}/points/adjust"


async def test_expired_codes_are_freed_by_concurrent_calls(sandbox: httpx.AsyncClient, move_clock: MoveClock) -> None:
    """Each customer takes the code of the next one, all at once: all succeed, whichever wallets they need."""
    reward = await make_reward(sandbox, 10)
    ids = [(await make_customer(sandbox))["id"] for _ in range(6)]
    for n, id in enumerate(ids):
        await add_points(sandbox, id, 20)
        await make_redemption(sandbox, id, reward, voucherCode=f"code-{n}")
    await move_clock(timedelta(seconds=901))
    responses = await together(
        *(redeem(sandbox, id, reward, voucherCode=f"CODE-{(n + 1) % len(ids)}") for n, id in enumerate(ids))
    )
    assert [response.status_code for response in responses] == [200] * len(ids), [
        response.text for response in responses
    ]


async def test_redemptions_closed_while_they_expire_end_once(
    sandbox: httpx.AsyncClient, ayu: str, move_clock: MoveClock
) -> None:
    await add_points(sandbox, ayu, 100)
    reward = await make_reward(sandbox, 5)
    made = [await make_redemption(sandbox, ayu, reward) for _ in range(20)]

    async def pass_time() -> httpx.Response:
        await move_clock(timedelta(seconds=901))
        return await sandbox.get("/loyalty/settings")

    calls: list[Awaitable[httpx.Response]] = [end(sandbox, one["id"], "commit") for one in made]
    responses = await together(*calls[:10], pass_time(), *calls[10:])
    committed = sum(response.status_code == 200 for response in responses[:10] + responses[11:])
    summary = await summary_of(sandbox, ayu)
    assert summary.get("committed", (0, 0)) == (committed, 5 * committed)
    assert summary.get("expired", (0, 0)) == (20 - committed, 5 * (20 - committed))
    assert await points_of(sandbox, ayu) == (100 - 5 * committed, 0)


async def keep_reading(
    api: httpx.AsyncClient, customer_id: str, limit: int, query: dict[str, Any], writing: asyncio.Event
) -> int:
    """Walks the list from the first page to the last, again and again, while it grows."""
    walks = 0
    seen: list[str] = []
    while writing.is_set():
        ids = [one["id"] for one in await redemptions_of(api, customer_id, limit=limit, **query)]
        assert len(set(ids)) == len(ids), "one came twice"
        assert ids[len(ids) - len(seen) :] == seen, "one was left out"
        seen = ids
        walks += 1
    return walks


async def test_redemptions_created_while_paging_come_once_each(sandbox: httpx.AsyncClient, ayu: str) -> None:
    await add_points(sandbox, ayu, 10_000)
    rewards = [await make_reward(sandbox, 1), await make_reward(sandbox, 2, rewardName="Teh")]
    writing = asyncio.Event()
    writing.set()
    ways: list[tuple[int, dict[str, Any]]] = [(1, {"search": "teh"}), (7, {}), (100, {"status": "reserved"})]
    readers = [asyncio.create_task(keep_reading(sandbox, ayu, limit, query, writing)) for limit, query in ways]
    responses = await together(*(redeem(sandbox, ayu, rewards[n % 2]) for n in range(150)))
    writing.clear()
    assert all(await asyncio.gather(*readers))
    assert {response.status_code for response in responses} == {200}
    made = [response.json()["data"]["redemption"] for response in responses]
    made.sort(key=lambda one: str(one["createdAt"]), reverse=True)
    for limit in (1, 7, 100):
        assert await redemptions_of(sandbox, ayu, limit=limit) == made
    assert await summary_of(sandbox, ayu) == {"total": (150, 225), "reserved": (150, 225)}
