"""The pages that listen: each gets its visitor's lines as server-sent events, and after a break those it missed.

One look at the database serves all pages of this process. It happens when the bell rings, and now and then without it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import asyncpg
import msgspec

from sapa.db.pool import AWAY, Connection, Database
from sapa.http.errors import ApiError
from sapa.messaging.channels.widget.messages import BELL
from sapa.messaging.channels.widget.types import Line, TooManyPages
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.visits import Visit

MOST_AT_ONCE = 50
LOOK_SECONDS = 2.0
HEARTBEAT_SECONDS = 15.0
MOST_PAGES = 2_000
MOST_PAGES_OF_A_VISITOR = 8
RETRY_SECONDS = 30
LISTENER = "sapa widget"
_ALIVE_SECONDS = 1.0

Check = Callable[[], Awaitable[object]]


class Page:
    """One page that listens; it has everything up to `number`."""

    def __init__(self, visit: Visit, number: int, check: Check) -> None:
        self.visitor = (visit.company.id, visit.visitor.id)
        self.number = number
        self.check = check
        self.news = asyncio.Event()
        self.news.set()


class Streams:
    """The pages of this process."""

    def __init__(self, database: Database, closing: asyncio.Event) -> None:
        self._database = database
        self._closing = closing
        self._pages: set[Page] = set()
        self._bell = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def open(self, visit: Visit, number: int, check: Check) -> Page:
        """A page has its place until `close`; `check` raises when its session is over."""
        page = Page(visit, number, check)
        of_visitor = Counter(other.visitor for other in self._pages)[page.visitor]
        if of_visitor >= MOST_PAGES_OF_A_VISITOR or len(self._pages) >= MOST_PAGES or self._closing.is_set():
            raise TooManyPages(headers={"retry-after": str(RETRY_SECONDS)})
        self._pages.add(page)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="widget pages")
        return page

    def close(self, page: Page) -> None:
        self._pages.discard(page)
        self._bell.set()

    async def run(self, page: Page) -> AsyncIterator[bytes]:
        """The stream's text, until the session or this process ends."""
        yield b": ready\n\n"
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while not self._closing.is_set():
            page.news.clear()
            for line in await self._read(page):
                page.number = line.number
                page.news.set()
                yield build_message(line)
            if not page.news.is_set():
                await _wait(page.news, heartbeat - time.monotonic())
            if time.monotonic() >= heartbeat:
                if not await self._is_valid(page):
                    return
                heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                yield b": still here\n\n"

    async def _read(self, page: Page) -> list[Line]:
        """While PostgreSQL is away there is nothing to read; the page stays and goes on afterwards."""
        try:
            async with self._database.connection() as db:
                return await widget.list_after(db, *page.visitor, page.number, MOST_AT_ONCE)
        except (*AWAY, asyncpg.PostgresError):
            return []

    async def _is_valid(self, page: Page) -> bool:
        try:
            await page.check()
        except ApiError:
            return False
        except (*AWAY, asyncpg.PostgresError):
            return True
        return True

    async def _watch(self) -> None:
        """As long as there are pages."""
        listening = asyncio.create_task(self._listen(), name="widget bell")
        ending = asyncio.create_task(self._closing.wait(), name="widget end")
        ending.add_done_callback(lambda _: self._bell.set())
        try:
            while self._pages and not self._closing.is_set():
                await _wait(self._bell, LOOK_SECONDS)
                self._bell.clear()
                with suppress(*AWAY, asyncpg.PostgresError):
                    await self._look()
        finally:
            self._watching = None
            for page in self._pages:
                page.news.set()
            for task in (listening, ending):
                task.cancel()
            await asyncio.gather(listening, ending, return_exceptions=True)

    async def _look(self) -> None:
        async with self._database.connection() as db:
            stands = await widget.list_stands(db, list({page.visitor for page in self._pages}))
        last = {(stand.company_id, stand.visitor_id): stand.last_number for stand in stands}
        for page in self._pages:
            if last.get(page.visitor, 0) > page.number:
                page.news.set()

    async def _listen(self) -> None:
        """Without it, news are seen a moment later."""
        while True:
            with suppress(*AWAY, asyncpg.PostgresError):
                await self._listen_once()
            await asyncio.sleep(_ALIVE_SECONDS)

    async def _listen_once(self) -> None:
        connection: Connection = await asyncpg.connect(
            self._database.url, timeout=5, command_timeout=5, server_settings={"application_name": LISTENER}
        )
        try:
            await connection.add_listener(BELL, lambda *_: self._bell.set())
            self._bell.set()
            while True:
                await asyncio.sleep(_ALIVE_SECONDS)
                await widget.check_alive(connection)
        finally:
            connection.terminate()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))


def build_message(line: Line) -> bytes:
    """One server-sent event; JSON has no line breaks of its own."""
    return f"id: {line.number}\nevent: message\ndata: ".encode() + msgspec.json.encode(line) + b"\n\n"
