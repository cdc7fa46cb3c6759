"""From a receiver's name to its addresses, in bounded time, and with no one's slow name servers in another's way."""

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
REMEMBERED_SECONDS = 30
FAILURE_REMEMBERED_SECONDS = 5
SLOW_REMEMBERED_SECONDS = 600
MOST_REMEMBERED = 10_000
MOST_LOOK_UPS = 24
MOST_SLOW_LOOK_UPS = 8


class SlowName(OSError):
    """Name servers that did not answer in time."""


class NoRoom(OSError):
    """Too many other look-ups are under way; nothing was learnt about this one's name."""


class _Answer(Struct, frozen=True):
    addresses: list[str]
    failure: OSError | None
    until: float


def look_up(host: str) -> list[str]:
    """All addresses that the system knows for a name. Blocks."""
    found = socket.getaddrinfo(host.encode(), None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class Names(AbstractResolver):
    """The connector's resolver. Looks each name up once at a time, and remembers what came of it for a while.

    The system's look-up blocks and cannot be cut short, so each has a thread of its own, which the process does not
    wait for at its end. A name that was too slow once has to share a few of them with its like.
    """

    def __init__(
        self,
        guard: Guard,
        look_up: Callable[[str], list[str]] = look_up,
        budget: float = BUDGET_SECONDS,
        remembered: float = REMEMBERED_SECONDS,
    ) -> None:
        self._guard = guard
        self._look_up = look_up
        self._budget = budget
        self._remembered = remembered
        self._answers: dict[str, _Answer] = {}
        self._slow_until: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[list[str]]] = {}
        self._begun: set[str] = set()
        self._room = asyncio.Semaphore(MOST_LOOK_UPS)
        self._slow_room = asyncio.Semaphore(MOST_SLOW_LOOK_UPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The places a name leads to; one that is closed to webhooks closes them all."""
        addresses = await self._list_addresses(host)
        for address in addresses:
            self._guard.check(address)
        return [_place(host, address, port) for address in addresses]

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _list_addresses(self, host: str) -> list[str]:
        answer = self._answers.get(host)
        if answer is None or answer.until < monotonic():
            return await self._ask(host)
        if answer.failure is not None:
            raise answer.failure.with_traceback(None)
        return answer.addresses

    async def _ask(self, host: str) -> list[str]:
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.create_task(self._run(host))
            task.add_done_callback(lambda task: self._remember(host, task))
        try:
            async with asyncio.timeout(self._budget):
                return await asyncio.shield(task)
        except TimeoutError:
            raise self._too_late(host) from None

    def _too_late(self, host: str) -> OSError:
        if host not in self._begun and not self._is_slow(host):
            return NoRoom(f"too many look-ups of names are under way, {host} has to wait")
        self._slow_until[host] = monotonic() + SLOW_REMEMBERED_SECONDS
        return SlowName(f"the name servers of {host} did not answer within {self._budget:g} s")

    def _is_slow(self, host: str) -> bool:
        return self._slow_until.get(host, 0) > monotonic()

    async def _run(self, host: str) -> list[str]:
        is_slow = self._is_slow(host)
        async with self._slow_room if is_slow else self._room:
            self._begun.add(host)
            answer = self._start(host)
            # One that takes longer gives its place to others; from now on it is among the slow.
            await asyncio.wait([answer], timeout=None if is_slow else self._budget)
        return await answer

    def _start(self, host: str) -> "asyncio.Future[list[str]]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()
        Thread(target=self._block, args=(host, loop, answer), name="look-up", daemon=True).start()
        return answer

    def _block(self, host: str, loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[list[str]]") -> None:
        """Runs in a thread of its own."""
        try:
            found: list[str] | Exception = self._look_up(host) or socket.gaierror(socket.EAI_NONAME, "no address")
        except Exception as error:
            found = error
        with suppress(RuntimeError):  # the loop is closed, nobody waits any more
            loop.call_soon_threadsafe(_settle, answer, found)

    def _remember(self, host: str, task: "asyncio.Task[list[str]]") -> None:
        del self._under_way[host]
        self._begun.discard(host)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is None:
            self._store(host, _Answer(task.result(), None, monotonic() + self._remembered))
        elif isinstance(failure, OSError):
            self._store(host, _Answer([], failure, monotonic() + FAILURE_REMEMBERED_SECONDS))

    def _store(self, host: str, answer: _Answer) -> None:
        for remembered in (self._answers, self._slow_until):
            if len(remembered) >= MOST_REMEMBERED:
                del remembered[next(iter(remembered))]
        self._answers[host] = answer


def _settle(answer: "asyncio.Future[list[str]]", found: list[str] | Exception) -> None:
    if answer.done():
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _place(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
