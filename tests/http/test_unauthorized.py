"""Shipping answers UNAUTHORIZED whatever is wrong with a key; played by a probe until shipping comes."""

from collections.abc import AsyncIterator

import httpx
import pytest

from sapa.db.pool import Database
from sapa.http.keys import new_key
from tests.conftest import Installation
from tests.factories import Environments, make_key
from tests.http.probe import SHIPMENT_ID, Stage, build_probe, build_shipping, open_app

SHIPMENT = f"/shipping/shipments/{SHIPMENT_ID.example}"


@pytest.fixture
async def client(installation: Installation) -> AsyncIterator[httpx.AsyncClient]:
    async with open_app(installation, [build_probe(Stage()), build_shipping()]) as client:
        yield client


async def key_with(database: Database, company: Environments, scopes: list[str], products: list[str]) -> str:
    return (await make_key(database, company.live, scopes=scopes, products=products)).raw


def said(response: httpx.Response) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["code"], error["message"]


async def test_a_key_with_product_and_scope_is_served(
    client: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    key = await key_with(database, company, ["orders:READ"], ["CRM"])
    response = await client.get(SHIPMENT, headers={"x-api-key": key})
    assert response.json() == {"data": {"name": SHIPMENT_ID.example}}


@pytest.mark.parametrize("path", [SHIPMENT, "/shipping/nowhere", "/shipping/", "/shipping/shipments/unknown"])
async def test_a_missing_or_invalid_key_is_unauthorized_on_every_shipping_path(
    client: httpx.AsyncClient, path: str
) -> None:
    missing = await client.get(path)
    assert said(missing) == (401, "UNAUTHORIZED", "Send your API key in the header x-api-key.")
    for raw in ("nonsense", new_key("live")):
        invalid = await client.get(path, headers={"x-api-key": raw})
        assert said(invalid) == (401, "UNAUTHORIZED", "The API key is invalid, revoked or expired.")


async def test_lacking_the_product_or_the_scope_is_unauthorized_and_says_which(
    client: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    no_product = await key_with(database, company, ["orders:READ"], [])
    no_scope = await key_with(database, company, ["orders:WRITE", "customers:READ"], ["CRM"])
    responses = [await client.get(SHIPMENT, headers={"x-api-key": key}) for key in (no_product, no_scope)]
    assert [said(response) for response in responses] == [
        (401, "UNAUTHORIZED", "The API key lacks the product CRM."),
        (401, "UNAUTHORIZED", "The API key lacks the scope orders:READ."),
    ]


async def test_other_refusals_on_shipping_paths_keep_their_codes(
    client: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    key = await key_with(database, company, ["orders:READ"], ["CRM"])
    headers = {"x-api-key": key}
    assert said(await client.get("/shipping/nowhere", headers=headers))[:2] == (404, "NOT_FOUND")
    assert said(await client.get("/shipping/shipments/unknown", headers=headers))[:2] == (404, "NOT_FOUND")
    assert said(await client.put(SHIPMENT, headers=headers))[:2] == (405, "METHOD_NOT_ALLOWED")
    assert said(await client.get(f"{SHIPMENT}?x=1", headers=headers))[:2] == (400, "VALIDATION_ERROR")
    elsewhere = await make_key(database, company.live, allow_list=["203.0.113.7"])
    refused = await client.get(SHIPMENT, headers={"x-api-key": elsewhere.raw})
    assert said(refused)[:2] == (403, "IP_NOT_ALLOWED")


async def test_other_domains_are_not_touched_by_it(
    client: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    assert said(await client.get("/probe/things"))[1] == "MISSING_API_KEY"
    assert said(await client.get("/shippings"))[1] == "MISSING_API_KEY"
    assert said(await client.get("/probe/things", headers={"x-api-key": "x"}))[1] == "INVALID_API_KEY"
    key = await key_with(database, company, [], [])
    assert said(await client.get("/probe/things", headers={"x-api-key": key}))[1] == "INSUFFICIENT_SCOPE"


async def test_a_product_is_not_needed_elsewhere(
    client: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    key = await key_with(database, company, ["orders:READ"], [])
    assert (await client.get("/probe/things", headers={"x-api-key": key})).status_code == 200
