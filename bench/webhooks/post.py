"""The receiver's process, and what can be asked of it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import psutil

from bench.ground import Ground
from bench.servers import Server, free_port, run_server

PATIENCE_SECONDS = 120
"""Without a single arrival."""


class Receiver:
    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self.address = server.address
        self.process: psutil.Process = server.process
        self._client = client

    async def count(self) -> int:
        return int((await self._client.get("/count")).text)

    async def arrivals(self) -> list[tuple[str, float]]:
        """Event ids and instants of the monotonic clock, since they were asked for last."""
        return [(id, at) for id, at in (await self._client.get("/arrivals")).json()]

    async def drop_hanging(self) -> None:
        await self._client.get("/drop")

    async def wait_for(self, count: int, every: float = 0.05) -> None:
        """Returns when so many deliveries have come in all."""
        seen, moved_at = -1, time.monotonic()
        while (now := await self.count()) < count:
            if now > seen:
                seen, moved_at = now, time.monotonic()
            if time.monotonic() - moved_at > PATIENCE_SECONDS:
                raise RuntimeError(f"{count - now:,} of {count:,} deliveries did not arrive")
            await asyncio.sleep(every)


@asynccontextmanager
async def run_receiver(ground: Ground) -> AsyncIterator[Receiver]:
    port = free_port()
    async with (
        run_server("receiver", ["bench.webhooks.receiver", str(port)], port, ground) as server,
        httpx.AsyncClient(base_url=server.address, timeout=30) as client,
    ):
        yield Receiver(server, client)
