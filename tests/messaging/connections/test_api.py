"""Accounts with channels that a program manages: verified, connected, tested, and their secrets never read back."""

from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.messaging.channels.registry import CHANNELS
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_key
from tests.http.probe import open_app
from tests.http.response_check import check_answer
from tests.messaging.channels.peer import Peer

PAGE = "/channels/MSGAPP_CLOUD"
SECRETS = {"access_token": "planted-access-token", "app_secret": "planted-app-secret"}
FIELDS = {"phone_number_id": "1122", "waba_id": "3344", "phone_number": "+622150001234", **SECRETS}


@pytest.fixture
async def caller(
    installation: Installation, database: Database, company: Environments, peer: Peer
) -> AsyncIterator[httpx.AsyncClient]:
    """With a live key and every scope; the channel is a server of the test's own."""
    peer.answers = [(200, {"id": "1122"})]
    key = await make_key(database, company.live)
    variables = {"SAPA_UPSTREAM_MSGAPP_CLOUD": peer.address, "SAPA_SECRET_KEY": installation.server.secret_key}
    async with open_app(installation, ROUTES, **variables) as client:
        client.headers["x-api-key"] = key.raw
        client.event_hooks = {"response": [check_answer]}
        yield client


async def get(client: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(PAGE)).json()["data"]
    return found


def has_secret(*responses: httpx.Response) -> bool:
    return any(secret in response.text for response in responses for secret in SECRETS.values())


async def test_every_channel_is_listed_with_the_fields_of_its_account(api: httpx.AsyncClient) -> None:
    listed = (await api.get("/channels")).json()["data"]
    assert [entry["source"] for entry in listed] == list(CHANNELS)
    assert all(entry["connected"] is False and entry["connection"] is None for entry in listed)
    fields = {field["name"]: field for field in listed[0]["fields"]}
    assert fields["access_token"] == {
        "name": "access_token",
        "label": fields["access_token"]["label"],
        "required": True,
        "secret": True,
        "generated": False,
    }
    assert (await api.get("/channels/MSGAPP_CLOUD")).json()["data"] == listed[0]


@pytest.mark.smoke
async def test_an_account_is_verified_connected_and_its_secrets_are_never_shown(
    caller: httpx.AsyncClient, peer: Peer
) -> None:
    created = await caller.put(PAGE, json={"fields": FIELDS})
    assert created.status_code == 200
    assert peer.requests[-1].headers["authorization"] == "Bearer planted-access-token"
    data = created.json()["data"]
    assert (data["status"], data["health"], data["account"]["phone_number"]) == ("connected", "ok", "+622150001234")
    assert sorted(data["secrets"]) == ["access_token", "app_secret", "verify_token"]
    assert "/hooks/channels/hook_" in data["hookUrl"]
    shown, listed = await caller.get(PAGE), await caller.get("/channels")
    assert shown.json()["data"]["connected"] is True
    assert not has_secret(created, shown, listed)
    for once in (data["hookUrl"], data["generated"]["verify_token"]):
        assert once not in shown.text + listed.text


async def test_an_account_that_the_channel_refuses_changes_nothing(caller: httpx.AsyncClient, peer: Peer) -> None:
    peer.answers = [(401, {"error": {"message": "bad token planted-access-token", "code": 190}})]
    refused = await caller.put(PAGE, json={"fields": FIELDS})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CHANNEL_REFUSED")
    assert not has_secret(refused)
    assert (await get(caller))["connection"] is None


async def test_fields_that_are_left_out_keep_their_values(caller: httpx.AsyncClient, peer: Peer) -> None:
    first = (await caller.put(PAGE, json={"fields": FIELDS})).json()["data"]
    changed = await caller.put(PAGE, json={"fields": {"access_token": "planted-newer-token"}})
    assert changed.status_code == 200
    assert peer.requests[-1].headers["authorization"] == "Bearer planted-newer-token"
    assert (changed.json()["data"]["id"], changed.json()["data"]["hookUrl"]) == (first["id"], None)
    renewed = (await caller.put(PAGE, json={"newHook": True})).json()["data"]
    assert renewed["hookUrl"] not in {None, first["hookUrl"]}
    other = await caller.put(PAGE, json={"fields": {**FIELDS, "phone_number_id": "9999"}})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "CHANNEL_CONNECTED")


async def test_an_unverified_account_is_connected_when_asked_to(caller: httpx.AsyncClient, peer: Peer) -> None:
    created = await caller.put(PAGE, json={"fields": FIELDS, "verify": False})
    assert (created.status_code, created.json()["data"]["health"]) == (200, "unverified")
    assert peer.requests == []


async def test_a_test_reports_what_the_channel_says_of_the_account(caller: httpx.AsyncClient, peer: Peer) -> None:
    refused = await caller.post(f"{PAGE}/test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CHANNEL_NOT_CONNECTED")
    await caller.put(PAGE, json={"fields": FIELDS})
    assert (await caller.post(f"{PAGE}/test")).json()["data"]["health"] == "ok"
    peer.answers = [(401, {"error": {"message": "expired", "code": 190}})]
    failing = (await caller.post(f"{PAGE}/test")).json()["data"]
    assert failing["health"] == "failing"
    assert "expired" in failing["lastError"]


