"""Connections: one pool per process, readers take a connection, writers a transaction."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TypeAlias, TypeVar
from weakref import WeakSet

import asyncpg
from asyncpg.exceptions import InternalClientError, InvalidCachedStatementError

from sapa import traces
from sapa.db import codecs, wakeups
from sapa.db.connection import Connection as Connection
from sapa.db.connection import DatabaseAway, TranslatingConnection, connect
from sapa.db.hub import Hub
from sapa.db.notify import Notification, Notifier
from sapa.db.retry import retry
from sapa.db.wakeups import SWEEP_SECONDS, DueQueue, Wakeups

Tx: TypeAlias = "Connection"
"""A connection inside a transaction."""

Result = TypeVar("Result")

MAX_TRIES = 3
ACQUIRE_SECONDS = 2.0
"""How long a caller waits for a connection."""
PATIENT_ACQUIRE_SECONDS = 15.0
"""How long commands, jobs and tests wait for one."""
UNUSED_SECONDS = 60.0
"""Connections that were idle for this long are closed."""
MAX_UNUSED = 2
"""How many idle connections stay open."""
COMMAND_SECONDS = 15.0
LOCK_MILLISECONDS = 5_000
SESSION = f"""
    SET jit = off;
    SET statement_timeout = '10s';
    SET lock_timeout = {LOCK_MILLISECONDS};
    SET idle_in_transaction_session_timeout = '15s'"""
"""Set by a statement: a connection pooler refuses start-up parameters that it does not know."""


class PooledConnection(TranslatingConnection):
    """A connection of the pool, with the notifications that its transaction sends after the commit."""

    notifications: set[Notification]
    is_silent = False
    """While it is true, changes emit no events: see `sapa.events.silence`."""


def notify_after_commit(tx: Tx, channel: str, payload: str = "") -> None:
    """Notifies the channel's listeners once the transaction has committed."""
    if isinstance(tx, PooledConnection):
        tx.notifications.add((channel, payload))


def announce_due(tx: Tx, queue: DueQueue, seconds: float = 0.0) -> None:
    """Wakes the workers for work of the queue that is due `seconds` after the commit."""
    if seconds <= SWEEP_SECONDS:
        notify_after_commit(tx, wakeups.CHANNEL, queue.build_announcement(seconds))


def announce_all_due(tx: Tx) -> None:
    """Wakes the workers for the work of all queues: after a clock was moved, anything may be due."""
    notify_after_commit(tx, wakeups.CHANNEL)


# A lock was not free in time, or a statement ran too long.
BUSY = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)

# A conflict with another transaction or a migration: a retry is safe and likely to succeed.
RETRYABLE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, InvalidCachedStatementError)


