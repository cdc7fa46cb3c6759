"""Leases: the right to do work, held by one worker at a time, for a limited time.

A worker renews its own lease and those of its jobs in one statement. What it holds elsewhere, such as lanes, has its
name: the worker that finds the lease of a peer expired frees that, too.
"""

import asyncio
import itertools
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from sapa.context import ProcessLease
from sapa.db.pool import Connection, Database, Tx, announce_all_due
from sapa.work import queries
from sapa.work.loops import keep_running

RENEW_SECONDS = 3.0
LEASE_SECONDS = 6.5
"""Of a worker: with the peers' next renewals, its work moves within ten seconds of its death."""
_MARGIN_SECONDS = 0.5
"""How long before its end work stops, so that two workers never do it at once."""
_PAUSE_SECONDS = 0.5
BEAT = "beat"
"""The worker that has this lease sends the installation's beat."""

FreeWork = Callable[[Tx, Sequence[str]], Awaitable[None]]
"""Frees what the processes with these names hold."""

_started = time.time_ns()
_numbers = itertools.count(1)

log = structlog.get_logger()


def get_process_name() -> str:
    """The machine, the process, and when it started."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started}"


def new_holder() -> str:
    """A unique name for a holder of leases, which begins with the name of the process."""
    return f"{get_process_name()}/{next(_numbers)}"


async def take(db: Connection, name: str, holder: str, seconds: float) -> int | None:
    """Takes or renews a lease; its epoch, or None while another worker holds it."""
    return await queries.take_lease(db, name, holder, seconds)


async def release_all(db: Connection, holder: str) -> None:
    await queries.release_leases(db, holder)


class WorkerLeases:
    """The leases of this worker: its own, by which its peers know that it lives, and those of its jobs."""

    def __init__(self, database: Database, lease: ProcessLease, jobs: Sequence[str], free: Sequence[FreeWork]) -> None:
        self._database = database
        self._lease = lease
        self._holder = get_process_name()
        self._names = [queries.WORKER_PREFIX + self._holder, BEAT, *jobs]
        self._free = free
        self._held: set[str] = set()
        self._changed = asyncio.Event()
        self._is_waiting_over = False
        self._limits: dict[asyncio.Timeout, float] = {}

    async def keep(self) -> None:
        """Renews the leases until it is cancelled."""
        self._lease.until = 0.0
        await keep_running("leases", self._renew, asyncio.Event(), every=RENEW_SECONDS, pause=_PAUSE_SECONDS)

    async def wait_for(self, name: str) -> None:
        """Returns when this worker holds the lease, or after `stop_waiting`."""
        while not self._is_waiting_over and not (self._lease.is_held() and name in self._held):
            self._changed.clear()
            await self._changed.wait()

    def stop_waiting(self) -> None:
        self._is_waiting_over = True
        self._changed.set()

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Stops the block after `seconds`, and before the leases end."""
        end = time.monotonic() + seconds
        async with asyncio.timeout_at(min(end, self._lease.until)) as limit:
            self._limits[limit] = end
            try:
                yield limit
            finally:
                del self._limits[limit]

    async def release(self) -> None:
        async with self._database.connection() as db:
            await queries.release_leases(db, self._holder)

    async def _renew(self) -> None:
        started, was_held = time.monotonic(), self._lease.is_held()
        async with self._database.connection() as db:
            found = await queries.renew_leases(db, self._holder, self._names, LEASE_SECONDS, RENEW_SECONDS)
        held = {lease.name for lease in found if not lease.is_expired}
        self._lease.until = started + LEASE_SECONDS - _MARGIN_SECONDS
        for limit, end in self._limits.items():
            if not limit.expired():
                limit.reschedule(min(end, self._lease.until))
        self._database.hub.is_beating = BEAT in held
        if held != self._held or not was_held:
            self._held = held
            self._changed.set()
        if expired := [lease.holder for lease in found if lease.is_expired]:
            await self._free_work(expired)

    async def _free_work(self, expired: list[str]) -> None:
        """Of peers that did not come back meanwhile."""
        async with self._database.transaction() as tx:
            dead = await queries.delete_expired_workers(tx, expired)
            await queries.free_leases(tx, dead)
            for free in self._free:
                await free(tx, dead)
            announce_all_due(tx)
        if dead:
            log.warning("worker gone, its work is free", workers=dead)
