"""Idempotency-Key: at most once, the same answer for all twins, over all processes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from sapa.db.pool import Database
from sapa.http import idempotency
from tests.conftest import Installation, connect
from tests.factories import Environments, MadeKey, make_company, make_customer, make_key
from tests.http.probe import CONNECTIONS, Stage, build_probe, open_app
from tests.http.wire import Reply, send

ONCE = {"idempotency-key": "once"}


async def total(api: httpx.AsyncClient) -> int:
    return int((await api.get("/customers")).json()["meta"]["total"])


def post_at_once(installation: Installation, key: str, bodies: list[Any], once: str | None) -> list[Reply]:
    """All bodies at the same time, each on its own connection, so that both processes get some."""
    headers = [("x-api-key", key), ("content-type", "application/json")]
    headers += [("idempotency-key", once)] if once else []
    with ThreadPoolExecutor(len(bodies)) as pool:
        encoded = [msgspec.json.encode(body) for body in bodies]
        calls = [pool.submit(send, installation, "POST", "/customers", headers, body) for body in encoded]
        return [call.result() for call in calls]


async def test_50_identical_posts_at_once_create_one_customer_and_get_one_response(
    installation: Installation, api: httpx.AsyncClient
) -> None:
    body = {"email": "ayu@example.com", "firstName": "Ayu"}
    key = api.headers["x-api-key"]
    replies = await asyncio.to_thread(post_at_once, installation, key, [body] * 50, "once")
    assert {reply.status for reply in replies} == {201}
    assert len({reply.body for reply in replies}) == 1
    assert [reply.headers.get("idempotency-replayed") for reply in replies].count("true") == 49
    assert len({reply.headers["x-request-id"] for reply in replies}) == 50
    assert await total(api) == 1


async def test_50_posts_of_one_email_at_once_create_one_customer(
    installation: Installation, api: httpx.AsyncClient
) -> None:
    spellings = ["ayu@example.com", "AYU@example.com", "Ayu@Example.com", "ayu@EXAMPLE.COM", "aYu@example.com"]
    bodies = [{"email": email} for email in spellings * 10]
    replies = await asyncio.to_thread(post_at_once, installation, api.headers["x-api-key"], bodies, None)
    assert sorted((reply.status, reply.code) for reply in replies) == [(201, None)] + [(409, "CUSTOMER_EXISTS")] * 49
    assert await total(api) == 1


async def test_a_second_call_gets_the_stored_response(api: httpx.AsyncClient) -> None:
    first = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    assert "idempotency-replayed" not in first.headers
    await api.put(f"/customers/{first.json()['data']['id']}", json={"firstName": "Changed"})
    second = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    assert (second.status_code, second.content) == (201, first.content)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.headers["content-type"] == "application/json"


async def test_without_the_header_nothing_is_replayed(api: httpx.AsyncClient) -> None:
    assert (await api.post("/customers", json={"email": "ayu@example.com"})).status_code == 201
    assert (await api.post("/customers", json={"email": "ayu@example.com"})).status_code == 409


@pytest.mark.parametrize("body", [b'{"email":"budi@example.com"}', b'{"email": "ayu@example.com"}', b"{}"])
async def test_the_same_key_with_other_bytes_is_refused(api: httpx.AsyncClient, body: bytes) -> None:
    headers = {**ONCE, "content-type": "application/json"}
    await api.post("/customers", content=b'{"email":"ayu@example.com"}', headers=headers)
    response = await api.post("/customers", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert await total(api) == 1


async def test_the_key_belongs_to_one_method_and_path(api: httpx.AsyncClient) -> None:
    one, other = await make_customer(api), await make_customer(api)
    for customer in (one, other):
        response = await api.put(f"/customers/{customer['id']}", json={"firstName": "Ayu"}, headers=ONCE)
        assert response.json()["data"]["id"] == customer["id"]
        assert "idempotency-replayed" not in response.headers
    gone = await api.delete(f"/customers/{one['id']}", headers=ONCE)
    assert gone.status_code == 204
    assert "idempotency-replayed" not in gone.headers


async def test_the_key_belongs_to_one_company_and_environment(
    installation: Installation, database: Database, company: Environments
) -> None:
    other = await make_company(database)
    ids = set()
    for environment in (company.live, company.test, other.live):
        key = await make_key(database, environment)
        async with connect(installation, key.raw) as client:
            response = await client.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
            assert "idempotency-replayed" not in response.headers
            ids.add(response.json()["data"]["id"])
    assert len(ids) == 3


async def test_two_keys_of_one_company_share_it(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    first = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as colleague:
        second = await colleague.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    assert second.content == first.content
    assert second.headers["idempotency-replayed"] == "true"


async def test_failures_are_not_stored(api: httpx.AsyncClient) -> None:
    taken = await make_customer(api, email="ayu@example.com")
    for _ in range(2):
        refused = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
        assert refused.status_code == 409
        assert "idempotency-replayed" not in refused.headers
    assert (await api.post("/customers", json={"email": 1}, headers=ONCE)).status_code == 400
    await api.delete(f"/customers/{taken['id']}")
    made = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    assert made.status_code == 201
    assert "idempotency-replayed" not in made.headers


async def test_a_delete_is_replayed_although_the_resource_is_gone(api: httpx.AsyncClient) -> None:
    place = f"/customers/{(await make_customer(api))['id']}"
    responses = [await api.delete(place, headers=ONCE) for _ in range(2)]
    assert [(response.status_code, response.content) for response in responses] == [(204, b"")] * 2
    assert [response.headers.get("idempotency-replayed") for response in responses] == [None, "true"]
    assert (await api.delete(place)).status_code == 404


async def test_a_put_that_made_something_replays_its_201(api: httpx.AsyncClient) -> None:
    place, body = "/customers/by-external-id/shop-1", {"email": "ayu@example.com"}
    responses = [await api.put(place, json=body, headers=ONCE) for _ in range(2)]
    assert [response.status_code for response in responses] == [201, 201]
    assert responses[0].content == responses[1].content
    assert (await api.put(place, json=body)).status_code == 200


async def test_a_replay_needs_the_right_to_do_it(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    body = {"email": "ayu@example.com"}
    assert (await api.post("/customers", json=body, headers=ONCE)).status_code == 201
    key = await make_key(database, company.live, scopes=["customers:READ"])
    async with connect(installation, key.raw) as reader:
        response = await reader.post("/customers", json=body, headers=ONCE)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "INSUFFICIENT_SCOPE")
    assert "ayu@example.com" not in response.text


async def test_a_record_older_than_24_hours_is_ignored(
    installation: Installation, company: Environments, api: httpx.AsyncClient
) -> None:
    first = await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)
    await age_record(installation, company.live, "23 hours 59 minutes")
    assert (await api.post("/customers", json={"email": "ayu@example.com"}, headers=ONCE)).content == first.content
    await age_record(installation, company.live, "24 hours 1 minute")
    second = await api.post("/customers", json={"email": "budi@example.com"}, headers=ONCE)
    assert second.status_code == 201
    assert second.json()["data"]["email"] == "budi@example.com"
    assert "idempotency-replayed" not in second.headers
    third = await api.post("/customers", json={"email": "budi@example.com"}, headers=ONCE)
    assert third.content == second.content


async def age_record(installation: Installation, company_id: int, age: str) -> None:
    connection = await asyncpg.connect(installation.server.owner_url)
    try:
        await connection.execute(
            "UPDATE idempotency_records SET created_at = now() - $2::text::interval WHERE company_id = $1",
            company_id,
            age,
        )
    finally:
        await connection.close()


@pytest.mark.parametrize("once", ["", "x" * 256, "caf\xe9", "a\tb"])
async def test_a_key_that_cannot_be_used_is_refused(api: httpx.AsyncClient, once: str) -> None:
    headers = {b"idempotency-key": once.encode("latin-1")}
    response = await api.post("/customers", json={"email": "ayu@example.com"}, headers=headers)
    assert response.status_code == 400
    message = "must be 1 to 255 printable ASCII characters"
    assert response.json()["error"]["details"] == [{"field": "Idempotency-Key", "message": message}]
    assert await total(api) == 0


@pytest.mark.parametrize("once", ["x" * 255, "a b", "{}'\"\\;--", "0"])
async def test_any_printable_key_of_up_to_255_characters_will_do(api: httpx.AsyncClient, once: str) -> None:
    for _ in range(2):
        response = await api.post("/customers", json={"email": "a@example.com"}, headers={"idempotency-key": once})
        assert response.status_code == 201


async def test_reads_take_no_notice_of_the_header(api: httpx.AsyncClient) -> None:
    assert await total(api) == 0
    assert (await api.get("/customers", headers=ONCE)).json()["meta"]["total"] == 0
    await make_customer(api)
    assert (await api.get("/customers", headers=ONCE)).json()["meta"]["total"] == 1


@pytest.fixture
async def probe_key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


async def test_repeated_requests_wait_for_the_first_and_get_its_response(
    installation: Installation, probe_key: MadeKey
) -> None:
    stage = Stage()
    async with open_app(installation, [build_probe(stage)]) as client:
        client.headers["x-api-key"] = probe_key.raw
        twins = [asyncio.create_task(client.post("/probe/slow", json={"name": "a"}, headers=ONCE)) for _ in range(20)]
        await stage.entered.wait()
        reads = [await client.get("/probe/things") for _ in range(CONNECTIONS)]
        stage.go_on.set()
        responses = [await twin for twin in twins]
    assert {read.status_code for read in reads} == {200}, "waiting twins hold no connection"
    assert {(response.status_code, response.text) for response in responses} == {(201, '{"data":{"name":"a"}}')}
    assert [response.headers.get("idempotency-replayed") for response in responses].count("true") == 19
    assert stage.tries == 1


async def test_a_repeated_request_that_waited_too_long_gets_retry_after(
    installation: Installation, probe_key: MadeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.2)
    stage = Stage()
    async with open_app(installation, [build_probe(stage)]) as client:
        client.headers["x-api-key"] = probe_key.raw
        first = asyncio.create_task(client.post("/probe/slow", json={"name": "a"}, headers=ONCE))
        await stage.entered.wait()
        refused = await client.post("/probe/slow", json={"name": "a"}, headers=ONCE)
        stage.go_on.set()
        assert (await first).status_code == 201
        late = await client.post("/probe/slow", json={"name": "a"}, headers=ONCE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert int(refused.headers["retry-after"]) >= 1
    assert late.headers["idempotency-replayed"] == "true"
    assert stage.tries == 1


def test_repeated_requests_wait_for_five_seconds() -> None:
    assert idempotency.WAIT_SECONDS == 5


async def test_a_repeated_request_in_another_process_waits_and_gets_retry_after(
    installation: Installation, probe_key: MadeKey
) -> None:
    """Two applications on one database are as good as two processes; here PostgreSQL's own lock time-out speaks."""
    stage = Stage()
    routes = [build_probe(stage)]
    async with open_app(installation, routes) as here, open_app(installation, routes) as there:
        here.headers["x-api-key"] = there.headers["x-api-key"] = probe_key.raw
        first = asyncio.create_task(here.post("/probe/slow", json={"name": "a"}, headers=ONCE))
        await stage.entered.wait()
        refused = await there.post("/probe/slow", json={"name": "a"}, headers=ONCE)
        stage.go_on.set()
        made = await first
        replayed = await there.post("/probe/slow", json={"name": "a"}, headers=ONCE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IDEMPOTENCY_IN_PROGRESS")
    assert int(refused.headers["retry-after"]) >= 1
    assert (replayed.content, replayed.headers["idempotency-replayed"]) == (made.content, "true")
    assert stage.tries == 1


async def test_when_the_first_request_fails_a_repeated_one_takes_over(
    installation: Installation, api: httpx.AsyncClient
) -> None:
    """Ten identical calls: until the e-mail is free all fail; then exactly one makes it, and the rest replay."""
    taken = await make_customer(api, email="ayu@example.com")
    key, body = api.headers["x-api-key"], {"email": "ayu@example.com"}
    failed = await asyncio.to_thread(post_at_once, installation, key, [body] * 10, "once")
    assert {reply.status for reply in failed} == {409}
    await api.delete(f"/customers/{taken['id']}")
    made = await asyncio.to_thread(post_at_once, installation, key, [body] * 10, "once")
    assert {reply.status for reply in made} == {201}
    assert [reply.headers.get("idempotency-replayed") for reply in made].count("true") == 9
