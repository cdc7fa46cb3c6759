import asyncio
import json
from typing import Any

import httpx
import pytest

from sapa.customers import actions
from sapa.customers.types import CustomerPatch
from sapa.db.pool import Database
from sapa.values.company import Company
from tests.conftest import Installation, connect
from tests.customers.test_api import EVERYTHING, refusal
from tests.factories import Environments, make_customer, make_key


async def count_events(database: Database, company: Environments, id: str) -> int:
    async with database.connection() as db:
        count: int = await db.fetchval(
            "SELECT count(*) FROM events WHERE company_id = $1 AND resource_id = $2", company.live, id
        )
    return count


async def put(api: httpx.AsyncClient, id: str, **fields: Any) -> dict[str, Any]:
    response = await api.put(f"/customers/{id}", json=fields)
    assert response.status_code == 200, response.text
    changed: dict[str, Any] = response.json()["data"]
    assert (await api.get(f"/customers/{id}")).json()["data"] == changed
    return changed


@pytest.fixture
async def customer(api: httpx.AsyncClient) -> dict[str, Any]:
    return await make_customer(api, **EVERYTHING)


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("email", "New@Example.com", "New@example.com"),
        ("phoneNumber", "0813 1111 222", "+628131111222"),
        ("firstName", "Budi", "Budi"),
        ("lastName", "", ""),
        ("imageUrl", "https://example.com/b.png", "https://example.com/b.png"),
        ("tags", ["new", "new"], ["new"]),
        ("additionalData", {"b": 1}, {"b": 1}),
        ("subscriptionStatus", [{"app": "CRM", "status": "unsubscribe"}], [{"app": "CRM", "status": "unsubscribe"}]),
        ("email", None, None),
        ("phoneNumber", None, None),
        ("firstName", None, None),
        ("lastName", None, None),
        ("imageUrl", None, None),
        ("imageUrl", "", ""),
        ("imageUrl", "HTTP://example.com", "HTTP://example.com"),
        ("tags", None, []),
        ("tags", [], []),
        ("addresses", None, []),
        ("addresses", [], []),
        ("additionalData", None, {}),
        ("additionalData", {}, {}),
    ],
)
async def test_a_sent_field_changes_and_absent_ones_stay(
    api: httpx.AsyncClient,
    database: Database,
    company: Environments,
    customer: dict[str, Any],
    field: str,
    value: Any,
    stored: Any,
) -> None:
    changed = await put(api, customer["id"], **{field: value})
    assert changed == {**customer, field: stored, "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > customer["updatedAt"]
    assert await count_events(database, company, customer["id"]) == 2


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"email": "Ayu.Lestari@EXAMPLE.com"},
        {"email": " Ayu.Lestari@example.com "},
        {"phoneNumber": "+62 812-3456-789"},
        {"phoneNumber": "62 8123456789"},
        {"firstName": "Ayu", "lastName": "Lestari", "imageUrl": "https://example.com/ayu.png"},
        {"tags": ["vip", "jakarta"]},
        {"tags": ["vip", " jakarta", "vip"]},
        {"additionalData": {"card": "A-17", "visits": 12, "score": 0.5}},
        {"additionalData": {"card": "A-17", "visits": 12.0, "score": 5e-1}},
        {"additionalData": {"score": 0.5, "visits": 12, "card": "A-17"}},
        {"subscriptionStatus": [{"status": "subscribe", "app": "CRM"}]},
        {"subscriptionStatus": []},
        {"subscriptionStatus": None},
        {"addresses": EVERYTHING["addresses"]},
        {"addresses": [{**EVERYTHING["addresses"][0], "mainAddress": False}]},
    ],
    ids=str,
)
async def test_a_put_that_changes_nothing_announces_nothing_and_keeps_the_time(
    api: httpx.AsyncClient, database: Database, company: Environments, customer: dict[str, Any], same: dict[str, Any]
) -> None:
    assert await put(api, customer["id"], **same) == customer
    assert await count_events(database, company, customer["id"]) == 1


async def test_putting_a_customer_as_it_was_read_changes_nothing(
    api: httpx.AsyncClient, database: Database, company: Environments, customer: dict[str, Any]
) -> None:
    read_only = {"id", "externalId", "createdAt", "updatedAt"}
    writable = {name: value for name, value in customer.items() if name not in read_only}
    assert await put(api, customer["id"], **writable) == customer
    assert await count_events(database, company, customer["id"]) == 1


