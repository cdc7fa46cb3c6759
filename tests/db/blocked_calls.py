"""Calls that begin while a transaction is open, and wait for its locks."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from sapa.db.pool import Database, Tx
from tests.http.wire import eventually

Result = TypeVar("Result")

WAITERS = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))"


async def start_behind(tx: Tx, database: Database, call: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Returns once the call waits for the transaction, or is done without that."""
    own = await tx.fetchval("SELECT pg_backend_pid()")
    calling = asyncio.create_task(call)

    async def is_waiting() -> bool:
        async with database.connection() as db:
            return calling.done() or bool(await db.fetchval(WAITERS, own))

    await eventually(is_waiting)
    return calling
