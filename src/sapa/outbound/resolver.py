"""Resolves a receiver's name in bounded time; one receiver's slow name servers do not delay another's."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from time import monotonic

from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct

from sapa.outbound.guard import Guard

BUDGET_SECONDS = 3
CACHE_SECONDS = 30
FAILURE_CACHE_SECONDS = 5
SLOW_CACHE_SECONDS = 600
MAX_CACHED = 10_000
MAX_LOOK_UPS = 24
MAX_SLOW_LOOK_UPS = 8


class SlowName(OSError):
    """DNS servers that did not answer in time."""


class NoRoom(OSError):
    """Too many other look-ups are running; this name was not looked up."""


class _CachedResult(Struct, frozen=True):
    addresses: list[str]
    failure: OSError | None
    until: float


def look_up(host: str) -> list[str]:
    """All addresses that the system knows for a name. Blocks."""
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class GuardedResolver(AbstractResolver):
    """The connector's resolver. Looks each name up once at a time, and caches the result.

    The system's look-up blocks and cannot be cancelled, so each runs in a thread of its own, which the process does
    not wait for when it ends. Names that were too slow share a few threads.
    """

    def __init__(
        self,
        guard: Guard,
        look_up: Callable[[str], list[str]] = look_up,
        budget: float = BUDGET_SECONDS,
        cache_seconds: float = CACHE_SECONDS,
    ) -> None:
        self._guard = guard
        self._look_up = look_up
        self._budget = budget
        self._cache_seconds = cache_seconds
        self._cache: dict[str, _CachedResult] = {}
        self._slow_until: dict[str, float] = {}
        self._running: dict[str, asyncio.Task[list[str]]] = {}
        self._started: set[str] = set()
        self._room = asyncio.Semaphore(MAX_LOOK_UPS)
        self._slow_room = asyncio.Semaphore(MAX_SLOW_LOOK_UPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a name; raises when one of them is closed to webhooks."""
        addresses = await self._list_addresses(host)
        for address in addresses:
            self._guard.check(address)
        return [_build_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _list_addresses(self, host: str) -> list[str]:
        cached = self._cache.get(host)
        if cached is None or cached.until < monotonic():
            return await self._join(host)
        if cached.failure is not None:
            raise cached.failure.with_traceback(None)
        return cached.addresses

    async def _join(self, host: str) -> list[str]:
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.create_task(self._run(host))
            task.add_done_callback(lambda task: self._on_done(host, task))
        try:
            async with asyncio.timeout(self._budget):
                return await asyncio.shield(task)
        except TimeoutError:
            raise self._build_timeout(host) from None

    def _build_timeout(self, host: str) -> OSError:
        if host not in self._started and not self._is_slow(host):
            return NoRoom(f"too many DNS look-ups are running; {host} has to wait")
        self._slow_until[host] = monotonic() + SLOW_CACHE_SECONDS
        return SlowName(f"the DNS servers of {host} did not answer within {self._budget:g} s")

    def _is_slow(self, host: str) -> bool:
        return self._slow_until.get(host, 0) > monotonic()

    async def _run(self, host: str) -> list[str]:
        is_slow = self._is_slow(host)
        async with self._slow_room if is_slow else self._room:
            self._started.add(host)
            future = self._start(host)
            # A look-up that takes longer frees its slot for others; from now on its name is slow.
            await asyncio.wait([future], timeout=None if is_slow else self._budget)
        return await future

    def _start(self, host: str) -> "asyncio.Future[list[str]]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[str]] = loop.create_future()
        Thread(target=self._block, args=(host, loop, future), name="look-up", daemon=True).start()
        return future

    def _block(self, host: str, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[list[str]]") -> None:
        """Runs in its own thread."""
        try:
            found: list[str] | Exception = self._look_up(host) or socket.gaierror(socket.EAI_NONAME, "no address")
        except Exception as error:
            found = error
        with suppress(RuntimeError):  # the loop is closed, nobody waits any more
            loop.call_soon_threadsafe(_settle, future, found)

    def _on_done(self, host: str, task: "asyncio.Task[list[str]]") -> None:
        del self._running[host]
        self._started.discard(host)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is None:
            self._store(host, _CachedResult(task.result(), None, monotonic() + self._cache_seconds))
        elif isinstance(failure, OSError):
            self._store(host, _CachedResult([], failure, monotonic() + FAILURE_CACHE_SECONDS))

    def _store(self, host: str, result: _CachedResult) -> None:
        for cache in (self._cache, self._slow_until):
            if len(cache) >= MAX_CACHED:
                del cache[next(iter(cache))]
        self._cache[host] = result


def _settle(future: "asyncio.Future[list[str]]", found: list[str] | Exception) -> None:
    if future.done():
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)


def _build_result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
