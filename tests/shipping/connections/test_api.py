"""The providers, and which of them a company has connected."""

from typing import Any

import httpx

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.factories import Environments, make_key
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
