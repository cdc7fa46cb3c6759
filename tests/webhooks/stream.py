"""A listener of the test's own, below `sapa listen`: the lines of `/listen` as they come."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec

from tests.http.wire import eventually

PATIENCE = 120
TLS = ssl.create_default_context()
QUIET = httpx.Timeout(30, read=None)


class Ear:
    """What a stream said so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.is_ended = False
        self.is_whole = False
        """Ended by the server's will, not cut."""

    @property
    def events(self) -> list[Any]:
        return [msgspec.json.decode(line[6:]) for line in self.lines if line.startswith("data: ")]

    @property
    def ids(self) -> list[str]:
        return [event["id"] for event in self.events]

    async def hears(self, count: int) -> list[Any]:
        async def look() -> list[Any] | None:
            return self.events if len(self.events) >= count else None

        return await eventually(look, PATIENCE)

    async def has(self, line: str) -> None:
        async def look() -> bool | None:
            return line in self.lines or None

        await eventually(look, PATIENCE)

    async def ends(self) -> None:
        async def look() -> bool | None:
            return self.is_ended or None

        await eventually(look, PATIENCE)


@asynccontextmanager
async def hearing(address: str, token: str, last_id: str | None = None, kinds: str | None = None) -> AsyncIterator[Ear]:
    """Listens for the length of a block, from the moment on at which the server is ready."""
    ear = Ear()
    task = asyncio.create_task(_hear(ear, address, token, last_id, kinds))
    try:
        await ear.has(": ready")
        yield ear
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _hear(ear: Ear, address: str, token: str, last_id: str | None, kinds: str | None) -> None:
    headers = {"authorization": f"Bearer {token}"} | ({"last-event-id": last_id} if last_id else {})
    params = {"kinds": kinds} if kinds else {}
    with suppress(httpx.TransportError):
        async with (
            httpx.AsyncClient(timeout=QUIET, verify=TLS) as client,
            client.stream("GET", f"{address}/listen", headers=headers, params=params) as response,
        ):
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                ear.lines.append(line)
            ear.is_whole = True
    ear.is_ended = True
