"""Pages that update themselves. A stream notifies its page of a change, and the page fetches the changed part:
permissions are checked there, and the stream carries no data.

Each stream listens to its company's channel through the hub. It also checks at intervals, so that it ends with its
session.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import asyncpg

from sapa.console.rendering import HEADERS
from sapa.context import AppContext
from sapa.db.connection import DatabaseAway
from sapa.db.hub import ChannelSubscription
from sapa.db.pool import Database
from sapa.http.errors import ApiError, ServiceUnavailable
from sapa.http.event_stream import KEEP_ALIVE, READY, EventStreamResponse, build_event
from sapa.work.loops import wait

CHECK_SECONDS = 15.0
PAUSE_SECONDS = 0.5
"""Between two checks, however often the channel is notified."""
LONGEST_SECONDS = 3600.0
MAX_STREAMS = 500
MAX_STREAMS_OF_A_PERSON = 12
RETRY_SECONDS = 30
CHANGED = build_event("changed", b"look")

ReadVersion = Callable[[], Awaitable[str | None]]
"""The version of what a page shows; None after its session ended."""


class TooManyLivePages(ServiceUnavailable):
    """Too many pages are open; close some, or try again later."""


class Watch:
    """A page that listens to a channel and shows `version`."""

    def __init__(self, user_id: int, channel: str, version: str, read_version: ReadVersion) -> None:
        self.user_id = user_id
        self.channel = channel
        self.version = version
        self.read_version = read_version
        self.changed = asyncio.Event()
        self.changed.set()


class Live:
    """The streams of this process."""

    def __init__(self, context: AppContext) -> None:
        self._database: Database = context.database
        self._closing = context.closing
        self._watches: dict[Watch, ChannelSubscription] = {}

    def open(self, watch: Watch) -> EventStreamResponse:
        """The stream's response; the slot is released when it ends."""
        open_streams = Counter(other.user_id for other in self._watches)[watch.user_id]
        if open_streams >= MAX_STREAMS_OF_A_PERSON or len(self._watches) >= MAX_STREAMS or self._closing.is_set():
            raise TooManyLivePages(headers={"retry-after": str(RETRY_SECONDS)})
        self._watches[watch] = self._database.hub.subscribe(watch.channel, lambda _: watch.changed.set())
        return EventStreamResponse(self.run(watch), partial(self.close, watch), HEADERS)

    def close(self, watch: Watch) -> None:
        if subscription := self._watches.pop(watch, None):
            self._database.hub.unsubscribe(subscription)

    async def run(self, watch: Watch) -> AsyncIterator[bytes]:
        """Events until the session or the process ends, or the time is up."""
        yield READY
        ends = time.monotonic() + LONGEST_SECONDS
        while not self._closing.is_set() and time.monotonic() < ends:
            await wait(CHECK_SECONDS, watch.changed, self._closing)
            watch.changed.clear()
            try:
                current = await watch.read_version()
            except (DatabaseAway, asyncpg.PostgresError):
                current = watch.version
            except ApiError:
                return
            if current is None or self._closing.is_set():
                return
            yield CHANGED if current != watch.version else KEEP_ALIVE
            watch.version = current
            await wait(PAUSE_SECONDS, self._closing)
