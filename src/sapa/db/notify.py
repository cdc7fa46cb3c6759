"""The bell: tells other processes that there is something new to look at.

NOTIFY inside a business transaction would put every commit of the installation in one line. So it is sent after the
commit, on its own, and rings that come close together are one. It is only ever a hint: whoever listens looks by
itself now and then, too.
"""

import asyncio
from collections.abc import Awaitable, Callable

REST_SECONDS = 0.02


class Notifier:
    def __init__(self, send: Callable[[set[str]], Awaitable[None]]) -> None:
        self._send = send
        self._due: set[str] = set()
        self._ringing: asyncio.Task[None] | None = None

    def ring(self, channels: set[str]) -> None:
        self._due |= channels
        if self._ringing is None:
            self._ringing = asyncio.create_task(self._ring(), name="bell")

    async def still(self) -> None:
        """Waits until what is due has been sent."""
        while self._ringing is not None:
            await asyncio.wait([self._ringing])

    async def _ring(self) -> None:
        try:
            while self._due:
                channels, self._due = self._due, set()
                await self._send(channels)
                await asyncio.sleep(REST_SECONDS)
        finally:
            self._ringing = None
