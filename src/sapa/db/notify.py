"""Notifications to other processes that there is new work.

NOTIFY inside a business transaction would serialise every commit of the installation. So it is sent after the commit,
on its own, and notifications within a short time are sent as one. They are only hints: listeners also poll.
"""

import asyncio
from collections.abc import Awaitable, Callable

PAUSE_SECONDS = 0.02


class Notifier:
    def __init__(self, send: Callable[[set[str]], Awaitable[None]]) -> None:
        self._send = send
        self._due: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def notify(self, channels: set[str]) -> None:
        self._due |= channels
        if self._sending is None:
            self._sending = asyncio.create_task(self._run(), name="notifier")

    async def drain(self) -> None:
        """Waits until everything due is sent."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    async def _run(self) -> None:
        try:
            while self._due:
                channels, self._due = self._due, set()
                await self._send(channels)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._sending = None
