"""Calls to the ledger that tests share."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import httpx


async def wallet_of(api: httpx.AsyncClient, customer_id: str) -> dict[str, Any]:
    response = await api.get(f"/loyalty/customers/{customer_id}/wallet")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["data"]
    return found


async def points_of(api: httpx.AsyncClient, customer_id: str) -> tuple[int, int]:
    """What is available, and what is reserved."""
    wallet = await wallet_of(api, customer_id)
    return int(wallet["availablePoints"]), int(wallet["reservedPoints"])


async def adjust(
    api: httpx.AsyncClient, customer_id: str, direction: str, points: int, **fields: Any
) -> httpx.Response:
    body = {"direction": direction, "points": points, **fields}
    return await api.post(f"/loyalty/customers/{customer_id}/points/adjust", json=body)


async def history_of(api: httpx.AsyncClient, customer_id: str, limit: int = 100, **query: Any) -> list[dict[str, Any]]:
    """All entries, newest first, read page by page."""
    entries: list[dict[str, Any]] = []
    while True:
        response = await api.get(f"/loyalty/customers/{customer_id}/history", params={"limit": limit, **query})
        assert response.status_code == 200, response.text
        page = response.json()
        entries += page["data"]
        assert page["pagination"]["limit"] == limit
        if not page["pagination"]["hasMore"]:
            assert page["pagination"]["nextBefore"] is None
            return entries
        assert len(page["data"]) == limit
        query = {**query, "before": page["pagination"]["nextBefore"]}


async def types_of(api: httpx.AsyncClient, customer_id: str) -> list[tuple[str, int]]:
    """Each entry's type and points, oldest first."""
    entries = await history_of(api, customer_id)
    return [(entry["entryType"], int(entry["pointsDelta"])) for entry in reversed(entries)]


async def close(api: httpx.AsyncClient, reservation_id: str, verb: str) -> httpx.Response:
    return await api.post(f"/loyalty/reservations/{reservation_id}/{verb}")


async def drift_of(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await api.get("/loyalty/reconciliation")
    assert response.status_code == 200, response.text
    report = response.json()["data"]
    assert bool(report["drift"]) == bool(report["driftingWallets"])
    drift: list[dict[str, Any]] = report["drift"]
    return drift


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def together(*calls: Awaitable[httpx.Response]) -> list[httpx.Response]:
    return list(await asyncio.gather(*calls))
