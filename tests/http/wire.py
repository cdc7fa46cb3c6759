"""HTTP below the client library: fresh connections, and bytes that no decent client would send."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from tests.conftest import Installation

TIMEOUT = 30

Seen = TypeVar("Seen")


class Reply(msgspec.Struct, frozen=True):
    """One answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str | None:
        """The error's code; None for an answer without an error."""
        if not self.body:
            return None
        code: str | None = self.json().get("error", {}).get("code")
        return code


def send(
    installation: Installation,
    method: str,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | Iterable[bytes] | None = None,
) -> Reply:
    """One request on a connection of its own, headers exactly as given; a body in pieces is sent in chunks."""
    place = urlsplit(installation.address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)
    try:
        connection.putrequest(method, f"/customer/v1{path}", skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if isinstance(body, bytes):
            connection.putheader("content-length", str(len(body)))
        elif body is not None:
            connection.putheader("transfer-encoding", "chunked")
        connection.endheaders(body, encode_chunked=body is not None and not isinstance(body, bytes))
        return _read(connection.getresponse())
    finally:
        connection.close()


def send_bytes(installation: Installation, request: bytes, *, half_close: bool = False) -> Reply:
    """A request as raw bytes; half-closing tells the server that no more will come."""
    place = urlsplit(installation.address)
    with socket.create_connection((place.hostname, place.port), timeout=TIMEOUT) as connection:
        connection.sendall(request)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        response = HTTPResponse(connection)
        response.begin()
        return _read(response)


def send_many(
    installation: Installation, key: str, times: int, path: str = "/customers", clients: int = 8
) -> list[Reply]:
    """Many reads by several clients at once, each on a fresh connection, so that every API process gets some."""
    with ThreadPoolExecutor(clients) as pool:
        calls = [pool.submit(send, installation, "GET", path, [("x-api-key", key)]) for _ in range(times)]
        return [call.result() for call in calls]


async def eventually(look: Callable[[], Awaitable[Seen | None]], seconds: float = 120) -> Seen:
    """Looks again until there is something to see; False is nothing, too."""
    async with asyncio.timeout(seconds):
        while True:
            if (seen := await look()) is not None and seen is not False:
                return seen
            await asyncio.sleep(0.05)


def _read(response: HTTPResponse) -> Reply:
    body = response.read()
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