async def test_whatever_the_channel_says_its_words_hold_no_secret(caller: httpx.AsyncClient, peer: Peer) -> None:
    await caller.put(PAGE, json={"fields": FIELDS})
    login = b64encode(b"shop:planted-access-token").decode()
    quoted = {"message": f"Malformed planted-access-token, Basic {login}", "code": 190}
    peer.answers = [(401, {"error": quoted})]
    templates = "http://probe/messaging/v1/templates"
    template = {"name": "greeting", "language": "id", "category": "UTILITY", "body": "Halo"}
    answers = [
        await caller.post(f"{PAGE}/test"),
        await caller.post(templates, json=template),
        await caller.post(f"{templates}/sync"),
        await caller.get(templates),
        await caller.get(PAGE),
    ]
    assert [answer.status_code for answer in answers] == [200, 201, 409, 200, 200]
    assert all("Malformed …, Basic …" in answers[n].text for n in (0, 2, 4))
    for answer in answers:
        assert not has_secret(answer)
        assert login not in answer.text


async def test_a_disconnected_account_has_no_secrets_left(
    caller: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    await caller.put(PAGE, json={"fields": FIELDS})
    assert (await caller.delete(PAGE)).status_code == 204
    entry = await get(caller)
    assert (entry["connected"], entry["connection"]["status"], entry["connection"]["secrets"]) == (
        False,
        "disconnected",
        [],
    )
    assert (await caller.delete(PAGE)).json()["error"]["code"] == "CHANNEL_NOT_CONNECTED"
    async with database.connection() as db:
        stored = await db.fetchrow(
            "SELECT credentials, hook_hash FROM channel_connections WHERE company_id = $1", company.live
        )
    assert stored is not None
    assert stored["credentials"] is None


async def test_a_retry_connects_once_and_gets_nothing_that_is_shown_once(
    caller: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    once = {"idempotency-key": "connect"}
    first = await caller.put(PAGE, json={"fields": FIELDS}, headers=once)
    retry = await caller.put(PAGE, json={"fields": FIELDS}, headers=once)
    assert retry.headers["idempotency-replayed"] == "true"
    hidden = {"hookUrl": None, "generated": None, "snippet": None}
    assert retry.json()["data"] == first.json()["data"] | hidden
    async with database.connection() as db:
        stored = await db.fetchval("SELECT body FROM idempotency_records WHERE company_id = $1", company.live)
    assert first.json()["data"]["hookUrl"].rpartition("/")[2] not in stored.decode()
    assert not any(secret in stored.decode() for secret in SECRETS.values())


async def test_a_failed_call_leaves_its_idempotency_key_free(caller: httpx.AsyncClient, peer: Peer) -> None:
    once = {"idempotency-key": "connect"}
    peer.answers = [(401, {"error": {"message": "no", "code": 190}})]
    assert (await caller.put(PAGE, json={"fields": FIELDS}, headers=once)).status_code == 409
    peer.answers = [(200, {"id": "1122"})]
    assert (await caller.put(PAGE, json={"fields": FIELDS}, headers=once)).status_code == 200


@pytest.mark.parametrize(
    ("source", "body", "field"),
    [
        ("MSGAPP_CLOUD", {"fields": {**FIELDS, "phone_number": "0812"}}, "phone_number"),
        ("MSGAPP_CLOUD", {"fields": {**FIELDS, "colour": "red"}}, "colour"),
        ("MSGAPP_CLOUD", {"fields": {}}, "phone_number_id"),
        ("MSGAPP_CLOUD", {"colour": "red"}, "colour"),
        ("PIGEON", {"fields": {}}, "source"),
    ],
)
async def test_an_invalid_account_is_refused_with_its_field(
    api: httpx.AsyncClient, source: str, body: dict[str, Any], field: str
) -> None:
    refused = await api.put(f"/channels/{source}", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["details"][0]["field"] == field


async def test_the_simulators_of_a_test_environment_can_be_tested_but_not_replaced(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with connect(installation, (await make_key(database, company.test)).raw) as tester:
        listed = (await tester.get("/channels")).json()["data"]
        assert all(entry["connected"] for entry in listed)
        assert (await tester.post(f"{PAGE}/test")).json()["data"]["health"] == "ok"
        for refused in (await tester.put(PAGE, json={"fields": FIELDS}), await tester.delete(PAGE)):
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "SANDBOX_CHANNEL")


async def test_another_companys_account_is_not_seen(
    installation: Installation, database: Database, caller: httpx.AsyncClient
) -> None:
    await caller.put(PAGE, json={"fields": FIELDS})
    other = await make_key(database, (await make_company(database)).live)
    async with connect(installation, other.raw) as client:
        assert (await get(client))["connection"] is None
        assert (await client.delete(PAGE)).status_code == 409
    assert (await get(caller))["connected"] is True
