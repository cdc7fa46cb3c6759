"""Shipments for tests: bodies that each provider accepts, and the usual steps over HTTP."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import httpx
import msgspec

from sapa.access import actions as access
from sapa.db.pool import Database

PATIENCE = 120

SENDER = {
    "name": "Toko Kopi", "phone": "081234567890", "address": "Jl. Menteng Raya No. 21, Kebon Sirih", "zip": "10310",
    "city": "Jakarta Pusat", "kecamatanId": 317106, "kelurahanId": 3171061001,
    "coordinates": {"lat": -6.1963, "lng": 106.8346},
}  # fmt: skip
DELIVERY = {
    "name": "Ayu Lestari", "phone": "+6281298765432", "address": "Jl. Melawai Raya No. 8, Kebayoran Baru",
    "zip": "12160", "city": "Jakarta Selatan", "kecamatanId": 317407, "kelurahanId": 3174071002,
    "coordinates": {"lat": -6.2431, "lng": 106.7997},
}  # fmt: skip
PACKAGE = {"weight": 1.5, "length": 20, "width": 15, "height": 10, "itemName": "Kopi Gayo", "itemValue": 150000}

EXTRA: dict[str, dict[str, Any]] = {
    "aggregator_carrier": {"serviceName": "JNE Reguler", "fee": 18000},
    "instant_carrier": {"serviceName": "Instant", "serviceType": "INSTANT", "fee": 25000},
    "ev_courier": {"serviceName": "Instant", "serviceType": "INSTANT", "pickupCity": "Jakarta Pusat", "fee": 20000},
    "custom": {"serviceName": "Own rider", "fee": 10000},
    "parcel_carrier": {"serviceName": "Counter parcel", "fee": 12000},
}

WITH_API = ("aggregator_carrier", "instant_carrier", "ev_courier")


def body_of(provider: str, *, sim: str | None = None, **fields: Any) -> dict[str, Any]:
    """A body that is complete for the provider; `sim` names how its simulator is to behave."""
    delivery = {**DELIVERY, **({"notes": f"#sim:{sim}"} if sim else {})}
    body = {"provider": provider, "sender": SENDER, "delivery": delivery, "package": PACKAGE, **EXTRA[provider]}
    return {name: value for name, value in {**body, **fields}.items() if value is not ...}


async def create(api: httpx.AsyncClient, provider: str, *, status: int = 201, **fields: Any) -> dict[str, Any]:
    response = await api.post("/shipping/shipments", json=body_of(provider, **fields))
    assert response.status_code == status, response.text
    created: dict[str, Any] = response.json()["data"]
    return created


async def get(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    response = await api.get(f"/shipping/shipments/{id}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def change(api: httpx.AsyncClient, id: str, **fields: Any) -> httpx.Response:
    return await api.patch(f"/shipping/shipments/{id}", json=fields)


async def cancel(api: httpx.AsyncClient, id: str, reason: str | None = None) -> httpx.Response:
    return await api.post(f"/shipping/shipments/{id}/cancel", json={} if reason is None else {"reason": reason})


async def track(api: httpx.AsyncClient, id: str) -> dict[str, Any]:
    response = await api.get(f"/shipping/shipments/{id}/tracking")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def advance(api: httpx.AsyncClient, id: str, to: str | None = None) -> None:
    response = await api.post(f"/shipping/shipments/{id}/sandbox/advance", json={"to": to} if to else {})
    assert response.status_code == 200, response.text


async def until_status(api: httpx.AsyncClient, id: str, *statuses: str, **fields: Any) -> dict[str, Any]:
    """The shipment, once it has one of the states and these fields; `...` stands for any value but null."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shipment = await get(api, id)
        has_fields = all(
            shipment[name] is not None if value is ... else shipment[name] == value for name, value in fields.items()
        )
        if (not statuses or shipment["shippingStatus"] in statuses) and has_fields:
            return shipment
        assert time.monotonic() < deadline, f"it is {shipment['shippingStatus']}, not {statuses} {fields}: {shipment}"
        await asyncio.sleep(0.1)


async def move_clock(database: Database, company_id: int, seconds: float) -> None:
    async with database.transaction() as tx:
        await access.move_clock(tx, company_id, timedelta(seconds=seconds))


async def list_events(database: Database, company_id: int, resource_id: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a resource in their order: kind and body."""
    async with database.connection() as db:
        rows = await db.fetch(
            "SELECT kind, body FROM events WHERE company_id = $1 AND resource_id = $2 ORDER BY number",
            company_id, resource_id,
        )  # fmt: skip
    return [(row["kind"], msgspec.json.decode(row["body"])) for row in rows]


def kinds(events: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [kind for kind, _ in events]


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def field_of(response: httpx.Response) -> str:
    assert response.status_code == 400, response.text
    field: str = response.json()["error"]["details"][0]["field"]
    return field
