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

LOOK_SECONDS = 15.0
REST_SECONDS = 0.5
"""Between two looks, however often the bell rings."""
LONGEST_SECONDS = 3600.0
MOST_STREAMS = 500
MOST_STREAMS_OF_A_PERSON = 12
RETRY_SECONDS = 30
CHANGED = build_event("changed", b"look")

Look = Callable[[], Awaitable[str | None]]
"""What a page shows by now, in a word that differs when it does; None when its session is over."""


class TooManyLivePages(ServiceUnavailable):
    """Too many pages listen at once; close some, or look again later."""


class Watch:
    """One page that listens to a bell; it shows what `seen` stands for."""

    def __init__(self, user_id: int, bell: str, seen: str, look: Look) -> None:
        self.user_id = user_id
        self.bell = bell
        self.seen = seen
        self.look = look
        self.news = asyncio.Event()
        self.news.set()


class Live:
    """The streams of this process."""

    def __init__(self, context: AppContext) -> None:
        self._database: Database = context.database
        self._closing = context.closing
        self._watches: dict[Watch, ChannelSubscription] = {}

    def open(self, watch: Watch) -> EventStreamResponse:
        """The answer to the page; the watch has its place until that ends."""
        of_person = Counter(other.user_id for other in self._watches)[watch.user_id]
        if of_person >= MOST_STREAMS_OF_A_PERSON or len(self._watches) >= MOST_STREAMS or self._closing.is_set():
            raise TooManyLivePages(headers={"retry-after": str(RETRY_SECONDS)})
        self._watches[watch] = self._database.hub.subscribe(watch.bell, lambda _: watch.news.set())
        return EventStreamResponse(self.run(watch), partial(self.close, watch), HEADERS)

    def close(self, watch: Watch) -> None:
        if subscription := self._watches.pop(watch, None):
            self._database.hub.unsubscribe(subscription)

    async def run(self, watch: Watch) -> AsyncIterator[bytes]:
        """The stream's text, until the session or this process ends, or it has lasted long enough."""
        yield READY
        ends = time.monotonic() + LONGEST_SECONDS
        while not self._closing.is_set() and time.monotonic() < ends:
            await rest(LOOK_SECONDS, watch.news, self._closing)
            watch.news.clear()
            try:
                shown = await watch.look()
            except (DatabaseAway, asyncpg.PostgresError):
                shown = watch.seen
            except ApiError:
                return
            if shown is None or self._closing.is_set():
                return
            yield CHANGED if shown != watch.seen else KEEP_ALIVE
            watch.seen = shown
            await rest(REST_SECONDS, self._closing)
