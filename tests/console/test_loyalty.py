"""Points and rewards at the console."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.people.types import Role
from tests.conftest import Installation, connect
from tests.console.people import make_person, open_browser, read_token
from tests.factories import (
    Environments,
    add_points,
    make_company,
    make_customer,
    make_key,
    make_redemption,
    make_reward,
)

REWARD = {"rewardName": "Kopi gratis", "costToRedeem": "50", "discountType": "percentage", "discountValue": "10"}


@pytest.fixture
async def agent(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company, Role.AGENT)) as client:
        yield client


@pytest.fixture
async def owner(
    installation: Installation, database: Database, company: Environments
) -> AsyncIterator[httpx.AsyncClient]:
    async with open_browser(installation, await make_person(database, company)) as client:
        yield client


async def submit(browser: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await browser.post(f"/live{path}", data={"token": await read_token(browser), **fields})


async def read_wallet(api: httpx.AsyncClient, id: str) -> tuple[str, str]:
    wallet = (await api.get(f"/loyalty/customers/{id}/wallet")).json()["data"]
    return wallet["availablePoints"], wallet["reservedPoints"]


async def test_a_wallet_is_found_and_changed_in_somebodys_name(
    api: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    ayu = (await make_customer(api, firstName="Ayu", lastName="Lestari"))["id"]
    await make_customer(api, firstName="Budi")
    await add_points(api, ayu, 120)
    listed = (await agent.get("/live/loyalty", params={"search": "lestari"})).text
    assert "<strong>120</strong>" in listed
    assert "Budi" not in listed
    twice = {"direction": "add", "points": "30", "reason": "sorry", "once": "5f1d"}
    for _ in range(2):
        assert (await submit(agent, f"/loyalty/{ayu}/points", **twice)).is_redirect
    refused = await submit(agent, f"/loyalty/{ayu}/points", direction="deduct", points="151", reason="too much")
    assert refused.status_code == 409
    assert 'value="151"' in refused.text
    assert 'id="points-problem"' in refused.text
    assert 'value="too much"' in refused.text
    wrong = await submit(agent, f"/loyalty/{ayu}/points", direction="add", points="1.5", reason="sorry")
    assert 'aria-describedby="points-problem"' in wrong.text
    assert await read_wallet(api, ayu) == ("150", "0")
    by_hand, by_key = (await api.get(f"/loyalty/customers/{ayu}/history")).json()["data"]
    assert (by_hand["note"], by_hand["referenceType"], by_key["createdById"]) == ("sorry", "console", None)
    assert isinstance(by_hand["createdById"], int)
    newest = (await api.get(f"/loyalty/customers/{ayu}/timeline")).json()["data"][0]
    assert newest["source"] == "console"
    added = (await agent.get(f"/live/loyalty/{ayu}?filter=points_added")).text
    assert "sorry" in added
    assert "sorry" not in (await agent.get(f"/live/loyalty/{ayu}?filter=points_deducted")).text
    large = {"direction": "add", "points": "5000000", "reason": "prize"}
    assert (await submit(agent, f"/loyalty/{ayu}/points", **large)).is_redirect
    tab = (await agent.get(f"/live/customers/{ayu}?tab=points")).text
    assert re.search(r'<td>prize<br><span class="quiet">Sari agent</span></td><td class="end">\+5,000,000</td>', tab)


async def test_redemptions_are_committed_released_and_failed(api: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    ayu = (await make_customer(api))["id"]
    await add_points(api, ayu, 200)
    reward = await make_reward(api, 50)
    assert (await submit(agent, f"/loyalty/{ayu}/redeem", reward=f"{reward['id']}:49")).status_code == 400
    assert (await submit(agent, f"/loyalty/{ayu}/redeem", reward=f"{reward['id']}:50")).is_redirect
    second = await make_redemption(api, ayu, reward)
    first = (await api.get(f"/loyalty/customers/{ayu}/redemptions")).json()["data"][1]
    assert await read_wallet(api, ayu) == ("100", "100")
    ends = f"/loyalty/{ayu}/redemptions"
    assert (await submit(agent, f"{ends}/{first['id']}/commit")).is_redirect
    assert (await submit(agent, f"{ends}/{second['id']}/release")).is_redirect
    assert await read_wallet(api, ayu) == ("150", "0")
    closed = await submit(agent, f"{ends}/{second['id']}/release")
    assert closed.status_code == 409
    assert "already" in closed.text
    assert (await submit(agent, f"{ends}/{first['id']}/fail")).status_code == 400
    assert (await submit(agent, f"{ends}/{first['id']}/fail", failure="The till does not know it")).is_redirect
    assert await read_wallet(api, ayu) == ("200", "0")
    failed = (await agent.get(f"/live/loyalty/{ayu}?status=failed")).text
    assert (first["voucherCode"] in failed, second["voucherCode"] in failed) == (True, False)
    assert (await submit(agent, f"{ends}/{first['id']}/forget")).status_code == 400


async def test_rewards_are_made_changed_and_withdrawn_and_the_log_says_so(
    api: httpx.AsyncClient, owner: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    wrong = await submit(owner, "/rewards", **REWARD | {"discountValue": "101"})
    assert wrong.status_code == 400
    assert 'aria-describedby="discountValue-problem"' in wrong.text
    assert 'value="Kopi gratis"' in wrong.text
    assert (await submit(owner, "/rewards", **REWARD)).is_redirect
    (reward,) = (await api.get("/loyalty/reward-options")).json()["data"]
    assert (reward["discountValue"], reward["expirationPreset"]) == ("10", "NO_EXPIRATION")
    change = REWARD | {"discountType": "free_shipping", "minimumPurchaseAmount": "100000"}
    assert (await submit(owner, f"/rewards/{reward['id']}", **change)).is_redirect
    (reward,) = (await api.get("/loyalty/reward-options")).json()["data"]
    assert (reward["discountType"], reward["discountValue"]) == ("free_shipping", None)
    ayu = await make_customer(api, firstName="Ayu")
    await add_points(api, ayu["id"], 50)
    await make_redemption(api, ayu["id"], reward)
    assert "Ayu" in (await agent.get(f"/live/rewards/{reward['id']}")).text
    assert (await submit(agent, f"/rewards/{reward['id']}/delete")).status_code == 403
    assert (await submit(owner, f"/rewards/{reward['id']}/delete")).is_redirect
    assert (await owner.get(f"/live/rewards/{reward['id']}")).status_code == 404
    log = (await owner.get("/live/audit")).text
    assert all(f"Reward {what}" in log for what in ("created", "changed", "withdrawn"))


async def test_the_ledger_is_checked(api: httpx.AsyncClient, owner: httpx.AsyncClient, database: Database) -> None:
    ayu = await make_customer(api)
    await add_points(api, ayu["id"], 1070)
    page = (await owner.get("/live/loyalty/check")).text
    assert "<dd>1,070</dd>" in page
    assert "every wallet adds up" in page
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE loyalty_wallets SET available = 1071, lifetime_earned = 1071 WHERE customer_id = $1", ayu["id"]
        )
    page = (await owner.get("/live/loyalty/check")).text
    assert "1 wallet contradicts its entries" in page
    assert ayu["id"] in page


async def test_another_companys_points_and_rewards_are_out_of_reach(
    installation: Installation, database: Database, owner: httpx.AsyncClient, api: httpx.AsyncClient
) -> None:
    mine = (await make_customer(api))["id"]
    other = await make_company(database)
    async with connect(installation, (await make_key(database, other.live)).raw) as theirs:
        ayu = (await make_customer(theirs, firstName="Ayu"))["id"]
        await add_points(theirs, ayu, 100)
        reward = await make_reward(theirs, 50)
        redemption = await make_redemption(theirs, ayu, reward)
        for path in (f"/loyalty/{ayu}", f"/rewards/{reward['id']}"):
            assert (await owner.get(f"/live{path}")).status_code == 404
        for ending in ("commit", "release", "fail"):
            path = f"/loyalty/{mine}/redemptions/{redemption['id']}/{ending}"
            assert (await submit(owner, path, failure="no")).status_code == 404
        for path in (f"/loyalty/{ayu}/points", f"/rewards/{reward['id']}", f"/rewards/{reward['id']}/delete"):
            assert (await submit(owner, path, direction="add", points="5", **REWARD)).status_code == 404
        assert (await submit(owner, f"/loyalty/{mine}/redeem", reward=f"{reward['id']}:50")).status_code == 400
        assert "Ayu" not in (await owner.get("/live/loyalty", params={"search": "Ayu"})).text.partition("<table")[2]
        assert await read_wallet(theirs, ayu) == ("50", "50")
