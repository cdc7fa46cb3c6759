"""Connections: one pool per process, readers take a connection, writers a transaction."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

import asyncpg
from asyncpg.connection import Connection as AsyncpgConnection
from asyncpg.exceptions import InternalClientError

from sapa.db import codecs

if TYPE_CHECKING:
    Connection: TypeAlias = AsyncpgConnection[asyncpg.Record]
else:
    Connection = AsyncpgConnection

Tx: TypeAlias = "Connection"
"""A connection inside a transaction."""

ACQUIRE_SECONDS = 2.0
COMMAND_SECONDS = 15.0
LOCK_MILLISECONDS = 5_000

# PostgreSQL is away, restarting, or too busy to hand out a connection: the caller may try again.
AWAY = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.ConnectionFailureError,
    asyncpg.InterfaceError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    InternalClientError,
)

# Another transaction stood in the way: running the same one again is safe and likely to succeed.
RETRYABLE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

# asyncpg prints a traceback for every failed reconnect; the caller's 503 says it better.
logging.getLogger("asyncpg").setLevel(logging.CRITICAL)


class PooledConnection(AsyncpgConnection):
    """Goes back to the pool without a round trip: nothing here sets session state, only SET LOCAL."""

    def get_reset_query(self) -> str:
        return ""


class Database:
    """The product's way to PostgreSQL."""

    def __init__(self, url: str, size: int, application: str = "sapa") -> None:
        self.url = url
        self._make_pool: Callable[[], asyncpg.Pool[asyncpg.Record]] = lambda: asyncpg.create_pool(
            url,
            min_size=0,
            max_size=size,
            max_inactive_connection_lifetime=0,
            connection_class=PooledConnection,
            init=codecs.register,
            statement_cache_size=1000,
            max_cached_statement_lifetime=0,
            command_timeout=COMMAND_SECONDS,
            timeout=ACQUIRE_SECONDS,
            server_settings={
                "application_name": application,
                "statement_timeout": "10s",
                "lock_timeout": f"{LOCK_MILLISECONDS}ms",
                "idle_in_transaction_session_timeout": "15s",
                "timezone": "UTC",
            },
        )
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Connects lazily, so that a process may start while PostgreSQL is away."""
        self._pool = await self._make_pool()

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            try:
                await asyncio.wait_for(pool.close(), timeout=10)
            except TimeoutError:
                pool.terminate()

    @property
    def pool(self) -> "asyncpg.Pool[asyncpg.Record]":
        if self._pool is None:
            raise asyncpg.InterfaceError("the pool is closed")
        return self._pool

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """One connection and no transaction: for reads."""
        return cast("AbstractAsyncContextManager[Connection]", self.pool.acquire(timeout=ACQUIRE_SECONDS))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """All of the block commits, or nothing of it."""
        async with self.connection() as connection, connection.transaction():
            yield connection


@asynccontextmanager
async def open_database(url: str, size: int = 2, application: str = "sapa") -> AsyncIterator[Database]:
    """A database for the length of a block: commands, jobs and tests."""
    database = Database(url, size, application)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
