"""Exports and reports: reads that may take long have a small pool of their own, and each company two at a time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from sapa.db import queries
from sapa.db.pool import Database, Tx

CONNECTIONS = 6
MAX_STREAMS = 4
"""Streams last for as long as their reader likes, so some connections are reserved for other reads."""
MAX_OF_A_COMPANY = 2
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.2


class TooManyLongReads(Exception):
    def __init__(self) -> None:
        super().__init__("Too many exports and reports are running. Try again when one of them has finished.")


class LongReads:
    """A small pool for long reads on the server of `database`. A read that does not fit waits a few seconds."""

    def __init__(self, database: Database) -> None:
        self._database = Database(database.url, CONNECTIONS, "sapa long reads")
        database.abandoned_with.append(self._database.abandon)
        self._all = asyncio.Semaphore(CONNECTIONS)
        self._streams = asyncio.Semaphore(MAX_STREAMS)
        self._by_company: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def snapshot(self, company_id: int) -> AsyncIterator[Tx]:
        """A read-only transaction that sees one consistent snapshot."""
        own = self._by_company.get(company_id) or asyncio.Semaphore(MAX_OF_A_COMPANY)
        self._by_company[company_id] = own
        deadline = time.monotonic() + WAIT_SECONDS
        async with _wait_for(own, deadline):
            while True:
                async with _wait_for(self._all, deadline), self._database.snapshot() as tx:
                    if await queries.take_long_read_slot(tx, company_id, MAX_OF_A_COMPANY):
                        yield tx
                        return
                if time.monotonic() > deadline:
                    raise TooManyLongReads
                await asyncio.sleep(POLL_SECONDS)

    @asynccontextmanager
    async def stream(self, company_id: int) -> AsyncIterator[Tx]:
        """Like `snapshot`, for a file that is sent while it is read."""
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
