"""What a key may do: every declared endpoint against keys with and without its scope."""

import httpx
import pytest

from sapa.access.api import WRITES
from sapa.access.types import Scope
from sapa.db.pool import Database
from sapa.domains import ROUTES
from sapa.http.endpoints import Endpoint
from tests.conftest import Installation, connect
from tests.factories import Environments, make_customer, make_key
from tests.http.samples import address_of, sample_request

ENDPOINTS = [endpoint for routes in ROUTES for endpoint in routes.endpoints]
NAMES = [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS]
AUTHORISATION_CODES = {"MISSING_API_KEY", "INVALID_API_KEY", "INSUFFICIENT_SCOPE", "UNAUTHORIZED", "IP_NOT_ALLOWED"}


async def call(
    installation: Installation, database: Database, company: int, endpoint: Endpoint, scopes: list[str]
) -> httpx.Response:
    key = await make_key(database, company, scopes=scopes)
    url = installation.address + endpoint.routes.base + address_of(endpoint)
    async with connect(installation, key.raw) as client:
        return await client.request(endpoint.method, url, **sample_request(endpoint))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
async def test_every_scope_but_its_own_does_not_open_an_endpoint(
    installation: Installation, database: Database, company: Environments, endpoint: Endpoint
) -> None:
    others = [str(scope) for scope in Scope if scope not in endpoint.scopes]
    answer = await call(installation, database, company.live, endpoint, others)
    refusal = endpoint.routes.refusal
    assert (answer.status_code, answer.json()["error"]["code"]) == (refusal.status, refusal.code)
    assert answer.json()["error"]["message"] == f"The API key lacks the scope {endpoint.scope}."


SEVERAL_SCOPES = {"update_company": WRITES}
"""Endpoints that need more scopes than the one that they declare."""


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
async def test_its_own_scope_alone_opens_an_endpoint(
    installation: Installation, database: Database, company: Environments, endpoint: Endpoint
) -> None:
    scopes = SEVERAL_SCOPES.get(endpoint.handler.__name__, endpoint.scopes[:1])
    answer = await call(installation, database, company.live, endpoint, list(scopes))
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    code = answer.json().get("error", {}).get("code") if is_json and answer.content else None
    assert code not in AUTHORISATION_CODES
    assert answer.status_code < 500


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=NAMES)
def test_the_action_of_a_scope_fits_the_method(endpoint: Endpoint) -> None:
    (action,) = {scope.partition(":")[2] for scope in endpoint.scopes}
    wanted = {"GET": {"READ"}, "DELETE": {"DELETE", "WRITE"}}.get(endpoint.method, {"WRITE", "READ"})
    assert action in wanted


async def test_a_reading_key_lists_and_gets_but_changes_nothing(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    customer = await make_customer(api)
    key = await make_key(database, company.live, scopes=["customers:READ"])
    place = f"/customers/{customer['id']}"
    async with connect(installation, key.raw) as reader:
        assert (await reader.get("/customers")).status_code == 200
        assert (await reader.get(place)).status_code == 200
        refused = [
            await reader.post("/customers", json={"email": "new@example.com"}),
            await reader.put(place, json={"firstName": "Changed"}),
            await reader.put("/customers/by-external-id/x", json={"email": "new@example.com"}),
            await reader.delete(place),
        ]
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in refused} == {(403, "INSUFFICIENT_SCOPE")}
    assert (await api.get("/customers")).json()["data"] == [customer]


async def test_a_writing_key_may_neither_read_nor_delete(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, scopes=["customers:WRITE"])
    async with connect(installation, key.raw) as writer:
        place = f"/customers/{(await make_customer(writer))['id']}"
        assert (await writer.put(place, json={"firstName": "Ayu"})).status_code == 200
        assert (await writer.delete(place)).status_code == 403
        assert (await writer.get(place)).status_code == 403
        assert (await writer.head(place)).status_code == 403


async def test_a_key_without_any_scope_is_valid_and_permits_nothing(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live, scopes=[], products=[])
    async with connect(installation, key.raw) as client:
        assert (await client.get("/customers")).json()["error"]["code"] == "INSUFFICIENT_SCOPE"
