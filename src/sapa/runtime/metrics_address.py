"""Where the metrics are served, and how a program on the same machine finds out."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from sapa.runtime.processes import CannotStart, check_port
from sapa.settings import Settings

SETTING = "SAPA_METRICS_LISTEN"
PORTS_TRIED = 100
PROBE_SECONDS = 5.0
BACKLOG = 16
API_PORT_HEADER = "sapa-api-port"
"""On the metrics' responses: which API they belong to."""

_LOOPBACK = "127.0.0.1"


class ListenAddress(Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def list_candidates(settings: Settings) -> Iterator[ListenAddress]:
    """The address that was set, or the ports next to the API's, nearest first."""
    if settings.metrics.listen is not None:
        yield ListenAddress(*settings.metrics.listen)
        return
    port = settings.server.port
    for step in range(1, PORTS_TRIED + 1):
        yield ListenAddress(_LOOPBACK, port + step if port + step <= 65535 else port - step)


async def open_listener(settings: Settings) -> socket.socket:
    """Listens on the address that was set, or on the first candidate that is free."""
    if settings.metrics.listen is not None:
        await check_port(*settings.metrics.listen, SETTING)
    for candidate in list_candidates(settings):
        listener = socket.socket(socket.AF_INET6 if ":" in candidate.host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((candidate.host, candidate.port))
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
        else:
            return listener
    raise CannotStart(f"No port is free for the metrics next to {settings.server.port}; set {SETTING}.")


def get_address(listener: socket.socket) -> ListenAddress:
    return ListenAddress(*listener.getsockname()[:2])


async def find_running(settings: Settings) -> ListenAddress | None:
    """Where this machine's metrics are served now; None when they are not. Asks all candidates at once, because some of
    them may belong to programs that never answer."""
    probes = [asyncio.create_task(_probe(candidate, settings.server.port)) for candidate in list_candidates(settings)]
    try:
        for probe in asyncio.as_completed(probes):
            if found := await probe:
                return found
        return None
    finally:
        for one in probes:
            one.cancel()


async def _probe(candidate: ListenAddress, api_port: int) -> ListenAddress | None:
    """The candidate if it serves the metrics of the API at this port."""
    with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            if f"{API_PORT_HEADER}: {api_port}" in await _read_head(candidate):
                return candidate
    return None


async def read_status(address: ListenAddress, path: str) -> int:
    return int((await _read_head(address, "GET", path)).split(" ", 2)[1])


async def _read_head(address: ListenAddress, method: str = "HEAD", path: str = "/metrics") -> str:
    host = {"0.0.0.0": _LOOPBACK, "::": "::1"}.get(address.host, address.host)  # noqa: S104
    reader, writer = await asyncio.open_connection(host, address.port)
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    finally:
        writer.close()
