"""A POST to a provider over a connection of aiohttp's pool.

aiohttp opens, pools, parses and decompresses. Its session is left out: it makes about ten objects and a task for each
request, which cost more than the rest of it.
"""

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache

import aiohttp
from aiohttp import ClientRequest
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import BaseConnector, Connection
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct
from yarl import URL

LARGEST_CONTENT = 65_536
"""More than this is left to the session, which writes as fast as the provider reads."""

_SCHEMES = frozenset({"http", "https"})
_find_control_character = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search


class PostTarget(Struct, frozen=True):
    origin: URL
    start: str
    """The first two lines of the request."""


class PostResponse(Struct, frozen=True):
    """Its body is read after the head. Close it in any case; once it is read to its end, others use the connection."""

    status: int
    headers: Mapping[str, str]
    content: aiohttp.StreamReader
    connection: Connection

    def close(self) -> None:
        transport = self.connection.transport
        is_read = self.content.at_eof() and self.content.exception() is None
        if is_read and transport is not None and not transport.get_write_buffer_size():
            self.connection.release()
        else:
            self.connection.close()


@lru_cache(maxsize=1024)
def find_target(url: str) -> PostTarget | None:
    """None for an address that only the session can use, or refuse."""
    try:
        parsed = URL(url)
    except ValueError:
        return None
    if parsed.scheme not in _SCHEMES or not parsed.raw_host or parsed.user is not None or parsed.password is not None:
        return None
    return PostTarget(
        parsed.origin(), f"POST {parsed.raw_path_qs} HTTP/1.1\r\nHost: {parsed.host_port_subcomponent}\r\n"
    )


class DirectPosts:
    """Create it inside the event loop that uses it."""

    def __init__(self, connector: BaseConnector, headers: Mapping[str, str]) -> None:
        self._connector = connector
        self._headers = headers
        self._openers: dict[URL, ClientRequest] = {}

    async def post(
        self, target: PostTarget, content: bytes, headers: Mapping[str, str], connect_seconds: float
    ) -> PostResponse:
        """Returns with the head of the response. Raises aiohttp's errors, as its session would."""
        request = self._build_request(target, content, headers)
        connection = await self._connect(target.origin, connect_seconds)
        try:
            return await _exchange(connection, request)
        except HttpProcessingError as error:
            connection.close()
            raise aiohttp.ClientPayloadError(f"the response is not valid HTTP: {error.message}") from error
        except BaseException:
            connection.close()
            raise

    async def _connect(self, origin: URL, seconds: float) -> Connection:
        opener = self._openers.get(origin)
        if opener is None:
            opener = self._openers[origin] = ClientRequest("POST", origin, loop=asyncio.get_running_loop())
        try:
            return await self._connector.connect(opener, [], aiohttp.ClientTimeout(total=None, connect=seconds))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {origin}") from error

    def _build_request(self, target: PostTarget, content: bytes, headers: Mapping[str, str]) -> bytes:
        own = {name.lower() for name in headers}
        fields = [f"{name}: {text}\r\n" for name, text in self._headers.items() if name not in own]
        fields += [f"{name}: {text}\r\n" for name, text in headers.items()]
        if any(_find_control_character(field, 0, len(field) - 2) for field in fields):
            raise ValueError("a header has a control character")
        return f"{target.start}{''.join(fields)}content-length: {len(content)}\r\n\r\n".encode() + content


async def _exchange(connection: Connection, request: bytes) -> PostResponse:
    protocol = connection.protocol
    if not isinstance(protocol, ResponseHandler) or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    protocol.set_response_params(read_until_eof=True)
    protocol.transport.write(request)
    while True:
        message, content = await protocol.read()
        if message.code >= 200 or message.code == 101:
            return PostResponse(message.code, message.headers, content, connection)
