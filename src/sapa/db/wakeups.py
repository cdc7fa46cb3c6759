"""Wakeups: loops of the worker sleep until their work is due.

A loop wakes when a process announces work of its queue, and when the first row that it knows of is due. A periodic
sweep, one statement for all queues of a process, finds work whose announcement was lost.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress

import asyncpg
import structlog
from msgspec import Struct

from sapa.db.connection import Connection, DatabaseAway
from sapa.db.hub import ChannelSubscription, Hub

CHANNEL = "sapa_due"
"""Notified with the name of a queue and the seconds until its work is due; without a payload, all of them wake."""
SWEEP_SECONDS = 5.0
GATHER_SECONDS = 0.02
"""The least time between the starts of two passes of a loop: a pass over many rows costs little more than over few."""

Connect = Callable[[], AbstractAsyncContextManager[Connection]]

log = structlog.get_logger()


class DueQueue(Struct, frozen=True):
    """Rows that wait until they are due."""

    name: str
    next_due: str | None = None
    """A statement: the seconds until the first row is due, NULL if none waits. Without one, only announcements wake."""

    def build_announcement(self, seconds: float) -> str:
        """The payload of a notification."""
        return f"{self.name}:{max(0.0, seconds):.2f}"


class Wakeup:
    """Wakes one loop."""

    def __init__(self, connect: Connect, queue: DueQueue, pause: float) -> None:
        self.queue = queue
        self._connect = connect
        self._pause = pause
        self._event = asyncio.Event()
        self._began = -math.inf

    def wake(self) -> None:
        self._event.set()

    def wake_in(self, seconds: float) -> None:
        """Ignores work that is due after the next sweep, which will find it."""
        if seconds <= 0:
            self.wake()
        elif seconds <= SWEEP_SECONDS:
            asyncio.get_running_loop().call_later(seconds, self.wake)

    def begin(self) -> None:
        """Call it when a pass starts: announcements from now on end the next wait."""
        self._event.clear()
        self._began = asyncio.get_running_loop().time()

    async def gather(self) -> None:
        """Call it before a pass: waits a moment if the last one has just started, so that one pass processes more."""
        await asyncio.sleep(self._began + GATHER_SECONDS - asyncio.get_running_loop().time())

    async def sleep(self, seconds: float | None) -> None:
        """Returns when woken, or after `seconds`: for a loop that knows what is due next."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    async def wait(
        self, stopping: asyncio.Event, running: Collection["asyncio.Task[None]"] = (), most: float | None = None
    ) -> None:
        """Returns when work may be due, a running task is done or `stopping` is set, or after `most` seconds."""
        if self._event.is_set() or stopping.is_set():
            return
        seconds = await self._read_next_due()
        limits = [most] if most is not None else []
        if seconds is not None and seconds <= SWEEP_SECONDS:
            # Rows that are due and were left alone belong to another worker, or cannot be processed now.
            limits.append(max(seconds, self._pause))
        events = [asyncio.create_task(event.wait()) for event in (self._event, stopping)]
        try:
            await asyncio.wait(
                [*events, *running], timeout=min(limits) if limits else None, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for event in events:
                event.cancel()

    async def _read_next_due(self) -> float | None:
        if self.queue.next_due is None:
            return None
        async with self._connect() as db:
            seconds: float | None = await db.fetchval(self.queue.next_due)
        return seconds


class Wakeups:
    """The wakeups of a process. It listens and sweeps while there are any."""

    def __init__(self, hub: Hub, connect: Connect) -> None:
        self._hub = hub
        self._connect = connect
        self._wakeups: set[Wakeup] = set()
        self._subscription: ChannelSubscription | None = None
        self._sweeping: asyncio.Task[None] | None = None

    @contextmanager
    def open(self, queue: DueQueue, pause: float) -> Iterator[Wakeup]:
        """The wakeup of one loop, for the block. Due rows that the loop left alone do not wake it again for `pause`."""
        wakeup = Wakeup(self._connect, queue, pause)
        self._wakeups.add(wakeup)
        if self._subscription is None:
            self._subscription = self._hub.subscribe(CHANNEL, self._on_notification)
        if self._sweeping is None:
            self._sweeping = asyncio.create_task(self._sweep(), name="sweep for due work")
        try:
            yield wakeup
        finally:
            self._wakeups.discard(wakeup)
            if not self._wakeups and self._subscription is not None:
                self._hub.unsubscribe(self._subscription)
                self._subscription = None

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    def _on_notification(self, payload: str) -> None:
        name, _, seconds = payload.partition(":")
        for wakeup in list(self._wakeups):
            if not payload:
                wakeup.wake()
            elif wakeup.queue.name == name:
                wakeup.wake_in(float(seconds))

    async def _sweep(self) -> None:
        try:
            while self._wakeups:
                await asyncio.sleep(SWEEP_SECONDS)
                try:
                    await self._sweep_once()
                except (DatabaseAway, asyncpg.PostgresError) as error:
                    log.warning("due work not looked for", reason=f"{type(error).__name__}: {error}")
        finally:
            self._sweeping = None

    async def _sweep_once(self) -> None:
        statements = {each.queue.name: each.queue.next_due for each in self._wakeups if each.queue.next_due}
        if not statements:
            return
        names = sorted(statements)
        async with self._connect() as db:
            found = await db.fetchrow(f"SELECT {', '.join(f'({statements[name]})' for name in names)}")
        seconds = dict(zip(names, found or (), strict=True))
        for wakeup in self._wakeups:
            if (first := seconds.get(wakeup.queue.name)) is not None:
                wakeup.wake_in(first)
