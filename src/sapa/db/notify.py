"""Notifications to other processes that there is new work.

NOTIFY inside a business transaction would serialise every commit of the installation. So it is sent after the commit,
on its own, and notifications within a short time are sent as one. They are only hints: listeners also poll.
"""

import asyncio
from collections.abc import Awaitable, Callable

from sapa.traces import create_shared_task

PAUSE_SECONDS = 0.02

Notification = tuple[str, str]
"""A channel and a payload."""


class Notifier:
    def __init__(self, send: Callable[[set[Notification]], Awaitable[None]]) -> None:
        self._send = send
        self._due: set[Notification] = set()
        self._sending: asyncio.Task[None] | None = None

    def notify(self, notifications: set[Notification]) -> None:
        self._due |= notifications
        if self._sending is None:
            self._sending = create_shared_task(self._run(), "notifier")

    async def drain(self) -> None:
        """Waits until everything due is sent."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    async def _run(self) -> None:
        try:
            while self._due:
                notifications, self._due = self._due, set()
                await self._send(notifications)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._sending = None
