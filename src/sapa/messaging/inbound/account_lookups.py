"""Looks up whose address a callback came to. Callbacks to one address that arrive while it is looked up share the next
lookup: each caller's begins after the caller arrived, so that nobody gets an account as it was before."""

import asyncio
from collections.abc import Awaitable, Callable

from sapa.context import AppContext
from sapa.db.pool import Database
from sapa.messaging.connections.accounts import ConnectedChannel

LookupKey = tuple[Database, str]
"""With the token of the address."""

FindAccount = Callable[[AppContext, str], Awaitable[ConnectedChannel | None]]


class AccountLookups:
    def __init__(self, find_account: FindAccount) -> None:
        self._find_account = find_account
        self._waiting: dict[LookupKey, asyncio.Task[ConnectedChannel | None]] = {}
        """Those that have not begun."""
        self._running: dict[LookupKey, asyncio.Task[ConnectedChannel | None]] = {}

    async def find(self, context: AppContext, token: str) -> ConnectedChannel | None:
        key = context.database, token
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._look_up(context, key), name="account lookup")
            task.add_done_callback(_take_exception)
            self._waiting[key] = task
        return await asyncio.shield(task)  # others may wait for it, too

    async def _look_up(self, context: AppContext, key: LookupKey) -> ConnectedChannel | None:
        if running := self._running.get(key):
            await asyncio.wait([running])
        task = self._running[key] = self._waiting.pop(key)
        try:
            return await self._find_account(context, key[1])
        finally:
            if self._running[key] is task:
                del self._running[key]


def _take_exception(task: "asyncio.Task[ConnectedChannel | None]") -> None:
    """An error that nobody waits for any more is none to log."""
    if not task.cancelled():
        task.exception()
