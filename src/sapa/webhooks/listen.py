"""`/listen`: a company's events as they happen, as server-sent events that lose none.

Events become visible when their transactions commit, which is not the order in which they were recorded. So a stream
sweeps again and again through the last half minute, longer than any transaction of ours lasts, for what was written
by transactions that were not over at its sweep before, and sends what it has not sent yet. Its place is told with
`ready` and every heartbeat; a listener that comes back with it, or with the last event's id, drops what it knows.
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
from sapa.db.sql import sql
from sapa.events import EVENT_ID
from sapa.http.errors import ApiError, Invalid, ServiceUnavailable
from sapa.http.event_stream import build_event
from sapa.values.ids import IdKind
from sapa.webhooks import tokens
from sapa.webhooks.attempt import build_url
from sapa.webhooks.endpoint import check_events
from sapa.webhooks.id_times import TIME_DIGITS, made_at, read_digits, write_digits, write_time
from sapa.webhooks.sender import shorten
from sapa.work.loops import rest

LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MOST_STREAMS = 50
MOST_STREAMS_PER_TOKEN = 5
MOST_AT_ONCE = 200
LONGEST_TRANSACTION_SECONDS = 30
# Ids are made by the clocks of the API's machines, events are dated by the database's.
CLOCK_SKEW_SECONDS = 5
MARGIN_SECONDS = LONGEST_TRANSACTION_SECONDS + CLOCK_SKEW_SECONDS
"""How far before its last event a listener starts again."""

POSITION = IdKind("pos_")
RETRY_SECONDS = 30
_REST_DIGITS = 16
_LARGEST = 2**62


class InvalidToken(ApiError):
    """The developer token is missing, invalid, revoked or expired; `sapa token create` makes one."""

    status = 401
    code = "INVALID_TOKEN"


class TooManyListeners(ServiceUnavailable):
    """Too many listeners are connected to this server; try again later."""


class EventScan(Struct, frozen=True):
    """One event of a look, or none. What was recorded before `settled` is visible by now, and so is what was written
    by transactions before `oldest`."""

    settled: str
    oldest: int
    id: str | None
    created_at: str | None
    number: int | None


# No row at all: the token does not open the company any more. A row bears the last 32 bits of its transaction's number.
LOOK = sql(
    f"""
    SELECT now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds' AS settled, here.oldest,
           seen.id, seen.created_at, seen.number
      FROM developer_tokens t
      JOIN companies c ON c.company_id = $1
     CROSS JOIN LATERAL (
           SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
                  pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS here
      LEFT JOIN LATERAL (
           SELECT v.id, v.created_at, v.number
             FROM events v
            WHERE v.company_id = $1
              AND v.created_at >= coalesce($3::text::timestamptz,
                                           now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds')
              AND ($3 IS NULL OR (v.created_at, v.number) > ($3::text::timestamptz, $4))
              AND (v.kind = ANY($5) OR $5 = '{{}}')
              AND ((here.next - v.xmin::text::bigint) & 4294967295 <= here.next - $6 OR $6 > here.next)
            ORDER BY v.created_at, v.number
            LIMIT $7) AS seen ON true
     WHERE t.company_id = $1 AND t.hash = $2 AND t.expires_at > now() + c.clock_offset""",
    row=EventScan,
)


class Found(Struct, frozen=True):
    id: str
    kind: str
    resource_id: str
    body: bytes
    created_at: str


READ = sql(
    """
    SELECT v.id, v.kind, v.resource_id, v.body, v.created_at
      FROM unnest($2::text[], $3::text[]::timestamptz[]) AS w (id, created_at)
      JOIN events v ON v.id = w.id AND v.created_at = w.created_at
     WHERE v.company_id = $1
       AND v.created_at BETWEEN $4::text::timestamptz AND $5::text::timestamptz
     ORDER BY v.created_at, v.number""",
    row=Found,
)


class ListenedEvent(Struct, frozen=True, rename="camel"):
    """An event as a listener gets it: the body is what a delivery would carry."""

    id: str
    kind: str
    created_at: str
    body: str


class StreamPosition(Struct, frozen=True):
    """Where a stream stands: what was recorded before `at`, or written by transactions before `oldest`, was told."""

    at: str
    oldest: int = 0


class Listener:
    """One listener: what it may see, and what it was sent."""

    def __init__(self, company_id: int, token: bytes, kinds: list[str], place: StreamPosition | None) -> None:
        self.token = token
        self._company_id = company_id
        self._kinds = kinds
        self._place = place
        self._sweep: StreamPosition | None = None
        self._cursor: tuple[str, int] | None = None
        self._sent: dict[str, str] = {}

    @property
    def position(self) -> str:
        """With this as its last id, a listener goes on from here."""
        return build_position(self._place) if self._place else ""

    async def start(self, db: Connection) -> None:
        """Without a place to go on from, a listener hears of what is not visible yet."""
        has_more = self._place is None
        while has_more:
            has_more = self._note(await self._see(db))

    async def look(self, db: Connection) -> tuple[list[Found], bool]:
        """What is new, and whether there may be more of it; raises when the token does not work any more."""
        sights = await self._see(db)
        new = [sight for sight in sights if sight.id is not None and sight.id not in self._sent]
        ids, times = [sight.id for sight in new], [sight.created_at for sight in new]
        found = await READ.all(db, self._company_id, ids, times, times[0], times[-1]) if new else []
        return found, self._note(sights)

    async def _see(self, db: Connection) -> list[EventScan]:
        at, number = self._cursor or (self._place.at if self._place else None, -1)
        oldest = self._place.oldest if self._place else 0
        sights = await LOOK.all(db, self._company_id, self.token, at, number, self._kinds, oldest, MOST_AT_ONCE)
        if not sights:
            raise InvalidToken
        return sights

    def _note(self, sights: list[EventScan]) -> bool:
        """Whether there may be more to see at once."""
        seen = {sight.id: sight.created_at or "" for sight in sights if sight.id is not None}
        self._sent |= seen
        self._move(sights[0], sights[-1] if len(seen) == MOST_AT_ONCE else None)
        return self._cursor is not None

    def _move(self, first: EventScan, last: EventScan | None) -> None:
        """A sweep may take many looks. What became visible during it is the next one's, too."""
        place = self._place or StreamPosition(first.settled)
        sweep = self._sweep or StreamPosition(max(place.at, first.settled), first.oldest)
        if last is None:
            self._place, self._sweep, self._cursor = sweep, None, None
        else:
            self._cursor = (last.created_at or "", last.number or 0)
            self._place = StreamPosition(max(place.at, min(sweep.at, self._cursor[0])), place.oldest)
            self._sweep = sweep
        at = self._place.at
        self._sent = {id: created_at for id, created_at in self._sent.items() if created_at >= at}


class Listeners:
    """The streams of this process."""

    def __init__(self, database: Database, address: str) -> None:
        self._database = database
        self._address = address
        self._places: Counter[bytes] = Counter()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends every stream; their listeners come back, to another process or the next one."""
        self._stopping.set()

    async def open(self, token: str, kinds: list[str], last_id: str | None) -> Listener:
        """A stream that has a place until `close`."""
        wanted, place = check_events(kinds), None if last_id is None else parse_position(last_id)
        async with self._database.connection() as db:
            company_id = await tokens.find_company(db, token)
            if company_id is None:
                raise InvalidToken(headers={"www-authenticate": "Bearer"})
            stream = Listener(company_id, tokens.hash_token(token), wanted, place)
            self._take_place(stream.token)
            try:
                await stream.start(db)
            except BaseException:
                self.close(stream)
                raise
        return stream

    def _take_place(self, token: bytes) -> None:
        wait = {"retry-after": str(RETRY_SECONDS)}
        if self._places[token] >= MOST_STREAMS_PER_TOKEN:
            raise TooManyListeners("Too many listeners use this token; end one, or try again later.", headers=wait)
        if self._places.total() >= MOST_STREAMS or self._stopping.is_set():
            raise TooManyListeners(headers=wait)
        self._places[token] += 1

    def close(self, stream: Listener) -> None:
        self._places[stream.token] -= 1
        self._places = +self._places

    async def run(self, stream: Listener) -> AsyncIterator[bytes]:
        """The stream's text, until its token or this process ends."""
        yield _build_comment("ready", stream)
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while not self._stopping.is_set():
            try:
                found, has_more = await self._look(stream)
            except InvalidToken:
                return
            for event in found:
                told = _build_told(event, self._address)
                yield build_event(told.kind, msgspec.json.encode(told), told.id)
            if time.monotonic() >= heartbeat:
                heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                yield _build_comment("still here", stream)
            if not has_more:
                await rest(LOOK_SECONDS, self._stopping)

    async def _look(self, stream: Listener) -> tuple[list[Found], bool]:
        """While PostgreSQL is away there is nothing to see; the stream stays and goes on afterwards."""
        try:
            async with self._database.connection() as db:
                return await stream.look(db)
        except (DatabaseAway, asyncpg.PostgresError):
            return [], False


def build_position(place: StreamPosition) -> str:
    time_digits = write_time(datetime.fromisoformat(place.at).timestamp())
    return POSITION.prefix + time_digits + write_digits(place.oldest, _REST_DIGITS)


def parse_position(last_id: str) -> StreamPosition:
    """Of a stream, or a little before an event. What nobody of us made may lie beyond any calendar."""
    if POSITION.matches(last_id):
        oldest = read_digits(last_id.removeprefix(POSITION.prefix)[TIME_DIGITS:])
        return StreamPosition(_moment(made_at(last_id)), min(oldest, _LARGEST))
    if EVENT_ID.matches(last_id):
        return StreamPosition(_moment(made_at(last_id) - MARGIN_SECONDS))
    raise Invalid.field("Last-Event-ID", f"must be an event's id, such as {EVENT_ID.example}, or the stream's own")


def _moment(seconds: float) -> str:
    bounded = min(max(0.0, seconds), time.time())
    return datetime.fromtimestamp(bounded, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _build_comment(words: str, stream: Listener) -> bytes:
    return f": {words}\nid: {stream.position}\n\n".encode()


def _build_told(event: Found, address: str) -> ListenedEvent:
    url = build_url(address, event.kind, event.resource_id)
    return ListenedEvent(event.id, event.kind, event.created_at, shorten(event.body, event.resource_id, url).decode())
