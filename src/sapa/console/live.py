"""Pages that change by themselves. A stream tells its page that it would look different by now, and the page asks for
the part that changed: what people may see goes the one way that checks it, and nothing of it is in the stream.

Streams of this process share one connection that hears the bells of the companies they belong to. Whatever the bells
say, each stream looks by itself now and then, and sees then whether its session is over.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import asyncpg
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sapa.console.rendering import HEADERS
from sapa.context import Kit
from sapa.db.pool import AWAY, Connection, Database
from sapa.db.sql import sql
from sapa.http.errors import ApiError, ServiceUnavailable

LOOK_SECONDS = 15.0
REST_SECONDS = 0.5
"""Between two looks, however often the bell rings."""
LONGEST_SECONDS = 3600.0
MOST_STREAMS = 500
MOST_STREAMS_OF_A_PERSON = 12
RETRY_SECONDS = 30
LISTENER = "sapa console"
CHANGED = b"event: changed\ndata: look\n\n"
_ALIVE_SECONDS = 1.0

ALIVE = sql("SELECT 1")

Look = Callable[[], Awaitable[str | None]]
"""What a page shows by now, in a word that differs when it does; None when its session is over."""


class TooManyStreams(ServiceUnavailable):
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

    def __init__(self, kit: Kit) -> None:
        self._database: Database = kit.database
        self._closing = kit.closing
        self._watches: set[Watch] = set()
        self._listening: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()

    def open(self, watch: Watch) -> "Stream":
        """The answer to the page; the watch has its place until that ends."""
        of_person = Counter(other.user_id for other in self._watches)[watch.user_id]
        if of_person >= MOST_STREAMS_OF_A_PERSON or len(self._watches) >= MOST_STREAMS or self._closing.is_set():
            raise TooManyStreams(headers={"retry-after": str(RETRY_SECONDS)})
        self._watches.add(watch)
        self._moved.set()
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen(), name="console bells")
        return Stream(self, watch)

    def close(self, watch: Watch) -> None:
        self._watches.discard(watch)
        self._moved.set()

    async def run(self, watch: Watch) -> AsyncIterator[bytes]:
        """The stream's text, until the session or this process ends, or it has lasted long enough."""
        yield b": ready\n\n"
        ends = time.monotonic() + LONGEST_SECONDS
        while not self._closing.is_set() and time.monotonic() < ends:
            await self._wait(watch.news, LOOK_SECONDS)
            watch.news.clear()
            try:
                shown = await watch.look()
            except (*AWAY, asyncpg.PostgresError):
                shown = watch.seen
            except ApiError:
                return
            if shown is None or self._closing.is_set():
                return
            yield CHANGED if shown != watch.seen else b": still here\n\n"
            watch.seen = shown
            await self._wait(self._closing, REST_SECONDS)

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        """For something to happen, but not beyond the end of the process."""
        waits = [asyncio.create_task(each.wait()) for each in (event, self._closing)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _listen(self) -> None:
        """As long as there are pages. Without it, news are seen a while later."""
        try:
            while self._watches and not self._closing.is_set():
                with suppress(*AWAY, asyncpg.PostgresError):
                    await self._listen_once()
                await self._wait(self._closing, _ALIVE_SECONDS)
        finally:
            self._listening = None

    async def _listen_once(self) -> None:
        connection: Connection = await asyncpg.connect(
            self._database.url, timeout=5, command_timeout=5, server_settings={"application_name": LISTENER}
        )
        heard: set[str] = set()
        try:
            while self._watches and not self._closing.is_set():
                self._moved.clear()
                heard = await self._turn_to(connection, heard)
                await self._wait(self._moved, _ALIVE_SECONDS)
                await ALIVE.value(connection)
        finally:
            connection.terminate()

    async def _turn_to(self, connection: Connection, heard: set[str]) -> set[str]:
        """Listens to the bells that somebody waits for, and to no others."""
        wanted = {watch.bell for watch in self._watches}
        for bell in heard - wanted:
            await connection.remove_listener(bell, self._ring)
        for bell in wanted - heard:
            await connection.add_listener(bell, self._ring)
            self._ring(connection, 0, bell, "")  # it may have rung before
        return wanted

    def _ring(self, _connection: object, _pid: int, bell: str, _payload: object) -> None:
        for watch in self._watches:
            if watch.bell == bell:
                watch.news.set()


class Stream(StreamingResponse):
    """An answer that goes on; its place is free again however it ends."""

    def __init__(self, live: Live, watch: Watch) -> None:
        headers = HEADERS | {"x-accel-buffering": "no"}
        super().__init__(live.run(watch), headers=headers, media_type="text/event-stream")
        self._live = live
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.close(self._watch)
