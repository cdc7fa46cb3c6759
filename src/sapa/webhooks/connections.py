"""Kept-alive connections to receivers, and one POST over one of them.

aiohttp opens, pools and parses. Its session is left out: for each request it makes about ten objects and a task, and a
delivery has no use for them.
"""

import asyncio
import re
import ssl
from contextvars import ContextVar
from functools import lru_cache, partial
from socket import socket
from typing import Any, cast

import aiohttp
from aiohttp import AddrInfoType, ClientRequest
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from sapa.outbound.guard import Guard

KEEP_ALIVE_SECONDS = 4
"""Shorter than the five seconds after which many servers close an idle connection."""

MAX_INTERIM_RESPONSES = 16
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384
_READ_BYTES = 8192
_MAX_ORIGINS = 4096
_HEAD_END = re.compile(rb"\n\r?\n")
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)
"""The caller bounds the whole attempt."""


class ConnectionInfo:
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


_CONNECTION_INFO: ContextVar[ConnectionInfo] = ContextVar("connection_info")


class ReceiverResponse:
    """The head of a response, and its body as it comes. Release it: its connection may serve another request then."""

    __slots__ = ("_connection", "content", "location", "status")

    def __init__(self, message: RawResponseMessage, content: aiohttp.StreamReader, connection: Connection) -> None:
        self.status = message.code
        self.location = message.headers.get("Location")
        self.content = content
        self._connection = connection
        content.on_eof(self.release)

    def release(self) -> None:
        protocol = self._connection.protocol
        if protocol is not None and protocol.transport is not None and protocol.transport.get_write_buffer_size():
            protocol.force_close()  # the receiver responded before it read the request, and may never read more
        self._connection.release()


class ReceiverConnections:
    """Create it inside the event loop that uses it."""

    def __init__(self, guard: Guard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._connector = _Connector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            use_dns_cache=False,
            resolver=resolver,
            socket_factory=self._open_socket,
            ssl=_build_tls(),
        )
        self._build_opener = lru_cache(_MAX_ORIGINS)(partial(ClientRequest, "POST", loop=asyncio.get_running_loop()))

    async def post(self, url: URL, request: bytes, info: ConnectionInfo, *, fresh: bool = False) -> ReceiverResponse:
        """Sends a whole request and returns with the head of its response; `fresh` opens a new connection for it."""
        _CONNECTION_INFO.set(info)
        # A connection under a name of its own is never one of the pool, which may be stale.
        opener = self._build_opener(url.origin(), server_hostname=url.host if fresh else None)
        connection = await self._connector.connect(opener, [], _NO_TIMEOUT)
        try:
            protocol = cast("_Protocol", connection.protocol)
            info.transport, info.address = protocol.transport, protocol.address or info.address
            if fresh:
                protocol.force_close()
            message, content = await protocol.post(request)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientError | TimeoutError):
                raise aiohttp.ClientOSError(*error.args) from error
            raise
        return ReceiverResponse(message, content, connection)

    async def close(self) -> None:
        await self._connector.close()

    def _open_socket(self, place: AddrInfoType) -> socket:
        info = _CONNECTION_INFO.get()
        info.is_fresh = True
        info.address = str(place[4][0])
        return self._guard.open_socket(place)


class _Protocol(ResponseHandler):
    """A connection that accepts one response to each request, after a few interim ones, and closes on more.

    Otherwise a receiver could keep us busy with interim responses, and fill our memory with unsolicited ones.
    """

    address: str | None = None
    interim = 0
    has_response = False
    heads = 0
    before = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if peer := transport.get_extra_info("peername"):
            self.address = peer[0]

    async def post(self, request: bytes) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        """Writes a request; returns the head of its final response."""
        self.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_READ_BYTES,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        self.interim = 0
        self.has_response = False
        self.heads = 0
        self.before = b""
        if self.transport is None or self.transport.is_closing():
            raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
        self.transport.write(request)
        while True:
            message, content = await self.read()
            if message.code >= 200 or message.code == 101:
                return message, content

    def data_received(self, data: bytes) -> None:
        """Parsed piece by piece: closing skips the rest, and a response is valid whatever follows it."""
        start = self._take(data, 0)
        while start < len(data) and self.is_connected():
            start = self._take(data, start)

    def _take(self, data: bytes, start: int) -> int:
        piece = data[start : start + _READ_BYTES]
        if not self.has_response and self.heads <= MAX_INTERIM_RESPONSES:
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
        if self.has_response or self.interim > MAX_INTERIM_RESPONSES:
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


def _build_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
