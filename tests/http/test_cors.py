"""Calls from browsers of other origins: off by default, open for the origins an operator lists."""

import httpx
import pytest

from sapa.db.pool import Database
from sapa.domains import ROUTES
from tests.conftest import Installation
from tests.factories import Environments, MadeKey, make_key
from tests.http.probe import open_app
from tests.http.wire import send

SHOP = "https://shop.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key, content-type"}


@pytest.fixture
async def key(database: Database, company: Environments) -> MadeKey:
    return await make_key(database, company.live)


def granted(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control-")}


async def test_no_origin_is_allowed_by_default(installation: Installation, key: MadeKey) -> None:
    request = [("origin", SHOP), *PREFLIGHT.items()]
    for reply in (
        send(installation, "OPTIONS", "/customers", request),
        send(installation, "GET", "/customers", [("origin", SHOP), ("x-api-key", key.raw)]),
    ):
        assert reply.status in {200, 204}
        assert not [name for name in reply.headers if name.startswith("access-control-")]


async def test_a_preflight_from_a_listed_origin_is_granted_without_a_key(installation: Installation) -> None:
    async with open_app(installation, ROUTES, SAPA_CORS_ORIGINS=f"https://other.example, {SHOP}") as client:
        response = await client.options("/customers", headers={"origin": SHOP, **PREFLIGHT})
    assert (response.status_code, response.content) == (204, b"")
    headers = granted(response.headers)
    assert headers["access-control-allow-origin"] == SHOP
    assert {"GET", "POST", "PUT", "DELETE"} <= set(headers["access-control-allow-methods"].split(", "))
    allowed = set(headers["access-control-allow-headers"].split(", "))
    assert {"x-api-key", "content-type", "idempotency-key", "if-none-match"} <= allowed
    assert int(headers["access-control-max-age"]) > 0
    assert "access-control-allow-credentials" not in headers
    assert response.headers["vary"] == "origin"


async def test_a_call_from_a_listed_origin_may_be_read_also_when_it_fails(
    installation: Installation, key: MadeKey
) -> None:
    async with open_app(installation, ROUTES, SAPA_CORS_ORIGINS=SHOP) as client:
        good = await client.get("/customers", headers={"origin": SHOP, "x-api-key": key.raw})
        bad = await client.get("/customers", headers={"origin": SHOP})
    assert (good.status_code, bad.status_code) == (200, 401)
    for response in (good, bad):
        assert response.headers["access-control-allow-origin"] == SHOP
        exposed = set(response.headers["access-control-expose-headers"].split(", "))
        assert {"x-request-id", "etag", "ratelimit-remaining", "retry-after", "idempotency-replayed"} <= exposed
        assert response.headers["vary"] == "origin"


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "https://shop.example.evil", "http://shop.example", "HTTPS://SHOP.EXAMPLE", "null"],
)
async def test_another_origin_gets_no_grant(installation: Installation, key: MadeKey, origin: str) -> None:
    async with open_app(installation, ROUTES, SAPA_CORS_ORIGINS=SHOP) as client:
        responses = [
            await client.get("/customers", headers={"origin": origin, "x-api-key": key.raw}),
            await client.options("/customers", headers={"origin": origin, **PREFLIGHT}),
        ]
    assert [granted(response.headers) for response in responses] == [{}, {}]
    assert {response.headers["vary"] for response in responses} == {"origin"}


async def test_a_star_opens_the_api_to_every_origin(installation: Installation, key: MadeKey) -> None:
    async with open_app(installation, ROUTES, SAPA_CORS_ORIGINS="*") as client:
        response = await client.get("/customers", headers={"origin": "https://any.example", "x-api-key": key.raw})
    assert response.headers["access-control-allow-origin"] in {"*", "https://any.example"}
    assert "access-control-allow-credentials" not in response.headers


async def test_a_call_without_an_origin_is_no_browser_s(installation: Installation, key: MadeKey) -> None:
    async with open_app(installation, ROUTES, SAPA_CORS_ORIGINS=SHOP) as client:
        response = await client.get("/customers", headers={"x-api-key": key.raw})
    assert response.status_code == 200
    assert granted(response.headers) == {}
