"""One attempt of one delivery: a signed POST through the guard, bounded in time and memory, and its outcome."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache, partial
from socket import socket
from typing import Any, ClassVar, cast

import aiohttp
import structlog
from aiohttp import AddrInfoType, ClientRequest, ClientResponse
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct
from multidict import istr
from yarl import URL

from sapa import traces
from sapa.outbound import resolver
from sapa.outbound.guard import BlockedAddress, Guard
from sapa.settings import WebhookSettings
from sapa.values.json import encode
from sapa.webhooks.certificate import explain_refusal
from sapa.webhooks.diagnosis import (
    DeliveryFailure,
    describe,
    describe_timeout,
    find_refusal,
)
from sapa.webhooks.signing import build_headers

DEADLINE_SECONDS = 30
"""For connecting, TLS, the request and the response's headers together."""

CAPTURE_SECONDS = 2
CAPTURED_BYTES = 4096
MOST_BODY_BYTES = 65_536
KEEP_ALIVE_SECONDS = 4
"""Shorter than the five seconds after which many servers close an idle connection."""

MOST_INTERIM_RESPONSES = 16
MOST_HEADERS = 64
MOST_HEADER_BYTES = 16_384
_READ_BYTES = 8192
_HEAD_END = re.compile(rb"\n\r?\n")

RESERVED_HEADERS = frozenset(
    "content-type user-agent x-service-webhook-id x-service-webhook-event x-service-webhook-timestamp"
    " x-service-webhook-signature webhook-id webhook-timestamp webhook-signature host content-length"
    " content-encoding transfer-encoding connection keep-alive upgrade expect te trailer proxy-authorization"
    " proxy-connection".split()
)
"""Names that a custom header cannot have, in lower case."""

log = structlog.get_logger()


class Target(Struct, frozen=True):
    """Where a delivery goes, and what it is signed with: the current secret first."""

    url: str
    headers: dict[str, str]
    secrets: list[str]


class WebhookMessage(Struct, frozen=True):
    event_id: str
    kind: str
    body: bytes


class Outcome(Struct, frozen=True):
    started_at: datetime
    milliseconds: int
    status: int | None
    error: str | None
    """An error code, for programs."""
    message: str | None
    """A sentence on the failure, for people."""
    address: str | None
    response: bytes
    """The first 4 KB of the response's body, as raw bytes."""
    retry_uncounted: bool = False

    @property
    def delivered(self) -> bool:
        return self.error is None


class _ConnectionInfo:
    """The connection of a running request, also when no response comes."""

    __slots__ = ("address", "is_fresh", "transport")

    def __init__(self) -> None:
        self.address: str | None = None
        self.is_fresh = False
        self.transport: asyncio.Transport | None = None

    def abort(self) -> None:
        """Without a TLS shutdown, which would wait for a receiver that goes on sending."""
        if self.transport is not None:
            self.transport.abort()


_CONNECTION_INFO: ContextVar[_ConnectionInfo] = ContextVar("connection_info")


class _Protocol(ResponseHandler):
    """A connection that accepts one response to each request, after a few interim ones, and closes on more.

    Otherwise a receiver could keep us busy with interim responses, and fill our memory with unsolicited ones.
    """

    interim = 0
    has_response = False
    heads = 0
    before = b""

    def begin(self) -> None:
        self.interim = 0
        self.has_response = False
        self.heads = 0
        self.before = b""

    def data_received(self, data: bytes) -> None:
        """Parsed piece by piece: closing skips the rest, and a response is valid whatever follows it."""
        start = self._take(data, 0)
        while start < len(data) and self.is_connected():
            start = self._take(data, start)

    def _take(self, data: bytes, start: int) -> int:
        piece = data[start : start + _READ_BYTES]
        if not self.has_response and self.heads <= MOST_INTERIM_RESPONSES:
            piece = self._cut_after_head(piece)
        super().data_received(piece)
        return start + len(piece)

    def _cut_after_head(self, piece: bytes) -> bytes:
        """The parser drops a valid head when invalid bytes follow it in the same piece."""
        end = _HEAD_END.search(self.before + piece)
        if end is None:
            self.before = (self.before + piece)[-2:]
            return piece
        cut = end.end() - len(self.before)
        self.heads += 1
        self.before = b""
        return piece[:cut]

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        is_interim = data[0].code < 200
        self.interim += is_interim
        if self.has_response or self.interim > MOST_INTERIM_RESPONSES:
            self._close()
            return
        self.has_response = not is_interim
        super().feed_data(data, size)

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        if not self.has_response:
            self.set_exception(HttpProcessingError(code=400, message="too many interim answers"))


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(_Protocol, loop=self._loop))


class _Request(ClientRequest):
    """Adds no headers of its own, and records the connection it got."""

    DEFAULT_HEADERS: ClassVar[dict[istr, str]] = {}  # type: ignore[misc]

    async def send(self, conn: Connection) -> ClientResponse:
        connection_info = _CONNECTION_INFO.get()
        connection_info.transport = transport = conn.transport
        if transport is not None and (peer := transport.get_extra_info("peername")):
            connection_info.address = peer[0]
        if isinstance(line := conn.protocol, _Protocol):
            line.begin()
            if self.server_hostname is not None:
                line.force_close()
        return await super().send(conn)


