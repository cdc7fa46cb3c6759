"""Two transactions that create the same thing at once."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from sapa.db.pool import Tx
from sapa.db.retry import retry

Found = TypeVar("Found")


async def find_or_create(
    tx: Tx, find: Callable[[], Awaitable[Found | None]], create: Callable[[], Awaitable[Found]], tries: int = 3
) -> tuple[Found, bool]:
    """What there is, or what is created, and whether it was.

    Two may race: the one that finds something taken looks again, and finds what the other one created.
    """

    async def look() -> tuple[Found, bool]:
        found = await find()
        if found is not None:
            return found, False
        async with tx.transaction():
            return await create(), True

    return await retry(look, asyncpg.UniqueViolationError, tries=tries)
