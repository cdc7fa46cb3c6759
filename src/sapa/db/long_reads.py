"""Exports and reports: reads that may take long have a small pool of their own, and each company two at a time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from sapa.db import queries
from sapa.db.pool import Database, Tx

CONNECTIONS = 6
MOST_STREAMS = 4
"""Those that last as long as their reader likes leave room for the others."""
MOST_OF_A_COMPANY = 2
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.2


class TooManyLongReads(Exception):
    def __init__(self) -> None:
        super().__init__("Too many exports and reports are running. Try again when one of them has finished.")


class LongReads:
    """Those that don't fit wait a few seconds, without a connection."""

    def __init__(self, database: Database) -> None:
        """On the server of this database."""
        self._database = Database(database.url, CONNECTIONS, "sapa long reads")
        database.abandoned_with.append(self._database.abandon)
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._streams = asyncio.Semaphore(MOST_STREAMS)
        self._turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def snapshot(self, company_id: int) -> AsyncIterator[Tx]:
        """A read-only transaction that sees one moment."""
        turn = self._turns.get(company_id) or asyncio.Semaphore(MOST_OF_A_COMPANY)
        self._turns[company_id] = turn
        deadline = time.monotonic() + WAIT_SECONDS
        async with _wait_for(turn, deadline):
            while True:
                async with _wait_for(self._places, deadline), self._database.snapshot() as tx:
                    if await queries.take_long_read_slot(tx, company_id, MOST_OF_A_COMPANY):
                        yield tx
                        return
                if time.monotonic() > deadline:
                    raise TooManyLongReads
                await asyncio.sleep(POLL_SECONDS)

    @asynccontextmanager
    async def stream(self, company_id: int) -> AsyncIterator[Tx]:
        """The same for a file that is sent while it is read."""
        async with _wait_for(self._streams, time.monotonic() + WAIT_SECONDS), self.snapshot(company_id) as tx:
            yield tx

    async def close(self) -> None:
        await self._database.close()


@asynccontextmanager
async def _wait_for(semaphore: asyncio.Semaphore, deadline: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            await semaphore.acquire()
    except TimeoutError:
        raise TooManyLongReads from None
    try:
        yield
    finally:
        semaphore.release()
