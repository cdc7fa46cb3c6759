"""Sends new messages to listening pages as server-sent events, and after a reconnect those that the page missed.

One query serves all pages of this process. It runs when a notification arrives, and at intervals without one.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import asyncpg
import msgspec

from sapa import traces
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.http.errors import ApiError
from sapa.http.event_stream import KEEP_ALIVE, READY, build_event
from sapa.messaging.channels.widget.messages import NOTIFY_CHANNEL, TYPING_CHANNEL, build_typing_payload
from sapa.messaging.channels.widget.types import TooManyPages, WidgetMessage
from sapa.messaging.widget import queries as widget
from sapa.messaging.widget.presentation import present
from sapa.messaging.widget.visits import WidgetVisit
from sapa.work.loops import wait

MAX_BATCH = 50
POLL_SECONDS = 2.0
HEARTBEAT_SECONDS = 15.0
MAX_PAGES = 2_000
MAX_PAGES_PER_VISITOR = 8
RETRY_SECONDS = 30
TYPING = b"event: typing\n\n"
"""Without data: pages that were loaded before there was this event skip it."""

Check = Callable[[], Awaitable[object]]


class WidgetListener:
    """A listening page; it has all messages up to `number`."""

    def __init__(self, visit: WidgetVisit, number: int, check: Check) -> None:
        self.visitor = (visit.company.id, visit.visitor.id)
        self.number = number
        self.check = check
        self.has_changes = asyncio.Event()
        self.has_changes.set()
        self.is_written_to = False
        """Since the page was last told."""


class Streams:
    """The listening pages of this process."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._database = context.database
        self._closing = context.closing
        self._pages: set[WidgetListener] = set()
        self._wakeup = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    def open(self, visit: WidgetVisit, number: int, check: Check) -> WidgetListener:
        """Registers a page until `close`; `check` raises when its session has ended."""
        page = WidgetListener(visit, number, check)
        of_visitor = Counter(other.visitor for other in self._pages)[page.visitor]
        if of_visitor >= MAX_PAGES_PER_VISITOR or len(self._pages) >= MAX_PAGES or self._closing.is_set():
            raise TooManyPages(headers={"retry-after": str(RETRY_SECONDS)})
        self._pages.add(page)
        if self._watching is None:
            self._watching = traces.create_shared_task(self._watch(), "widget pages")
        return page

    def close(self, page: WidgetListener) -> None:
        self._pages.discard(page)
        self._wakeup.set()

    async def run(self, page: WidgetListener) -> AsyncIterator[bytes]:
        """The stream's events, until the session or this process ends."""
        yield READY
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while not self._closing.is_set():
            page.has_changes.clear()
            for message in await self._read(page):
                page.number = message.number
                page.has_changes.set()
                shown = present(self._context, page.visitor[0], message)
                yield build_event("message", msgspec.json.encode(shown), message.number)
            if page.is_written_to:
                page.is_written_to = False
                yield TYPING
            if not page.has_changes.is_set():
                await wait(heartbeat - time.monotonic(), page.has_changes)
            if time.monotonic() >= heartbeat:
                if not await self._is_valid(page):
                    return
                heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                yield KEEP_ALIVE

    async def _read(self, page: WidgetListener) -> list[WidgetMessage]:
        """Empty while PostgreSQL is away; the page stays connected and resumes afterwards."""
        try:
            async with self._database.connection() as db:
                return await widget.list_after(db, *page.visitor, page.number, MAX_BATCH)
        except (DatabaseAway, asyncpg.PostgresError):
            return []

    async def _is_valid(self, page: WidgetListener) -> bool:
        try:
            await page.check()
        except ApiError:
            return False
        except (DatabaseAway, asyncpg.PostgresError):
            return True
        return True

    async def _watch(self) -> None:
        """Runs while there are pages."""
        hub = self._database.hub
        subscriptions = [
            hub.subscribe(NOTIFY_CHANNEL, lambda _: self._wakeup.set()),
            hub.subscribe(TYPING_CHANNEL, self._show_typing),
        ]
        try:
            while self._pages and not self._closing.is_set():
                await wait(POLL_SECONDS, self._wakeup, self._closing)
                self._wakeup.clear()
                with suppress(DatabaseAway, asyncpg.PostgresError):
                    await self._look()
        finally:
            self._watching = None
            for page in self._pages:
                page.has_changes.set()
            for subscription in subscriptions:
                hub.unsubscribe(subscription)

    def _show_typing(self, visitor: str) -> None:
        for page in self._pages:
            if visitor == build_typing_payload(*page.visitor):
                page.is_written_to = True
                page.has_changes.set()

    async def _look(self) -> None:
        async with self._database.connection() as db:
            positions = await widget.list_positions(db, list({page.visitor for page in self._pages}))
        last = {(position.company_id, position.visitor_id): position.last_number for position in positions}
        for page in self._pages:
            if last.get(page.visitor, 0) > page.number:
                page.has_changes.set()
