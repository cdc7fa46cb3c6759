"""Concurrent transactions that create the same row."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from sapa.db.pool import Tx
from sapa.db.retry import retry

Row = TypeVar("Row")


async def find_or_create(
    tx: Tx,
    find: Callable[[], Awaitable[Row | None]],
    create: Callable[[], Awaitable[Row]],
    tries: int = 3,
    conflict: type[Exception] = asyncpg.UniqueViolationError,
) -> tuple[Row, bool]:
    """The existing row or the created one, and whether it was created.

    After a conflict the search is repeated, and finds what the other transaction created.
    """

    async def attempt() -> tuple[Row, bool]:
        existing = await find()
        if existing is not None:
            return existing, False
        async with tx.transaction():
            return await create(), True

    return await retry(attempt, conflict, tries=tries)
