"""Pages that change by themselves. A stream tells its page that it would look different by now, and the page asks for
the part that changed: what people may see goes the one way that checks it, and nothing of it is in the stream.

Each stream hears the bell of its company through the hub. Whatever the bells say, it looks by itself now and then, and
sees then whether its session is over.
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
from sapa.work.loops import rest

CHECK_SECONDS = 15.0
PAUSE_SECONDS = 0.5
"""Between two looks, however often the bell rings."""
LONGEST_SECONDS = 3600.0
MOST_STREAMS = 500
MOST_STREAMS_OF_A_PERSON = 12
RETRY_SECONDS = 30
CHANGED = build_event("changed", b"look")

ReadVersion = Callable[[], Awaitable[str | None]]
"""What a page shows by now, in a word that differs when it does; None when its session is over."""


class TooManyLivePages(ServiceUnavailable):
    """Too many pages listen at once; close some, or look again later."""


class Watch:
    """One page that listens to a bell; it shows what `seen` stands for."""

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
        """The answer to the page; the watch has its place until that ends."""
        open_streams = Counter(other.user_id for other in self._watches)[watch.user_id]
        if open_streams >= MOST_STREAMS_OF_A_PERSON or len(self._watches) >= MOST_STREAMS or self._closing.is_set():
            raise TooManyLivePages(headers={"retry-after": str(RETRY_SECONDS)})
        self._watches[watch] = self._database.hub.subscribe(watch.channel, lambda _: watch.changed.set())
        return EventStreamResponse(self.run(watch), partial(self.close, watch), HEADERS)

    def close(self, watch: Watch) -> None:
        if subscription := self._watches.pop(watch, None):
            self._database.hub.unsubscribe(subscription)

    async def run(self, watch: Watch) -> AsyncIterator[bytes]:
        """The stream's text, until the session or this process ends, or it has lasted long enough."""
        yield READY
        ends = time.monotonic() + LONGEST_SECONDS
        while not self._closing.is_set() and time.monotonic() < ends:
            await rest(CHECK_SECONDS, watch.changed, self._closing)
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
            await rest(PAUSE_SECONDS, self._closing)