async def test_the_case_of_an_email_may_be_changed(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, email="ayu@example.com")
    assert (await put(api, made["id"], email="AYU@example.com"))["email"] == "AYU@example.com"


@pytest.mark.parametrize("cleared", [{"email": None, "phoneNumber": None}, {"email": None}, {"phoneNumber": None}])
async def test_the_last_way_to_reach_a_customer_cannot_be_cleared(
    api: httpx.AsyncClient, cleared: dict[str, Any]
) -> None:
    fields = {"email": "ayu@example.com"} if "email" in cleared else {"email": None, "phoneNumber": "0812 3456 789"}
    made = await make_customer(api, **fields)
    error = refusal(await api.put(f"/customers/{made['id']}", json=cleared), 400, "VALIDATION_ERROR")
    assert "phoneNumber" in error["message"]
    assert (await api.get(f"/customers/{made['id']}")).json()["data"] == made


@pytest.mark.parametrize(("field", "value"), [("email", "TAKEN@example.com"), ("phoneNumber", "+62 8123456789")])
async def test_another_customers_email_and_phone_are_taken(api: httpx.AsyncClient, field: str, value: str) -> None:
    other = await make_customer(api, email="taken@example.com", phoneNumber="08123456789")
    made = await make_customer(api, firstName="Budi")
    body = {field: value, "firstName": "Changed"}
    error = refusal(await api.put(f"/customers/{made['id']}", json=body), 409, "CUSTOMER_EXISTS")
    assert error["details"] == [{"field": field, "message": "belongs to an existing customer", "id": other["id"]}]
    assert (await api.get(f"/customers/{made['id']}")).json()["data"] == made


@pytest.mark.parametrize("field", ["externalId", "id", "createdAt", "updatedAt", "unknown"])
async def test_a_field_that_cannot_be_changed_is_refused(
    api: httpx.AsyncClient, customer: dict[str, Any], field: str
) -> None:
    response = await api.put(f"/customers/{customer['id']}", json={field: "x"})
    assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == field


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "JavaScript://x/%0aalert(1)", "data:text/html,x", " https://x", "//x", "/x", "http://"],
)
async def test_a_picture_has_a_web_address(api: httpx.AsyncClient, customer: dict[str, Any], url: str) -> None:
    new = {"email": "budi@example.com", "imageUrl": url}
    for response in (
        await api.post("/customers", json=new),
        await api.put(f"/customers/{customer['id']}", json={"imageUrl": url}),
    ):
        (problem,) = refusal(response, 400, "VALIDATION_ERROR")["details"]
        assert problem == {"field": "imageUrl", "message": "must be a URL that starts with https:// or http://"}


@pytest.mark.parametrize("email", ["ayu@localhost", "ayu@test"])
async def test_an_email_without_a_dot_in_its_domain_is_refused(
    api: httpx.AsyncClient, customer: dict[str, Any], email: str
) -> None:
    for response in (
        await api.post("/customers", json={"email": email}),
        await api.put(f"/customers/{customer['id']}", json={"email": email}),
    ):
        (problem,) = refusal(response, 400, "VALIDATION_ERROR")["details"]
        assert problem["field"] == "email"
        assert "no dot" in problem["message"]


async def test_concurrent_changes_of_different_fields_all_arrive(
    api: httpx.AsyncClient, database: Database, company: Environments, customer: dict[str, Any]
) -> None:
    new: dict[str, Any] = {
        "firstName": "F",
        "lastName": "L",
        "tags": ["t"],
        "imageUrl": "https://example.com/u",
        "additionalData": {"n": 1},
    }
    changes = [{name: value} for name, value in new.items()]
    responses = await asyncio.gather(*(api.put(f"/customers/{customer['id']}", json=change) for change in changes))
    assert [response.status_code for response in responses] == [200] * len(changes)
    now = (await api.get(f"/customers/{customer['id']}")).json()["data"]
    assert {name: now[name] for name in new} == new
    assert await count_events(database, company, customer["id"]) == 1 + len(changes)


async def test_a_change_waits_for_one_under_way_and_keeps_what_that_one_did(
    api: httpx.AsyncClient, database: Database, company: Environments, customer: dict[str, Any]
) -> None:
    owner = Company(company.live, "live", "ID", "IDR")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%customers%'"
    async with database.connection() as onlooker:
        async with database.transaction() as tx:
            await actions.update(tx, owner, customer["id"], CustomerPatch(first_name="First"))
            second = asyncio.create_task(put(api, customer["id"], lastName="Second"))
            while not await onlooker.fetchval(waiting):
                assert not second.done()
        changed = await second
    assert (changed["firstName"], changed["lastName"]) == ("First", "Second")


