"""The edge: every API call passes these steps in this order, in one function."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import asyncpg
import structlog

from sapa.db.pool import AWAY, RETRYABLE, Database, Tx
from sapa.http import idempotency
from sapa.http.allow_list import AllowList, client_address
from sapa.http.answers import Answer
from sapa.http.bodies import MOST_BYTES, MOST_UPLOADED, UPLOADED_TYPES
from sapa.http.cors import Cors
from sapa.http.endpoints import Call, Endpoint, Route, Routes, RouteTable
from sapa.http.errors import (
    BY_CONSTRAINT,
    ApiError,
    InternalError,
    Invalid,
    InvalidApiKey,
    IpNotAllowed,
    MethodNotAllowed,
    MissingApiKey,
    NotFound,
    PayloadTooLarge,
    RateLimitExceeded,
    RequestTimeout,
    ServiceUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from sapa.http.journal import DoneCall, Journal
from sapa.http.keys import Key, KeyRing, Retirement
from sapa.http.metrics import UNAVAILABLE
from sapa.http.rate_limit import RateLimiter

BODY_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
MOST_TRIES = 3
# A body that is refused for its size is still read this far, so that the caller gets our answer and not a broken pipe.
MOST_DRAINED = 15 * MOST_BYTES

BUSY = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)
JSON = (b"content-type", b"application/json")
PRIVATE = (b"cache-control", b"private, no-cache")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

log = structlog.get_logger()


def new_request_id() -> str:
    return "req_" + os.urandom(12).hex()


class Exchange:
    """One call on its way through the edge."""

    __slots__ = ("address", "headers", "key", "method", "path", "quota", "receive", "request_id", "route", "scope")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.request_id = new_request_id()
        self.headers: dict[bytes, bytes] = {}
        self.address = ""
        self.route: Route | None = None
        self.key: Key | None = None
        self.quota: list[tuple[bytes, bytes]] = []

    def read_headers(self) -> None:
        """One value per name; a repeated header is joined, as HTTP says it may be."""
        headers = self.headers
        for name, value in self.scope["headers"]:
            headers[name] = headers[name] + b"," + value if name in headers else value

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Edge:
    """The API as one ASGI callable."""

    def __init__(
        self, domains: Sequence[Routes], database: Database, keys: KeyRing, trusted_proxies: AllowList, cors: Cors
    ) -> None:
        self._table = RouteTable(domains)
        self._hiding = tuple(f"{routes.base}{routes.prefix}/" for routes in domains if routes.hides_reason)
        self._database = database
        self._keys = keys
        self._limiter = RateLimiter(database)
        self._trusted = trusted_proxies
        self._cors = cors
        self._flights = idempotency.SingleFlight()
        self.journal = Journal()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        exchange = Exchange(scope, receive)
        code = None
        try:
            answer = await self._answer(exchange)
        except Exception as error:
            refused = explain(error, exchange)
            code = refused.code
            answer = Answer(refused.status, refused.encode(), refused.headers)
        await send_answer(send, exchange, answer, self._cors)
        self._remember(exchange, answer.status, code, time.perf_counter() - started)

    async def _answer(self, exchange: Exchange) -> Answer:
        exchange.read_headers()
        exchange.address = self._client_address(exchange)
        exchange.route, path_values = self._table.match(split_path(exchange.scope))
        if exchange.method == "OPTIONS":
            return self._options(exchange)
        key = exchange.key = await self._identify(exchange)
        self._keys.uses[key.id] = exchange.address
        await self._count(exchange, key)
        endpoint = self._find_endpoint(exchange)
        endpoint.permit(key)
        if not key.allow_list.allows(exchange.address):
            raise IpNotAllowed(f"The address {exchange.address} is not in the key's allow-list.")
        media_type, body = await read_body(exchange, endpoint.uploads) if endpoint.body is not None else ("", b"")
        arguments = endpoint.bind(path_values, exchange.scope["query_string"], media_type, body)
        if endpoint.writes:
            return await self._write(exchange, endpoint, key, arguments, body)
        return await self._read(exchange, endpoint, key, arguments)

    def _client_address(self, exchange: Exchange) -> str:
        peer = exchange.scope.get("client")
        return client_address(peer[0] if peer else "", exchange.header(b"x-forwarded-for"), self._trusted)

    def _options(self, exchange: Exchange) -> Answer:
        if exchange.route is None:
            raise NotFound
        return Answer(204, headers={"allow": exchange.route.allow})

    async def _identify(self, exchange: Exchange) -> Key:
        raw = exchange.header(b"x-api-key")
        try:
            if not raw:
                raise MissingApiKey
            return await self._keys.identify(raw)
        except (MissingApiKey, InvalidApiKey) as error:
            if exchange.path.startswith(self._hiding):
                raise Unauthorized(error.message) from None
            raise

    async def _count(self, exchange: Exchange, key: Key) -> None:
        quota = await self._limiter.count(key)
        exchange.quota = quota.headers()
        if not quota.granted:
            raise RateLimitExceeded(
                f"Too many requests: this key may make {quota.limit} a minute; retry in {quota.reset} seconds.",
                headers={"retry-after": str(quota.reset)},
            )

    def _find_endpoint(self, exchange: Exchange) -> Endpoint:
        # Bytes that are no UTF-8 arrive as this character; so does the character itself.
        if "\ufffd" in exchange.path and not _is_utf8(exchange.scope.get("raw_path", b"")):
            raise Invalid("The path is not valid UTF-8.")
        if exchange.route is None:
            raise NotFound
        method = "GET" if exchange.method == "HEAD" else exchange.method
        endpoint = exchange.route.endpoints.get(method)
        if endpoint is None:
            raise MethodNotAllowed(headers={"allow": exchange.route.allow})
        return endpoint

    async def _read(self, exchange: Exchange, endpoint: Endpoint, key: Key, arguments: list[Any]) -> Answer:
        async with self._database.connection() as db:
            answer = await endpoint.run(Call(db, key), arguments)
        if not endpoint.has_etag:
            return answer
        tag = build_etag(answer.body)
        if matches_etag(exchange.header(b"if-none-match"), tag):
            return Answer(304, headers={"etag": tag})
        answer.headers["etag"] = tag
        return answer

    async def _write(
        self, exchange: Exchange, endpoint: Endpoint, key: Key, arguments: list[Any], body: bytes
    ) -> Answer:
        once = exchange.header(b"idempotency-key")
        if once is None:
            return await self._transact(lambda tx: endpoint.run(Call(tx, key), arguments))
        target = f"{exchange.method} {exchange.path}"
        query = exchange.scope["query_string"]
        attempt = idempotency.build_attempt(key.company.id, once, target, query + b"\n" + body)

        async def at_most_once(tx: Tx) -> Answer:
            if replay := await idempotency.claim(tx, attempt):
                return replay
            answer = await endpoint.run(Call(tx, key), arguments)
            await idempotency.settle(tx, attempt, answer)
            return answer

        async with self._flights.turn(attempt):
            return await self._transact(at_most_once)

    async def _transact(self, work: Callable[[Tx], Awaitable[Answer]]) -> Answer:
        """One transaction, run again when another one stood in its way."""
        for tries_left in range(MOST_TRIES - 1, -1, -1):
            try:
                async with self._database.transaction() as tx:
                    return await work(tx)
            except RETRYABLE:
                if not tries_left:
                    raise
        raise AssertionError("unreachable")

    def _remember(self, exchange: Exchange, status: int, code: str | None, seconds: float) -> None:
        route = exchange.route.template if exchange.route else "unknown"
        key_id, company_id = (exchange.key.id, exchange.key.company.id) if exchange.key else (None, None)
        self.journal.note(
            DoneCall(
                time.time(),
                exchange.request_id,
                exchange.method,
                route,
                exchange.path,
                status,
                seconds,
                exchange.address,
                key_id,
                company_id,
                code,
            )
        )


def explain(error: Exception, exchange: Exchange) -> ApiError:
    """The error to answer with: ours as it is, the database's by constraint or absence, anything else as a 500."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        meant = BY_CONSTRAINT.get(error.constraint_name or "")
        if meant is not None:
            return meant()
    # asyncpg's word for an argument that does not fit its parameter is a ValueError, too: a fault of ours.
    if isinstance(error, (*AWAY, *BUSY, *RETRYABLE)) and not isinstance(error, ValueError):
        UNAVAILABLE.inc()
        log.warning("database unavailable", request_id=exchange.request_id, reason=f"{type(error).__name__}: {error}")
        return ServiceUnavailable(headers={"retry-after": "1"})
    log.error("internal error", request_id=exchange.request_id, method=exchange.method, exc_info=error)
    return InternalError()


