"""The providers, which of them a company has connected, and its accounts with carriers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.shipping.carriers.registry import list_adapters
from sapa.shipping.carriers.registry import list_providers as list_providers_with_carriers
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key
from tests.http.probe import open_app
from tests.http.response_check import check_answer
from tests.messaging.channels.peer import Peer, open_peer
from tests.shipping.quotes.quote_steps import connect_live

PROVIDERS = ["instant_carrier", "aggregator_carrier", "ev_courier", "custom", "parcel_carrier"]
CAPABILITIES = {"quote", "book", "cancel", "track", "coverage", "callbacks", "cod"}


async def list_providers(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    response = await client.get("/shipping/providers")
    assert response.status_code == 200, response.text
    return {entry["provider"]: entry for entry in response.json()["data"]}


async def test_a_new_live_company_has_only_what_needs_no_connection(api: httpx.AsyncClient) -> None:
    found = await list_providers(api)
    assert list(found) == PROVIDERS
    assert [provider for provider, entry in found.items() if entry["connected"]] == ["custom", "parcel_carrier"]
    assert all(entry["adapter"] is None and entry["label"] for entry in found.values())


async def test_a_new_test_environment_has_everything(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test)
    async with connect(installation, key.raw) as client:
        found = await list_providers(client)
    assert all(entry["connected"] is True for entry in found.values())
    adapters = {provider: entry["adapter"] for provider, entry in found.items()}
    assert adapters == {
        "instant_carrier": "gosend", "aggregator_carrier": "kiriminaja", "ev_courier": "dash",
        "custom": None, "parcel_carrier": None,
    }  # fmt: skip
    assert all(set(entry["capabilities"]) == CAPABILITIES for entry in found.values())
    assert found["aggregator_carrier"]["serviceTypes"] == ["EXPRESS"]
    assert found["aggregator_carrier"]["coverageLevels"] == ["provinces", "cities", "districts", "sub-districts"]
    assert set(found["instant_carrier"]["serviceTypes"]) == {"INSTANT", "SAME_DAY"}
    assert found["ev_courier"]["coverageLevels"] == ["cities"]
    assert [provider for provider, entry in found.items() if not entry["capabilities"]["quote"]] == PROVIDERS[3:]
    cash = [provider for provider, entry in found.items() if entry["capabilities"]["cod"]]
    assert cash == ["aggregator_carrier", "custom", "parcel_carrier"]


async def test_a_connected_carrier_is_shown_without_its_secrets(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    await connect_live(installation, database, company.live, "aggregator_carrier", api_key="planted-secret-key")
    response = await api.get("/shipping/providers")
    assert "planted-secret-key" not in response.text
    entry = next(entry for entry in response.json()["data"] if entry["provider"] == "aggregator_carrier")
    assert (entry["connected"], entry["adapter"]) == (True, "kiriminaja")


AGGREGATOR = "/carriers/aggregator_carrier"
API_KEY = "planted-api-key"


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with open_peer() as opened:
        yield opened


@pytest.fixture
async def caller(
    installation: Installation, database: Database, company: Environments, peer: Peer
) -> AsyncIterator[httpx.AsyncClient]:
    """With a live key and every scope; the carrier is a server of the test's own."""
    peer.answers = [(200, {"status": True, "text": "ok", "datas": []})]
    key = await make_key(database, company.live)
    variables = {"SAPA_UPSTREAM_KIRIMINAJA": peer.address, "SAPA_SECRET_KEY": installation.server.secret_key}
    async with open_app(installation, ROUTES, **variables) as client:
        client.headers["x-api-key"] = key.raw
        client.event_hooks = {"response": [check_answer]}
        yield client


async def test_every_provider_that_needs_an_account_is_listed_with_its_carriers(api: httpx.AsyncClient) -> None:
    listed = (await api.get("/carriers")).json()["data"]
    assert {entry["provider"]: [one["adapter"] for one in entry["adapters"]] for entry in listed} == {
        provider: [carrier.name for carrier in list_adapters(provider)] for provider in list_providers_with_carriers()
    }
    assert all(entry["connected"] is False and entry["connection"] is None for entry in listed)
    (entry,) = [entry for entry in listed if entry["provider"] == "aggregator_carrier"]
    fields = {field["name"]: field for field in entry["adapters"][0]["fields"]}
    assert fields["api_key"]["secret"] is True
    assert (await api.get(AGGREGATOR)).json()["data"] == entry


