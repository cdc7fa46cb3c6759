"""Networks that guess keys."""

import httpx
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.bad_keys import MAX_BAD_KEYS, MAX_NETWORKS, TRUST_SECONDS, WINDOW_SECONDS, BadKeyLimiter
from sapa.http.errors import RateLimitExceeded
from sapa.http.keys import new_key
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.probe import open_app


async def guess(client: httpx.AsyncClient, times: int) -> list[int]:
    answers = [await client.get("/customers", headers={"x-api-key": new_key("live")}) for _ in range(times)]
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize("peer", ["203.0.113.9", "2001:db8::9"])
async def test_a_network_that_guesses_is_refused_before_the_look_up(
    installation: Installation, database: Database, company: Environments, peer: str
) -> None:
    key = await make_key(database, company.live)
    async with open_app(installation, ROUTES, peer) as client:
        assert await guess(client, MAX_BAD_KEYS + 1) == [401] * (MAX_BAD_KEYS + 1)
        refused = await client.get("/customers", headers={"x-api-key": new_key("live")})
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMIT_EXCEEDED")
        assert 1 <= int(refused.headers["retry-after"]) <= WINDOW_SECONDS
        # A good key that this process does not know yet could be a guess, too.
        assert (await client.get("/customers", headers={"x-api-key": key.raw})).status_code == 429


async def test_a_network_with_a_good_key_is_not_limited(
    installation: Installation, database: Database, company: Environments
) -> None:
    key, other = await make_key(database, company.live), await make_key(database, company.live)
    async with open_app(installation, ROUTES, "203.0.113.9") as client:
        assert (await client.get("/customers", headers={"x-api-key": key.raw})).status_code == 200
        assert set(await guess(client, MAX_BAD_KEYS + 10)) == {401}
        assert (await client.get("/customers", headers={"x-api-key": other.raw})).status_code == 200


def is_limited(limiter: BadKeyLimiter, network: str, now: float) -> bool:
    try:
        limiter.check(network, now)
    except RateLimitExceeded:
        return True
    return False


def build_guessed(now: float) -> BadKeyLimiter:
    limiter = BadKeyLimiter()
    for _ in range(MAX_BAD_KEYS + 1):
        limiter.count("a", now)
    return limiter


def test_the_limit_is_per_network_and_minute() -> None:
    limiter = build_guessed(1000.0)
    assert is_limited(limiter, "a", 1000.0 + WINDOW_SECONDS - 1)
    assert not is_limited(limiter, "a", 1000.0 + WINDOW_SECONDS)
    assert not is_limited(limiter, "b", 1000.0)


def test_a_good_key_counts_for_ten_minutes() -> None:
    limiter = build_guessed(1000.0)
    limiter.trust("a", 1000.0 - TRUST_SECONDS + 1)
    assert not is_limited(limiter, "a", 1000.0)
    assert is_limited(limiter, "a", 1001.0)


def test_the_tables_do_not_grow_for_ever() -> None:
    limiter = build_guessed(1000.0)
    for number in range(MAX_NETWORKS):
        limiter.count(str(number), 1000.0)
    assert not is_limited(limiter, "a", 1000.0)