async def test_addresses_keep_their_ids_by_id_and_by_content(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, addresses=[{"address1": "A"}, {"address1": "B", "city": "Bandung"}])
    a, b = made["addresses"]
    changed = await put(
        api,
        made["id"],
        addresses=[
            {"address1": "B", "city": "Bandung"},
            {"id": a["id"], "address1": "A renamed"},
            {"address1": "New"},
        ],
    )
    first, second, third = changed["addresses"]
    assert (first["id"], second["id"]) == (b["id"], a["id"])
    assert second["address1"] == "A renamed"
    assert third["id"] not in {a["id"], b["id"]}
    assert [address["mainAddress"] for address in changed["addresses"]] == [True, False, False]


async def test_an_id_match_wins_over_an_earlier_content_match(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, addresses=[{"address1": "A"}])
    (existing,) = made["addresses"]
    changed = await put(api, made["id"], addresses=[{"address1": "A"}, {"id": existing["id"], "address1": "B"}])
    assert changed["addresses"][1]["id"] == existing["id"]
    assert changed["addresses"][0]["id"] != existing["id"]


async def test_equal_addresses_have_ids_of_their_own(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, addresses=[{"address1": "A"}, {"address1": "A"}])
    ids = [address["id"] for address in made["addresses"]]
    assert len(set(ids)) == 2
    changed = await put(api, made["id"], addresses=[{"address1": "A"}, {"address1": "A"}])
    assert [address["id"] for address in changed["addresses"]] == ids


async def test_one_address_is_the_main_one_and_it_can_be_moved(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, addresses=[{"address1": "A"}, {"address1": "B", "mainAddress": True}])
    assert [address["mainAddress"] for address in made["addresses"]] == [False, True]
    a, b = made["addresses"]
    moved = await put(api, made["id"], addresses=[{**a, "mainAddress": True}, {**b, "mainAddress": False}])
    assert [address["mainAddress"] for address in moved["addresses"]] == [True, False]
    both = [{"address1": "A", "mainAddress": True}, {"address1": "B", "mainAddress": True}]
    error = refusal(await api.put(f"/customers/{made['id']}", json={"addresses": both}), 400, "VALIDATION_ERROR")
    assert error["details"][0]["field"] == "addresses[1].mainAddress"


async def test_an_unknown_foreign_or_repeated_address_id_is_refused(api: httpx.AsyncClient) -> None:
    other = await make_customer(api, addresses=[{"address1": "A"}])
    made = await make_customer(api, addresses=[{"address1": "A"}])
    mine, theirs = made["addresses"][0]["id"], other["addresses"][0]["id"]
    for ids in (["addr_unknown"], [""], [theirs], [mine, mine]):
        addresses = [{"id": id, "address1": "A"} for id in ids]
        response = await api.put(f"/customers/{made['id']}", json={"addresses": addresses})
        assert refusal(response, 400, "VALIDATION_ERROR")["details"][0]["field"] == f"addresses[{len(ids) - 1}].id"
    body = {"email": "new@example.com", "addresses": [{"id": mine, "address1": "A"}]}
    refusal(await api.post("/customers", json=body), 400, "VALIDATION_ERROR")


async def test_the_time_of_the_last_change_never_goes_back(
    installation: Installation, database: Database, company: Environments, customer: dict[str, Any]
) -> None:
    """Whatever the order of concurrent calls, the last change is the newest."""
    key = await make_key(database, company.live)
    clients = [connect(installation, key.raw) for _ in range(10)]
    path = f"/customers/{customer['id']}"
    try:
        for round_ in range(5):
            changes = [client.put(path, json={"firstName": f"{round_} {n}"}) for n, client in enumerate(clients)]
            changed = [response.json()["data"] for response in await asyncio.gather(*changes)]
            last = (await clients[0].get(path)).json()["data"]
            assert last["updatedAt"] == max(one["updatedAt"] for one in changed)
    finally:
        await asyncio.gather(*(client.aclose() for client in clients))
    async with database.connection() as db:
        rows = await db.fetch("SELECT created_at, body FROM events WHERE company_id = $1", company.live)
    announced = sorted((row["created_at"], json.loads(row["body"])["updatedAt"]) for row in rows)
    assert [updated for _, updated in announced] == sorted(updated for _, updated in announced)
