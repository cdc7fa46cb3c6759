"""Requests a minute: exact over all processes, and told in headers."""

import asyncio
from collections import Counter

import httpx
import pytest

from sapa.access import actions
from sapa.access.types import DEFAULT_RATE_LIMIT, KeyIn
from sapa.db.pool import Database
from tests.conftest import ENOUGH_OF_A_MINUTE, Installation, connect
from tests.factories import Environments, MadeKey, make_customer, make_key
from tests.http.wire import Reply, send, send_many

pytestmark = pytest.mark.usefixtures("early_in_a_minute")


async def limited(
    database: Database, company: Environments, limit: int, allow_list: list[str] | None = None
) -> MadeKey:
    return await make_key(database, company.live, rate_limit=limit, allow_list=allow_list)


def get(installation: Installation, key: str, path: str = "/customers") -> Reply:
    return send(installation, "GET", path, [("x-api-key", key)])


async def used(database: Database, key: MadeKey) -> int:
    async with database.connection() as db:
        return int(await db.fetchval("SELECT used FROM rate_windows WHERE key_id = $1", key.id))


async def test_the_limit_is_exact_for_8_clients_over_2_processes(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 100)
    replies = await asyncio.to_thread(send_many, installation, key.raw, 400)
    assert Counter(reply.status for reply in replies) == {200: 100, 429: 300}


async def test_the_headers_of_all_granted_calls_together_count_down_without_a_gap(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 60)
    replies = await asyncio.to_thread(send_many, installation, key.raw, 60)
    assert sorted(int(reply.headers["ratelimit-remaining"]) for reply in replies) == list(range(60))


async def test_headers_have_limit_remaining_and_reset(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 3)
    async with database.connection() as db:
        before = await db.fetchval("SELECT 60 - extract(second FROM clock_timestamp())::float8")
    for remaining in (2, 1, 0):
        reply = get(installation, key.raw)
        assert reply.status == 200
        assert reply.headers["ratelimit-limit"] == "3"
        assert reply.headers["ratelimit-remaining"] == str(remaining)
        assert before - ENOUGH_OF_A_MINUTE <= int(reply.headers["ratelimit-reset"]) <= before + 1
        assert "retry-after" not in reply.headers


async def test_a_used_up_minute_is_a_429_with_retry_after(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 1)
    assert get(installation, key.raw).status == 200
    for reply in send_many(installation, key.raw, 12):
        wait = reply.headers["retry-after"]
        assert reply.status == 429
        assert reply.json()["error"] == {
            "code": "RATE_LIMIT_EXCEEDED",
            "message": f"Too many requests: this key may make 1 a minute; retry in {wait} seconds.",
        }
        assert 1 <= int(wait) <= 60
        assert reply.headers["ratelimit-reset"] == wait
        assert (reply.headers["ratelimit-limit"], reply.headers["ratelimit-remaining"]) == ("1", "0")


async def test_refused_calls_add_nothing(installation: Installation, database: Database, company: Environments) -> None:
    key = await limited(database, company, 5)
    await asyncio.to_thread(send_many, installation, key.raw, 60)
    assert await used(database, key) == 5


async def test_every_authenticated_call_counts_whatever_becomes_of_it(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, scopes=["customers:READ"], rate_limit=100)
    async with connect(installation, key.raw) as client:
        responses = [
            await client.get("/customers"),
            await client.get("/customers?page=0"),
            await client.get("/customers/unknown"),
            await client.get("/nowhere"),
            await client.patch("/customers"),
            await client.post("/customers", content=b"{"),
            await client.head("/customers"),
        ]
    assert [response.status_code for response in responses] == [200, 400, 404, 404, 405, 403, 200]
    assert [response.headers["ratelimit-remaining"] for response in responses] == [str(100 - n) for n in range(1, 8)]


async def test_calls_from_a_forbidden_address_do_not_count(
    installation: Installation, database: Database, company: Environments
) -> None:
    """A stolen key that works from elsewhere only cannot use up its owner's minute."""
    key = await limited(database, company, 2, allow_list=["203.0.113.7"])
    replies = [get(installation, key.raw) for _ in range(3)]
    assert [reply.code for reply in replies] == ["IP_NOT_ALLOWED"] * 3
    assert "ratelimit-remaining" not in replies[0].headers


def test_calls_without_a_valid_key_have_no_quota_to_tell(installation: Installation) -> None:
    for headers in ([], [("x-api-key", "svc_live_x")]):
        reply = send(installation, "GET", "/customers", headers)
        assert not any(name.startswith("ratelimit") for name in reply.headers)


async def test_each_key_has_a_minute_of_its_own(
    installation: Installation, database: Database, company: Environments
) -> None:
    one, other = await limited(database, company, 1), await limited(database, company, 1)
    assert get(installation, one.raw).status == 200
    assert get(installation, one.raw).status == 429
    assert get(installation, other.raw).status == 200


async def test_a_replay_counts_like_any_call(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 10)
    async with connect(installation, key.raw) as client:
        for remaining in ("9", "8"):
            response = await client.post(
                "/customers", json={"email": "once@example.com"}, headers={"idempotency-key": "once"}
            )
            assert response.status_code == 201
            assert response.headers["ratelimit-remaining"] == remaining


async def test_a_new_minute_starts_anew(installation: Installation, database: Database, company: Environments) -> None:
    key = await limited(database, company, 3)
    assert [get(installation, key.raw).status for _ in range(2)] == [200, 200]
    async with database.connection() as db:
        await db.execute(
            "UPDATE rate_windows SET window_start = window_start - interval '1 min' WHERE key_id = $1", key.id
        )
    assert get(installation, key.raw).headers["ratelimit-remaining"] == "2"


async def test_a_change_of_the_company_s_keys_does_not_refill_a_minute(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await limited(database, company, 5)
    other = await make_key(database, company.live)
    send_many(installation, key.raw, 20)
    async with database.transaction() as tx:
        await actions.revoke_key(tx, other.id)
    await asyncio.sleep(1)
    assert {reply.status for reply in send_many(installation, key.raw, 20)} == {429}


async def test_a_refused_write_changes_nothing(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    key = await limited(database, company, 1)
    async with connect(installation, key.raw) as client:
        customer = await make_customer(client)
        assert (await client.delete(f"/customers/{customer['id']}")).status_code == 429
    assert (await api.get(f"/customers/{customer['id']}")).status_code == 200


def test_the_default_rate_limit_is_a_hundred_calls_a_minute() -> None:
    assert KeyIn(name="n", scopes=[]).rate_limit == DEFAULT_RATE_LIMIT == 100
