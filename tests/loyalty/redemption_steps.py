"""Calls to rewards and redemptions that tests share."""

from typing import Any

import httpx


async def redeem(api: httpx.AsyncClient, customer_id: str, reward: dict[str, Any], **fields: Any) -> httpx.Response:
    body = {
        "rewardOptionId": reward["id"],
        "rewardName": reward["rewardName"],
        "pointsCost": int(reward["costToRedeem"]),
        **fields,
    }
    return await api.post(f"/loyalty/customers/{customer_id}/redeem", json=body)


async def end(api: httpx.AsyncClient, redemption_id: str, verb: str) -> httpx.Response:
    return await api.post(f"/loyalty/redemptions/{redemption_id}/{verb}")


async def fail(api: httpx.AsyncClient, redemption_id: str, reason: str = "Sold out") -> httpx.Response:
    return await api.post(f"/loyalty/redemptions/{redemption_id}/fail", json={"reason": reason})


async def redemptions_of(
    api: httpx.AsyncClient, customer_id: str, limit: int = 100, **query: Any
) -> list[dict[str, Any]]:
    """All of them, newest first, read page by page."""
    found: list[dict[str, Any]] = []
    while True:
        response = await api.get(f"/loyalty/customers/{customer_id}/redemptions", params={"limit": limit, **query})
        assert response.status_code == 200, response.text
        page = response.json()
        found += page["data"]
        assert len({one["id"] for one in found}) == len(found), "one came twice"
        if not page["pagination"]["hasMore"]:
            assert page["pagination"] == {"limit": limit, "hasMore": False, "nextBefore": None}
            return found
        assert len(page["data"]) == limit
        query = {**query, "before": page["pagination"]["nextBefore"]}


async def summary_of(api: httpx.AsyncClient, customer_id: str) -> dict[str, tuple[int, int]]:
    """Count and points of each status that there is."""
    response = await api.get(f"/loyalty/customers/{customer_id}/redemptions/summary")
    assert response.status_code == 200, response.text
    tallies = {name: (one["count"], int(one["points"])) for name, one in response.json()["data"].items()}
    return {name: tally for name, tally in tallies.items() if tally[0]}


async def statuses_of(api: httpx.AsyncClient, customer_id: str) -> list[str]:
    """Oldest first."""
    return [one["status"] for one in reversed(await redemptions_of(api, customer_id))]
