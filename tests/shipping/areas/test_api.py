"""The coverage endpoints in the test environment, through the simulator's wire format."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from sapa.sandbox import areas
from tests.conftest import Installation, connect
from tests.factories import Environments, make_company, make_key

CHAIN = [("provinces", None), ("cities", "provinceId"), ("districts", "cityId"), ("sub-districts", "districtId")]


@pytest.fixture(scope="module")
async def sandbox(installation: Installation, database: Database) -> AsyncIterator[httpx.AsyncClient]:
    key = await make_key(database, (await make_company(database)).test)
    async with connect(installation, key.raw) as client:
        yield client


async def list_areas(client: httpx.AsyncClient, level: str, **params: Any) -> list[dict[str, Any]]:
    response = await client.get(f"/shipping/coverage/{level}", params=params)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]
    return found


def field_of(response: httpx.Response) -> str:
    assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR"), response.text
    return str(response.json()["error"]["details"][0]["field"])


async def test_the_chain_leads_from_the_provinces_to_every_sub_district(sandbox: httpx.AsyncClient) -> None:
    above: list[dict[str, Any]] = [{"id": None}]
    counts = []
    for level, parameter in CHAIN:
        found = []
        for parent in above:
            children = await list_areas(sandbox, level, **({parameter: parent["id"]} if parameter else {}))
            assert children, f"{parent} has places in it"
            assert {child["parentId"] for child in children} == {parent["id"]}
            assert [child["name"] for child in children] == sorted(child["name"] for child in children)
            found += children
        assert len({area["id"] for area in found}) == len(found)
        counts.append(len(found))
        above = found
    provinces, cities, districts, sub_districts = counts
    assert (provinces >= 5, cities >= 12, districts >= 30, sub_districts >= 60) == (True,) * 4
    assert all(isinstance(area["id"], int) and len(area["zip"]) == 5 for area in above)


async def test_ids_are_whole_numbers_and_entries_have_these_fields(sandbox: httpx.AsyncClient) -> None:
    menteng = await list_areas(sandbox, "sub-districts", districtId=317106, search="menteng")
    assert menteng == [{"id": 3171061001, "name": "Menteng", "parentId": 317106, "zip": "10310"}]


async def test_a_search_finds_parts_of_names_in_any_case(sandbox: httpx.AsyncClient) -> None:
    assert [area["name"] for area in await list_areas(sandbox, "provinces", search="jAWA b")] == ["Jawa Barat"]
    assert await list_areas(sandbox, "provinces", search="atlantis") == []


@pytest.mark.parametrize(("level", "parameter"), CHAIN[1:])
async def test_a_missing_parent_is_named(sandbox: httpx.AsyncClient, level: str, parameter: str) -> None:
    assert field_of(await sandbox.get(f"/shipping/coverage/{level}")) == parameter


@pytest.mark.parametrize(("level", "parameter"), CHAIN[1:])
async def test_an_unknown_parent_is_not_found(sandbox: httpx.AsyncClient, level: str, parameter: str) -> None:
    for parent in ("99", "9999", "999999", "0", "31-71", "abc", "9" * 60):
        response = await sandbox.get(f"/shipping/coverage/{level}", params={parameter: parent, "search": "x"})
        assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_a_parent_of_another_level_is_not_found(sandbox: httpx.AsyncClient) -> None:
    response = await sandbox.get("/shipping/coverage/sub-districts", params={"districtId": "3171"})
    assert response.status_code == 404


async def test_what_cannot_be_asked_is_refused_by_name(sandbox: httpx.AsyncClient) -> None:
    assert field_of(await sandbox.get("/shipping/coverage/provinces", params={"provider": "pigeon"})) == "provider"
    assert field_of(await sandbox.get("/shipping/coverage/provinces", params={"provinceId": "31"})) == "provinceId"


async def test_the_electric_couriers_cities_need_no_province(sandbox: httpx.AsyncClient) -> None:
    cities = await list_areas(sandbox, "cities", provider="ev_courier")
    assert {area["name"] for area in cities} == {place.name for place in areas.list_pickup_cities()}


async def test_a_live_company_without_a_carrier_gets_an_error_that_says_how_to_connect_one(
    api: httpx.AsyncClient,
) -> None:
    for level, params in (("provinces", {}), ("districts", {"cityId": "1"}), ("cities", {"provider": "ev_courier"})):
        response = await api.get(f"/shipping/coverage/{level}", params=params)
        assert (response.status_code, response.json()["error"]["code"]) == (409, "PROVIDER_NOT_CONNECTED")
        assert "/console/live/carriers/" in response.json()["error"]["message"]


async def test_a_key_without_the_product_is_refused(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.test, products=[])
    async with connect(installation, key.raw) as client:
        response = await client.get("/shipping/coverage/provinces")
    assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHORIZED")
