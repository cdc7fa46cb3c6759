"""Shipments over HTTP: creating, validating, listing, editing and discarding."""

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

from sapa.db.pool import Database
from tests.factories import Environments, make_order
from tests.shipping.parcels import (
    DELIVERY,
    PACKAGE,
    SENDER,
    body_of,
    change,
    create,
    error_of,
    field_of,
    get,
    kinds,
    list_events,
)

STRINGS = (
    "id orderId provider providerLabel name currency shippingStatus serviceType serviceName selectedExpedition"
    " selectedDelivery courierGroup vehicleType bikeFuelType packageHandover pickupSchedule storeLocationId trackingUrl"
    " awb orderNo bookingId pickupNumber paymentId paymentStatus cancellationReason cancelledBy cancelledSource"
    " eventTimestamp createdAt updatedAt serviceCode pickupCity problem codCollectedAt codRemittedAt estimate paymentQr"
    " returnOf returnNumber refundId sortingCode trackingPage"
).split()
NUMBERS = (
    "fee insuranceFee insuranceAmount discountAmount discountPercentage distance codAmount codFee codRemittedAmount"
    " carrierFee"
).split()
PARTY = "name phone email address notes city province country zip kecamatan kelurahan".split()


async def test_every_field_has_its_type_and_null_where_it_is_absent(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "custom", sender=..., package=..., serviceName=..., fee=...)
    objects = {"sender", "delivery", "package", "driver"}
    assert set(created) == {*STRINGS, *NUMBERS, *objects, "insurance", "statusCode", "needsAction"}
    present = {name for name, value in created.items() if value is not None}
    assert present == {
        "id", "provider", "providerLabel", "currency", "shippingStatus", "packageHandover", "delivery", "insurance",
        "needsAction", "trackingPage", "createdAt", "updatedAt",
    }  # fmt: skip
    assert created["insurance"] is False
    assert (created["currency"], created["shippingStatus"], created["packageHandover"]) == ("IDR", "draft", "PICKUP")


