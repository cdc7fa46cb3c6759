"""Requests per minute and key, exact over all processes: counted in PostgreSQL, in batches."""

import asyncio
import time
from math import ceil

from msgspec import Struct

from sapa.db.pool import Database
from sapa.db.sql import sql
from sapa.http.keys import Key

# The window comes from the database's clock, so that every machine agrees on it. `granted` is how many of this
# batch fit; the rest are not counted.
COUNT = sql(
    """
    INSERT INTO rate_windows AS w (company_id, key_id, window_start, used, granted)
    VALUES ($1, $2, date_trunc('minute', clock_timestamp()), LEAST($3::int, $4::int), LEAST($3::int, $4::int))
        ON CONFLICT (company_id, key_id) DO UPDATE
       SET window_start = GREATEST(w.window_start, excluded.window_start),
           granted = CASE WHEN w.window_start >= excluded.window_start
                          THEN GREATEST(LEAST($3, $4 - w.used), 0) ELSE excluded.granted END,
           used = CASE WHEN w.window_start >= excluded.window_start
                       THEN GREATEST(w.used, LEAST(w.used + $3, $4)) ELSE excluded.used END
    RETURNING used, granted, 60 - extract(epoch FROM clock_timestamp() - window_start)::float8"""
)


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
        self._waiting: dict[str, list[asyncio.Future[Quota]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def count(self, key: Key) -> Quota:
        """Counts this call, unless the minute is used up."""
        left = key.full_until - time.monotonic()
        if left > 0:
            return Quota(key.rate_limit, 0, int(left) + 1, granted=False)
        future: asyncio.Future[Quota] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(key.id)
        if waiting is None:
            self._waiting[key.id] = [future]
            task = asyncio.create_task(self._count_waiting(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            waiting.append(future)
        return await future

    async def _count_waiting(self, key: Key) -> None:
        """Counts the waiting calls, then those that arrived meanwhile, until none waits."""
        while batch := self._waiting[key.id]:
            self._waiting[key.id] = []
            try:
                self._resolve(key, batch, *await self._count(key, len(batch)))
            except Exception as error:  # each waiting call raises it
                for future in batch:
                    if not future.done():
                        future.set_exception(error)
        del self._waiting[key.id]

    async def _count(self, key: Key, calls: int) -> tuple[int, int, float]:
        async with self._database.connection() as db:
            row = await db.fetchrow(COUNT.text, key.company.id, key.id, calls, key.rate_limit)
        assert row is not None  # noqa: S101 - an upsert returns its row
        return row[0], row[1], row[2]

    @staticmethod
    def _resolve(key: Key, batch: list[asyncio.Future[Quota]], used: int, granted: int, left: float) -> None:
        reset = max(1, ceil(left))
        if granted < len(batch) or used >= key.rate_limit:
            key.full_until = time.monotonic() + left
        for position, future in enumerate(batch, start=1):
            remaining = max(key.rate_limit - used + granted - position, 0)
            if not future.done():
                future.set_result(Quota(key.rate_limit, remaining, reset, position <= granted))
