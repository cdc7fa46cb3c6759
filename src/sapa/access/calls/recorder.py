"""Stores finished API calls in the log: one COPY for each batch of the access log."""

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime

import asyncpg
import structlog

from sapa import traces
from sapa.access.calls import queries
from sapa.access.calls.queries import CallRow
from sapa.db.pool import Database
from sapa.http.access_log import FinishedCall
from sapa.http.errors import DATABASE_UNAVAILABLE
from sapa.http.metrics import CALLS_NOT_LOGGED

MAX_WAITING = 20_000
"""Calls that wait in memory while PostgreSQL is away; then the oldest are dropped."""
MAX_REFUSED = 100
"""Of one key in a minute: a caller that ignores its rate limit must not fill the disk."""
RETRY_SECONDS = 1.0
LONGEST_METHOD = 16
LONGEST_ADDRESS = 64
LONGEST_MICROSECONDS = 2**31 - 1

log = structlog.get_logger()


class CallRecorder:
    """One per process. Calls without a valid key belong to no company and are not stored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batches: deque[list[CallRow]] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._minute = 0
        self._refused: dict[str, int] = {}

    def add(self, calls: Iterable[FinishedCall]) -> None:
        batch = [_build_row(call) for call in calls if call.key_id is not None and self._admits(call)]
        if not batch:
            return
        self._batches.append(batch)
        while sum(map(len, self._batches)) > MAX_WAITING:
            _drop(self._batches.popleft(), "too many wait for the database")
        if self._writer is None:
            self._writer = traces.create_shared_task(self._write(), "API calls")

    async def drain(self) -> None:
        """Until everything that was added is stored."""
        if self._writer is not None:
            await self._writer

    async def close(self) -> None:
        """Stores what waits, if PostgreSQL is there."""
        self._closing.set()
        await self.drain()
        while self._batches:
            _drop(self._batches.popleft(), "the process ends while the database is away")

    def _admits(self, call: FinishedCall) -> bool:
        if call.status != 429 or call.key_id is None:
            return True
        minute = int(call.at // 60)
        if minute != self._minute:
            self._minute, self._refused = minute, {}
        count = self._refused[call.key_id] = self._refused.get(call.key_id, 0) + 1
        return count <= MAX_REFUSED

    async def _write(self) -> None:
        try:
            while self._batches:
                batch = self._batches.popleft()
                try:
                    await self._store(batch)
                except DATABASE_UNAVAILABLE:
                    self._batches.appendleft(batch)
                    if self._closing.is_set():
                        return
                    await self._pause()
        finally:
            self._writer = None

    async def _store(self, batch: list[CallRow]) -> None:
        try:
            async with self._database.transaction() as tx:
                await queries.insert_calls(tx, batch)
        except asyncpg.UniqueViolationError:
            return  # stored already: the connection was lost before PostgreSQL could say so
        except DATABASE_UNAVAILABLE:
            raise
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            # Retried for ever, a batch that cannot be stored would hold up all others.
            _drop(batch, f"{type(error).__name__}: {error}")

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await self._closing.wait()
        except TimeoutError:
            return


def _drop(batch: list[CallRow], reason: str) -> None:
    CALLS_NOT_LOGGED.inc(len(batch))
    log.warning("API calls not logged", calls=len(batch), reason=reason)


def _build_row(call: FinishedCall) -> CallRow:
    """The columns in their order. Addresses may be whatever a trusted proxy passed on."""
    return (
        call.company_id or 0,
        datetime.fromtimestamp(call.at - call.seconds, UTC),
        call.request_id,
        call.key_id or "",
        call.method[:LONGEST_METHOD],
        call.route,
        call.status,
        call.code,
        call.ip[:LONGEST_ADDRESS].replace("\0", ""),
        min(int(call.seconds * 1_000_000), LONGEST_MICROSECONDS),
    )