async def test_an_account_with_a_carrier_is_verified_connected_tested_and_disconnected(
    caller: httpx.AsyncClient, peer: Peer
) -> None:
    body = {"adapter": "kiriminaja", "fields": {"api_key": API_KEY}}
    refused = await caller.post(f"{AGGREGATOR}/test")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "PROVIDER_NOT_CONNECTED")
    created = await caller.put(AGGREGATOR, json=body)
    assert created.status_code == 200
    data = created.json()["data"]
    assert (data["adapter"], data["status"], data["isSandbox"], data["leftBehind"]) == (
        "kiriminaja", "connected", False, 0,
    )  # fmt: skip
    assert "/hooks/carriers/" in data["callbackUrl"]
    assert (await caller.post(f"{AGGREGATOR}/test")).json()["data"]["isWorking"] is True
    peer.answers = [(401, {"status": False, "text": f"{API_KEY} is gone"})]
    failing = await caller.post(f"{AGGREGATOR}/test")
    assert failing.json()["data"]["isWorking"] is False
    shown = await caller.get(AGGREGATOR)
    assert (shown.json()["data"]["connected"], shown.json()["data"]["connection"]["status"]) == (False, "invalid")
    for response in (created, failing, shown, await caller.get("/carriers")):
        assert API_KEY not in response.text
    assert data["callbackUrl"] not in shown.text
    assert (await caller.delete(AGGREGATOR)).status_code == 204
    assert (await caller.delete(AGGREGATOR)).json()["error"]["code"] == "PROVIDER_NOT_CONNECTED"


async def test_an_account_that_the_carrier_refuses_changes_nothing(caller: httpx.AsyncClient, peer: Peer) -> None:
    peer.answers = [(401, {"status": False, "text": f"{API_KEY} is unknown"})]
    refused = await caller.put(AGGREGATOR, json={"fields": {"api_key": API_KEY}})
    assert refused.status_code == 400
    assert API_KEY not in refused.text
    peer.answers = [(503, {"status": False})]
    away = await caller.put(AGGREGATOR, json={"fields": {"api_key": API_KEY}})
    assert (away.status_code, away.json()["error"]["code"]) == (502, "CARRIER_UNAVAILABLE")
    assert (await caller.get(AGGREGATOR)).json()["data"]["connection"] is None
    unverified = await caller.put(AGGREGATOR, json={"fields": {"api_key": API_KEY}, "verify": False})
    assert (unverified.status_code, unverified.json()["data"]["verifiedAt"]) == (200, None)


async def test_a_retry_of_a_connection_gets_no_callback_address(caller: httpx.AsyncClient) -> None:
    once, body = {"idempotency-key": "connect"}, {"fields": {"api_key": API_KEY}}
    first = await caller.put(AGGREGATOR, json=body, headers=once)
    retry = await caller.put(AGGREGATOR, json=body, headers=once)
    assert retry.json()["data"] == first.json()["data"] | {"callbackUrl": None}
    assert (await caller.get(AGGREGATOR)).json()["data"]["connection"]["id"] == first.json()["data"]["id"]


@pytest.mark.parametrize(
    ("provider", "body", "field"),
    [
        ("aggregator_carrier", {"fields": {}}, "api_key"),
        ("aggregator_carrier", {"fields": {"colour": "red"}}, "colour"),
        ("aggregator_carrier", {"adapter": "pigeon"}, "adapter"),
        ("aggregator_carrier", {"colour": "red"}, "colour"),
        ("custom", {}, "provider"),
        ("pigeon", {}, "provider"),
    ],
)
async def test_an_invalid_account_with_a_carrier_is_refused_with_its_field(
    api: httpx.AsyncClient, provider: str, body: dict[str, Any], field: str
) -> None:
    refused = await api.put(f"/carriers/{provider}", json=body)
    assert refused.status_code == 400
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == [field]


async def test_a_simulator_can_be_exchanged_for_another_but_not_disconnected(
    installation: Installation, database: Database, company: Environments
) -> None:
    async with connect(installation, (await make_key(database, company.test)).raw) as tester:
        assert (await tester.post(f"{AGGREGATOR}/test")).json()["data"]["isWorking"] is True
        assert (await tester.delete(AGGREGATOR)).status_code == 400
        other = await tester.put(AGGREGATOR, json={"adapter": "biteship"})
        assert (other.status_code, other.json()["data"]["isSandbox"]) == (200, True)
        assert (await tester.delete(AGGREGATOR)).status_code == 204
        assert (await tester.get(AGGREGATOR)).json()["data"]["connection"]["adapter"] == "kiriminaja"
