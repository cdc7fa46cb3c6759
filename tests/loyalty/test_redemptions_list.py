"""A customer's redemptions, listed, searched and summed up."""

from datetime import timedelta

import httpx
import pytest

from tests.factories import make_customer, make_redemption, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import error_of
from tests.loyalty.redemption_steps import end, fail, redemptions_of, summary_of

pytestmark = pytest.mark.usefixtures("whole")


async def test_redemptions_are_searched_filtered_and_paged(sandbox: httpx.AsyncClient, rich: str) -> None:
    coffee, tea = await make_reward(sandbox, 10), await make_reward(sandbox, 1, rewardName="Téh Manis")
    made = [await make_redemption(sandbox, rich, coffee if n % 2 else tea, voucherCode=f"C-{n}") for n in range(7)]
    made = [
        (await end(sandbox, one["id"], "commit" if n < 2 else "release")).json()["data"] if n < 3 else one
        for n, one in enumerate(made)
    ]
    made[3] = (await fail(sandbox, made[3]["id"])).json()["data"]
    newest = made[::-1]
    for limit in (1, 2, 7, 100):
        assert await redemptions_of(sandbox, rich, limit=limit) == newest
    for status in ("reserved", "committed", "released", "expired", "failed"):
        expected = [one for one in newest if one["status"] == status]
        assert await redemptions_of(sandbox, rich, limit=2, status=status) == expected
    assert await redemptions_of(sandbox, rich, limit=2, search="TEH m") == newest[::2]
    assert await redemptions_of(sandbox, rich, search="c-4") == [made[4]]
    assert await redemptions_of(sandbox, rich, search="gratis", status="committed") == [made[1]]
    assert await redemptions_of(sandbox, rich, search="_") == []
    assert await redemptions_of(sandbox, rich, before=made[3]["createdAt"]) == newest[4:]
    assert await summary_of(sandbox, rich) == {
        "total": (7, 34), "committed": (2, 11), "released": (1, 1), "failed": (1, 10), "reserved": (3, 12),
    }  # fmt: skip
    empty = (await make_customer(sandbox))["id"]
    assert (await redemptions_of(sandbox, empty), await summary_of(sandbox, empty)) == ([], {})


async def test_redemptions_keep_their_order_though_the_clock_goes_back(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    reward = await make_reward(sandbox, 10)
    made = []
    await move_clock(timedelta(hours=5))
    for _ in range(3):
        made.append(await make_redemption(sandbox, rich, reward))
        await move_clock(-timedelta(hours=1))
    assert await redemptions_of(sandbox, rich, limit=1) == made[::-1]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "before=yesterday", "before=", "limit=", "status=open", "search=%20", "page=1"]
)
async def test_an_invalid_query_is_refused(sandbox: httpx.AsyncClient, ayu: str, query: str) -> None:
    response = await sandbox.get(f"/loyalty/customers/{ayu}/redemptions?{query}")
    assert error_of(response) == (400, "VALIDATION_ERROR")