class Database:
    """A pool of connections to PostgreSQL.

    Our own, because asyncpg's starts a task for every connection that is released: acquiring and releasing one costs
    a fifth of a small request there, and next to nothing here. Connections are opened when they are needed, so a
    process may start while PostgreSQL is away; a lost connection is noticed and replaced. What a burst opened is closed
    when it is not needed any more.
    """

    def __init__(
        self, url: str, size: int, application: str = "sapa", acquire_seconds: float = ACQUIRE_SECONDS
    ) -> None:
        self.url = url
        self.size = size
        self._application = application
        self._acquire_seconds = acquire_seconds
        self._idle: list[Connection] = []
        self._open_count = 0
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._fewest_idle = 0
        """The smallest number of idle connections since the timer was set: that many were not needed."""
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._connections: WeakSet[Connection] = WeakSet()
        self._closed = False
        self.abandoned_with: list[Callable[[], object]] = []
        """Ends the connections of other pools of this process, which have no listener of their own."""
        self.notifier = Notifier(self._notify)
        self.hub = Hub(url, application, self.abandon)
        self.wakeups = Wakeups(self.hub, self.connection)

    @property
    def open_count(self) -> int:
        return self._open_count

    @property
    def idle(self) -> int:
        return len(self._idle)

    def connection(self) -> "ConnectionScope":
        """One connection and no transaction: for reads."""
        return ConnectionScope(self)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """The block commits as a whole, or not at all."""
        async with self.statement() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[Tx]:
        """A connection for a block with one changing statement, which is a transaction by itself: saves the round trips
        of BEGIN and COMMIT."""
        async with ConnectionScope(self) as connection:
            notifications: set[Notification] = set()
            if isinstance(connection, PooledConnection):
                connection.notifications = notifications
            yield connection
            if notifications:
                self.notifier.notify(notifications)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Tx]:
        """A read-only transaction that sees one consistent snapshot, however long it takes."""
        async with (
            ConnectionScope(self) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    async def transact(
        self,
        work: Callable[[Tx], Awaitable[Result]],
        races: tuple[type[Exception], ...] = (),
        *,
        is_one_statement: bool = False,
    ) -> Result:
        """One transaction, retried on a conflict with another; `races` are further errors that mean one."""

        async def run() -> Result:
            async with self.statement() if is_one_statement else self.transaction() as tx:
                return await work(tx)

        retried: tuple[type[Exception], ...] = (*RETRYABLE, *races)
        return await retry(run, retried, tries=MAX_TRIES)

    async def transact_in_batches(self, work: Callable[[Tx], Awaitable[int]], most: int) -> None:
        """Repeats a transaction that changes up to `most` rows and returns how many, until it changes fewer. No row is
        locked for long, however many there are; what was changed stays changed if the process ends on the way."""
        while await self.transact(work) == most:
            pass

    def announce_due(self, queue: DueQueue) -> None:
        """For due work that was written outside a transaction."""
        self.notifier.notify({(wakeups.CHANNEL, queue.build_announcement(0.0))})

    async def _notify(self, notifications: set[Notification]) -> None:
        channels, payloads = zip(*notifications, strict=True)
        try:
            async with self.connection() as db:
                await db.execute(
                    "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS n (channel, payload)",
                    channels,
                    payloads,
                )
        except (DatabaseAway, asyncpg.PostgresError):
            return  # a lost hint only delays its listeners until they poll

    async def close(self) -> None:
        """Closes idle connections; those in use close when they are released."""
        await self.wakeups.close()
        await self.hub.close()
        await self.notifier.drain()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._open_count -= 1
            await _close(self._idle.pop())
        if self._closing:
            await asyncio.wait(self._closing)

    async def acquire(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                if len(self._idle) < self._fewest_idle:
                    self._fewest_idle = len(self._idle)
                return connection
            self._open_count -= 1
        self._fewest_idle = 0
        try:
            async with asyncio.timeout(self._acquire_seconds):
                if self._open_count < self.size:
                    self._open_count += 1
                    return await self._connect()
                return await self._wait()
        except TimeoutError:
            seconds = self._acquire_seconds
            raise DatabaseAway(f"no connection was free within {seconds:.0f} seconds") from None

    async def _connect(self) -> Connection:
        """The caller has already added the connection to `_open_count`."""
        try:
            return await self._open()
        except BaseException:
            self._hand_over(None)
            raise

    async def _open(self) -> Connection:
        connection = await connect(
            self.url,
            statement_cache_size=1000,
            max_cached_statement_lifetime=0,
            command_timeout=COMMAND_SECONDS,
            connection_class=PooledConnection,
            server_settings={"application_name": self._application, "timezone": "UTC"},
        )
        if isinstance(connection, PooledConnection):
            connection.notifications = set()
        try:
            await connection.execute(SESSION)
            codecs.register(connection)
        except BaseException:
            connection.terminate()
            raise
        self._connections.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._close_unused)
        return connection

    def abandon(self) -> None:
        """Ends all connections, even those in use, because their host no longer responds."""
        for connection in list(self._connections):
            connection.terminate()
        for abandon in self.abandoned_with:
            abandon()

    def drop_idle(self) -> None:
        """Ends idle connections, so that new ones are opened to the current primary."""
        for connection in self._idle:
            connection.terminate()

    def _close_unused(self) -> None:
        """Closes connections from the start of the list: the end of it is used first."""
        unused = max(0, min(self._fewest_idle, len(self._idle)) - MAX_UNUSED)
        for connection in self._idle[:unused]:
            closing = asyncio.create_task(_close(connection), name="unused connection")
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        del self._idle[:unused]
        self._open_count -= unused
        self._fewest_idle = len(self._idle)
        is_needed = self._open_count > MAX_UNUSED and not self._closed
        self._timer = asyncio.get_running_loop().call_later(UNUSED_SECONDS, self._close_unused) if is_needed else None

    async def _wait(self) -> Connection:
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            connection = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._hand_over(waiter.result())
            raise
        return await self._connect() if connection is None else connection

    def release(self, connection: Connection, usable: bool = True) -> None:
        """Returns the connection to the pool, or closes it if it is in a transaction or not `usable`."""
        if usable and not self._closed and not connection.is_closed() and not connection.is_in_transaction():
            self._hand_over(connection)
        else:
            connection.terminate()
            self._hand_over(None)

    def _hand_over(self, connection: Connection | None) -> None:
        """Gives the connection to the longest waiter. None makes room: the waiter opens a new one."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is None:
            self._open_count -= 1
        else:
            self._idle.append(connection)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=5)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, InternalClientError):
        connection.terminate()


class ConnectionScope:
    """Takes a connection from the pool for the block."""

    __slots__ = ("_connection", "_database", "_is_traced")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_traced = False

    async def __aenter__(self) -> Connection:
        self._connection = await self._database.acquire()
        if (span := traces.CURRENT.get()) is not None:
            await self._trace(span)
        return self._connection

    async def _trace(self, span: traces.Span) -> None:
        """Sets the span on the connection, so that events recorded there carry it."""
        try:
            await self._connection.execute(f"SET sapa.traceparent = '{span.traceparent}'")
        except BaseException:
            self._database.release(self._connection, usable=False)
            raise
        self._connection.add_query_logger(traces.record_query)
        self._is_traced = True

    async def _end_trace(self) -> bool:
        """Returns whether the connection can be used again."""
        self._connection.remove_query_logger(traces.record_query)
        try:
            await self._connection.execute("RESET sapa.traceparent")
        except (DatabaseAway, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cancelled or timed-out command may still run on the server, so its connection is in doubt.
        usable = not isinstance(error, DatabaseAway | TimeoutError | asyncio.CancelledError)
        if isinstance(error, DatabaseAway) and isinstance(error.__cause__, asyncpg.ReadOnlySQLTransactionError):
            self._database.drop_idle()
        try:
            if self._is_traced and usable:
                usable = False
                usable = await self._end_trace()
        finally:
            self._database.release(self._connection, usable)


@asynccontextmanager
async def open_database(url: str, size: int = 2, application: str = "sapa") -> AsyncIterator[Database]:
    """Opens a database for the block, for commands, jobs and tests."""
    database = Database(url, size, application, PATIENT_ACQUIRE_SECONDS)
    try:
        yield database
    finally:
        await database.close()
