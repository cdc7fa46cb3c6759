"""Store locations: one default, the sender of shipments, and deletion."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from sapa.access.actions import get_company
from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.shipping import actions
from sapa.shipping.stores import actions as stores
from sapa.shipping.stores.types import StoreLocationPatch
from sapa.shipping.types import ShipmentIn
from sapa.values.company import Company
from tests.db.blocked_calls import start_behind
from tests.factories import Environments
from tests.shipping.parcels import PATIENCE, body_of, change, create, error_of, field_of, get, list_events

STORE: dict[str, Any] = {
    "name": "Gudang Menteng", "contactName": "Budi Santoso", "phone": "0812-3456-7890", "email": "gudang@example.com",
    "address": "Jl. Menteng Raya No. 21", "city": "Jakarta Pusat", "province": "DKI Jakarta", "country": "ID",
    "zip": "10310", "kecamatan": "Menteng", "kecamatanId": 317106, "kelurahan": "Menteng", "kelurahanId": 3171061001,
    "coordinates": {"lat": -6.1963, "lng": 106.8346},
}  # fmt: skip
PATH = "/shipping/store-locations"


async def make_store(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await api.post(PATH, json={**STORE, **fields})
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()["data"]
    return created


async def test_a_store_is_returned_as_it_was_sent(api: httpx.AsyncClient) -> None:
    created = await make_store(api)
    expected = {**STORE, "phone": "+6281234567890", "notes": None, "isDefault": True}
    assert {name: created[name] for name in expected} == expected
    assert set(created) == {*expected, "id", "createdAt", "updatedAt"}
    assert created["id"].startswith("loc_")
    assert (await api.get(f"{PATH}/{created['id']}")).json()["data"] == created
    assert (await api.get(PATH)).json() == {
        "data": [created], "meta": {"page": 1, "limit": 20, "total": 1, "hasNextPage": False},
    }  # fmt: skip


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_store_is_changed_field_by_field(api: httpx.AsyncClient, method: str) -> None:
    created = await make_store(api)
    response = await api.request(method, f"{PATH}/{created['id']}", json={"name": "Gudang Baru", "email": None})
    changed = response.json()["data"]
    assert changed == {**created, "name": "Gudang Baru", "email": None, "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] >= created["updatedAt"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"), ({"address": ""}, "address"), ({"phone": "x"}, "phone"),
        ({"kecamatanId": 1.5}, "kecamatanId"),
        ({"coordinates": {"lat": 106, "lng": -6}}, "coordinates"), ({"colour": "red"}, "colour"),
    ],
)  # fmt: skip
async def test_what_cannot_be_used_is_refused(api: httpx.AsyncClient, fields: dict[str, Any], field: str) -> None:
    assert field_of(await api.post(PATH, json={**STORE, **fields})) == field


async def test_there_is_one_default(api: httpx.AsyncClient) -> None:
    first, second = await make_store(api), await make_store(api)
    assert (first["isDefault"], second["isDefault"]) == (True, False)
    await api.put(f"{PATH}/{second['id']}", json={"isDefault": True})
    stores = (await api.get(PATH)).json()["data"]
    assert {store["id"]: store["isDefault"] for store in stores} == {first["id"]: False, second["id"]: True}
    await asyncio.gather(*(make_store(api, isDefault=True) for _ in range(4)))
    assert sum(store["isDefault"] for store in (await api.get(PATH)).json()["data"]) == 1


async def test_a_store_fills_the_sender_and_explicit_fields_win(sandbox: httpx.AsyncClient) -> None:
    store = await make_store(sandbox)
    created = await create(
        sandbox, "aggregator_carrier", storeLocationId=store["id"], sender={"name": "Citra", "notes": "Back door"}
    )
    assert created["storeLocationId"] == store["id"]
    assert (created["sender"]["name"], created["sender"]["notes"]) == ("Citra", "Back door")
    assert (created["sender"]["phone"], created["sender"]["kelurahanId"]) == ("+6281234567890", 3171061001)
    assert created["sender"]["coordinates"] == STORE["coordinates"]
    by_default = await create(sandbox, "aggregator_carrier", sender=...)
    assert (by_default["storeLocationId"], by_default["sender"]["name"]) == (store["id"], "Budi Santoso")
    unnamed = await create(sandbox, "aggregator_carrier")
    assert unnamed["storeLocationId"] is None


async def test_deleting_a_store_clears_it_from_its_shipments(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    store, other = await make_store(sandbox), await make_store(sandbox)
    gone = [await create(sandbox, "custom", storeLocationId=store["id"]) for _ in range(3)]
    stays = await create(sandbox, "custom", storeLocationId=other["id"])
    response = await sandbox.delete(f"{PATH}/{store['id']}")
    assert (response.status_code, response.content) == (204, b"")
    assert error_of(await sandbox.get(f"{PATH}/{store['id']}")) == (404, "NOT_FOUND")
    assert error_of(await sandbox.delete(f"{PATH}/{store['id']}")) == (404, "NOT_FOUND")
    for shipment in gone:
        now = await get(sandbox, shipment["id"])
        assert now == {**shipment, "storeLocationId": None, "updatedAt": now["updatedAt"]}
        kind, body = (await list_events(database, company.test, shipment["id"]))[-1]
        assert (kind, body) == ("shipment.updated", now)
    assert await get(sandbox, stays["id"]) == stays
    assert field_of(await sandbox.post("/shipping/shipments", json=body_of("custom", storeLocationId=store["id"]))) == (
        "storeLocationId"
    )
    assert (await sandbox.get(PATH)).json()["meta"]["total"] == 1


async def test_a_shipment_gets_a_store_that_is_being_deleted_without_a_deadlock(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    store = (await make_store(sandbox))["id"]
    shipment = await create(sandbox, "custom", storeLocationId=store)
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL lock_timeout = '500ms'")
        shop = await get_company(tx, company.test)
        await stores.update(tx, shop, store, StoreLocationPatch(name="Gudang"))
        changing = await start_behind(tx, database, change(sandbox, shipment["id"], storeLocationId=store))
        await stores.delete(tx, shop, store)
    assert field_of(await changing) == "storeLocationId"
    assert (await get(sandbox, shipment["id"]))["storeLocationId"] is None


SHIPMENTS = """
    INSERT INTO shipments (company_id, id, provider, provider_label, currency, shipping_status, package_handover,
                           insurance, search_text, store_location_id)
    SELECT $1, 'shp_' || n, 'custom', 'Custom', 'IDR', 'delivered', 'PICKUP', false, '', $2
      FROM generate_series(1, 1100) AS n"""


async def test_many_shipments_leave_a_deleted_store_in_several_transactions(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    store = await make_store(sandbox)
    async with database.transaction() as tx:
        await tx.execute(SHIPMENTS, company.test, store["id"])
    assert (await sandbox.delete(f"{PATH}/{store['id']}")).status_code == 204
    async with database.connection() as db:
        left = await db.fetch("SELECT store_location_id, xmin::text FROM shipments WHERE company_id = $1", company.test)
        told = await db.fetchval("SELECT count(DISTINCT resource_id) FROM events WHERE company_id = $1", company.test)
    assert [store_id for store_id, _ in left] == [None] * 1100
    assert len({transaction for _, transaction in left}) > 1, "no shipment is locked until all are changed"
    assert told == 1100


async def is_in_the_way(database: Database, pid: int) -> bool:
    """Whether a session waits for this one's locks."""
    async with database.connection() as db:
        waiting = await db.fetchval("SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", pid)
    return bool(waiting)


async def test_what_is_made_while_its_store_is_deleted_names_it_no_longer(
    api: httpx.AsyncClient, context: AppContext, database: Database, company: Environments
) -> None:
    store = await make_store(api)
    body = body_of("custom", sender=..., storeLocationId=store["id"])
    parsed, shop = msgspec.convert(body, ShipmentIn), Company(company.live, "live", "ID", "IDR")
    async with database.transaction() as tx:
        started = await actions.begin_create(context, tx, shop, parsed)
        deleting = asyncio.create_task(api.delete(f"{PATH}/{store['id']}"))
        for _ in range(PATIENCE * 20):
            if deleting.done() or await is_in_the_way(database, tx.get_server_pid()):
                break
            await asyncio.sleep(0.05)
    assert (await deleting).status_code == 204
    now = await get(api, started.stored.id)
    assert (now["storeLocationId"], now["sender"]["name"]) == (None, STORE["contactName"])