async def read_body(exchange: Exchange, uploads: bool) -> tuple[str, bytes]:
    """Its media type and the whole body: at most 1 MiB of JSON within 30 seconds, or a file."""
    accepted, most, seconds = (
        (UPLOADED_TYPES, MOST_UPLOADED, UPLOAD_SECONDS)
        if uploads
        else (("application/json",), MOST_BYTES, BODY_SECONDS)
    )
    try:
        async with asyncio.timeout(seconds):
            body = await _receive_all(exchange, most)
    except TimeoutError:
        raise RequestTimeout(f"The request's body did not arrive within {seconds:.0f} seconds.") from None
    content_type = (exchange.header(b"content-type") or "").lower().replace(" ", "")
    media_type, _, parameters = content_type.partition(";")
    if media_type not in accepted or parameters not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise UnsupportedMediaType(f"Send the body as {' or '.join(accepted)} in UTF-8.")
    return media_type, body


async def _receive_all(exchange: Exchange, most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise Invalid("The body ended before it was complete.")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
        if not message.get("more_body", False) or size > most + MOST_DRAINED:
            break
    if size > most:
        raise PayloadTooLarge(f"The request's body is larger than {most // 1_048_576} MiB.")
    return b"".join(chunks)


def split_path(scope: Scope) -> list[str]:
    """The path's segments. A slash that was percent-encoded belongs to its segment."""
    raw = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return str(scope["path"])[1:].split("/")
    return [unquote(segment) for segment in raw.decode("ascii", "replace").partition("?")[0][1:].split("/")]


def _is_utf8(raw_path: bytes) -> bool:
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def build_etag(body: bytes) -> str:
    return f'"{blake2b(body, digest_size=16).hexdigest()}"'


def matches_etag(header: str | None, tag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in header.split(","))


async def send_answer(send: Send, exchange: Exchange, answer: Answer, cors: Cors) -> None:
    headers = [(b"x-request-id", exchange.request_id.encode()), PRIVATE, *exchange.quota]
    if answer.status not in {204, 304}:
        headers += [JSON, (b"content-length", b"%d" % len(answer.body))]
    headers += [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if exchange.key is not None and exchange.key.retirement is not None:
        headers += retirement_headers(exchange.key.retirement)
    if cors.origins:
        headers += cors.headers(exchange.method, exchange.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    body = b"" if exchange.method == "HEAD" else answer.body
    await send({"type": "http.response.body", "body": body})


def retirement_headers(retirement: Retirement) -> list[tuple[bytes, bytes]]:
    """A rotated key still works for a while: since when it is deprecated, and when it stops."""
    text = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(retirement.stops))
    return [(b"deprecation", b"@%d" % retirement.since), (b"sunset", text.encode())]
