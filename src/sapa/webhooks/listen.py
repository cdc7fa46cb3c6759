"""`/listen`: a company's events as they happen, as server-sent events that lose none.

Events become visible when their transactions commit, which is not the order in which they were recorded. So a stream
looks again and again at the last half minute, longer than any transaction of ours lasts, and sends what it has not
sent yet. A listener that comes back with the last id it saw starts a little before it, and drops what it knows.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import asyncpg
import msgspec
from msgspec import Struct

from sapa.db.pool import AWAY, Connection, Database
from sapa.db.sql import sql
from sapa.events import EVENT_ID
from sapa.http.errors import ApiError, Invalid, ServiceUnavailable
from sapa.ids import ALPHABET
from sapa.webhooks import tokens
from sapa.webhooks.attempt import build_url
from sapa.webhooks.endpoint import check_events
from sapa.webhooks.sender import shorten

LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0
MOST_STREAMS = 50
MOST_AT_ONCE = 200
LONGEST_TRANSACTION_SECONDS = 30
# Ids are made by the clocks of the API's machines, events are dated by the database's.
CLOCK_SKEW_SECONDS = 5
MARGIN_SECONDS = LONGEST_TRANSACTION_SECONDS + CLOCK_SKEW_SECONDS
"""How far before its last event a listener starts again."""

_TIME_DIGITS = 10


class InvalidToken(ApiError):
    """The developer token is missing, invalid, revoked or expired; `sapa token create` makes one."""

    status = 401
    code = "INVALID_TOKEN"


class TooManyStreams(ServiceUnavailable):
    """Too many listeners are connected to this server; try again later."""


class Sight(Struct, frozen=True):
    """One event of a look, or none; what was recorded before `settled` is visible by now."""

    settled: str
    id: str | None
    kind: str | None
    resource_id: str | None
    body: bytes | None
    created_at: str | None
    settled_then: str | None


# No row at all: the token does not open the company any more.
LOOK = sql(
    f"""
    SELECT now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds' AS settled,
           seen.id, seen.kind, seen.resource_id, seen.body, seen.created_at,
           seen.created_at - interval '{LONGEST_TRANSACTION_SECONDS} seconds' AS settled_then
      FROM developer_tokens t
      JOIN companies c ON c.company_id = $1
      LEFT JOIN LATERAL (
           SELECT v.id, v.kind, v.resource_id, v.body, v.created_at
             FROM events v
            WHERE v.company_id = $1
              AND v.created_at >= coalesce($3::text::timestamptz,
                                           now() - interval '{LONGEST_TRANSACTION_SECONDS} seconds')
              AND (v.kind = ANY($4) OR $4 = '{{}}') AND v.id <> ALL($5)
            ORDER BY v.created_at, v.number
            LIMIT $6) AS seen ON true
     WHERE t.company_id = $1 AND t.hash = $2 AND t.expires_at > now() + c.clock_offset""",
    row=Sight,
)


class Told(Struct, frozen=True, rename="camel"):
    """An event as a listener gets it: the body is what a delivery would carry."""

    id: str
    kind: str
    created_at: str
    body: str


class Stream:
    """One listener: what it may see, and what it was sent."""

    def __init__(self, company_id: int, token: bytes, kinds: list[str], last_id: str | None) -> None:
        self._company_id = company_id
        self._token = token
        self._kinds = kinds
        self._place = None if last_id is None else _place_of(last_id)
        self._sent: dict[str, str] = {}

    async def start(self, db: Connection) -> None:
        """Without a place to go on from, a listener hears of what is not visible yet."""
        has_more = self._place is None
        while has_more:
            _, has_more = await self.look(db)

    async def look(self, db: Connection) -> tuple[list[Sight], bool]:
        """What is new, and whether there is more of it; raises when the token does not work any more."""
        sights = await LOOK.all(
            db, self._company_id, self._token, self._place, self._kinds, list(self._sent), MOST_AT_ONCE
        )
        if not sights:
            raise InvalidToken
        seen = [sight for sight in sights if sight.id is not None]
        self._sent |= {sight.id or "": sight.created_at or "" for sight in seen}
        is_full = len(seen) == MOST_AT_ONCE
        self._move((sights[-1].settled_then if is_full else None) or sights[0].settled)
        return seen, is_full

    def _move(self, settled: str) -> None:
        place = self._place = max(self._place or "", settled)
        self._sent = {id: at for id, at in self._sent.items() if at >= place}


class Listeners:
    """The streams of this process."""

    def __init__(self, database: Database, address: str) -> None:
        self._database = database
        self._address = address
        self._count = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends every stream; their listeners come back, to another process or the next one."""
        self._stopping.set()

    async def open(self, token: str, kinds: list[str], last_id: str | None) -> Stream:
        """A stream that has a place until `close`."""
        wanted = check_events(kinds)
        if last_id is not None and not EVENT_ID.matches(last_id):
            raise Invalid.field("Last-Event-ID", f"must be an event's id, such as {EVENT_ID.example}")
        async with self._database.connection() as db:
            company_id = await tokens.find_company(db, token)
            if company_id is None:
                raise InvalidToken(headers={"www-authenticate": "Bearer"})
            stream = Stream(company_id, tokens.hash_token(token), wanted, last_id)
            await stream.start(db)
        if self._count >= MOST_STREAMS or self._stopping.is_set():
            raise TooManyStreams
        self._count += 1
        return stream

    def close(self) -> None:
        self._count -= 1

    async def run(self, stream: Stream) -> AsyncIterator[bytes]:
        """The stream's text, until its token or this process ends."""
        yield b": ready\n\n"
        heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while not self._stopping.is_set():
            try:
                seen, has_more = await self._look(stream)
            except InvalidToken:
                return
            for sight in seen:
                yield build_message(_build_told(sight, self._address))
            if time.monotonic() >= heartbeat:
                heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                yield b": still here\n\n"
            if not has_more:
                await self._rest()

    async def _look(self, stream: Stream) -> tuple[list[Sight], bool]:
        """While PostgreSQL is away there is nothing to see; the stream stays and goes on afterwards."""
        try:
            async with self._database.connection() as db:
                return await stream.look(db)
        except (*AWAY, asyncpg.PostgresError):
            return [], False

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), LOOK_SECONDS)


def build_message(event: Told) -> bytes:
    """One server-sent event. Some clients break lines where only Unicode does, so such characters are escaped."""
    data = msgspec.json.encode(event)
    for char in "\x85\u2028\u2029":
        data = data.replace(char.encode(), f"\\u{ord(char):04x}".encode())
    return f"id: {event.id}\nevent: {event.kind}\ndata: ".encode() + data + b"\n\n"


def made_at(id: str) -> float:
    """The Unix time in an id, to the millisecond."""
    number = 0
    for digit in id.partition("_")[2][:_TIME_DIGITS]:
        number = number * 32 + ALPHABET.index(digit)
    return number / 1000


def _place_of(last_id: str) -> str:
    # An id that nobody of us made may lie beyond any calendar.
    moment = min(max(0.0, made_at(last_id) - MARGIN_SECONDS), time.time())
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _build_told(sight: Sight, address: str) -> Told:
    id, kind, resource_id = sight.id or "", sight.kind or "", sight.resource_id or ""
    body = shorten(sight.body or b"", resource_id, build_url(address, kind, resource_id))
    return Told(id, kind, sight.created_at or "", body.decode())
