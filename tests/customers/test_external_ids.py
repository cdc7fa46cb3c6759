import asyncio
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.conftest import Installation, connect
from tests.customers.test_api import EVERYTHING, refusal
from tests.customers.test_updates import count_events
from tests.factories import Environments, make_customer, make_key

ALL_BUT_ID = {name: value for name, value in EVERYTHING.items() if name != "externalId"}


async def upsert(api: httpx.AsyncClient, external_id: str, **fields: Any) -> httpx.Response:
    return await api.put(f"/customers/by-external-id/{external_id}", json=fields)


async def test_the_first_call_creates_and_the_second_updates(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    first = await upsert(api, "shop-1042", **ALL_BUT_ID)
    assert first.status_code == 201
    made = first.json()["data"]
    assert made["externalId"] == "shop-1042"
    assert (await api.get(f"/customers/{made['id']}")).json()["data"] == made
    second = await upsert(api, "shop-1042", firstName="Budi", tags=None)
    assert second.status_code == 200
    changed = second.json()["data"]
    assert changed == {**made, "firstName": "Budi", "tags": [], "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > made["updatedAt"]
    assert await count_events(database, company, made["id"]) == 2


async def test_the_same_call_again_changes_nothing(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    made = (await upsert(api, "shop-1", **ALL_BUT_ID)).json()["data"]
    again = await upsert(api, "shop-1", **ALL_BUT_ID)
    assert (again.status_code, again.json()["data"]) == (200, made)
    assert await count_events(database, company, made["id"]) == 1


async def test_a_customer_that_was_posted_is_found_by_its_external_id(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, externalId="shop-7")
    response = await upsert(api, "shop-7", firstName="Ayu")
    assert (response.status_code, response.json()["data"]["id"]) == (200, made["id"])


@pytest.mark.parametrize("body", [{}, {"firstName": "Ayu"}, {"email": None}])
async def test_a_new_customer_must_be_reachable(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    refusal(await upsert(api, "shop-1", **body), 400, "VALIDATION_ERROR")
    assert (await api.get("/customers")).json()["meta"]["total"] == 0


async def test_a_taken_email_is_a_conflict_for_a_new_and_for_an_existing_customer(api: httpx.AsyncClient) -> None:
    other = await make_customer(api, email="taken@example.com")
    for made_before in (False, True):
        if made_before:
            await upsert(api, "shop-1", email="mine@example.com")
        error = refusal(await upsert(api, "shop-1", email="TAKEN@example.com"), 409, "CUSTOMER_EXISTS")
        assert [(detail["field"], detail["id"]) for detail in error["details"]] == [("email", other["id"])]


@pytest.mark.parametrize("id", ["a", "7", "a b", "ü/€?#%", "日本", ".", "..", "x" * 255, "by-external-id", "null"])
async def test_any_text_may_be_an_external_id(api: httpx.AsyncClient, id: str) -> None:
    encoded = "".join(f"%{byte:02X}" for byte in id.encode())
    response = await api.put(
        httpx.URL(f"{api.base_url}customers/by-external-id/{encoded}"), json={"email": "a@example.com"}
    )
    assert response.status_code == 201, response.text
    assert response.json()["data"]["externalId"] == id


async def test_an_external_id_that_is_too_long_is_refused(api: httpx.AsyncClient) -> None:
    error = refusal(await upsert(api, "x" * 256, email="a@example.com"), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "externalId"
    body = {"email": "a@example.com", "externalId": "x" * 256}
    refusal(await api.post("/customers", json=body), 400, "VALIDATION_ERROR")


async def test_the_external_id_cannot_also_be_in_the_body(api: httpx.AsyncClient) -> None:
    error = refusal(await upsert(api, "shop-1", email="a@example.com", externalId="shop-1"), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "externalId"


@pytest.mark.parametrize(
    "same",
    [{"email": "race@example.com"}, {"phoneNumber": "08123456789"}, ALL_BUT_ID],
    ids=["email", "phone", "everything"],
)
async def test_twenty_first_calls_at_once_make_one_customer(
    installation: Installation, database: Database, company: Environments, same: dict[str, Any]
) -> None:
    key = await make_key(database, company.live)
    clients = [connect(installation, key.raw) for _ in range(20)]
    try:
        await asyncio.gather(*(client.get("/customers") for client in clients))
        responses = await asyncio.gather(*(upsert(client, "shop-1", **same) for client in clients))
        statuses = sorted(response.status_code for response in responses)
        assert statuses == [200] * 19 + [201], [response.text for response in responses if response.status_code > 201]
        assert len({response.json()["data"]["id"] for response in responses}) == 1
        listed = (await clients[0].get("/customers")).json()
        assert listed["meta"]["total"] == len(listed["data"]) == 1
        assert await count_events(database, company, listed["data"][0]["id"]) == 1
    finally:
        await asyncio.gather(*(client.aclose() for client in clients))


async def test_twenty_first_calls_at_once_with_different_values_make_one_customer(
    installation: Installation, database: Database, company: Environments
) -> None:
    key = await make_key(database, company.live)
    async with connect(installation, key.raw) as api:
        calls = (upsert(api, "shop-1", email=f"race-{n}@example.com", firstName=str(n)) for n in range(20))
        responses = await asyncio.gather(*calls)
        assert sorted(response.status_code for response in responses) == [200] * 19 + [201]
        (customer,) = (await api.get("/customers")).json()["data"]
        assert customer["email"] == f"race-{customer['firstName']}@example.com"
        assert await count_events(database, company, customer["id"]) == 20


async def test_an_upsert_can_race_with_a_delete(api: httpx.AsyncClient) -> None:
    for number in range(5):
        made = (await upsert(api, "shop-1", email=f"a{number}@example.com")).json()["data"]
        responses = await asyncio.gather(
            api.delete(f"/customers/{made['id']}"), *(upsert(api, "shop-1", email="z@example.com") for _ in range(4))
        )
        assert responses[0].status_code == 204
        assert {response.status_code for response in responses[1:]} <= {200, 201}, [
            response.text for response in responses[1:]
        ]
        listed = (await api.get("/customers")).json()
        assert listed["meta"]["total"] == len(listed["data"])
        for customer in listed["data"]:
            await api.delete(f"/customers/{customer['id']}")
