"""`/listen`: a company's events as they happen, as server-sent events that lose none.

Events become visible when their transactions commit, which is not the order in which they were recorded. So a stream
scans the last half minute, longer than any transaction lasts, again and again for events of transactions that
were still open at its previous scan, and sends those that it has not sent yet. `ready` and every heartbeat carry the
stream's position; a listener that reconnects with it, or with the last event's id, ignores the events that it has.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import msgspec
from msgspec import Struct

from sapa.db.connection import DatabaseAway
from sapa.db.pool import Connection, Database
from sapa.events import EVENT_ID
from sapa.http.errors import ApiError, Invalid, ServiceUnavailable
from sapa.http.event_stream import build_event
from sapa.values.ids import IdKind
from sapa.webhooks.dispatch.attempt import build_url
from sapa.webhooks.endpoints.fields import check_events
from sapa.webhooks.id_times import TIME_DIGITS, format_digits, format_time, parse_digits, parse_time
from sapa.webhooks.listen import queries
from sapa.webhooks.listen.queries import LONGEST_TRANSACTION_SECONDS, EventScan, RecordedEvent
from sapa.webhooks.sender import shorten
from sapa.webhooks.tokens import actions as tokens
from sapa.work.loops import wait

POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MAX_STREAMS = 50
MAX_STREAMS_PER_TOKEN = 5
MAX_PER_SCAN = 200
# Ids have the time of the API's machines, events that of the database.
CLOCK_SKEW_SECONDS = 5
MARGIN_SECONDS = LONGEST_TRANSACTION_SECONDS + CLOCK_SKEW_SECONDS
"""How far before its last event a listener starts again."""

POSITION = IdKind("pos_")
RETRY_SECONDS = 30
_TRANSACTION_DIGITS = 16
_LARGEST_TRANSACTION = 2**62


class InvalidToken(ApiError):
    """The developer token is missing, invalid, revoked or expired; create one with `sapa token create`."""

    status = 401
    code = "INVALID_TOKEN"
    fix = "Create a token with `sapa token create` on the server, and pass it to `sapa listen` with `--token`."


class TooManyListeners(ServiceUnavailable):
    """Too many listeners are connected to this server; try again later."""


class ListenedEvent(Struct, frozen=True, rename="camel"):
    """An event as a listener gets it: the body is that of a delivery."""

    id: str
    kind: str
    created_at: str
    body: str


class StreamPosition(Struct, frozen=True):
    """Events recorded before `at`, or written by transactions before `oldest`, were sent."""

    at: datetime
    oldest: int = 0


class Listener:
    """One listener: its company and kinds, its position, and what it was sent."""

    def __init__(self, company_id: int, token: bytes, kinds: list[str], position: StreamPosition | None) -> None:
        self.token = token
        self._company_id = company_id
        self._kinds = kinds
        self._position = position
        self._next_position: StreamPosition | None = None
        self._cursor: tuple[datetime, int] | None = None
        self._sent: dict[str, datetime] = {}

    @property
    def position(self) -> str:
        """With this as its last id, a listener continues from here."""
        return build_position(self._position) if self._position else ""

    async def start(self, db: Connection) -> None:
        """Without a position to continue from, a listener gets only events that are not visible yet."""
        has_more = self._position is None
        while has_more:
            has_more = self._advance(await self._scan(db))

    async def read(self, db: Connection) -> tuple[list[RecordedEvent], bool]:
        """New events, and whether there may be more; raises when the token is no longer valid."""
        rows = await self._scan(db)
        new = [row for row in rows if row.id is not None and row.id not in self._sent]
        events = await queries.list_events(db, self._company_id, new)
        return events, self._advance(rows)

    async def _scan(self, db: Connection) -> list[EventScan]:
        after = self._cursor or (self._position.at if self._position else None, -1)
        oldest = self._position.oldest if self._position else 0
        rows = await queries.scan_events(db, self._company_id, self.token, after, self._kinds, oldest, MAX_PER_SCAN)
        if not rows:
            raise InvalidToken
        return rows

    def _advance(self, rows: list[EventScan]) -> bool:
        """Returns whether there may be more to read at once."""
        sent = {row.id: row.created_at for row in rows if row.id is not None and row.created_at is not None}
        self._sent |= sent
        self._move(rows[0], rows[-1] if len(sent) == MAX_PER_SCAN else None)
        return self._cursor is not None

    def _move(self, first: EventScan, last: EventScan | None) -> None:
        """A pass may take many scans. The next pass reads what became visible during this one."""
        position = self._position or StreamPosition(first.settled)
        upcoming = self._next_position or StreamPosition(max(position.at, first.settled), first.oldest)
        if last is None or last.created_at is None:
            self._position, self._next_position, self._cursor = upcoming, None, None
        else:
            self._cursor = (last.created_at, last.number or 0)
            self._position = StreamPosition(max(position.at, min(upcoming.at, self._cursor[0])), position.oldest)
            self._next_position = upcoming
        at = self._position.at
        self._sent = {id: created_at for id, created_at in self._sent.items() if created_at >= at}


class Listeners:
    """The streams of this process."""

    def __init__(self, database: Database, address: str) -> None:
        self._database = database
        self._address = address
        self._open_streams: Counter[bytes] = Counter()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends every stream; listeners reconnect to another process."""
        self._stopping.set()

    async def open(self, token: str, kinds: list[str], last_id: str | None) -> Listener:
        """The stream counts against the limits until `close`."""
        checked, position = check_events(kinds), None if last_id is None else parse_position(last_id)
        async with self._database.connection() as db:
            company_id = await tokens.find_company(db, token)
            if company_id is None:
                raise InvalidToken(headers={"www-authenticate": "Bearer"})
            stream = Listener(company_id, tokens.hash_token(token), checked, position)
            self._count(stream.token)
            try:
                await stream.start(db)
            except BaseException:
                self.close(stream)
                raise
        return stream

    def _count(self, token: bytes) -> None:
        headers = {"retry-after": str(RETRY_SECONDS)}
        if self._open_streams[token] >= MAX_STREAMS_PER_TOKEN:
            raise TooManyListeners("Too many listeners use this token; stop one, or try again later.", headers=headers)
        if self._open_streams.total() >= MAX_STREAMS or self._stopping.is_set():
            raise TooManyListeners(headers=headers)
        self._open_streams[token] += 1

    def close(self, stream: Listener) -> None:
        self._open_streams[stream.token] -= 1
        self._open_streams = +self._open_streams

    async def run(self, stream: Listener) -> AsyncIterator[bytes]:
        """The stream's messages, until its token or this process ends."""
        yield _build_comment("ready", stream)
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while not self._stopping.is_set():
            try:
                events, has_more = await self._read(stream)
            except InvalidToken:
                return
            for event in events:
                listened = _build_listened(event, self._address)
                yield build_event(listened.kind, msgspec.json.encode(listened), listened.id)
            if time.monotonic() >= heartbeat:
                heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                yield _build_comment("still here", stream)
            if not has_more:
                await wait(POLL_SECONDS, self._stopping)

    async def _read(self, stream: Listener) -> tuple[list[RecordedEvent], bool]:
        """Empty while PostgreSQL is away: the stream stays open and continues afterwards."""
        try:
            async with self._database.connection() as db:
                return await stream.read(db)
        except (DatabaseAway, asyncpg.PostgresError):
            return [], False


