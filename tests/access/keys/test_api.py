"""Keys that a program manages: shown once, never with more rights than its own, revoked for everybody."""

import asyncio
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapa.access.keys.rights import is_within
from sapa.access.types import DATA_SCOPES, Scope
from sapa.db.pool import Database
from sapa.http.allow_list import AllowList
from tests.cli.command import sapa
from tests.conftest import Installation, connect
from tests.factories import Environments, MadeKey, make_company, make_key
from tests.http.wire import eventually

MANAGEMENT = sorted({*Scope} - {*DATA_SCOPES})


async def create(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post("/api-keys", json={"name": "shop", "scopes": ["orders:READ"], **fields})


async def total(client: httpx.AsyncClient) -> int:
    number: int = (await client.get("/api-keys")).json()["meta"]["total"]
    return number


async def wait_until_locked(database: Database) -> None:
    """Until a call waits for a key that the test's transaction has changed."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%api_keys k %'"

    async def is_waiting() -> bool | None:
        async with database.connection() as db:  # within a transaction the view would not change
            return bool(await db.fetchval(waiting)) or None

    await eventually(is_waiting)


@pytest.mark.smoke
async def test_a_new_key_works_and_its_value_is_shown_once(
    installation: Installation, api: httpx.AsyncClient, company: Environments
) -> None:
    created = await create(api, products=["CRM"], rateLimit=7, expiresAt="2999-01-31T09:30:00+07:00")
    assert created.status_code == 201
    key = created.json()["data"]
    assert {name: key[name] for name in ("companyId", "environment", "name", "scopes", "products", "rateLimit")} == {
        "companyId": company.live,
        "environment": "live",
        "name": "shop",
        "scopes": ["orders:READ"],
        "products": ["CRM"],
        "rateLimit": 7,
    }
    assert key["expiresAt"] == "2999-01-31T02:30:00.000Z"
    async with connect(installation, key["key"]) as shop:
        assert (await shop.get("/orders")).status_code == 200
        assert (await shop.get("/customers")).json()["error"]["code"] == "INSUFFICIENT_SCOPE"
    raw = key.pop("key")
    assert key["lastFour"] == raw[-4:]

    async def find_used() -> Any:
        found = (await api.get(f"/api-keys/{key['id']}")).json()["data"]
        return found if found["lastUsedAt"] else None

    used = await eventually(find_used)
    assert used | {"lastUsedAt": None, "lastUsedIp": None} == key
    listed = await api.get("/api-keys")
    assert listed.json()["data"][0]["id"] == key["id"], "the newest first"
    assert raw not in listed.text


async def test_a_retry_gets_the_key_without_its_value_which_is_stored_nowhere(
    api: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    once = {"idempotency-key": "shop"}
    body = {"name": "shop", "scopes": ["orders:READ"]}
    first = await api.post("/api-keys", json=body, headers=once)
    retry = await api.post("/api-keys", json=body, headers=once)
    assert (retry.status_code, retry.headers["idempotency-replayed"]) == (201, "true")
    assert retry.json()["data"] == first.json()["data"] | {"key": None}
    async with database.connection() as db:
        stored = await db.fetchval("SELECT body FROM idempotency_records WHERE company_id = $1", company.live)
    assert first.json()["data"]["key"][9:] not in stored.decode()
    assert await total(api) == 2


async def test_what_a_new_key_is_not_given_it_has_from_its_maker(
    installation: Installation, database: Database, company: Environments
) -> None:
    maker = await make_key(
        database, company.live, scopes=["keys:WRITE", "keys:READ", "orders:READ"], allow_list=["127.0.0.0/8", "::1"],
        rate_limit=60, expires_at="2999-01-31T00:00:00Z",
    )  # fmt: skip
    async with connect(installation, maker.raw) as client:
        key = (await create(client)).json()["data"]
    assert (key["allowList"], key["rateLimit"], key["expiresAt"], key["products"]) == (
        ["127.0.0.0/8", "::1/128"],
        60,
        "2999-01-31T00:00:00.000Z",
        [],
    )


async def test_a_key_of_a_high_limit_makes_keys_of_the_usual_one(api: httpx.AsyncClient) -> None:
    key = (await create(api)).json()["data"]
    assert (key["rateLimit"], key["allowList"], key["expiresAt"]) == (100, [], None)


async def test_an_end_without_an_offset_is_refused(api: httpx.AsyncClient) -> None:
    body = {"name": "shop", "scopes": ["orders:READ"], "expiresAt": "2999-01-31T00:00:00"}
    refused = await api.post("/api-keys", json=body)
    assert (refused.status_code, refused.json()["error"]["details"][0]["field"]) == (400, "expiresAt")


async def test_an_unknown_scope_is_answered_with_those_that_there_are(api: httpx.AsyncClient) -> None:
    refused = await api.post("/api-keys", json={"name": "shop", "scopes": ["orders:EAT"]})
    assert refused.json()["error"]["message"].startswith("scopes[0]: must be one of customers:READ, customers:WRITE, ")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scopes": ["orders:READ", "orders:WRITE"]}, "Your key lacks the scope orders:WRITE."),
        ({"scopes": ["keys:DELETE"]}, "Your key lacks the scope keys:DELETE."),
        ({"products": ["CRM"]}, "Your key lacks the product CRM."),
        ({"allowList": []}, "Your key may be used from 127.0.0.0/8 only. Give a list within that."),
        ({"allowList": ["127.0.0.1", "10.0.0.1"]}, "Your key may be used from 127.0.0.0/8 only."),
        ({"allowList": ["::1"]}, "Your key may be used from 127.0.0.0/8 only."),
        ({"rateLimit": 61}, "Your key may make 60 calls a minute. Give at most that."),
        ({"expiresAt": None}, "Your key works until 2999-01-31T00:00:00.000Z. Give an earlier end."),
        ({"expiresAt": "2999-01-31T00:00:00.001Z"}, "Your key works until 2999-01-31T00:00:00.000Z."),
    ],
)
async def test_a_key_cannot_make_a_key_of_more_rights(
    installation: Installation, database: Database, company: Environments, fields: dict[str, Any], message: str
) -> None:
    maker = await make_key(
        database, company.live, scopes=["keys:WRITE", "keys:READ", "orders:READ"], products=[],
        allow_list=["127.0.0.0/8"], rate_limit=60, expires_at="2999-01-31T00:00:00Z",
    )  # fmt: skip
    async with connect(installation, maker.raw) as client:
        refused = await create(client, **fields)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS")
        assert refused.json()["error"]["message"].startswith(message)
        assert await total(client) == 1, "nothing was stored"
        smaller = {"allowList": ["127.0.0.1"], "rateLimit": 59, "expiresAt": "2998-01-31T00:00:00Z"}
        assert (await create(client, **smaller)).status_code == 201


async def test_a_key_is_closed_to_agents_and_only_an_open_one_opens_it_again(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    maker = await make_key(database, company.live, scopes=["keys:WRITE", "keys:READ", "orders:READ"], products=[])
    async with connect(installation, maker.raw) as client:
        key = (await create(client)).json()["data"]
        assert key["allowsMcp"] is True
        closed = await client.put(f"/api-keys/{key['id']}", json={"allowsMcp": False})
        assert (closed.status_code, closed.json()["data"]["allowsMcp"]) == (200, False)
        assert (await client.put(f"/api-keys/{key['id']}", json={})).json()["data"]["allowsMcp"] is False
        await api.put(f"/api-keys/{maker.id}", json={"allowsMcp": False})
        refused = await client.put(f"/api-keys/{key['id']}", json={"allowsMcp": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS")
        assert (await create(client)).json()["data"]["allowsMcp"] is False, "what it is not given it has from its maker"
        assert (await create(client, allowsMcp=True)).json()["error"]["code"] == "BEYOND_OWN_RIGHTS"
    other = await make_key(database, company.live, scopes=["keys:WRITE", "keys:READ"], products=[])
    async with connect(installation, other.raw) as client:
        refused = await client.put(f"/api-keys/{key['id']}", json={"allowsMcp": True})
        assert refused.json()["error"]["message"].startswith("Your key lacks the scope orders:READ.")
    assert (await api.get(f"/api-keys/{key['id']}")).json()["data"]["allowsMcp"] is False
    opened = await api.put(f"/api-keys/{key['id']}", json={"allowsMcp": True})
    assert opened.json()["data"]["allowsMcp"] is True


async def test_a_keys_rights_change_within_those_of_the_caller(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    maker = await make_key(database, company.live, scopes=["keys:WRITE", "keys:READ", "orders:READ"], products=[])
    async with connect(installation, maker.raw) as client:
        key = (await create(client)).json()["data"]
        path = f"/api-keys/{key['id']}"
        changed = (await client.put(path, json={"name": "ERP", "allowList": ["10.0.0.0/8"], "rateLimit": 7})).json()[
            "data"
        ]
        assert (changed["name"], changed["allowList"], changed["rateLimit"]) == ("ERP", ["10.0.0.0/8"], 7)
        assert changed["scopes"] == key["scopes"]
        refused = await client.put(path, json={"scopes": ["customers:READ"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS")
        assert (await api.get(path)).json()["data"]["scopes"] == key["scopes"]
        widened = await api.put(path, json={"scopes": ["customers:READ", "orders:READ"]})
        assert widened.json()["data"]["scopes"] == ["customers:READ", "orders:READ"]
        refused = await client.put(path, json={"scopes": ["orders:READ"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS"), (
            "weakens a stronger"
        )
        assert (await api.get(path)).json()["data"]["scopes"] == ["customers:READ", "orders:READ"]
    await api.delete(path)
    assert (await api.put(path, json={"name": "late"})).json()["error"]["code"] == "KEY_NOT_ACTIVE"


async def test_a_key_rotates_itself_and_lesser_keys_but_never_a_stronger_one(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    maker = await make_key(database, company.live, scopes=["keys:WRITE", "orders:READ"], products=[])
    lesser = (await create(api)).json()["data"]
    (strongest,) = [key for key in (await api.get("/api-keys")).json()["data"] if "keys:DELETE" in key["scopes"]]
    async with connect(installation, maker.raw) as client:
        refused = await client.post(f"/api-keys/{strongest['id']}/rotate")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS")
        rotated = (await client.post(f"/api-keys/{lesser['id']}/rotate")).json()["data"]
        assert (await client.post(f"/api-keys/{lesser['id']}/rotate")).json()["error"]["code"] == "KEY_NOT_ACTIVE"
        own = await client.post(f"/api-keys/{maker.id}/rotate")
        assert own.status_code == 200
        assert own.json()["data"]["scopes"] == ["orders:READ", "keys:WRITE"]
    old = (await api.get(f"/api-keys/{lesser['id']}")).json()["data"]
    assert old["replacedBy"] == rotated["id"]
    assert (await api.get(f"/api-keys/{strongest['id']}")).json()["data"]["replacedBy"] is None
    for raw, is_old in ((lesser["key"], True), (rotated["key"], False)):
        async with connect(installation, raw) as client:
            response = await client.get("/orders")
        assert (response.status_code, "sunset" in response.headers) == (200, is_old)


async def test_a_revoked_key_stops_and_stays_listed(installation: Installation, api: httpx.AsyncClient) -> None:
    key = (await create(api)).json()["data"]
    for _ in range(2):
        assert (await api.delete(f"/api-keys/{key['id']}")).status_code == 204

    async with connect(installation, key["key"]) as shop:

        async def is_refused() -> bool | None:
            return (await shop.get("/orders")).status_code == 401 or None

        await eventually(is_refused)
    assert (await api.get(f"/api-keys/{key['id']}")).json()["data"]["status"] == "revoked"
    revoked = (await api.get("/api-keys", params={"status": "revoked"})).json()
    assert ([one["id"] for one in revoked["data"]], revoked["meta"]["total"]) == ([key["id"]], 1)
    assert key["id"] not in (await api.get("/api-keys", params={"status": "active"})).text


REVOKED = "status = 'revoked'"


@pytest.mark.parametrize(
    ("end", "method", "path", "body"),
    [
        (REVOKED, "POST", "", {"name": "late", "scopes": ["orders:READ"]}),
        ("expires_at = now() - interval '1 second'", "POST", "", {"name": "late", "scopes": ["orders:READ"]}),
        (REVOKED, "POST", "/{lesser}/rotate", None),
        (REVOKED, "POST", "/{maker}/rotate", None),
        (REVOKED, "PUT", "/{lesser}", {"allowsMcp": False}),
    ],
)
async def test_a_key_that_ends_while_its_call_runs_changes_no_key(
    installation: Installation,
    database: Database,
    company: Environments,
    api: httpx.AsyncClient,
    end: str,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> None:
    """The server knows a key for up to a second. What it made then would outlive it."""
    maker = await make_key(database, company.live, scopes=["keys:WRITE", "orders:READ"], products=[])
    lesser = (await create(api)).json()["data"]
    before = await total(api)
    async with connect(installation, maker.raw) as client:
        async with database.transaction() as tx:
            await tx.execute(f"UPDATE api_keys SET {end} WHERE id = $1", maker.id)
            address = "/api-keys" + path.format(maker=maker.id, lesser=lesser["id"])
            call = asyncio.create_task(client.request(method, address, json=body))
            await wait_until_locked(database)
        refused = await call
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "INVALID_API_KEY")
    assert await total(api) == before
    left = (await api.get(f"/api-keys/{lesser['id']}")).json()["data"]
    assert (left["replacedBy"], left["allowsMcp"]) == (None, True)


async def test_a_key_that_is_closed_to_agents_while_its_call_runs_opens_none(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    maker = await make_key(database, company.live, scopes=["keys:WRITE", "orders:READ"], products=[])
    async with connect(installation, maker.raw) as client:
        async with database.transaction() as tx:
            await tx.execute("UPDATE api_keys SET allows_mcp = false WHERE id = $1", maker.id)
            call = asyncio.create_task(create(client, allowsMcp=True))
            await wait_until_locked(database)
        refused = await call
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "BEYOND_OWN_RIGHTS")


async def test_keys_that_rotate_each_other_at_once_both_get_an_answer(
    installation: Installation, database: Database, company: Environments
) -> None:
    made = [await make_key(database, company.live, scopes=["keys:WRITE"], products=[]) for _ in range(2)]
    async with connect(installation, made[0].raw) as one, connect(installation, made[1].raw) as other:
        answers = await asyncio.gather(
            one.post(f"/api-keys/{made[1].id}/rotate"), other.post(f"/api-keys/{made[0].id}/rotate")
        )
    # The second one's key has 24 hours left by then, less than the key that it would rotate.
    assert sorted(answer.status_code for answer in answers) == [200, 403]


async def test_pages_of_keys_hold_each_key_once(api: httpx.AsyncClient) -> None:
    made = [(await create(api, name=f"key {n}")).json()["data"]["id"] for n in range(5)]
    pages = [(await api.get("/api-keys", params={"page": n, "limit": 2})).json() for n in (1, 2, 3, 4)]
    ids = [key["id"] for page in pages for key in page["data"]]
    assert ids[:5] == made[::-1]
    assert len(set(ids)) == len(ids) == 6
    assert [page["meta"]["hasNextPage"] for page in pages] == [True, True, False, False]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "\u0007"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["orders:EAT"]}, "scopes[0]"),
        ({"products": ["ERP"]}, "products[0]"),
        ({"allowList": ["10.0.0.0/7"]}, "allowList"),
        ({"allowList": ["nowhere"]}, "allowList"),
        ({"rateLimit": 0}, "rateLimit"),
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_an_invalid_key_is_refused_with_its_field(
    api: httpx.AsyncClient, fields: dict[str, Any], field: str
) -> None:
    refused = await create(api, **fields)
    assert refused.status_code == 400
    assert [detail["field"] for detail in refused.json()["error"]["details"]] == [field]


async def test_no_key_for_everything_may_manage_access(
    installation: Installation, database: Database, company: Environments
) -> None:
    options = ["--company", str(company.live), "--name", "shop", "--all-scopes", "--json"]
    made = sapa(installation.data, "key", "create", *options).json()
    assert set(made["scopes"]).isdisjoint(MANAGEMENT)
    named = sapa(installation.data, "key", "create", *options, "--scope", "keys:READ").json()
    assert sorted(set(named["scopes"]) - set(made["scopes"])) == ["keys:READ"]
    async with connect(installation, made["key"]) as client:
        paths = ("/api-keys", "/api-calls", "/webhook-endpoints", "/webhook-deliveries", "/channels", "/carriers")
        codes = {(await client.get(path)).json()["error"]["code"] for path in paths}
    assert codes == {"INSUFFICIENT_SCOPE"}


async def test_a_key_of_the_other_environment_is_unknown(
    installation: Installation, database: Database, company: Environments, api: httpx.AsyncClient
) -> None:
    others: list[MadeKey] = [await make_key(database, company.test)]
    others.append(await make_key(database, (await make_company(database)).live))
    for other in others:
        for method, path in (("GET", ""), ("POST", "/rotate"), ("DELETE", "")):
            assert (await api.request(method, f"/api-keys/{other.id}{path}")).status_code == 404
        async with connect(installation, other.raw) as client:
            assert (await client.get("/orders")).status_code == 200


_networks = st.builds(
    lambda number, length: str(ip_network((0x0A000000 + number, length), strict=False)),
    st.integers(0, 63),
    st.integers(26, 32),
)
_UNIVERSE = [f"10.0.0.{n}" for n in range(64)] + ["10.0.1.0", "192.0.2.1", "::1"]


@given(entries=st.lists(_networks, max_size=4), outer=st.lists(_networks, max_size=4))
def test_a_list_lies_within_another_if_that_allows_all_of_its_addresses(entries: list[str], outer: list[str]) -> None:
    allowed = [address for address in _UNIVERSE if AllowList(entries).allows(address)]
    assert is_within(entries, outer) == all(AllowList(outer).allows(address) for address in allowed)
