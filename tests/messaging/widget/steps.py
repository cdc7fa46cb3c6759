"""Steps of tests with the web chat."""

import asyncio
from typing import Any

import httpx
import msgspec

from tests.messaging.shop_site import Browser


async def send(shop: httpx.AsyncClient, to: str, kind: str = "send", **fields: Any) -> dict[str, Any]:
    answer = await shop.post(f"/messages/{kind}", json={"to": to, "sources": "WIDGET", **fields})
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["data"]
    return message


async def read_messages(page: Browser, client: httpx.AsyncClient, after: int, many: int) -> list[dict[str, Any]]:
    """`many` messages of the stream after a number."""
    headers = {"x-widget-key": page.key, "authorization": f"Bearer {page.token}", "last-event-id": str(after)}
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(120), client.stream("GET", "/widget/v1/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for text in answer.aiter_lines():
            if text.startswith("data: "):
                found.append(msgspec.json.decode(text[6:]))
            if len(found) == many:
                return found
    raise AssertionError("the stream ended")
