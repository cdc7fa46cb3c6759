"""How long an order of the API would wait for its number while a file is imported."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg

from bench.ground import Ground

LOCK = "SELECT last FROM order_numbers WHERE company_id = $1 FOR UPDATE"
PAUSE = 0.005


@asynccontextmanager
async def watch_numbers(ground: Ground, company_id: int) -> AsyncIterator[list[float]]:
    """Takes the company's order numbers again and again; yields the longest wait in seconds."""
    db = await asyncpg.connect(ground.server.owner_url)
    longest = [0.0]

    async def watch() -> None:
        while True:
            started = time.monotonic()
            async with db.transaction():
                await db.fetchval(LOCK, company_id)
                longest[0] = max(longest[0], time.monotonic() - started)
            await asyncio.sleep(PAUSE)

    task = asyncio.create_task(watch())
    try:
        yield longest
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await db.close()