class WebhookSender:
    """Sends deliveries. Create it inside the event loop that uses it."""

    def __init__(
        self,
        settings: WebhookSettings,
        deadline: float = DEADLINE_SECONDS,
        look_up: Callable[[str], list[str]] = resolver.look_up,
    ) -> None:
        self.deadline = deadline
        self._schemes = {"https", "http"} if settings.allow_insecure else {"https"}
        self._guard = Guard(settings)
        self._resolver = resolver.GuardedResolver(self._guard, look_up)
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                limit=0,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                use_dns_cache=False,
                resolver=self._resolver,
                socket_factory=self._open_socket,
                ssl=_build_tls(),
            ),
            request_class=_Request,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_READ_BYTES,
            max_line_size=MOST_HEADER_BYTES,
            max_field_size=MOST_HEADER_BYTES,
            max_headers=MOST_HEADERS,
        )

    async def send(self, target: Target, message: WebhookMessage) -> Outcome:
        """One attempt. Every failure of the receiver is an outcome, never an exception."""
        started_at, began = datetime.now(UTC), time.monotonic()
        connection_info = _ConnectionInfo()
        status, captured = None, b""
        try:
            with traces.open_request("POST", target.url) as span:
                response = await self._post(connection_info, target, message)
                if span is not None:
                    span.describe({"http.response.status_code": response.status})
            captured = await self._capture(connection_info, response, began)
            status = response.status
            failure = find_refusal(status, response.headers.get("Location"), target.url)
        except Exception as error:
            connection_info.abort()
            failure = await self._explain(error, connection_info, parse_url(target.url))
        return Outcome(
            started_at=started_at,
            milliseconds=round((time.monotonic() - began) * 1000),
            status=status,
            error=failure.error if failure else None,
            message=failure.message if failure else None,
            address=connection_info.address,
            response=captured,
            retry_uncounted=failure.is_ours if failure else False,
        )

    async def close(self) -> None:
        await self._session.close()
        await self._resolver.close()

    async def _post(self, connection_info: _ConnectionInfo, target: Target, message: WebhookMessage) -> ClientResponse:
        url = parse_url(target.url)
        if url.scheme not in self._schemes:
            raise BlockedAddress(f"{url.scheme}:// is no longer allowed; change the endpoint to an https:// URL")
        headers = build_headers(target.secrets, message.event_id, message.kind, message.body, int(time.time()))
        if target.headers:
            headers |= {name: text for name, text in target.headers.items() if name.lower() not in RESERVED_HEADERS}
        _CONNECTION_INFO.set(connection_info)
        async with asyncio.timeout(self.deadline):
            try:
                return await self._request(url, headers, message.body)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError) as error:
                if connection_info.is_fresh or not _is_unanswered(error):
                    raise
            # The receiver closed a kept-alive connection, as it may at any time; this is not a failure. Setting
            # server_hostname opens a new connection instead of another pooled one, which may be stale, too.
            return await self._request(url, headers, message.body, server_hostname=url.host)

    async def _request(
        self, url: URL, headers: dict[str, str], body: bytes, server_hostname: str | None = None
    ) -> ClientResponse:
        return await self._session.post(
            url, data=body, headers=headers, allow_redirects=False, server_hostname=server_hostname
        )

    async def _capture(self, connection_info: _ConnectionInfo, response: ClientResponse, began: float) -> bytes:
        """The response is valid already, so an incomplete body is not a failure."""
        content = response.content
        if content.is_eof() and content.exception() is None:
            return content.read_nowait(CAPTURED_BYTES)
        left = max(0, began + self.deadline - time.monotonic())
        try:
            return await _read_start(content, min(left, CAPTURE_SECONDS))
        finally:
            if not content.is_eof():
                connection_info.abort()
            response.release()

    def _open_socket(self, place: AddrInfoType) -> socket:
        connection_info = _CONNECTION_INFO.get()
        connection_info.is_fresh = True
        connection_info.address = str(place[4][0])
        return self._guard.open_socket(place)

    async def _explain(self, error: Exception, connection_info: _ConnectionInfo, url: URL) -> DeliveryFailure:
        host, port = url.host or "", url.port or 0
        place = f"{connection_info.address or host} port {port}"
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientConnectorError):
            return describe_timeout(connection_info.transport is not None, place, self.deadline)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            cause = error.certificate_error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return DeliveryFailure(
                    "tls", await explain_refusal(cause, self._guard.open_socket, connection_info.address, port, host)
                )
        failure = describe(error, host, place)
        if failure.error == "internal":
            log.warning("webhook not sent", reason=failure.message, exc_info=not isinstance(error, OSError))
        return failure


def shorten(body: bytes, resource_id: str, url: str | None) -> bytes:
    """The body as it is delivered: one over 64 KB is replaced by a link to the resource."""
    if len(body) <= MOST_BODY_BYTES:
        return body
    return encode({"id": resource_id, "truncated": True, "url": url})


async def _read_start(content: aiohttp.StreamReader, seconds: float) -> bytes:
    captured = b""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(seconds):
            while len(captured) < CAPTURED_BYTES and (part := await content.read(CAPTURED_BYTES - len(captured))):
                captured += part
    return captured


def _is_unanswered(error: Exception) -> bool:
    """The connection ended before any byte of a response."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)
    return not isinstance(error, aiohttp.ClientConnectorError)


@lru_cache(maxsize=4096)
def parse_url(url: str) -> URL:
    return URL(url, encoded=True)


def _build_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