@pytest.mark.smoke
async def test_a_shipment_is_returned_as_it_was_sent(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    full: dict[str, Any] = {
        "orderId": order["id"], "name": "Kopi for Ayu", "providerLabel": "Our riders", "fee": 18500.5,
        "currency": "IDR", "serviceType": "SAME_DAY", "serviceName": "Rider", "serviceCode": "ride:1",
        "selectedExpedition": "JNE", "selectedDelivery": "REG", "courierGroup": "regular", "vehicleType": "TWO_WHEEL",
        "bikeFuelType": "electric", "packageHandover": "DROP_OFF", "insurance": True, "insuranceFee": 500,
        "insuranceAmount": 150000, "discountAmount": 1000, "discountPercentage": 5.5, "distance": 7.25,
        "paymentId": "pay-1", "paymentStatus": "paid", "awb": "AWB-1", "trackingUrl": "https://example.com/t/1",
        "pickupSchedule": "2031-01-02T03:04:05+07:00", "codAmount": 168500.5, "codFee": 2500, "estimate": "2-3 days",
    }  # fmt: skip
    package = {**PACKAGE, "itemType": "food", "notes": "fragile", "itemQty": 2}
    created = await create(sandbox, "custom", package=package, **full)
    expected = {**full, "pickupSchedule": "2031-01-01T20:04:05.000Z"}
    assert {name: created[name] for name in full} == expected
    assert created["package"] == package
    parties = {"province": None, "country": None, "kecamatan": None, "kelurahan": None, "email": None, "notes": None}
    assert created["sender"] == {**parties, **SENDER, "phone": "+6281234567890"}
    assert created["delivery"] == {**parties, **DELIVERY}
    assert await get(sandbox, created["id"]) == created
    assert created["statusCode"] is None


async def test_numbers_are_printed_as_javascript_would(sandbox: httpx.AsyncClient) -> None:
    delivery = {**DELIVERY, "coordinates": {"lat": -6.0, "lng": 106.80000000000001}}
    response = await sandbox.post("/shipping/shipments", json=body_of("custom", delivery=delivery, fee=10000.10))
    assert b'"coordinates":{"lat":-6,"lng":106.80000000000001}' in response.content
    assert b'"fee":10000.1,' in response.content
    assert b'"weight":1.5,' in response.content


@pytest.mark.parametrize(
    ("provider", "fields", "field"),
    [
        ("custom", {"provider": ...}, "provider"),
        ("custom", {"provider": "pigeon"}, "provider"),
        ("custom", {"delivery": ...}, "delivery"),
        ("custom", {"orderId": "order_01jc9y3q5me8w92v7x4t6r0n1k"}, "orderId"),
        ("custom", {"storeLocationId": "loc_01jc9y3q5me8w92v7x4t6r0n1k"}, "storeLocationId"),
        ("custom", {"fee": -1}, "fee"),
        ("custom", {"fee": 1.005}, "fee"),
        ("custom", {"fee": "18000"}, "fee"),
        ("custom", {"fee": 1e999}, "fee"),
        ("custom", {"currency": "XXZ"}, "currency"),
        ("custom", {"trackingUrl": "http://example.com"}, "trackingUrl"),
        ("custom", {"awb": "x" * 65}, "awb"),
        ("custom", {"bikeFuelType": "electric", "vehicleType": "VAN"}, "bikeFuelType"),
        ("custom", {"package": {"weight": 0}}, "package.weight"),
        ("custom", {"package": {"weight": 1.0001}}, "package.weight"),
        ("custom", {"package": {"itemQty": 0}}, "package.itemQty"),
        ("custom", {"delivery": {**DELIVERY, "coordinates": {"lat": 106.8, "lng": -6.2}}}, "delivery.coordinates"),
        ("custom", {"delivery": {**DELIVERY, "phone": "call me"}}, "delivery.phone"),
        ("custom", {"delivery": {**DELIVERY, "kecamatanId": "317407"}}, "delivery.kecamatanId"),
        ("custom", {"delivery": {**DELIVERY, "districtId": 317106}}, "delivery.districtId"),
        ("custom", {"delivery": {**DELIVERY, "subDistrictId": 1}}, "delivery.subDistrictId"),
        ("custom", {"discountPercentage": 101}, "discountPercentage"),
        ("custom", {"colour": "red"}, "colour"),
        ("aggregator_carrier", {"awb": "AWB-1"}, "awb"),
        ("aggregator_carrier", {"serviceName": ...}, "serviceName"),
        ("aggregator_carrier", {"sender": ...}, "sender"),
        ("aggregator_carrier", {"package": ...}, "package.weight"),
        ("aggregator_carrier", {"package": {"itemName": "Kopi"}}, "package.weight"),
        ("aggregator_carrier", {"insurance": True, "package": {"weight": 1}}, "package.itemValue"),
        ("aggregator_carrier", {"pickupSchedule": "2020-01-01T00:00:00Z"}, "pickupSchedule"),
        ("aggregator_carrier", {"pickupSchedule": "2090-01-01T00:00:00Z"}, "pickupSchedule"),
        ("custom", {"pickupSchedule": "9999-12-31T23:00:00-10:00"}, "pickupSchedule"),
        ("aggregator_carrier", {"serviceType": "INSTANT"}, "serviceType"),
        ("aggregator_carrier", {"options": {"serviceType": "INSTANT"}}, "serviceType"),
        (
            "aggregator_carrier",
            {"serviceType": "EXPRESS", "options": {"serviceType": "INSTANT"}},
            "options.serviceType",
        ),
        ("ev_courier", {"pickupCity": ...}, "pickupCity"),
        ("ev_courier", {"pickupCity": "Atlantis"}, "pickupCity"),
        ("ev_courier", {"pickupCity": 999999}, "pickupCity"),
        ("ev_courier", {"pickupCity": True}, "pickupCity"),
    ],
)
async def test_what_cannot_be_used_is_refused_by_name(
    sandbox: httpx.AsyncClient, provider: str, fields: dict[str, Any], field: str
) -> None:
    if "provider" in fields:
        body = {**body_of(provider), **fields}
        body = {name: value for name, value in body.items() if value is not ...}
    else:
        body = body_of(provider, **fields)
    content = json.dumps(body).replace("Infinity", "1e999")
    response = await sandbox.post("/shipping/shipments", content=content, headers={"content-type": "application/json"})
    assert field_of(response) == field


@pytest.mark.parametrize("end", ["sender", "delivery"])
@pytest.mark.parametrize(
    ("provider", "without"),
    [
        ("aggregator_carrier", "name"), ("aggregator_carrier", "phone"), ("aggregator_carrier", "address"),
        ("aggregator_carrier", "kecamatanId"), ("aggregator_carrier", "kelurahanId"),
        ("instant_carrier", "coordinates"), ("ev_courier", "coordinates"), ("instant_carrier", "phone"),
    ],
)  # fmt: skip
async def test_each_end_needs_what_its_provider_goes_by(
    sandbox: httpx.AsyncClient, end: str, provider: str, without: str
) -> None:
    whole = SENDER if end == "sender" else DELIVERY
    party = {name: value for name, value in whole.items() if name != without}
    response = await sandbox.post("/shipping/shipments", json={**body_of(provider), end: party})
    assert field_of(response) == f"{end}.{without}"


async def test_a_party_takes_both_names_of_its_areas(sandbox: httpx.AsyncClient) -> None:
    def rename(party: dict[str, Any]) -> dict[str, Any]:
        names = {"kecamatanId": "districtId", "kelurahanId": "subDistrictId"}
        return {names.get(name, name): value for name, value in party.items()}

    made = await create(sandbox, "aggregator_carrier", sender=rename(SENDER), delivery={**rename(DELIVERY), **DELIVERY})
    for end, party in (("sender", SENDER), ("delivery", DELIVERY)):
        assert {name: made[end][name] for name in ("kecamatanId", "kelurahanId")} == {
            name: party[name] for name in ("kecamatanId", "kelurahanId")
        }
        assert "districtId" not in made[end]
    moved = await change(sandbox, made["id"], delivery={"districtId": 317106, "subDistrictId": 3171061001})
    assert moved.json()["data"]["delivery"]["kelurahanId"] == 3171061001
    cleared = await change(sandbox, made["id"], delivery={"subDistrictId": None})
    assert field_of(cleared) == "delivery.kelurahanId"


@pytest.mark.parametrize("city", [3171, "3171", "Kota Jakarta Pusat", "jakarta pusat"])
async def test_a_pickup_city_is_meant_by_its_id_or_name(sandbox: httpx.AsyncClient, city: str | int) -> None:
    assert (await create(sandbox, "ev_courier", pickupCity=city))["pickupCity"] == str(city)
    made = await create(sandbox, "ev_courier", pickupCity=..., options={"pickupCity": city})
    assert made["pickupCity"] == str(city)
    assert (await change(sandbox, made["id"], pickupCity=city)).status_code == 200


async def test_instant_at_the_aggregator_is_refused_with_a_pointer(sandbox: httpx.AsyncClient) -> None:
    response = await sandbox.post("/shipping/shipments", json=body_of("aggregator_carrier", serviceType="INSTANT"))
    assert "instant_carrier" in response.json()["error"]["message"]


@pytest.mark.parametrize("provider", ["instant_carrier", "ev_courier"])
async def test_swapped_coordinates_are_seen(sandbox: httpx.AsyncClient, provider: str) -> None:
    sender = {**SENDER, "coordinates": {"lat": 106.8346, "lng": -6.1963}}
    response = await sandbox.post("/shipping/shipments", json=body_of(provider, sender=sender))
    assert field_of(response) == "sender.coordinates"


async def test_a_cancelled_order_is_not_shipped_and_own_order_ids_work(sandbox: httpx.AsyncClient) -> None:
    own = await make_order(sandbox, orderId="web-77")
    created = await create(sandbox, "custom", orderId="web-77")
    assert created["orderId"] == own["id"]
    await sandbox.put(f"/orders/{own['id']}", json={"status": "cancelled"})
    response = await sandbox.post("/shipping/shipments", json=body_of("custom", orderId=own["id"]))
    assert field_of(response) == "orderId"


async def test_editing_a_draft_emits_an_event(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await create(sandbox, "aggregator_carrier")
    response = await change(
        sandbox, created["id"], delivery={"notes": "Ring twice", "zip": None}, fee=21000, name="Mine"
    )
    assert response.status_code == 200
    edited = response.json()["data"]
    assert edited["delivery"] == {**created["delivery"], "notes": "Ring twice", "zip": None}
    assert (edited["fee"], edited["name"]) == (21000, "Mine")
    again = await change(sandbox, created["id"], fee=21000)
    assert again.json()["data"] == edited
    events = await list_events(database, company.test, created["id"])
    assert kinds(events) == ["shipment.created", "shipment.updated"]
    assert [body for _, body in events] == [created, edited]


async def test_an_edit_that_would_break_a_shipment_is_refused_whole(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "aggregator_carrier")
    response = await change(sandbox, created["id"], fee=1, delivery={"kelurahanId": None})
    assert field_of(response) == "delivery.kelurahanId"
    assert await get(sandbox, created["id"]) == created
    assert field_of(await change(sandbox, created["id"], shippingStatus="delivered")) == "shippingStatus"


async def test_a_draft_is_discarded_and_nothing_else(sandbox: httpx.AsyncClient) -> None:
    created = await create(sandbox, "custom")
    assert (await sandbox.delete(f"/shipping/shipments/{created['id']}")).status_code == 204
    gone = await sandbox.get(f"/shipping/shipments/{created['id']}")
    assert error_of(gone) == (404, "NOT_FOUND")
    assert gone.json()["error"]["message"] == "shipment not found"
    booked = await create(sandbox, "custom", autoBook=True)
    assert error_of(await sandbox.delete(f"/shipping/shipments/{booked['id']}")) == (409, "NOT_EDITABLE")


@pytest.mark.parametrize("provider", ["custom", "parcel_carrier"])
async def test_local_shipments_go_by_hand_from_draft_to_delivered(
    sandbox: httpx.AsyncClient, database: Database, company: Environments, provider: str
) -> None:
    order = await make_order(sandbox)
    created = await create(sandbox, provider, orderId=order["id"])
    booked = (await change(sandbox, created["id"], triggerBooking=True)).json()["data"]
    assert booked["shippingStatus"] == "confirmed"
    for status in ("picked_up", "in_transit", "out_for_delivery", "delivered"):
        response = await change(sandbox, created["id"], shippingStatus=status, awb="CUST-1")
        assert response.json()["data"]["shippingStatus"] == status, response.text
    assert (await sandbox.get(f"/orders/{order['id']}")).json()["data"]["fulfillmentStatus"] == "fulfilled"
    back = await change(sandbox, created["id"], shippingStatus="in_transit")
    assert error_of(back) == (409, "INVALID_TRANSITION")
    assert error_of(await change(sandbox, created["id"], awb="CUST-2")) == (409, "NOT_EDITABLE")
    events = kinds(await list_events(database, company.test, created["id"]))
    assert events == [
        "shipment.created", "shipment.status.updated", "shipment.booked", *["shipment.status.updated"] * 4,
    ]  # fmt: skip


async def test_idempotent_creation_makes_one(sandbox: httpx.AsyncClient) -> None:
    headers = {"idempotency-key": "parcel-1"}
    body = body_of("aggregator_carrier", autoBook=True)
    first = await sandbox.post("/shipping/shipments", json=body, headers=headers)
    second = await sandbox.post("/shipping/shipments", json=body, headers=headers)
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    assert second.headers["idempotency-replayed"] == "true"
    assert (await sandbox.get("/shipping/shipments")).json()["meta"]["total"] == 1


async def listed(api: httpx.AsyncClient, **params: Any) -> tuple[list[str], int]:
    response = await api.get("/shipping/shipments", params=params)
    assert response.status_code == 200, response.text
    return [one["id"] for one in response.json()["data"]], response.json()["meta"]["total"]


async def test_lists_find_what_is_asked_for(sandbox: httpx.AsyncClient) -> None:
    order = await make_order(sandbox)
    store = (await sandbox.post("/shipping/store-locations", json={"name": "G", "address": "Jl. Satu 1"})).json()[
        "data"
    ]
    plain = await create(sandbox, "custom", awb="AWB-77", delivery={**DELIVERY, "name": "José Lestari"})
    parcel = await create(sandbox, "parcel_carrier", orderId=order["id"], autoBook=True)
    stored = await create(sandbox, "custom", storeLocationId=store["id"])
    assert await listed(sandbox) == ([stored["id"], parcel["id"], plain["id"]], 3)
    assert await listed(sandbox, provider="custom") == ([stored["id"], plain["id"]], 2)
    assert await listed(sandbox, status="confirmed") == ([parcel["id"]], 1)
    assert await listed(sandbox, shippingStatus="draft", provider="custom") == ([stored["id"], plain["id"]], 2)
    assert await listed(sandbox, status="draft", shippingStatus="confirmed") == ([], 0)
    assert await listed(sandbox, orderId=order["id"]) == ([parcel["id"]], 1)
    assert await listed(sandbox, awb="AWB-77") == ([plain["id"]], 1)
    assert await listed(sandbox, storeLocationId=store["id"]) == ([stored["id"]], 1)
    assert await listed(sandbox, search="jose les") == ([plain["id"]], 1)
    assert await listed(sandbox, search="AWB-77") == ([plain["id"]], 1)
    assert await listed(sandbox, search="jo") == ([plain["id"]], 1)
    assert await listed(sandbox, search=parcel["id"]) == ([parcel["id"]], 1)
    assert await listed(sandbox, createdTo=plain["createdAt"]) == ([plain["id"]], 1)
    assert await listed(sandbox, page=2, limit=2) == ([plain["id"]], 3)
    assert field_of(await sandbox.get("/shipping/shipments", params={"status": "flying"})) == "status"


async def test_totals_are_exact_after_changes_at_once(
    sandbox: httpx.AsyncClient, database: Database, company: Environments
) -> None:
    created = await asyncio.gather(*(create(sandbox, random.choice(["custom", "parcel_carrier"])) for _ in range(12)))

    async def shake(id: str) -> None:
        for status in ("confirmed", "picked_up", "delivered"):
            await change(sandbox, id, shippingStatus=status)

    await asyncio.gather(*(shake(one["id"]) for one in created[:6]))
    await asyncio.gather(*(sandbox.delete(f"/shipping/shipments/{one['id']}") for one in created[6:9]))
    async with database.connection() as db:
        rows = await db.fetch("SELECT cell, count(*) FROM shipments WHERE company_id = $1 GROUP BY cell", company.test)
    for cell, count in rows:
        provider, status = cell.split("/")
        assert (await listed(sandbox, provider=provider, status=status))[1] == count
    assert (await listed(sandbox))[1] == 9