def build_position(position: StreamPosition) -> str:
    time_digits = format_time(position.at.timestamp())
    return POSITION.prefix + time_digits + format_digits(position.oldest, _TRANSACTION_DIGITS)


def parse_position(last_id: str) -> StreamPosition:
    """The position in a stream's id, or a little before an event. Foreign ids may hold times beyond any calendar."""
    if POSITION.matches(last_id):
        oldest = parse_digits(last_id.removeprefix(POSITION.prefix)[TIME_DIGITS:])
        return StreamPosition(_build_time(parse_time(last_id)), min(oldest, _LARGEST_TRANSACTION))
    if EVENT_ID.matches(last_id):
        return StreamPosition(_build_time(parse_time(last_id) - MARGIN_SECONDS))
    raise Invalid.field("Last-Event-ID", f"must be an event's id, such as {EVENT_ID.example}, or the stream's own id")


def _build_time(seconds: float) -> datetime:
    now = int(time.time() * 1000) / 1000
    return datetime.fromtimestamp(min(max(0.0, seconds), now), UTC)


def _build_comment(text: str, stream: Listener) -> bytes:
    return f": {text}\nid: {stream.position}\n\n".encode()


def _build_listened(event: RecordedEvent, address: str) -> ListenedEvent:
    url = build_url(address, event.kind, event.resource_id)
    return ListenedEvent(event.id, event.kind, event.created_at, shorten(event.body, event.resource_id, url).decode())
