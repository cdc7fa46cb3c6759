"""Voucher codes: how they are made, whose they are, how long they are valid."""

import re
from datetime import datetime, timedelta

import httpx
import pytest

from tests.factories import add_points, make_customer, make_redemption, make_reward
from tests.loyalty.conftest import MoveClock
from tests.loyalty.ledger_steps import error_of, points_of
from tests.loyalty.redemption_steps import end, fail, redeem, statuses_of

pytestmark = pytest.mark.usefixtures("whole")


@pytest.mark.parametrize(
    ("preset", "valid"),
    [
        ("NO_EXPIRATION", None),
        ("SEVEN_DAYS", timedelta(days=7)),
        ("THIRTY_DAYS", timedelta(days=30)),
        ("NINETY_DAYS", timedelta(days=90)),
        ("ONE_YEAR", None),
    ],
)
async def test_a_voucher_is_valid_from_its_commit_on(
    sandbox: httpx.AsyncClient, rich: str, preset: str, valid: timedelta | None, move_clock: MoveClock
) -> None:
    made = await make_redemption(sandbox, rich, await make_reward(sandbox, 100, expirationPreset=preset))
    await move_clock(timedelta(seconds=600))
    committed = (await end(sandbox, made["id"], "commit")).json()["data"]
    at = datetime.fromisoformat(committed["committedAt"])
    assert at - datetime.fromisoformat(made["createdAt"]) >= timedelta(seconds=600)
    until = committed["expiresAt"] and datetime.fromisoformat(committed["expiresAt"])
    if preset == "ONE_YEAR":
        assert (until.year, until.month, until.day) in {(at.year + 1, at.month, at.day), (at.year + 1, 2, 28)}
    else:
        assert until == (valid and at + valid)


async def test_a_code_is_generated_unless_one_is_sent(sandbox: httpx.AsyncClient, rich: str) -> None:
    plain, prefixed = await make_reward(sandbox, 1), await make_reward(sandbox, 1, voucherPrefix="kopi_")
    codes = [(await make_redemption(sandbox, rich, plain))["voucherCode"] for _ in range(20)]
    codes += [(await make_redemption(sandbox, rich, prefixed))["voucherCode"].removeprefix("kopi_") for _ in range(20)]
    assert len(set(codes)) == 40
    symbols = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    for code in codes:
        assert re.fullmatch(f"[{symbols}]{{11}}", code)
        number = 0
        for char in code[:10]:
            number = number * 32 + symbols.index(char)
        assert symbols.index(code[10]) == number % 37
    own = await make_redemption(sandbox, rich, prefixed, voucherCode="Own-Code!1")
    assert own["voucherCode"] == "Own-Code!1"


async def test_a_code_belongs_to_one_redemption_until_that_ends(sandbox: httpx.AsyncClient, rich: str) -> None:
    other = (await make_customer(sandbox))["id"]
    await add_points(sandbox, other, 1_000)
    reward = await make_reward(sandbox, 10)
    first = await make_redemption(sandbox, rich, reward, voucherCode="Lebaran-1")
    for who in (rich, other):
        assert error_of(await redeem(sandbox, who, reward, voucherCode="LEBARAN-1")) == (409, "VOUCHER_TAKEN")
    assert await points_of(sandbox, other) == (1000, 0)
    await end(sandbox, first["id"], "release")
    second = await make_redemption(sandbox, other, reward, voucherCode="lebaran-1")
    await end(sandbox, second["id"], "commit")
    assert error_of(await redeem(sandbox, rich, reward, voucherCode="Lebaran-1")) == (409, "VOUCHER_TAKEN")
    await fail(sandbox, second["id"])
    await make_redemption(sandbox, rich, reward, voucherCode="Lebaran-1")


async def test_a_code_is_free_once_its_redemption_expires_even_before_the_worker_runs(
    sandbox: httpx.AsyncClient, rich: str, move_clock: MoveClock
) -> None:
    other = (await make_customer(sandbox))["id"]
    await add_points(sandbox, other, 1_000)
    reward = await make_reward(sandbox, 10)
    for who in (rich, other, other):
        await make_redemption(sandbox, who, reward, voucherCode="again")
        await move_clock(timedelta(seconds=901))
    assert await statuses_of(sandbox, rich) == ["expired"]
    assert await statuses_of(sandbox, other) == ["expired", "expired"]
