"""The yardstick of an adjustment: a balance and a row in one statement, over as many connections as Sapa has."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from bench.ground import POOL, Ground
from bench.loyalty.owner import Connection, open_owner

TABLES = """
    CREATE SCHEMA bare;
    CREATE TABLE bare.wallets (id bigint PRIMARY KEY, available bigint NOT NULL, version bigint NOT NULL)
        WITH (fillfactor = 80);
    CREATE TABLE bare.entries (wallet_id bigint, version bigint, delta bigint NOT NULL, available_after bigint NOT NULL,
                               occurred_at timestamptz NOT NULL, PRIMARY KEY (wallet_id, version));
    INSERT INTO bare.wallets SELECT n, 0, 0 FROM generate_series(0, 999) AS n;
    GRANT USAGE ON SCHEMA bare TO PUBLIC;
    GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA bare TO PUBLIC"""

ADJUST = """
    WITH changed AS (
        UPDATE bare.wallets SET available = available + $2, version = version + 1 WHERE id = $1
        RETURNING id, version, available
    )
    INSERT INTO bare.entries SELECT id, version, $2, available, clock_timestamp() FROM changed"""


class Bare:
    def __init__(self, connections: list[Connection]) -> None:
        self._connections = connections

    async def adjust(self, wallets: int, seconds: float) -> float:
        """Adjustments per second."""
        started = time.monotonic()
        calls = [self._call(place, wallets, started + seconds) for place in range(len(self._connections))]
        done = sum(await asyncio.gather(*calls))
        return done / (time.monotonic() - started)

    async def _call(self, place: int, wallets: int, until: float) -> int:
        done = 0
        while time.monotonic() < until:
            await self._connections[place].execute(ADJUST, (place + done * POOL) % wallets, 5)
            done += 1
        return done


@asynccontextmanager
async def open_bare(ground: Ground) -> AsyncIterator[Bare]:
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(open_owner(ground)) for _ in range(POOL)]
        await connections[0].execute(TABLES)
        yield Bare(connections)
