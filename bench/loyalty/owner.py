"""The database's owner, who may write what the product may not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg

from bench.ground import Ground

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@asynccontextmanager
async def open_owner(ground: Ground) -> AsyncIterator[Connection]:
    db = await asyncpg.connect(ground.server.owner_url)
    try:
        yield db
    finally:
        await db.close()
