"""Requests per minute and key, exact over all processes: counted in PostgreSQL, in batches."""

import asyncio
import time
from math import ceil
from typing import Protocol

from msgspec import Struct

from sapa import traces
from sapa.db.pool import Database
from sapa.http import queries
from sapa.http.queries import WindowUse
from sapa.values.company import Company


class RateLimited(Protocol):
    """Whose requests are counted: a key."""

    id: str
    company: Company
    rate_limit: int
    full_until: float
    """Once the limit is used up, the rest of the minute is refused without asking PostgreSQL."""


class Quota(Struct, frozen=True):
    """What is left of the current minute after this call."""

    limit: int
    remaining: int
    reset: int
    granted: bool

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"ratelimit-limit", b"%d" % self.limit),
            (b"ratelimit-remaining", b"%d" % self.remaining),
            (b"ratelimit-reset", b"%d" % self.reset),
        ]


class RateLimiter:
    """Concurrent calls of one key in one process are counted by one upsert."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, list[tuple[asyncio.Future[Quota], traces.Span | None]]] = {}
        """By key, while a statement counts others; each with the span of its call."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def count(self, key: RateLimited) -> Quota:
        """Counts this call, unless the minute is used up."""
        left = key.full_until - time.monotonic()
        if left > 0:
            return Quota(key.rate_limit, 0, int(left) + 1, granted=False)
        future: asyncio.Future[Quota] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(key.id)
        if waiting is None:
            self._waiting[key.id] = [(future, traces.CURRENT.get())]
            task = asyncio.create_task(self._count_waiting(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            waiting.append((future, traces.CURRENT.get()))
        return await future

    async def _count_waiting(self, key: RateLimited) -> None:
        """Counts the waiting calls, then those that arrived meanwhile, until none waits."""
        while waiting := self._waiting[key.id]:
            self._waiting[key.id] = []
            batch = [future for future, _ in waiting]
            traces.work_for([span for _, span in waiting])
            try:
                async with self._database.connection() as db:
                    use = await queries.count_requests(db, key.company.id, key.id, len(batch), key.rate_limit)
                self._resolve(key, batch, use)
            except Exception as error:  # each waiting call raises it
                for future in batch:
                    if not future.done():
                        future.set_exception(error)
        del self._waiting[key.id]

    @staticmethod
    def _resolve(key: RateLimited, batch: list[asyncio.Future[Quota]], use: WindowUse) -> None:
        reset = max(1, ceil(use.seconds_left))
        if use.granted < len(batch) or use.used >= key.rate_limit:
            key.full_until = time.monotonic() + use.seconds_left
        for position, future in enumerate(batch, start=1):
            remaining = max(key.rate_limit - use.used + use.granted - position, 0)
            if not future.done():
                future.set_result(Quota(key.rate_limit, remaining, reset, position <= use.granted))
